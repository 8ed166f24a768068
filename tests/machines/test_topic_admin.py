"""Making, deleting and growing topics: one test a rule, numbered as in the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import attrs
import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.catalog import Catalog, PartitionsAdded, TopicCreated, TopicDeleted
from rafka.machines.topic_admin import TopicAdmin, TopicRules
from rafka.ops.topics import (
    CreatedConfig,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DoomedTopic,
    GrownTopic,
    NewTopic,
    NewTopicConfig,
    PartitionAssignment,
    ReplicaAssignment,
)
from rafka.types import NO_TOPIC_ID, OrgId, TopicId

US = OrgId("us")
NODE = 3
NOBODYS = TopicId(b"nobody's id.....")


def check_configs(configs: Mapping[str, str]) -> None:
    if "bogus" in configs or "" in configs.values():
        raise KafkaError(ErrorCode.INVALID_CONFIG)


def describe_configs(configs: Mapping[str, str]) -> Sequence[CreatedConfig]:
    return [CreatedConfig(name=name, value=value, config_source=1) for name, value in configs.items()]


@pytest.fixture
def admin() -> TopicAdmin:
    numbers = count(1)
    rules = TopicRules(
        node_id=NODE,
        default_partitions=4,
        default_replication=1,
        deletable=True,
        check_configs=check_configs,
        describe_configs=describe_configs,
        new_id=lambda: TopicId(next(numbers).to_bytes(16, "big")),
    )
    return TopicAdmin(Catalog(), rules)


def ruled(admin: TopicAdmin, **rules: Any) -> TopicAdmin:
    return attrs.evolve(admin, rules=attrs.evolve(admin.rules, **rules))


def new(
    name: str = "t",
    partitions: int = 1,
    replicas: int = 1,
    placed: Sequence[tuple[int, Sequence[int]]] = (),
    **configs: str | None,
) -> NewTopic:
    return NewTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[ReplicaAssignment(partition_index=i, broker_ids=list(ids)) for i, ids in placed],
        configs=[NewTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def create(admin: TopicAdmin, *topics: NewTopic, **options: object) -> dict[str, int]:
    """Decide and apply; the code of each name."""
    facts, reply = admin.create(CreateTopics(topics=list(topics), **options), US)  # type: ignore[arg-type]
    for fact in facts:
        admin.catalog.apply(fact)
    assert len({topic.name for topic in reply.topics}) == len(reply.topics), "each name is answered once"
    return {topic.name: int(topic.error_code) for topic in reply.topics}


def names(admin: TopicAdmin) -> set[str]:
    return {topic.name for topic in admin.catalog.of(US)}


# --- T: making ----------------------------------------------------------------------------


def test_a_name_twice_in_a_request_is_refused_once_and_not_made(admin: TopicAdmin) -> None:
    """T1, LF-059: the others go on. So also with an invalid name, and where the topic exists."""
    create(admin, new("old"))

    codes = create(admin, new("a"), new("b"), new("a", 2), new("x!"), new("x!"), new("old"), new("old"))

    assert codes == {"a": 42, "b": 0, "x!": 42, "old": 42}
    assert names(admin) == {"old", "b"}


def test_the_topic_of_metadata_cannot_be_made(admin: TopicAdmin) -> None:
    """T2."""
    assert create(admin, new("__cluster_metadata")) == {"__cluster_metadata": 42}


def test_invalid_and_colliding_names_are_refused(admin: TopicAdmin) -> None:
    """T4, LF-059."""
    create(admin, new("a_b"))

    assert create(admin, new("a.b"), new("no!")) == {"a.b": 17, "no!": 17}


def test_two_new_names_that_collide_are_both_made(admin: TopicAdmin) -> None:
    """T4, LF-092; bad input 87."""
    assert create(admin, new("a.b"), new("a_b")) == {"a.b": 0, "a_b": 0}
    assert names(admin) == {"a.b", "a_b"}


def test_a_topic_that_exists_is_not_made_again(admin: TopicAdmin) -> None:
    """T5, LF-059: said before its configs are looked at."""
    create(admin, new("t"))

    assert create(admin, new("t", bogus="1"), new("__consumer_offsets")) == {
        "t": 36,
        "__consumer_offsets": 36,
    }


@pytest.mark.parametrize(("partitions", "replicas"), [(3, -1), (-1, 1), (1, 1)])
def test_placing_by_hand_leaves_no_numbers_to_give(admin: TopicAdmin, partitions: int, replicas: int) -> None:
    """T6, LF-061."""
    assert create(admin, new("t", partitions, replicas, placed=[(0, [NODE])])) == {"t": 42}


@pytest.mark.parametrize(
    "placed",
    [
        pytest.param([(0, [NODE]), (0, [NODE])], id="a partition twice"),
        pytest.param([(0, [NODE]), (2, [NODE])], id="a gap"),
        pytest.param([(1, [NODE])], id="not from 0 on"),
        pytest.param([(-1, [NODE]), (0, [NODE])], id="a negative one"),
        pytest.param([(0, [NODE + 1])], id="an unknown node"),
        pytest.param([(0, [NODE, NODE])], id="a node twice"),
        pytest.param([(0, [NODE]), (1, [])], id="no node"),
    ],
)
def test_replicas_that_cannot_be_placed_so(admin: TopicAdmin, placed: list[tuple[int, list[int]]]) -> None:
    """T7, LF-061."""
    assert create(admin, new("t", -1, -1, placed=placed)) == {"t": 39}


def test_replicas_that_can_be_placed_so(admin: TopicAdmin) -> None:
    """T7: in any order."""
    assert create(admin, new("t", -1, -1, placed=[(1, [NODE]), (0, [NODE])])) == {"t": 0}
    assert admin.catalog.topics[US, "t"].partitions == 2


@pytest.mark.parametrize(
    ("partitions", "replicas", "code"),
    [
        (1, 0, 38), (1, -2, 38), (1, 4, 38), (1, 32767, 38),  # T8
        (0, 1, 37), (-2, 1, 37),  # T9
        (0, 5, 37), (0, 0, 38),  # which is told first: LF-092
        (1, 1, 0), (-1, -1, 0), (3, -1, 0),
    ],
)  # fmt: skip
def test_numbers_that_can_and_cannot_be(admin: TopicAdmin, partitions: int, replicas: int, code: int) -> None:
    """T8, T9, LF-059."""
    assert create(admin, new("t", partitions, replicas)) == {"t": code}


def test_a_default_of_more_replicas_than_there_are_brokers_is_no_better(admin: TopicAdmin) -> None:
    assert create(ruled(admin, default_replication=3), new("t", 1, -1)) == {"t": 38}


def test_ten_thousand_partitions_in_one_request_are_too_many(admin: TopicAdmin) -> None:
    """T9a, LF-092; bad input 88: counted over the request, and all of it is refused."""
    assert create(admin, new("a", 9_999)) == {"a": 0}
    assert create(admin, new("b", 5_000), new("c", 5_000)) == {"b": 44, "c": 44}
    assert create(admin, new("b", 9_996), new("c", -1)) == {"b": 44, "c": 44}, "the default is counted, too"
    assert create(admin, new("b", 10_005), new("c", -10)) == {"b": 44, "c": 44}, "below nothing is nothing"
    assert create(admin, new("b", 6_000), new("b", 6_000)) == {"b": 42}, "what is not made is not counted"


def test_minus_1_is_the_brokers_default(admin: TopicAdmin) -> None:
    """T10."""
    create(admin, new("t", -1, -1))

    assert admin.catalog.topics[US, "t"].partitions == 4


@pytest.mark.parametrize("configs", [{"bogus": "1"}, {"retention_ms": None}, {"retention_ms": ""}])
def test_bad_configs_are_refused(admin: TopicAdmin, configs: dict[str, Any]) -> None:
    """T11, LF-059: said before the numbers are looked at."""
    assert create(admin, new("t", 0, 9, **configs)) == {"t": 40}


def test_of_a_config_that_comes_twice_the_last_value_counts(admin: TopicAdmin) -> None:
    """T11, LF-092."""
    topic = new("t")
    topic.configs = [NewTopicConfig(name="retention.ms", value=v) for v in ("1", "2")]  # type: ignore[misc]

    assert create(admin, topic) == {"t": 0}
    assert admin.catalog.topics[US, "t"].configs == {"retention.ms": "2"}


def test_validating_only_says_the_same_and_makes_nothing(admin: TopicAdmin) -> None:
    """T12, LF-060."""
    op = CreateTopics(topics=[new("t", 2), new("no!")], validate_only=True)

    facts, reply = admin.create(op, US)

    assert facts == []
    assert [(t.error_code, t.num_partitions) for t in reply.topics] == [(0, 2), (17, -1)]
    assert reply.topics[0].topic_id != NO_TOPIC_ID


def test_a_topic_that_is_made_is_told_in_full(admin: TopicAdmin) -> None:
    """T14."""
    facts, reply = admin.create(CreateTopics(topics=[new("t", 3, retention_ms="1"), new("no!")]), US)

    good, bad = reply.topics
    assert facts == [TopicCreated("us", "t", good.topic_id, 3, {"retention.ms": "1"})]
    assert (good.num_partitions, good.replication_factor, good.error_message) == (3, 1, None)
    assert [config.name for config in good.configs] == ["retention.ms"]
    assert (bad.num_partitions, bad.replication_factor, bad.configs, bad.topic_id) == (
        -1,
        -1,
        (),
        NO_TOPIC_ID,
    )
    assert bad.error_message


def test_topics_of_a_request_stand_each_for_itself(admin: TopicAdmin) -> None:
    """T15."""
    assert create(admin, new("a"), new("b", 0), new("c")) == {"a": 0, "b": 37, "c": 0}
    assert names(admin) == {"a", "c"}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_done(admin: TopicAdmin, timeout_ms: int) -> None:
    """T16, LF-092: not made, not deleted, not grown."""
    create(admin, new("t"))
    growing = CreatePartitions(
        topics=[GrownTopic(name="t", count=9)], timeout_ms=timeout_ms, validate_only=False
    )

    assert create(admin, new("a"), new("a"), timeout_ms=timeout_ms) == {"a": 7}
    facts, gone = admin.delete(DeleteTopics(topic_names=["t"], timeout_ms=timeout_ms), US)
    more, grown = admin.grow(growing, US)

    assert facts == more == []
    assert gone.responses[0].error_code == grown.results[0].error_code == 7


def test_no_topics_are_no_error(admin: TopicAdmin) -> None:
    """T17."""
    assert create(admin) == {}


def test_topics_made_by_use_are_those_that_may_be(admin: TopicAdmin) -> None:
    """M3."""
    create(admin, new("a_b"))

    facts = admin.create_by_use(["x", "a.b", "no!", "a_b", "y"], US)

    assert [(f.name, f.partitions) for f in facts if isinstance(f, TopicCreated)] == [("x", 4), ("y", 4)]


def test_deciding_changes_nothing(admin: TopicAdmin) -> None:
    admin.create(CreateTopics(topics=[new("t")]), US)

    assert names(admin) == set()


# --- D: deleting ---------------------------------------------------------------------------


Entry = tuple[str | None, TopicId, int]


def delete(admin: TopicAdmin, *doomed: tuple[str | None, TopicId]) -> tuple[list[Entry], set[str]]:
    """Name, id and code of each answer, and which names were deleted."""
    op = DeleteTopics(topics=[DoomedTopic(name=name, topic_id=topic_id) for name, topic_id in doomed])
    facts, reply = admin.delete(op, US)
    return (
        [(r.name, r.topic_id, int(r.error_code)) for r in reply.responses],
        {fact.name for fact in facts if isinstance(fact, TopicDeleted)},
    )


@pytest.fixture
def some(admin: TopicAdmin) -> TopicAdmin:
    """With the topics a and b."""
    create(admin, new("a"), new("b"))
    return admin


def id_of(admin: TopicAdmin, name: str) -> TopicId:
    return admin.catalog.topics[US, name].topic_id


def test_topics_are_deleted_by_name_or_by_id(some: TopicAdmin) -> None:
    """D1, D4."""
    answers, gone = delete(some, ("a", NO_TOPIC_ID), (None, id_of(some, "b")))

    assert gone == {"a", "b"}
    assert answers == [("a", id_of(some, "a"), 0), ("b", id_of(some, "b"), 0)]


def test_old_versions_name_them_in_a_list(some: TopicAdmin) -> None:
    facts, reply = some.delete(DeleteTopics(topic_names=["a", "nobody", "b", "b"]), US)

    assert [fact.name for fact in facts if isinstance(fact, TopicDeleted)] == ["a"]
    assert [(r.name, int(r.error_code)) for r in reply.responses] == [("a", 0), ("nobody", 3), ("b", 42)]


def test_unknown_topics_are_told_in_the_way_they_were_named(some: TopicAdmin) -> None:
    """D1, LF-062."""
    answers, gone = delete(some, ("nobody", NO_TOPIC_ID), (None, NOBODYS))

    assert answers == [("nobody", NO_TOPIC_ID, 3), (None, NOBODYS, 100)]
    assert not gone


def test_a_topic_of_another_organisation_is_unknown(some: TopicAdmin) -> None:
    op = DeleteTopics(topics=[DoomedTopic(topic_id=id_of(some, "a")), DoomedTopic(name="a")])

    facts, reply = some.delete(op, OrgId("them"))

    assert not facts
    assert [r.error_code for r in reply.responses] == [100, 3]


def test_name_and_id_together_or_neither_are_refused_each_for_itself(some: TopicAdmin) -> None:
    """D2, as Apache Kafka answers it."""
    a, b = id_of(some, "a"), id_of(some, "b")

    answers, gone = delete(some, ("a", a), ("a", b), (None, NO_TOPIC_ID), (None, NO_TOPIC_ID))

    assert answers == [("a", a, 42), ("a", b, 42), (None, NO_TOPIC_ID, 42), (None, NO_TOPIC_ID, 42)]
    assert not gone


@pytest.mark.parametrize("backwards", [False, True])
def test_a_topic_named_by_name_and_by_id_is_not_deleted(some: TopicAdmin, backwards: bool) -> None:
    """D2: one entry, which has both."""
    a = id_of(some, "a")
    ways = [("a", NO_TOPIC_ID), (None, a)]

    answers, gone = delete(some, *(reversed(ways) if backwards else ways), ("b", NO_TOPIC_ID))

    assert answers[0] == ("a", a, 42)
    assert len(answers) == 2
    assert gone == {"b"}


def test_a_topic_named_twice_in_the_same_way_is_not_deleted(some: TopicAdmin) -> None:
    """D2."""
    a = id_of(some, "a")

    assert delete(some, ("a", NO_TOPIC_ID), ("a", NO_TOPIC_ID)) == ([("a", NO_TOPIC_ID, 42)], set())
    assert delete(some, (None, a), (None, a)) == ([(None, a, 42)], set())
    assert delete(some, (None, NOBODYS), (None, NOBODYS)) == ([(None, NOBODYS, 42)], set())


def test_deleting_may_be_switched_off(some: TopicAdmin) -> None:
    """D3."""
    answers, gone = delete(ruled(some, deletable=False), ("a", NO_TOPIC_ID))

    assert answers == [("a", NO_TOPIC_ID, ErrorCode.TOPIC_DELETION_DISABLED)]
    assert not gone


# --- P: growing ------------------------------------------------------------------------------


def grow(
    admin: TopicAdmin,
    *wanted: tuple[str, int, Sequence[Sequence[int]] | None],
    validate_only: bool = False,
) -> dict[str, int]:
    grown = [
        GrownTopic(
            name=name,
            count=partitions,
            assignments=None
            if placed is None
            else [PartitionAssignment(broker_ids=list(ids)) for ids in placed],
        )
        for name, partitions, placed in wanted
    ]
    op = CreatePartitions(topics=grown, timeout_ms=1000, validate_only=validate_only)
    facts, reply = admin.grow(op, US)
    for fact in facts:
        assert isinstance(fact, PartitionsAdded)
        admin.catalog.apply(fact)
    assert len(reply.results) == len({name for name, _, _ in wanted})
    return {result.name: int(result.error_code) for result in reply.results}


@pytest.mark.parametrize(("partitions", "code"), [(2, 0), (9_000, 0), (1, 37), (0, 37), (-1, 37)])
def test_a_topic_can_only_grow(some: TopicAdmin, partitions: int, code: int) -> None:
    """P1, LF-063."""
    assert grow(some, ("a", partitions, None)) == {"a": code}
    assert some.catalog.topics[US, "a"].partitions == (1 if code else partitions)


def test_unknown_topics_do_not_grow_and_the_others_do(some: TopicAdmin) -> None:
    """P1, LF-063."""
    assert grow(some, ("nobody", 2, None), ("a", 2, None)) == {"nobody": 3, "a": 0}


def test_a_topic_named_twice_does_not_grow(some: TopicAdmin) -> None:
    """P1: said once, also of one that is not there."""
    codes = grow(some, ("a", 2, None), ("a", 3, None), ("nobody", 2, None), ("nobody", 2, None))

    assert codes == {"a": 42, "nobody": 42}
    assert some.catalog.topics[US, "a"].partitions == 1


@pytest.mark.parametrize(
    ("placed", "code"),
    [
        ([], 39), ([[NODE]], 39), ([[NODE]] * 3, 39),  # not as many as wanted
        ([[NODE], [NODE + 1]], 39), ([[NODE], [NODE, NODE]], 39), ([[NODE], []], 39),
        ([[NODE], [NODE]], 0),
    ],
)  # fmt: skip
def test_new_partitions_can_be_placed_where_there_is_a_node(
    some: TopicAdmin, placed: list[list[int]], code: int
) -> None:
    """P1."""
    assert grow(some, ("a", 3, placed)) == {"a": code}


def test_growing_may_be_tried(some: TopicAdmin) -> None:
    """P1."""
    assert grow(some, ("a", 2, None), ("b", 1, None), validate_only=True) == {"a": 0, "b": 37}
    assert some.catalog.topics[US, "a"].partitions == 1


@pytest.mark.parametrize("partitions", [10_001, 10_000_000, 2**31 - 1])
def test_an_enormous_number_is_refused(some: TopicAdmin, partitions: int) -> None:
    """P2."""
    assert grow(some, ("a", partitions, None)) == {"a": 44}
