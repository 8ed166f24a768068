"""DescribeConfigs and ListConfigResources, against what Apache Kafka 4.3.1 answered."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.config_rules import describe, list_resources
from rafka.machines.config_values import ResourceType, Source
from rafka.ops.cluster import ConfigEntry, ConfigResource, DescribeConfigs, ListConfigResources

from . import kafka_config_answers as kafka
from .config_world import NODE, World, given

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP


def row(entry: ConfigEntry) -> kafka.Row:
    assert entry.value is not None
    return entry.name, entry.value, entry.config_source, entry.config_type, synonyms(entry)


def synonyms(entry: ConfigEntry) -> list[tuple[str, str, int]]:
    return [(s.name, s.value or "", s.source) for s in entry.synonyms]


@pytest.mark.parametrize(
    ("kind", "name", "answer"),
    [(TOPIC, "orders", kafka.TOPIC), (GROUP, "any", kafka.GROUP), (METRICS, "any", kafka.METRICS)],
)
def test_nothing_set_is_described_as_kafka_describes_it(
    kind: int, name: str, answer: list[kafka.Row]
) -> None:
    described = World().described(kind, name)

    assert [row(entry) for entry in described.configs] == answer
    assert not any(entry.read_only or entry.is_sensitive for entry in described.configs)


def test_what_is_set_on_a_topic_comes_first_among_the_synonyms() -> None:
    world = World()
    world.set(TOPIC, "orders", "retention.bytes", "-1")

    entry = world.entry(TOPIC, "orders", "retention.bytes")

    assert entry.config_source == Source.TOPIC  # although it equals the default
    assert synonyms(entry) == [("retention.bytes", "-1", 1), ("log.retention.bytes", "-1", 5)]


# The answers of a Kafka that was started with these settings.
GIVEN = {"log_retention_hours": "100", "log_segment_bytes": "2000000", "log_roll_ms": "86400000"}


@pytest.mark.parametrize(
    ("key", "value", "source", "others"),
    [
        (
            "segment.bytes",
            "2000000",
            4,
            [("log.segment.bytes", "2000000", 4), ("log.segment.bytes", "1073741824", 5)],
        ),
        ("retention.ms", "360000000", 5, []),
        ("segment.ms", "86400000", 4, [("log.roll.ms", "86400000", 4), ("log.roll.hours", "168", 5)]),
    ],
)
def test_what_was_given_at_start_is_told_under_the_brokers_names(
    key: str, value: str, source: int, others: list[tuple[str, str, int]]
) -> None:
    entry = World(given(**GIVEN)).entry(TOPIC, "orders", key)

    assert (entry.value, entry.config_source, synonyms(entry)) == (value, source, others)


def test_dynamic_settings_of_the_broker_come_before_those_of_all_and_those_given() -> None:
    world = World(given(log_retention_hours="100"))
    world.set(BROKER, NODE, "log.retention.ms", "777000")
    world.set(BROKER, "", "log.retention.ms", "888000")

    entry = world.entry(TOPIC, "orders", "retention.ms")

    assert (entry.value, entry.config_source) == ("777000", Source.DYNAMIC_BROKER)
    assert synonyms(entry) == [
        ("log.retention.ms", "777000", 2),
        ("log.retention.ms", "888000", 3),
        ("log.retention.hours", "100", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_keys_that_are_not_known_are_left_out() -> None:
    world = World()

    assert [e.name for e in world.described(TOPIC, "orders", "no.such.key", "cleanup.policy").configs] == [
        "cleanup.policy"
    ]
    assert world.described(TOPIC, "orders", "no.such.key").configs == []


def test_synonyms_and_documentation_are_told_where_asked_for() -> None:
    world = World()
    resource = ConfigResource(resource_type=TOPIC, resource_name="orders")

    plain = world.described(TOPIC, "orders", "segment.bytes", synonyms=False).configs[0]
    full = describe(DescribeConfigs(resources=[resource], include_documentation=True), world.state()).results[
        0
    ]

    assert plain.synonyms == ()
    assert plain.documentation is None
    assert all(entry.documentation for entry in full.configs)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "98", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (BROKER, "9" * 5000, ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "9", ErrorCode.INVALID_REQUEST),
        (METRICS, "", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        *((kind, "x", ErrorCode.INVALID_REQUEST) for kind in (0, 1, 3, 64, 127)),
    ],
)
def test_who_cannot_be_described_is_answered_with_a_code_and_no_configs(
    kind: int, name: str, code: ErrorCode
) -> None:
    described = World().described(kind, name)

    assert (described.error_code, described.configs) == (code, ())
    assert described.error_message
    assert (described.resource_type, described.resource_name) == (kind, name)


def test_whoever_names_a_resource_again_and_again_is_told_of_it_only_as_long_as_there_is_room() -> None:
    """A request of some kilobytes would else keep the broker busy for minutes."""
    op = DescribeConfigs(resources=[ConfigResource(resource_type=BROKER, resource_name=NODE)] * 2000)

    results = describe(op, World().state(), 1_000_000).results

    told = [described for described in results if not described.error_code]
    assert 10 < len(told) < 100
    assert results[: len(told)] == told
    assert {described.error_code for described in results[len(told) :]} == {ErrorCode.INVALID_REQUEST}


def test_a_resource_that_is_asked_for_first_is_told_of_however_large_it_is() -> None:
    op = DescribeConfigs(resources=[ConfigResource(resource_type=BROKER, resource_name=NODE)])

    assert describe(op, World().state(), 1024).results[0].configs


def test_topics_on_which_different_things_are_set_are_told_of_each_as_it_is() -> None:
    """Those on which the same is set share their entries."""
    world = World()
    world.set(TOPIC, "orders", "retention.bytes", "7")
    resources = [ConfigResource(resource_type=TOPIC, resource_name=name) for name in ("orders", "audit")]

    orders, audit = describe(DescribeConfigs(resources=resources), world.state()).results

    assert {e.name: e.value for e in orders.configs}["retention.bytes"] == "7"
    assert {e.name: e.value for e in audit.configs}["retention.bytes"] == "-1"


def test_what_is_described_has_an_empty_message_and_not_none() -> None:
    assert World().described(TOPIC, "orders").error_message == ""


def test_a_broker_tells_what_it_was_given_and_what_it_assumes() -> None:
    world = World(given(num_partitions="3"))

    partitions = world.entry(BROKER, NODE, "num.partitions")
    retention = world.entry(BROKER, NODE, "log.retention.ms")
    cleanup = world.entry(BROKER, NODE, "log.cleanup.policy")

    assert (partitions.value, partitions.config_source, partitions.read_only) == ("3", 4, True)
    assert synonyms(partitions) == [("num.partitions", "3", 4), ("num.partitions", "1", 5)]
    assert (retention.value, retention.config_source, retention.read_only) == (None, 5, False)
    assert (cleanup.value, cleanup.config_type, cleanup.read_only) == ("delete", 7, False)


def test_a_broker_tells_where_it_is_and_where_its_logs_are() -> None:
    world = World(given(listen="127.0.0.1:19", storage="file:/srv/rafka"))

    told = {
        key: world.entry(BROKER, NODE, key).value for key in ("listeners", "advertised.listeners", "log.dirs")
    }

    assert told == {
        "listeners": "PLAINTEXT://127.0.0.1:19",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:19",
        "log.dirs": "/srv/rafka",
    }


def test_all_brokers_together_tell_just_what_was_set_for_all() -> None:
    world = World()
    world.set(BROKER, "", "log.retention.ms", "888000")

    described = world.described(BROKER, "")

    assert [(e.name, e.value, e.config_source) for e in described.configs] == [
        ("log.retention.ms", "888000", 3),
        ("min.insync.replicas", "1", 3),
    ]


def test_a_key_that_means_nothing_here_is_kept_and_its_value_is_not_told() -> None:
    world = World()
    world.set(BROKER, NODE, "no.such.key", "secret")

    entry = world.entry(BROKER, NODE, "no.such.key")

    assert (entry.value, entry.is_sensitive, entry.read_only, entry.config_source) == (None, True, True, 2)


def test_a_key_that_means_nothing_here_is_told_of_a_broker_too_where_it_was_set_for_all() -> None:
    world = World()
    world.set(BROKER, "", "no.such.key", "secret")

    of_all = world.entry(BROKER, NODE, "no.such.key")
    world.set(BROKER, NODE, "no.such.key", "other")
    own = world.entry(BROKER, NODE, "no.such.key")

    assert (of_all.value, of_all.is_sensitive, of_all.config_source) == (None, True, 3)
    assert own.config_source == 2


def test_loggers_are_told_with_their_levels() -> None:
    described = World().described(LOGGER, NODE)

    assert [(e.name, e.value, e.config_source) for e in described.configs] == [
        ("rafka.storage", "WARN", 6),
        ("root", "INFO", 6),
    ]


def test_what_has_configs_is_listed_by_type() -> None:
    world = World()
    world.set(GROUP, "g", "consumer.session.timeout.ms", "50000")
    world.set(METRICS, "m", "interval.ms", "5000")

    def listed(*types: int) -> list[tuple[int, str]]:
        reply = list_resources(ListConfigResources(resource_types=list(types)), world.state())
        return [(r.resource_type, r.resource_name) for r in reply.config_resources]

    assert listed() == [(32, "g"), (16, "m"), (8, "0"), (4, "0"), (2, "audit"), (2, "orders")]
    assert listed(4, 2) == [(4, "0"), (2, "audit"), (2, "orders")]
    with pytest.raises(KafkaError) as refused:
        listed(2, 99)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_the_first_version_lists_client_metrics_only() -> None:
    world = World()
    world.set(METRICS, "m", "interval.ms", "5000")

    reply = list_resources(ListConfigResources(), world.state())

    assert [(r.resource_type, r.resource_name) for r in reply.config_resources] == [(16, "m")]
