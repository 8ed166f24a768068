"""Who is heard when several say how a setting should be, and what is said to those who err."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rafka.config import Config, ConfigError, load


def settings(**by_name: str) -> list[tuple[str, str, str]]:
    return [(name.replace("_", "."), value, "--set") for name, value in by_name.items()]


def test_without_anything_there_are_defaults() -> None:
    config = load()

    assert config.topics.partitions == 1
    assert config.source("num.partitions") == "default"
    assert config.warnings == ()


def test_flags_come_before_ours_before_kafkas_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "rafka.toml"
    file.write_text("num.partitions = 2\nfetch.max.bytes = 2000\nbroker.rack = 'file'\nnode.id = 2\n")
    environ = {
        "KAFKA_NUM_PARTITIONS": "3",
        "KAFKA_FETCH_MAX_BYTES": "3000",
        "KAFKA_BROKER_RACK": "kafka",
        "RAFKA_NUM_PARTITIONS": "4",
        "RAFKA_FETCH_MAX_BYTES": "4000",
    }

    config = load(flags=settings(num_partitions="5"), environ=environ, file=str(file))

    assert (config.topics.partitions, config.source("num.partitions")) == (5, "--set")
    assert (config.fetch.max_bytes, config.source("fetch.max.bytes")) == (4000, "RAFKA_FETCH_MAX_BYTES")
    assert (config.broker.rack, config.source("broker.rack")) == ("kafka", "KAFKA_BROKER_RACK")
    assert (config.broker.node_id, config.source("node.id")) == (2, str(file))


def test_a_stronger_alias_comes_before_a_weaker_key(tmp_path: Path) -> None:
    file = tmp_path / "rafka.toml"
    file.write_text('storage = "memory:"\n')

    config = load(environ={"KAFKA_LOG_DIRS": "/srv/logs"}, file=str(file))

    assert config.storage.place.path == "/srv/logs"


def test_in_one_file_our_name_comes_before_kafkas(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listen=127.0.0.1:1\nlisteners=PLAINTEXT://127.0.0.1:2\n")

    config = load(file=str(file))

    assert [one.port for one in config.network.listen] == [1]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("num.partitions", "0", "num.partitions=0 (from --set): must be 1 to 2147483647"),
        ("num.partitions", "x", "num.partitions=x (from --set): must be a whole number, 1 to 2147483647"),
        ("num.partitions", "1.5", "num.partitions=1.5 (from --set): must be a whole number, 1 to 2147483647"),
        (
            "auto.create.topics.enable",
            "yes",
            "auto.create.topics.enable=yes (from --set): must be true or false",
        ),
        ("durability", "none", "durability=none (from --set): must be fsync or page-cache"),
        ("log.cleanup.policy", "rm", "log.cleanup.policy=rm (from --set): must be delete or compact"),
        ("log.retention.ms", "0", "log.retention.ms=0 (from --set): must be -1 (for ever) or at least 1"),
        ("storage", "s3://b", "storage=s3://b (from --set): must be memory:, file:DIR, or a directory"),
        ("log.dirs", "/a,/b", "log.dirs=/a,/b (from --set): all records are kept in one directory"),
        (
            "num.partitons",
            "1",
            "num.partitons (from --set): there is no such setting; did you mean num.partitions?",
        ),
    ],
)
def test_a_mistake_is_told_with_its_key_its_value_its_source_and_the_way_out(
    key: str, value: str, words: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        load(flags=[(key, value, "--set")])

    assert str(refused.value) == words


def test_two_settings_that_contradict_each_other_are_told_with_the_source_of_the_one() -> None:
    with pytest.raises(ConfigError, match=r"min\.compaction\.lag\.ms=9 \(from --set\): must be at most"):
        load(flags=settings(log_cleaner_min_compaction_lag_ms="9", log_cleaner_max_compaction_lag_ms="5"))


def test_values_made_in_python_meet_the_same_bounds() -> None:
    from rafka.config.sections import Topics

    with pytest.raises(ConfigError, match=r"num\.partitions=0: must be 1 to"):
        Topics(partitions=0)


def test_an_unknown_variable_of_ours_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"from RAFKA_NUM_PARTITION\).*did you mean RAFKA_NUM_PARTITIONS\?"):
        load(environ={"RAFKA_NUM_PARTITION": "1"})


def test_an_unknown_variable_of_kafkas_may_be_another_programs() -> None:
    config = load(environ={"KAFKA_FAVOURITE_COLOUR": "blue"})

    assert config.warnings == ("passed over, for these variables name no setting: KAFKA_FAVOURITE_COLOUR",)


def test_what_kafka_knows_and_rafka_has_no_use_for_is_told_once() -> None:
    config = load(environ={"KAFKA_PROCESS_ROLES": "broker", "KAFKA_NUM_IO_THREADS": "8"})

    [warning] = config.warnings
    assert warning.endswith("of Kafka's: num.io.threads, process.roles")


def test_a_lock_that_rafka_does_not_have_is_not_passed_over() -> None:
    with pytest.raises(ConfigError, match="authorisation is not served yet"):
        load(flags=[("authorizer.class.name", "org.apache.kafka.Authorizer", "--set")])


def test_variables_that_are_no_settings_are_passed_over_in_silence() -> None:
    environ = {
        "KAFKA_OPTS": "-Xmx1g",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_LOG4J_ROOT_LOGLEVEL": "INFO",
        "KAFKA_JMX_PORT": "1",
        "KAFKA_BOOTSTRAP_SERVERS": "a:1",
        "KAFKA_PORT": "tcp://10.0.0.1:9092",  # Kubernetes says so of a service called kafka
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "RAFKA_SERVICE_HOST": "10.0.0.1",
        "RAFKA_BOOTSTRAP": "a:1",
    }

    config = load(environ=environ)

    assert (config.sources, config.warnings) == ({}, ())


def test_an_empty_text_is_no_value_where_there_need_be_none() -> None:
    config = load(environ={"KAFKA_LOG_RETENTION_MS": "", "KAFKA_BROKER_RACK": ""})

    assert config.log.retention_ms is None
    assert config.broker.rack is None


def test_a_compose_file_for_kafka_is_used_as_it_is() -> None:
    environ = {
        "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": "PLAINTEXT://:29092,PLAINTEXT_HOST://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:29092,PLAINTEXT_HOST://localhost:9092",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT"
        ),
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka:9093",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_LOG_DIRS": "/tmp/kraft-combined-logs",
        "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    }

    config = load(environ=environ)

    assert (config.broker.node_id, config.broker.cluster_id) == (1, "MkU3OEVBNTcwNTJENDM2Qk")
    assert [str(one) for one in config.network.listen] == ["PLAINTEXT://:29092", "PLAINTEXT_HOST://:9092"]
    assert str(config.network.advertised(0, 29092)) == "PLAINTEXT://kafka:29092"
    assert str(config.network.advertised(1, 9092)) == "PLAINTEXT_HOST://localhost:9092"
    assert not config.topics.auto_create
    assert config.storage.place.path == "/tmp/kraft-combined-logs"
    assert len(config.warnings) == 2  # the keys without a use here, and the controller's listener


def test_changing_a_running_brokers_settings_keeps_the_others() -> None:
    started = load(flags=settings(num_partitions="3"))

    changed = started.changed({"log.cleaner.backoff.ms": "2", "log.cleanup.policy": "compact"})

    assert changed.cleaner.backoff_ms == 2
    assert changed.log.cleanup_policy == ("compact",)
    assert changed.topics.partitions == 3
    assert changed.source("log.cleaner.backoff.ms") == "dynamic"
    assert started.cleaner.backoff_ms == 15_000


def test_every_setting_is_explained() -> None:
    rows = {row.key: row for row in load(flags=settings(num_partitions="3")).explain()}

    assert (rows["num.partitions"].value, rows["num.partitions"].source) == ("3", "--set")
    assert (rows["log.retention.ms"].value, rows["log.retention.ms"].source) == ("", "default")
    assert all(row.doc.endswith(".") for row in rows.values())


def test_every_key_is_there_once_under_every_name() -> None:
    names = [name for _, _, about in Config()._settings() for name in about.names]

    assert len(names) == len(set(names))


def test_defaults_import_nothing_that_reads_settings() -> None:
    code = (
        "import sys; from rafka.config import load; load(environ={'HOME': '/root'});"
        "dear = ('cattrs', 'tomllib', 'difflib', 'trio', 'rafka.config.kafka_names');"
        "print([m for m in dear if m in sys.modules])"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed == "[]\n"
