"""What is kept of a topic's configs, and what they add up to over the broker's settings."""

from __future__ import annotations

import pytest

from rafka.config import Config
from rafka.errors import ErrorCode, KafkaError
from rafka.machines.config_layers import Layers
from rafka.machines.config_rules import created_configs
from rafka.machines.config_topic_table import TABLE
from rafka.machines.config_values import Source, as_text
from rafka.machines.topic_configs import check_overrides, effective_text, resolve

from . import kafka_config_answers as kafka
from .config_world import World, given

LAYERS = World().layers()


def test_the_table_is_that_of_kafka() -> None:
    answered = [(name, value, kind) for name, value, _, kind, _ in kafka.TOPIC]

    assert [(row.name, as_text(row.default), row.kind) for row in TABLE.values()] == answered


def test_a_broker_without_settings_of_its_own_falls_back_on_the_same_defaults() -> None:
    layers = Layers.of(Config().shown(), {}, {})

    assert {name: effective_text(name, {}, layers) for name in TABLE} == {
        name: as_text(row.default) for name, row in TABLE.items()
    }


def test_a_resolved_config_is_plain_attributes() -> None:
    config = resolve(
        {
            "cleanup.policy": "compact,delete",
            "compression.type": "zstd",
            "compression.zstd.level": "7",
            "message.timestamp.type": "LogAppendTime",
            "retention.ms": "60000",
            "min.cleanable.dirty.ratio": "0.25",
        },
        LAYERS,
    )

    assert config.compact
    assert config.delete
    assert (config.codec, config.compression_level) == (4, 7)
    assert config.log_append_time
    assert config.retention_ms == 60_000
    assert config.min_cleanable_dirty_ratio == 0.25
    assert config.segment_bytes == 1_073_741_824


@pytest.mark.parametrize(
    ("type_", "codec", "level"),
    [
        ("producer", None, None),
        ("uncompressed", 0, None),
        ("gzip", 1, -1),
        ("snappy", 2, None),
        ("lz4", 3, 9),
    ],
)
def test_a_codec_is_told_by_its_number_and_its_level(
    type_: str, codec: int | None, level: int | None
) -> None:
    config = resolve({"compression.type": type_}, LAYERS)

    assert (config.codec, config.compression_level) == (codec, level)


def test_an_empty_cleanup_policy_never_cleans() -> None:
    config = resolve({"cleanup.policy": ""}, LAYERS)

    assert not config.compact
    assert not config.delete


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 604_800_000),
        ({"log_retention_hours": "2"}, 7_200_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3"}, 180_000),
        ({"log_retention_hours": "2", "log_retention_minutes": "3", "log_retention_ms": "4"}, 4),
        ({"log_retention_hours": "-1"}, -1),
    ],
)
def test_retention_falls_back_on_ms_then_minutes_then_hours(settings: dict[str, str], expected: int) -> None:
    layers = World(given(**settings)).layers()

    assert resolve({}, layers).retention_ms == expected


def test_what_is_set_on_the_topic_comes_before_the_broker() -> None:
    layers = World(given(log_retention_ms="4")).layers()

    assert resolve({"retention.ms": "5"}, layers).retention_ms == 5


def test_what_is_set_on_this_broker_comes_before_what_is_set_for_all() -> None:
    layers = Layers.of(
        given(message_max_bytes="1").shown(),
        dynamic={"message.max.bytes": "3"},
        dynamic_default={"message.max.bytes": "2", "log.segment.bytes": "2000000"},
    )

    config = resolve({}, layers)

    assert config.max_message_bytes == 3
    assert config.segment_bytes == 2_000_000


# Text, and what Kafka 4.3.1 made of it.
@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("cleanup.policy", " delete , compact ", "delete,compact"),
        ("cleanup.policy", "delete,delete", "delete"),
        ("cleanup.policy", "", ""),
        ("retention.ms", " 7 ", "7"),
        ("retention.ms", "+9", "9"),
        ("retention.bytes", "-5", "-5"),
        ("preallocate", " TRUE ", "true"),
        ("min.cleanable.dirty.ratio", ".5", "0.5"),
        ("min.cleanable.dirty.ratio", "1e-5", "1.0E-5"),
        ("leader.replication.throttled.replicas", "*", "*"),
        ("leader.replication.throttled.replicas", "0:1, 2:3", "0:1,2:3"),
        ("remote.storage.enable", "false", "false"),
        ("remote.log.copy.disable", "true", "true"),
        ("local.retention.ms", "9999999999999", "9999999999999"),
        ("compression.zstd.level", "-131072", "-131072"),
        ("max.message.bytes", "0", "0"),
        ("segment.jitter.ms", "800000000000", "800000000000"),
    ],
)
def test_what_fits_is_kept_as_kafka_would_tell_it(name: str, text: str, kept: str) -> None:
    assert check_overrides({name: text}, LAYERS) == {name: kept}


# Text, and the words with which Kafka 4.3.1 refused it.
@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "retention.ms",
            "soon",
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", "", "Invalid value  for configuration retention.ms: Not a number of type LONG"),
        (
            "delete.retention.ms",
            "9223372036854775808",
            "Invalid value 9223372036854775808 for configuration delete.retention.ms: "
            "Not a number of type LONG",
        ),
        (
            "segment.bytes",
            "3000000000",
            "Invalid value 3000000000 for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "segment.bytes",
            "5",
            "Invalid value 5 for configuration segment.bytes: Value must be at least 1048576",
        ),
        ("no.such", "1", "Unknown topic config name: no.such"),
        ("message.format.version", "2.0", "Unknown topic config name: message.format.version"),
        (
            "cleanup.policy",
            "a",
            "Invalid value a for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            "compression.type",
            "none",
            "Invalid value none for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            "preallocate",
            "yes",
            "Invalid value yes for configuration preallocate: Expected value to be either true or false",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            "compression.gzip.level",
            "0",
            "Invalid value 0 for configuration compression.gzip.level: "
            "Value must be between 1 and 9 or equal to -1",
        ),
        (
            "leader.replication.throttled.replicas",
            "0",
            "Invalid value 0 for configuration leader.replication.throttled.replicas: "
            "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in the "
            "following format: [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
        (
            "remote.storage.enable",
            "true",
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        ),
        ("message.timestamp.type", "logappendtime", None),
        ("min.insync.replicas", "0", None),
        ("flush.messages", "0", None),
        ("index.interval.bytes", "-1", None),
        ("segment.index.bytes", "3", None),
        ("local.retention.ms", "-3", None),
        ("compression.lz4.level", "0", None),
        ("compression.zstd.level", "23", None),
        ("min.cleanable.dirty.ratio", "NaN", None),
    ],
)
def test_what_does_not_fit_is_refused_in_kafkas_words(name: str, text: str, words: str | None) -> None:
    with pytest.raises(KafkaError) as refused:
        check_overrides({name: text}, LAYERS)

    assert refused.value.code is ErrorCode.INVALID_CONFIG
    assert words is None or refused.value.message == words


def test_an_unknown_name_is_told_before_a_bad_value() -> None:
    with pytest.raises(KafkaError, match="Unknown topic config name: zz"):
        check_overrides({"retention.ms": "x", "zz": "1"}, LAYERS)


def test_a_null_value_is_refused() -> None:
    with pytest.raises(KafkaError, match=r"Null value not supported for topic configs: retention\.ms"):
        check_overrides({"retention.ms": None}, LAYERS)


def test_the_least_compaction_lag_may_not_pass_the_greatest() -> None:
    with pytest.raises(KafkaError) as refused:
        check_overrides({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, LAYERS)

    assert refused.value.message == (
        "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    )


def test_a_topics_lag_is_held_against_the_brokers_where_it_has_but_one() -> None:
    layers = World(given(log_cleaner_max_compaction_lag_ms="100")).layers()

    with pytest.raises(KafkaError, match="conflict"):
        check_overrides({"min.compaction.lag.ms": "200"}, layers)


def test_a_new_topics_configs_are_told_with_their_sources() -> None:
    layers = World(given(log_retention_hours="100", log_segment_bytes="2000000")).layers()

    told = {c.name: (c.value, c.config_source) for c in created_configs({"retention.bytes": "5"}, layers)}

    assert list(told) == sorted(TABLE)
    assert told["retention.bytes"] == ("5", Source.TOPIC)
    assert told["segment.bytes"] == ("2000000", Source.STATIC_BROKER)
    # Here Kafka counts the hours as the broker's word; DescribeConfigs does not.
    assert told["retention.ms"] == ("360000000", Source.STATIC_BROKER)
    assert told["min.insync.replicas"] == ("1", Source.DYNAMIC_DEFAULT_BROKER)
    assert told["flush.ms"] == ("9223372036854775807", Source.DEFAULT)


def test_what_a_new_topic_was_given_is_told_letter_for_letter() -> None:
    """As Apache Kafka does in CreateTopics, though DescribeConfigs then tells the value it made of it."""
    given = {"cleanup.policy": "compact, delete", "preallocate": "TRUE", "retention.ms": " 5 "}

    told = {c.name: c.value for c in created_configs(given, Layers())}

    assert {name: told[name] for name in given} == given
