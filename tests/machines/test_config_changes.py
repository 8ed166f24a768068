"""IncrementalAlterConfigs and AlterConfigs, against what Apache Kafka 4.3.1 answered."""

from __future__ import annotations

from time import perf_counter

import pytest

from rafka.errors import ErrorCode
from rafka.machines.config_changes import Operation, change, initial_cluster_overrides
from rafka.machines.config_values import ResourceType
from rafka.ops.cluster import ChangedResource, ConfigChange, IncrementalAlterConfigs

from .config_world import NODE, Wanted, World, code, given

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP
SET, DELETE, APPEND, SUBTRACT = Operation
NONE, INVALID_REQUEST, INVALID_CONFIG = ErrorCode.NONE, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
UNKNOWN_TOPIC, UNFORESEEN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_SERVER_ERROR


def test_what_is_set_counts_and_what_is_deleted_no_longer_does() -> None:
    world = World()

    world.change(TOPIC, "orders", ("retention.ms", SET, "123456"), ("cleanup.policy", SET, "compact"))
    world.change(TOPIC, "orders", ("retention.ms", DELETE, None))

    assert world.overrides[TOPIC, "orders"] == {"cleanup.policy": "compact"}


# Tried on a Kafka in this order of columns: which topic, what was wanted, what it answered.
@pytest.mark.parametrize(
    ("name", "wanted", "expected"),
    [
        ("orders", [("retention.ms", SET, "soon")], INVALID_CONFIG),
        ("orders", [("retention.ms", SET, "-2")], INVALID_CONFIG),
        ("orders", [("no.such.key", SET, "1")], INVALID_CONFIG),
        ("orders", [("no.such.key", DELETE, None)], NONE),
        ("orders", [("retention.ms", SET, None)], INVALID_REQUEST),
        ("orders", [("retention.ms", 9, "1")], UNFORESEEN),
        ("orders", [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], INVALID_REQUEST),
        ("orders", [("retention.ms", SET, "5000"), ("min.insync.replicas", SET, "0")], INVALID_CONFIG),
        ("orders", [("retention.ms", APPEND, "1")], INVALID_CONFIG),
        ("orders", [("retention.ms", SUBTRACT, "1")], INVALID_CONFIG),
        ("orders", [], NONE),
        ("nope", [], UNKNOWN_TOPIC),
        ("nope", [("retention.ms", SET, "1")], UNKNOWN_TOPIC),
        ("nope", [("zzz", SET, "1")], INVALID_CONFIG),
        ("nope", [("retention.ms", SET, "1"), ("retention.ms", SET, "1")], INVALID_REQUEST),
        ("", [("retention.ms", SET, "1")], INVALID_REQUEST),
        ("bad!", [("retention.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_topic_takes_all_changes_or_none(name: str, wanted: list[Wanted], expected: ErrorCode) -> None:
    world = World()

    decision = world.change(TOPIC, name, *wanted)

    assert code(decision) == expected
    assert world.overrides.get((TOPIC, name), {}) == {}


# A list begins as Kafka's default and not as the broker's setting, as in Kafka.
@pytest.mark.parametrize(
    ("before", "operation", "text", "after"),
    [
        (None, APPEND, "compact", "delete,compact"),
        (None, APPEND, "compact,compact", "delete,compact"),
        (None, SUBTRACT, "delete", ""),
        (None, SUBTRACT, "compact", "delete"),
        ("compact", APPEND, "delete", "compact,delete"),
        ("compact", APPEND, "compact", "compact"),
    ],
)
def test_lists_are_appended_to_and_subtracted_from(
    before: str | None, operation: Operation, text: str, after: str
) -> None:
    world = World(given(log_cleanup_policy="compact,delete"))
    if before is not None:
        world.set(TOPIC, "orders", "cleanup.policy", before)

    world.change(TOPIC, "orders", ("cleanup.policy", operation, text))

    assert world.overrides[TOPIC, "orders"] == {"cleanup.policy": after}


def test_whoever_is_refused_is_told_why() -> None:
    [refused] = World().change(TOPIC, "no such", ("retention.ms", SET, "1")).reply.responses
    [granted] = World().change(TOPIC, "orders", ("retention.ms", SET, "1")).reply.responses

    assert refused.error_message
    assert granted.error_message is None


def test_to_validate_only_sets_nothing() -> None:
    world = World()

    good = world.change(TOPIC, "orders", ("retention.ms", SET, "1"), validate_only=True)
    bad = world.change(TOPIC, "orders", ("retention.ms", SET, "x"), validate_only=True)

    assert (code(good), code(bad)) == (NONE, INVALID_CONFIG)
    assert (TOPIC, "orders") not in world.overrides


def test_resources_are_decided_each_by_itself_and_none_twice() -> None:
    def wants(name: str, value: str) -> ChangedResource:
        configs = [ConfigChange(name="retention.ms", config_operation=SET, value=value)]
        return ChangedResource(resource_type=TOPIC, resource_name=name, configs=configs)

    def answers(*resources: ChangedResource) -> list[ErrorCode]:
        op = IncrementalAlterConfigs(resources=list(resources), validate_only=False)
        return [r.error_code for r in change(op, World().state()).reply.responses]

    assert answers(wants("orders", "1"), wants("audit", "soon")) == [NONE, INVALID_CONFIG]
    assert answers(wants("orders", "1"), wants("orders", "2")) == [INVALID_REQUEST] * 2


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cleanup.policy", "delete" + " " * 30_000 + "x"),
        ("cleanup.policy", "delete," * 4000),
        ("min.cleanable.dirty.ratio", "1" * 30_000 + "x"),
        ("retention.ms", "1" * 30_000),
    ],
    ids=["blanks", "items", "digits", "number"],
)
def test_a_value_that_is_long_is_checked_at_once(key: str, value: str) -> None:
    """What takes the square of its length would hold everybody up for seconds."""
    world, began = World(), perf_counter()

    for operation in (SET, APPEND, SUBTRACT):
        world.change(TOPIC, "orders", (key, operation, value))

    assert perf_counter() - began < 1


def test_no_more_resources_have_configs_than_may() -> None:
    world = World()
    world.set(GROUP, "old", "consumer.session.timeout.ms", "46000")
    world.most = len(world.overrides) + 1

    codes = [
        world.set(GROUP, name, "consumer.session.timeout.ms", "47000") for name in ("new", "newer", "old")
    ]
    topic = world.set(TOPIC, "orders", "retention.ms", "5")

    assert codes == [NONE, ErrorCode.POLICY_VIOLATION, NONE]
    assert topic == NONE, "topics are counted elsewhere"


def test_an_unknown_kind_of_resource_is_refused() -> None:
    assert code(World().change(99, "x", ("a", SET, "b"))) == INVALID_REQUEST


@pytest.mark.parametrize(
    ("name", "wanted", "expected"),
    [
        (NODE, [("log.cleaner.threads", SET, "1")], NONE),
        (NODE, [("broker.id", SET, "7")], INVALID_REQUEST),
        (NODE, [("num.partitions", SET, "7")], INVALID_REQUEST),
        ("", [("num.partitions", SET, "7")], INVALID_REQUEST),
        (NODE, [("num.partitions", DELETE, None)], NONE),
        (NODE, [("no.such.key", SET, "1")], NONE),
        (NODE, [("log.retention.ms", SET, "soon")], INVALID_REQUEST),
        (NODE, [("log.retention.ms", SET, "0")], INVALID_REQUEST),
        (NODE, [("log.retention.ms", SET, None)], INVALID_REQUEST),
        (NODE, [("log.retention.ms", 7, "1")], INVALID_REQUEST),
        (NODE, [("log.retention.ms", APPEND, "1")], INVALID_CONFIG),
        (NODE, [("log.cleanup.policy", SET, "x")], INVALID_REQUEST),
        (NODE, [("log.cleanup.policy", APPEND, "compact")], NONE),
        ("", [("message.max.bytes", SET, "-5")], INVALID_REQUEST),
        ("", [("log.retention.ms", SET, "1000000")], NONE),
        ("98", [("log.retention.ms", SET, "1")], INVALID_REQUEST),
        ("x", [("log.retention.ms", SET, "1")], INVALID_REQUEST),
        ("", [("listeners", SET, "PLAINTEXT://:1")], INVALID_REQUEST),
        (NODE, [("listeners", SET, "PLAINTEXT://:1")], INVALID_REQUEST),
        (NODE, [("min.insync.replicas", SET, "1")], INVALID_CONFIG),
        (NODE, [("min.insync.replicas", SET, "0")], INVALID_REQUEST),
        ("", [("min.insync.replicas", DELETE, None)], INVALID_CONFIG),
        ("", [("min.insync.replicas", SET, "0")], INVALID_REQUEST),
        ("", [("min.insync.replicas", SET, "2")], NONE),
    ],
)
def test_a_broker_takes_what_may_change_while_it_runs(
    name: str, wanted: list[Wanted], expected: ErrorCode
) -> None:
    assert code(World().change(BROKER, name, *wanted)) == expected


def test_settings_that_contradict_each_other_over_two_layers_are_refused() -> None:
    world = World()
    world.set(BROKER, "", "log.cleaner.max.compaction.lag.ms", "5")

    assert world.set(BROKER, NODE, "log.cleaner.min.compaction.lag.ms", "9") == INVALID_REQUEST


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([("consumer.session.timeout.ms", SET, "50000")], NONE),
        ([("consumer.session.timeout.ms", SET, "44999")], INVALID_CONFIG),
        ([("consumer.session.timeout.ms", SET, "60001")], INVALID_CONFIG),
        ([("consumer.session.timeout.ms", SET, "x")], INVALID_CONFIG),
        ([("share.delivery.count.limit", SET, "10")], NONE),
        ([("share.delivery.count.limit", SET, "11")], INVALID_CONFIG),
        ([("share.record.lock.duration.ms", SET, "14999")], INVALID_CONFIG),
        ([("streams.num.standby.replicas", SET, "2")], NONE),
        ([("streams.num.standby.replicas", SET, "3")], INVALID_CONFIG),
        ([("streams.initial.rebalance.delay.ms", SET, "999999")], NONE),
        ([("share.auto.offset.reset", SET, "earliest")], NONE),
        ([("share.auto.offset.reset", SET, "Latest")], INVALID_CONFIG),
        ([("share.auto.offset.reset", SET, "by_duration:PT1H")], NONE),
        ([("share.auto.offset.reset", SET, "by_duration:x")], INVALID_CONFIG),
        ([("share.isolation.level", SET, "READ_COMMITTED")], INVALID_CONFIG),
        ([("x", SET, "1")], INVALID_CONFIG),
        ([("x", DELETE, None)], NONE),
        ([("consumer.session.timeout.ms", APPEND, "45000")], INVALID_CONFIG),
    ],
)
def test_a_groups_configs_stay_in_their_bounds(wanted: list[Wanted], expected: ErrorCode) -> None:
    assert code(World().change(GROUP, "g", *wanted)) == expected


def test_a_group_needs_a_name() -> None:
    assert World().set(GROUP, "", "consumer.session.timeout.ms", "45000") == INVALID_REQUEST


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([("interval.ms", SET, "100")], NONE),
        ([("interval.ms", SET, "99")], INVALID_REQUEST),
        ([("interval.ms", SET, "3600001")], INVALID_REQUEST),
        ([("interval.ms", SET, "x")], INVALID_CONFIG),
        ([("metrics", SET, "a,b")], NONE),
        ([("metrics", APPEND, "c")], INVALID_CONFIG),
        ([("match", SET, "client_id=a.*,client_software_name=x")], NONE),
        ([("match", SET, "client_id=[a")], INVALID_CONFIG),
        ([("match", SET, "client_id=" + "(" * 5000)], INVALID_CONFIG),
        ([("match", SET, "client_id=a{" + "9" * 99 + "}")], INVALID_CONFIG),
        ([("match", SET, "client_id")], INVALID_CONFIG),
        ([("match", SET, "foo=1")], INVALID_CONFIG),
        ([("zzz", SET, "1")], INVALID_REQUEST),
    ],
)
def test_a_metrics_subscription_is_checked(wanted: list[Wanted], expected: ErrorCode) -> None:
    assert code(World().change(METRICS, "m", *wanted)) == expected


@pytest.mark.parametrize(
    ("name", "wanted", "expected", "levels"),
    [
        (NODE, [("root", SET, "DEBUG")], NONE, {"root": "DEBUG"}),
        (NODE, [("rafka.storage", DELETE, None)], NONE, {"rafka.storage": None}),
        (NODE, [("root", SET, "info")], INVALID_CONFIG, {}),
        (NODE, [("root", SET, "OFF")], INVALID_CONFIG, {}),
        (NODE, [("nope", SET, "INFO")], INVALID_CONFIG, {}),
        (NODE, [("root", DELETE, None)], INVALID_REQUEST, {}),
        (NODE, [("root", APPEND, "INFO")], INVALID_REQUEST, {}),
        (NODE, [("root", SET, None)], INVALID_REQUEST, {}),
        (NODE, [("root", 7, "INFO")], UNFORESEEN, {}),
        (NODE, [("rafka.storage", SET, "INFO"), ("root", SET, "x")], INVALID_CONFIG, {}),
        ("9", [("root", SET, "INFO")], INVALID_REQUEST, {}),
        ("9" * 5000, [("root", SET, "INFO")], INVALID_REQUEST, {}),
        ("", [("root", SET, "INFO")], INVALID_REQUEST, {}),
        (NODE, [], NONE, {}),
    ],
)
def test_levels_of_loggers_are_handed_on(
    name: str, wanted: list[Wanted], expected: ErrorCode, levels: dict[str, str | None]
) -> None:
    decision = World().change(LOGGER, name, *wanted)

    assert (code(decision), decision.levels, list(decision.granted)) == (expected, levels, [])


def test_replacing_forgets_what_is_not_named() -> None:
    world = World()
    world.set(TOPIC, "orders", "retention.bytes", "5")

    answer = world.replace(TOPIC, "orders", ("segment.ms", "5"))

    assert answer == NONE
    assert world.overrides[TOPIC, "orders"] == {"segment.ms": "5"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "expected"),
    [
        (TOPIC, "orders", [("x", "1")], INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", None)], INVALID_REQUEST),
        (TOPIC, "orders", [("retention.ms", "-3")], INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", "1"), ("retention.ms", "1")], INVALID_REQUEST),
        (TOPIC, "nope", [("retention.ms", "1")], UNKNOWN_TOPIC),
        (TOPIC, "", [], INVALID_REQUEST),
        (64, "x", [], INVALID_REQUEST),
        (LOGGER, NODE, [("root", "INFO")], INVALID_REQUEST),
        (BROKER, "", [], INVALID_CONFIG),  # it would take min.insync.replicas away
        (BROKER, NODE, [("log.segment.bytes", "4000000")], NONE),
    ],
)
def test_replacing_is_checked_as_changing_is(
    kind: int, name: str, configs: list[tuple[str, str | None]], expected: ErrorCode
) -> None:
    assert World().replace(kind, name, *configs) == expected


def test_a_new_cluster_sets_the_least_of_replicas_for_all_its_brokers() -> None:
    world = World(given(min_insync_replicas="2"))
    world.overrides = {}

    granted = initial_cluster_overrides(world.state())

    assert (granted.resource_type, granted.resource_name) == (BROKER, "")
    assert granted.configs == {"min.insync.replicas": "2"}
