"""Requests about offsets, and their topics: what exists goes to the coordinator, the rest is answered here.

The coordinator is a small one that keeps real offsets and writes down what it was asked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from rafka.broker.group_requests import GroupRequests
from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups.expiry import no_topic
from rafka.machines.groups.offsets import Offsets
from rafka.ops.base import Envelope, Later, Op
from rafka.ops.offsets import (
    CommitPartition,
    CommitTopic,
    DeleteOffsetsPartition,
    DeleteOffsetsTopic,
    FetchedGroup,
    FetchedTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    TxnOffsetCommit,
)
from rafka.types import DEFAULT_ORG, NO_TOPIC_ID, OrgId, TopicId

from .kit import World, open_world

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
UNKNOWN_ID = ErrorCode.UNKNOWN_TOPIC_ID
STRANGE_ID = TopicId(bytes(15) + b"\7")


class SmallCoordinator:
    """Keeps offsets; makes a group for whoever commits."""

    def __init__(self) -> None:
        self.groups: dict[str, Offsets] = {}
        self.asked: list[Op[Any]] = []
        self.refuses: ErrorCode | None = None
        self.later: bool | None = None  # whether to answer later, and if so whether it overlaps

    def ask(self, envelope: Envelope, op: Op[Any]) -> Any:
        self.asked.append(op)
        if self.later is not None:
            return Later(self._answer_later, op, overlaps=self.later)
        return op.refusal(self.refuses) if self.refuses is not None else self._answer(op)

    async def _answer_later(self, op: Op[Any]) -> Any:
        if self.refuses is not None:
            raise KafkaError(self.refuses)
        return self._answer(op)

    def _answer(self, op: Op[Any]) -> Any:
        match op:
            case OffsetCommit():
                offsets = self.groups.setdefault(op.group_id, Offsets(DEFAULT_ORG, op.group_id))
                fact, answer = offsets.commit(op.topics, 1, 4096)
                assert fact is not None
                offsets.apply(fact)
                return OffsetCommitReply(topics=answer)
            case TxnOffsetCommit():
                return op.refusal(ErrorCode.INVALID_GROUP_ID)
            case OffsetFetch():
                return OffsetFetchReply(groups=[self._fetched(group) for group in op.groups])
            case OffsetDelete():
                if op.group_id not in self.groups:
                    return op.refusal(ErrorCode.GROUP_ID_NOT_FOUND)
                _, answer = self.groups[op.group_id].delete(op.topics, no_topic)
                return OffsetDeleteReply(topics=answer)
        raise TypeError(op)

    def _fetched(self, group: FetchOffsetsGroup) -> FetchedGroup:
        offsets = self.groups.get(group.group_id) or Offsets(DEFAULT_ORG, group.group_id)
        return FetchedGroup(group_id=group.group_id, topics=offsets.fetch(group.topics))


class Asking:
    """The request layer between a world's topics and a small coordinator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.coordinator = SmallCoordinator()
        self.requests = GroupRequests(world.topics, self.coordinator)
        self.envelope = Envelope()

    @property
    def asked(self) -> list[Any]:
        return self.coordinator.asked

    def commit(self, *topics: CommitTopic, group: str = "g", by_id: bool = False) -> Any:
        op = OffsetCommit(group_id=group, topics=list(topics), by_id=by_id)
        return told(self.requests.commit(self.envelope, op))

    def fetch(self, *groups: FetchOffsetsGroup, by_id: bool = False) -> Any:
        reply = self.requests.fetch(self.envelope, OffsetFetch(groups=list(groups), by_id=by_id))
        assert isinstance(reply, OffsetFetchReply)
        return reply.groups

    def delete(self, *topics: DeleteOffsetsTopic, group: str = "g") -> Any:
        reply = self.requests.delete(self.envelope, OffsetDelete(group_id=group, topics=list(topics)))
        assert isinstance(reply, OffsetDeleteReply)
        return reply.error_code, told(reply)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    """With a topic t of two partitions and a topic u of one."""
    async with open_world() as world:
        await world.create("t", partitions=2)
        await world.create("u")
        yield Asking(world)


def topic(name: str, *indexes: int, topic_id: TopicId = NO_TOPIC_ID, offset: int = 5) -> CommitTopic:
    return CommitTopic(
        name=name,
        topic_id=topic_id,
        partitions=[CommitPartition(partition_index=i, committed_offset=offset + i) for i in indexes],
    )


def wanted(name: str, *indexes: int, topic_id: TopicId = NO_TOPIC_ID) -> FetchOffsetsTopic:
    return FetchOffsetsTopic(name=name, topic_id=topic_id, partition_indexes=list(indexes))


def group(*topics: FetchOffsetsTopic, group_id: str = "g") -> FetchOffsetsGroup:
    return FetchOffsetsGroup(group_id=group_id, topics=list(topics))


def everything(group_id: str = "g") -> FetchOffsetsGroup:
    return FetchOffsetsGroup(group_id=group_id, topics=None)


def doomed(name: str, *indexes: int) -> DeleteOffsetsTopic:
    partitions = [DeleteOffsetsPartition(partition_index=i) for i in indexes]
    return DeleteOffsetsTopic(name=name, partitions=partitions)


def told(reply: Any) -> list[tuple[str, list[tuple[int, ErrorCode]]]]:
    return [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in reply.topics]


def found(topics: list[FetchedTopic]) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(t.name, [(p.partition_index, p.committed_offset) for p in t.partitions]) for t in topics]


def id_of(world: World, name: str) -> TopicId:
    return world.topics.by_name(DEFAULT_ORG, name).topic.topic_id


# --- commit --------------------------------------------------------------------------------


async def test_where_all_exists_the_op_goes_on_and_the_answer_is_the_coordinators_own(asking: Asking) -> None:
    op = OffsetCommit(group_id="g", topics=[topic("t", 0, 1), topic("u", 0)])

    reply = asking.requests.commit(asking.envelope, op)

    assert asking.asked == [op]
    assert asking.asked[0] is op
    assert [t.topic_id for t in op.topics] == [id_of(asking.world, "t"), id_of(asking.world, "u")]
    assert told(reply) == [("t", [(0, NONE), (1, NONE)]), ("u", [(0, NONE)])]


async def test_what_does_not_exist_is_refused_beside_what_is_committed(asking: Asking) -> None:
    """CG-127"""
    reply = asking.commit(topic("t", 0, 7, 1), topic("nope", 0), topic("u", -1, 0))

    assert reply == [
        ("t", [(0, NONE), (7, UNKNOWN), (1, NONE)]),
        ("nope", [(0, UNKNOWN)]),
        ("u", [(-1, UNKNOWN), (0, NONE)]),
    ]
    [op] = asking.asked
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in op.topics] == [
        ("t", [0, 1]),
        ("u", [0]),
    ]


@pytest.mark.parametrize("name", ["nope", "", "no/such", "__consumer_offsets"])
async def test_with_unknown_topics_only_the_group_is_not_looked_at(asking: Asking, name: str) -> None:
    """CG-127, CG-201"""
    assert asking.commit(topic(name, 0)) == [(name, [(0, UNKNOWN)])]
    assert asking.asked == []


async def test_a_topic_of_another_organisation_is_unknown(asking: Asking) -> None:
    await asking.world.create("theirs", org=OrgId("them"))

    assert asking.commit(topic("theirs", 0)) == [("theirs", [(0, UNKNOWN)])]


@pytest.mark.parametrize("topics", [[], [topic("t")], [topic("t"), topic("u")]])
async def test_a_commit_of_nothing_makes_no_group(asking: Asking, topics: list[CommitTopic]) -> None:
    """CG-201"""
    assert asking.commit(*topics) == []
    assert asking.asked == []


async def test_a_topic_without_partitions_is_left_out_of_the_answer(asking: Asking) -> None:
    assert asking.commit(topic("t"), topic("u", 0)) == [("u", [(0, NONE)])]


async def test_an_unknown_topic_without_partitions_comes_back_as_such(asking: Asking) -> None:
    """So Kafka answers."""
    assert asking.commit(topic("nope"), topic("u", 0)) == [("nope", []), ("u", [(0, NONE)])]


async def test_a_partition_named_twice_is_answered_twice_and_the_last_counts(asking: Asking) -> None:
    """CG-202"""
    assert asking.commit(topic("t", 0), topic("t", 0, offset=50)) == [("t", [(0, NONE)]), ("t", [(0, NONE)])]

    [answer] = asking.fetch(group(wanted("t", 0)))
    assert found(answer.topics) == [("t", [(0, 50)])]


async def test_a_topic_named_twice_beside_an_unknown_one_has_one_heading(asking: Asking) -> None:
    reply = asking.commit(topic("t", 0, 9), topic("nope", 0), topic("t", 1))

    assert reply == [("t", [(0, NONE), (9, UNKNOWN), (1, NONE)]), ("nope", [(0, UNKNOWN)])]


async def test_whatever_is_asked_each_partition_has_its_own_answer_in_its_place(asking: Asking) -> None:
    counts = {"t": 2, "u": 1, "nope": 0, "": 0}
    for seed in range(300):
        dice = Random(seed)
        names = dice.choices(list(counts), k=dice.randrange(5))
        topics = [topic(name, *dice.choices(range(-1, 3), k=dice.randrange(4))) for name in names]
        expected: dict[str, list[tuple[int, ErrorCode]]] = {}
        for each in topics:
            indexes = [p.partition_index for p in each.partitions]
            codes = [(i, NONE if 0 <= i < counts[each.name] else UNKNOWN) for i in indexes]
            if codes or not counts[each.name]:
                expected.setdefault(each.name, []).extend(codes)

        reply = asking.commit(*topics)

        found: dict[str, list[tuple[int, ErrorCode]]] = {}
        for name, codes in reply:
            found.setdefault(name, []).extend(codes)
        assert list(found.items()) == list(expected.items()), seed


async def test_by_id_an_unknown_id_and_none_at_all_have_an_error_of_their_own(asking: Asking) -> None:
    """CG-200"""
    known = id_of(asking.world, "t")

    op = OffsetCommit(
        group_id="g",
        by_id=True,
        topics=[
            topic("", 0, topic_id=STRANGE_ID),
            topic("", 0, 9, topic_id=known),
            topic("", 0, topic_id=NO_TOPIC_ID),
        ],
    )
    reply: Any = asking.requests.commit(asking.envelope, op)

    assert [
        (t.topic_id, [(p.partition_index, p.error_code) for p in t.partitions]) for t in reply.topics
    ] == [
        (STRANGE_ID, [(0, UNKNOWN_ID)]),
        (known, [(0, NONE), (9, UNKNOWN)]),
        (NO_TOPIC_ID, [(0, UNKNOWN_ID)]),
    ]


async def test_what_is_committed_by_id_is_fetched_by_name_and_by_id(asking: Asking) -> None:
    """CG-200"""
    known = id_of(asking.world, "t")
    asking.commit(topic("", 0, 1, topic_id=known), by_id=True)

    [by_name] = asking.fetch(group(wanted("t", 0, 1)))
    [by_id] = asking.fetch(group(wanted("", 0, 1, topic_id=known)), by_id=True)
    [all_by_id] = asking.fetch(everything(), by_id=True)

    assert by_name.topics == by_id.topics == all_by_id.topics
    assert found(by_name.topics) == [("t", [(0, 5), (1, 6)])]
    assert by_id.topics[0].topic_id == known


async def test_a_refusal_is_for_what_the_coordinator_was_asked_about(asking: Asking) -> None:
    asking.coordinator.refuses = ErrorCode.ILLEGAL_GENERATION

    reply = asking.commit(topic("t", 0, 9), topic("nope", 0))

    assert reply == [("t", [(0, ErrorCode.ILLEGAL_GENERATION), (9, UNKNOWN)]), ("nope", [(0, UNKNOWN)])]


async def test_within_a_transaction_topics_are_looked_up_just_so(asking: Asking) -> None:
    """CG-208: also where the group has no name"""
    op = TxnOffsetCommit(
        transactional_id="x",
        group_id="",
        producer_id=1,
        producer_epoch=0,
        topics=[topic("nope", 0), topic("t", 0, 8)],
    )

    reply = asking.requests.commit_pending(asking.envelope, op)

    assert told(reply) == [
        ("nope", [(0, UNKNOWN)]),
        ("t", [(0, ErrorCode.INVALID_GROUP_ID), (8, UNKNOWN)]),
    ]


# --- answers that come later -----------------------------------------------------------------------


@pytest.mark.parametrize("overlaps", [True, False])
@pytest.mark.parametrize("unknown", [True, False])
async def test_whether_an_answer_overlaps_is_the_coordinators_to_say(
    asking: Asking, overlaps: bool, unknown: bool
) -> None:
    asking.coordinator.later = overlaps
    topics = [topic("t", 0, 9 if unknown else 1)]

    later = asking.requests.commit(asking.envelope, OffsetCommit(group_id="g", topics=topics))

    assert isinstance(later, Later)
    assert later.overlaps is overlaps
    assert told(await later.wait()) == [("t", [(0, NONE), (9, UNKNOWN) if unknown else (1, NONE)])]


async def test_a_later_refusal_leaves_what_is_unknown_unknown(asking: Asking) -> None:
    asking.coordinator.later = True
    asking.coordinator.refuses = ErrorCode.NOT_COORDINATOR

    later: Any = asking.requests.commit(
        asking.envelope, OffsetCommit(group_id="g", topics=[topic("t", 0, 9)])
    )

    assert told(await later.wait()) == [("t", [(0, ErrorCode.NOT_COORDINATOR), (9, UNKNOWN)])]


# --- fetch ------------------------------------------------------------------------------------


async def test_by_name_what_does_not_exist_has_no_offsets(asking: Asking) -> None:
    """CG-138"""
    asking.commit(topic("t", 0))

    [answer] = asking.fetch(group(wanted("nope", 0), wanted("t", 0, 7)))

    assert found(answer.topics) == [("nope", [(0, -1)]), ("t", [(0, 5), (7, -1)])]
    assert {p.error_code for t in answer.topics for p in t.partitions} == {NONE}


async def test_by_id_what_does_not_exist_is_unknown_beside_the_rest(asking: Asking) -> None:
    """CG-200"""
    asking.commit(topic("t", 0))
    known = id_of(asking.world, "t")
    asked = group(wanted("", 0, 1, topic_id=STRANGE_ID), wanted("", 0, topic_id=known))

    [answer] = asking.fetch(asked, by_id=True)

    assert [t.topic_id for t in answer.topics] == [STRANGE_ID, known]
    assert [(p.committed_offset, p.error_code) for t in answer.topics for p in t.partitions] == [
        (-1, UNKNOWN_ID),
        (-1, UNKNOWN_ID),
        (5, NONE),
    ]


async def test_with_unknown_ids_only_the_coordinator_is_not_asked(asking: Asking) -> None:
    [answer] = asking.fetch(group(wanted("", 0, topic_id=STRANGE_ID)), by_id=True)

    assert [p.error_code for t in answer.topics for p in t.partitions] == [UNKNOWN_ID]
    assert asking.asked == []


async def test_many_groups_are_answered_in_order_each_for_itself(asking: Asking) -> None:
    """CG-135, CG-205: one named twice is answered twice"""
    known = id_of(asking.world, "t")
    asking.commit(topic("t", 0), group="one")
    strange = wanted("", 0, topic_id=STRANGE_ID)

    answers = asking.fetch(
        group(strange, group_id="two"),
        group(wanted("", 0, topic_id=known), group_id="one"),
        group(wanted("", 0, topic_id=known), strange, group_id="none"),
        everything("one"),
        group(group_id="one"),
        by_id=True,
    )

    assert [answer.group_id for answer in answers] == ["two", "one", "none", "one", "one"]
    assert [found(answer.topics) for answer in answers] == [
        [("", [(0, -1)])],
        [("t", [(0, 5)])],
        [("t", [(0, -1)]), ("", [(0, -1)])],
        [("t", [(0, 5)])],
        [],
    ]


async def test_nobody_asked_for_is_nobody_answered(asking: Asking) -> None:
    assert asking.fetch() == []
    assert asking.asked == []


async def test_a_topic_without_partitions_comes_back_from_a_fetch(asking: Asking) -> None:
    """CG-205"""
    [answer] = asking.fetch(group(wanted("t"), wanted("t", 0, 0)))

    assert found(answer.topics) == [("t", []), ("t", [(0, -1), (0, -1)])]


async def test_an_error_of_the_group_comes_without_topics(asking: Asking) -> None:
    asking.coordinator.refuses = ErrorCode.NOT_COORDINATOR
    known = wanted("", 0, topic_id=id_of(asking.world, "t"))

    [answer] = asking.fetch(group(wanted("", 0, topic_id=STRANGE_ID), known), by_id=True)

    assert answer == FetchedGroup(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)


async def test_a_topic_made_again_under_the_same_name_inherits_nothing(asking: Asking) -> None:
    """CG-144, even before the coordinator has heard of the deletion"""
    asking.commit(topic("t", 0), topic("u", 0))
    await asking.world.delete("t")
    [between] = asking.fetch(group(wanted("t", 0)))
    await asking.world.create("t", partitions=2)

    [after], [everything_after] = asking.fetch(group(wanted("t", 0))), asking.fetch(everything())

    assert found(between.topics) == found(after.topics) == [("t", [(0, -1)])]
    assert found(everything_after.topics) == [("u", [(0, 5)])]


# --- delete -------------------------------------------------------------------------------------


async def test_unknown_partitions_are_refused_beside_those_deleted(asking: Asking) -> None:
    """CG-213"""
    asking.commit(topic("t", 0))

    code, reply = asking.delete(doomed("nope", 0), doomed("t", 0, 9, 0), doomed("u"))

    assert code == NONE
    assert reply == [("nope", [(0, UNKNOWN)]), ("t", [(0, NONE), (9, UNKNOWN), (0, NONE)])]


@pytest.mark.parametrize("topics", [[], [doomed("nope", 0)], [doomed("nope", 0), doomed("t", 0)]])
async def test_a_group_that_is_not_there_is_told_of_before_any_topic(
    asking: Asking, topics: list[DeleteOffsetsTopic]
) -> None:
    """CG-213"""
    assert asking.delete(*topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])


async def test_no_topics_of_a_group_are_deleted_without_complaint(asking: Asking) -> None:
    """CG-213"""
    asking.commit(topic("t", 0))

    assert asking.delete() == (NONE, [])
    assert asking.delete(doomed("t")) == (NONE, [])


async def test_offsets_are_deleted_by_the_id_of_their_topic(asking: Asking) -> None:
    asking.commit(topic("t", 0))

    assert asking.delete(doomed("t", 0)) == (NONE, [("t", [(0, NONE)])])
    assert [t.topic_id for t in asking.asked[-1].topics] == [id_of(asking.world, "t")]
