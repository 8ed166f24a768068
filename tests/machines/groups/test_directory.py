"""All groups together: how they come to be and go, what absent ones answer, and whose turn it is when."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, TypeVar

import attrs
import pytest

from rafka.errors import ErrorCode
from rafka.machines.facts import Fact, FactRegistry
from rafka.machines.groups.directory import Groups, Limits
from rafka.machines.groups.facts import GROUP_FACTS, GroupCreated, GroupDeleted
from rafka.machines.groups.model import Caller, Decision, GroupKey, GroupRules, Moment
from rafka.machines.groups.offset_facts import OFFSET_FACTS
from rafka.ops import group as ops
from rafka.ops import offsets as offset_ops
from rafka.ops.base import Op
from rafka.ops.group import Rebalance
from rafka.types import DEFAULT_ORG, OrgId, TopicId

from .kit import Uuids, join_op, sync_op

R = TypeVar("R")

REGISTRY = FactRegistry((*GROUP_FACTS, *OFFSET_FACTS))
TOPIC = TopicId(b"t" * 16)
OTHER_TOPIC = TopicId(b"o" * 16)
NOBODY = Caller("client", "/127.0.0.1")
DAY_S = 86_400.0
PARKED = object()


@attrs.define
class World:
    limits: Limits = attrs.Factory(Limits)
    at: float = 0.0
    journal: list[Fact] = attrs.Factory(list)
    heard: dict[int, object] = attrs.Factory(dict)
    told: list[tuple[GroupKey, Rebalance]] = attrs.Factory(list)
    tokens: int = 0
    groups: Groups[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.groups = self.empty()

    def empty(self) -> Groups[int]:
        made = 0

        def entropy() -> bytes:
            nonlocal made
            made += 1
            return made.to_bytes(10, "big")

        rules = GroupRules(new_uuid=Uuids())
        return Groups(rules, self.limits, entropy, lambda key, told: self.told.append((key, told)))

    @property
    def now(self) -> Moment:
        return Moment(self.at, 1_000_000 + round(self.at * 1000))

    def ask(self, op: Op[R], org: OrgId = DEFAULT_ORG) -> int:
        """The token of whoever asks; the answer is heard, now or later."""
        self.tokens += 1
        self.take(self.groups.handle(op, org, NOBODY, self.tokens, self.now))
        return self.tokens

    def answer(self, op: Op[R], org: OrgId = DEFAULT_ORG) -> R:
        return self.heard[self.ask(op, org)]  # type: ignore[return-value]

    def take(self, decision: Decision[int]) -> None:
        assert len(self.groups) > 100 or self.groups.sound, "all facts are in the decision"
        self.journal += decision.facts
        for reply in decision.replies:
            assert reply.to not in self.heard, "answered twice"
            self.heard[reply.to] = reply.answer

    def pass_time(self, seconds: float) -> None:
        until = self.at + seconds
        while (deadline := self.groups.deadline) <= until:
            self.at = max(self.at, deadline)
            self.take(self.groups.tick(self.now))
        self.at = until

    def expire(self) -> None:
        for decision in self.groups.expire(self.now):
            self.take(decision)

    def restart(self, topics: Iterable[TopicId] = (TOPIC, OTHER_TOPIC)) -> None:
        """Another process, from the journal."""
        self.groups = self.empty()
        self.replay(self.journal, topics)

    def replay(self, facts: Iterable[Fact], topics: Iterable[TopicId] = (TOPIC, OTHER_TOPIC)) -> None:
        for fact in facts:
            self.groups.apply(REGISTRY.unpack(*REGISTRY.pack(fact)))
        self.take(self.groups.resume(self.now, set(topics).__contains__))

    # --- in short --------------------------------------------------------------------------

    def join(self, group_id: str = "g", member_id: str = "", org: OrgId = DEFAULT_ORG, **more: Any) -> str:
        """Join as an old client, form a generation at once; the member id."""
        token = self.ask(join_op(member_id, group_id=group_id, id_required=False, **more), org)
        self.pass_time(0)
        reply = self.heard[token]
        assert isinstance(reply, ops.JoinGroupReply)
        assert reply.error_code == 0, reply
        return reply.member_id

    def stable(self, group_id: str = "g", org: OrgId = DEFAULT_ORG, **more: Any) -> str:
        """A stable group of one."""
        member_id = self.join(group_id, org=org, **more)
        op = sync_op(member_id, self.generation(group_id, org), {member_id: b"mine"}, group_id=group_id)
        assert self.answer(op, org).error_code == 0
        return member_id

    def leave(self, group_id: str, member_id: str) -> None:
        op = ops.LeaveGroup(group_id=group_id, members=[ops.Leaver(member_id=member_id)])
        assert self.answer(op).members[0].error_code == 0

    def generation(self, group_id: str, org: OrgId = DEFAULT_ORG) -> int:
        return self.groups.need((org, group_id)).group.generation

    def commit(self, offsets: Mapping[int, int], group_id: str = "g", **more: Any) -> ErrorCode:
        """Commit offsets of partitions of the topic; the code of the first."""
        reply = self.answer(commit_op(offsets, group_id, **more))
        return reply.topics[0].partitions[0].error_code

    def offsets(self, group_id: str = "g", org: OrgId = DEFAULT_ORG) -> dict[int, int]:
        op = offset_ops.OffsetFetch(groups=[offset_ops.FetchOffsetsGroup(group_id=group_id)])
        (group,) = self.answer(op, org).groups
        return {p.partition_index: p.committed_offset for t in group.topics for p in t.partitions}

    def listed(self, org: OrgId = DEFAULT_ORG, **filters: Any) -> dict[str, str]:
        reply = self.answer(ops.ListGroups(**filters), org)
        return {group.group_id: group.group_state for group in reply.groups}

    def delete(self, *group_ids: str) -> list[tuple[str, ErrorCode]]:
        reply = self.answer(ops.DeleteGroups(groups_names=list(group_ids)))
        return [(result.group_id, result.error_code) for result in reply.results]


def commit_op(offsets: Mapping[int, int], group_id: str = "g", **more: Any) -> offset_ops.OffsetCommit:
    topic = offset_ops.CommitTopic(
        name="t",
        topic_id=TOPIC,
        partitions=[
            offset_ops.CommitPartition(partition_index=index, committed_offset=offset)
            for index, offset in offsets.items()
        ],
    )
    return offset_ops.OffsetCommit(group_id=group_id, topics=[topic], **more)


def txn_commit_op(offsets: Mapping[int, int], group_id: str = "g", producer: int = 7) -> Op[Any]:
    return offset_ops.TxnOffsetCommit(
        transactional_id="t",
        group_id=group_id,
        producer_id=producer,
        producer_epoch=0,
        topics=commit_op(offsets).topics,
    )


def fetch_op(*group_ids: str) -> offset_ops.OffsetFetch:
    return offset_ops.OffsetFetch(
        groups=[
            offset_ops.FetchOffsetsGroup(
                group_id=group_id,
                topics=[offset_ops.FetchOffsetsTopic(name="t", topic_id=TOPIC, partition_indexes=[0])],
            )
            for group_id in group_ids
        ]
    )


@pytest.fixture
def world() -> World:
    return World()


# --- coming to be ---------------------------------------------------------------------------


def test_a_group_is_made_by_joining_it(world: World) -> None:
    world.ask(join_op(group_id="g"))

    assert world.listed() == {"g": "Empty"}
    assert world.journal == [
        GroupCreated(DEFAULT_ORG, "g", world.groups.need((DEFAULT_ORG, "g")).group.stable_id)
    ]


@pytest.mark.parametrize(
    ("op", "code"),
    [
        (join_op("somebody", group_id="g"), ErrorCode.UNKNOWN_MEMBER_ID),
        (join_op("somebody", group_id="g", protocols=()), ErrorCode.UNKNOWN_MEMBER_ID),
        (join_op(group_id="g", protocols=()), ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (join_op(group_id="g", session_timeout_ms=1), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join_op(group_id=""), ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_a_join_that_is_refused_makes_no_group(world: World, op: ops.JoinGroup, code: ErrorCode) -> None:
    assert world.answer(op).error_code is code
    assert (len(world.groups), world.journal) == (0, [])


def test_a_group_is_made_by_committing_to_it(world: World) -> None:
    assert world.commit({0: 5}) is ErrorCode.NONE

    assert world.listed() == {"g": "Empty"}
    assert world.offsets() == {0: 5}


@pytest.mark.parametrize(
    ("newer", "code"), [(True, ErrorCode.GROUP_ID_NOT_FOUND), (False, ErrorCode.ILLEGAL_GENERATION)]
)
def test_nobody_is_in_a_generation_of_an_absent_group(world: World, newer: bool, code: ErrorCode) -> None:
    told = world.commit({0: 5}, generation_id_or_member_epoch=1, member_id="m", epochs_known=newer)

    assert told is code
    assert len(world.groups) == 0


def test_a_transaction_may_make_a_group(world: World) -> None:
    world.ask(txn_commit_op({0: 5}))

    assert world.listed() == {"g": "Empty"}
    assert world.offsets() == {}


def test_there_are_only_so_many_groups() -> None:
    world = World(limits=Limits(max_groups=2))
    world.commit({0: 1}, "a")
    world.commit({0: 1}, "b")

    assert world.commit({0: 1}, "c") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.answer(join_op(group_id="c")).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.commit({0: 2}, "b") is ErrorCode.NONE

    world.delete("a")
    assert world.commit({0: 1}, "c") is ErrorCode.NONE


def test_stable_ids_are_made_once_and_outlive_restarts(world: World) -> None:
    world.commit({0: 1}, "a")
    world.commit({0: 1}, "b")
    before = {key: entry.group.stable_id for key, entry in world.groups}

    world.restart()

    assert {key: entry.group.stable_id for key, entry in world.groups} == before
    assert len(set(before.values())) == 2
    assert all(stable_id.startswith("cgp_") for stable_id in before.values())


def test_organisations_do_not_see_each_other(world: World) -> None:
    acme = OrgId("acme")
    ours, theirs = world.stable("g"), world.stable("g", org=acme)
    world.ask(commit_op({0: 1}, generation_id_or_member_epoch=1, member_id=ours))

    assert (world.offsets("g"), world.offsets("g", acme)) == ({0: 1}, {})
    heartbeat = ops.Heartbeat(group_id="g", generation_id=1, member_id=theirs)
    assert world.answer(heartbeat).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.answer(heartbeat, acme).error_code is ErrorCode.NONE
    assert len(world.listed(acme)) == 1


# --- what absent groups answer ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("group_id", "code"), [("g", ErrorCode.UNKNOWN_MEMBER_ID), ("", ErrorCode.INVALID_GROUP_ID)]
)
def test_nobody_is_a_member_of_an_absent_group(world: World, group_id: str, code: ErrorCode) -> None:
    assert world.answer(sync_op("m", 1, {}, group_id=group_id)).error_code is code
    assert world.answer(ops.Heartbeat(group_id=group_id, generation_id=1, member_id="m")).error_code is code


def test_nobody_leaves_an_absent_group(world: World) -> None:
    reply = world.answer(ops.LeaveGroup(group_id="g", members=[ops.Leaver(member_id="m")]))

    assert reply.error_code is ErrorCode.NONE
    assert [member.error_code for member in reply.members] == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_an_absent_group_has_read_nothing(world: World) -> None:
    world.commit({0: 5}, "b")

    first, second = world.answer(fetch_op("a", "b")).groups

    assert first.topics[0].partitions[0].committed_offset == -1
    assert second.topics[0].partitions[0].committed_offset == 5
    assert len(world.groups) == 1


@pytest.mark.parametrize(
    ("absence_told", "code"), [(True, ErrorCode.GROUP_ID_NOT_FOUND), (False, ErrorCode.NONE)]
)
def test_an_absent_group_is_dead_to_those_who_look(world: World, absence_told: bool, code: ErrorCode) -> None:
    op = ops.DescribeGroups(groups=["g"], absence_told=absence_told, include_authorized_operations=True)

    (told,) = world.answer(op).groups

    assert (told.group_state, told.error_code, told.authorized_operations) == ("Dead", code, 3400)


def test_offsets_of_an_absent_group_cannot_be_deleted(world: World) -> None:
    def delete(group_id: str) -> ErrorCode:
        return world.answer(offset_ops.OffsetDelete(group_id=group_id, topics=[])).error_code

    assert delete("g") is ErrorCode.GROUP_ID_NOT_FOUND
    assert delete("") is ErrorCode.INVALID_GROUP_ID


# --- administration -----------------------------------------------------------------------------


def test_groups_are_listed_by_state_and_type(world: World) -> None:
    world.stable("busy")
    world.commit({0: 1}, "idle")

    assert world.listed() == {"busy": "Stable", "idle": "Empty"}
    assert world.listed(states_filter=[" stable "]) == {"busy": "Stable"}
    assert world.listed(states_filter=["nonsense"]) == {}
    assert world.listed(types_filter=["Classic"], states_filter=["EMPTY"]) == {"idle": "Empty"}
    assert world.listed(types_filter=["consumer"]) == {}


def test_a_group_with_members_is_not_deleted(world: World) -> None:
    world.stable("busy")
    world.commit({0: 1}, "idle")

    assert world.delete("busy", "idle", "idle", "absent") == [
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("idle", ErrorCode.NONE),
        ("absent", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert world.listed() == {"busy": "Stable"}


def test_a_group_that_was_deleted_begins_anew(world: World) -> None:
    first = world.stable("g")
    known_as = world.groups.need((DEFAULT_ORG, "g")).group.stable_id
    world.leave("g", first)
    world.commit({0: 5})

    assert world.delete("g") == [("g", ErrorCode.NONE)]
    assert world.offsets() == {}
    assert world.answer(join_op(first, group_id="g")).error_code is ErrorCode.UNKNOWN_MEMBER_ID

    world.join("g")
    assert world.generation("g") == 1
    assert world.groups.need((DEFAULT_ORG, "g")).group.stable_id != known_as


def test_a_deleted_group_does_not_come_back(world: World) -> None:
    world.commit({0: 5})
    world.delete("g")

    world.restart()

    assert world.listed() == {}


def test_offsets_that_members_read_are_kept(world: World) -> None:
    subscribed = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"
    member = world.stable("g", protocols=(("range", subscribed),))
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=member)
    partitions = [offset_ops.DeleteOffsetsPartition(partition_index=0)]

    def delete(name: str) -> ErrorCode:
        topic = offset_ops.DeleteOffsetsTopic(name=name, partitions=partitions)
        topic.topic_id = TOPIC if name == "t" else OTHER_TOPIC  # type: ignore[misc]
        reply = world.answer(offset_ops.OffsetDelete(group_id="g", topics=[topic]))
        return reply.topics[0].partitions[0].error_code

    assert delete("t") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete("other") is ErrorCode.NONE
    assert world.offsets() == {0: 5}

    world.leave("g", member)
    assert delete("t") is ErrorCode.NONE
    assert world.offsets() == {}


def test_what_else_members_do_nobody_can_tell(world: World) -> None:
    world.stable("g", protocol_type="connect")

    reply = world.answer(offset_ops.OffsetDelete(group_id="g", topics=[]))

    assert reply.error_code is ErrorCode.NON_EMPTY_GROUP


# --- transactions --------------------------------------------------------------------------------


def test_a_transaction_settles_in_all_groups(world: World) -> None:
    world.ask(txn_commit_op({0: 1}, "a"))
    world.ask(txn_commit_op({0: 2}, "b"))
    world.ask(txn_commit_op({0: 3}, "b", producer=8))

    world.take(world.groups.settle_transaction(DEFAULT_ORG, 7, committed=True))

    assert (world.offsets("a"), world.offsets("b")) == ({0: 1}, {0: 2})
    world.take(world.groups.settle_transaction(DEFAULT_ORG, 8, committed=False))
    assert world.offsets("b") == {0: 2}
    assert world.groups._producers == {}


def test_a_transaction_of_another_organisation_settles_nothing(world: World) -> None:
    world.ask(txn_commit_op({0: 1}))

    world.take(world.groups.settle_transaction(OrgId("acme"), 7, committed=True))

    assert world.offsets() == {}


def test_a_transaction_settles_after_a_restart(world: World) -> None:
    world.ask(txn_commit_op({0: 1}))
    world.restart()

    world.take(world.groups.settle_transaction(DEFAULT_ORG, 7, committed=True))
    world.restart()

    assert world.offsets() == {0: 1}


def test_a_transaction_brings_nothing_back_to_a_group_that_was_deleted(world: World) -> None:
    world.ask(txn_commit_op({0: 1}))
    world.delete("g")
    world.take(world.groups.settle_transaction(DEFAULT_ORG, 7, committed=True))

    assert world.listed() == {}


# --- time -----------------------------------------------------------------------------------------


def test_every_group_keeps_its_own_time(world: World) -> None:
    world.stable("short", session_timeout_ms=6000)
    world.stable("long", session_timeout_ms=20_000)

    world.pass_time(7)
    assert world.listed() == {"short": "Empty", "long": "Stable"}
    world.pass_time(14)
    assert world.listed() == {"short": "Empty", "long": "Empty"}
    world.pass_time(300)  # alarms are lazy: what was armed for the first join rings once more
    assert world.groups.deadline == inf


def test_a_heartbeat_puts_the_deadline_off(world: World) -> None:
    member = world.stable("g", session_timeout_ms=6000)
    for _ in range(5):
        world.pass_time(5)
        assert (
            world.answer(ops.Heartbeat(group_id="g", generation_id=1, member_id=member)).error_code
            is ErrorCode.NONE
        )

    world.pass_time(5)
    assert world.listed() == {"g": "Stable"}
    world.pass_time(1.1)
    assert world.listed() == {"g": "Empty"}


def test_a_new_group_forms_at_once_though_idle_ones_sleep_long(world: World) -> None:
    world.stable("idle", session_timeout_ms=1_800_000)
    token = world.ask(join_op(group_id="new", id_required=False))

    assert world.groups.deadline == world.at
    world.take(world.groups.tick(world.now))
    assert token in world.heard


def test_a_group_that_was_deleted_has_no_alarm(world: World) -> None:
    world.ask(join_op(group_id="g"))  # an id was given out, and will be forgotten
    world.delete("g")

    world.pass_time(DAY_S)

    assert world.listed() == {}


def test_alarms_do_not_pile_up(world: World) -> None:
    member = world.stable("g")
    for _ in range(1000):
        world.pass_time(1)
        world.ask(ops.Heartbeat(group_id="g", generation_id=1, member_id=member))

    assert len(world.groups._alarms) <= 2


def test_idle_groups_cost_nothing(world: World) -> None:
    """Rounds with ten thousand idle groups take as long as with a hundred."""

    def thousand_rounds() -> float:
        began = time.perf_counter()
        for _ in range(1000):
            world.ask(ops.Heartbeat(group_id="g0", generation_id=1, member_id=member))
            if world.groups.deadline <= world.at:
                world.take(world.groups.tick(world.now))
        return time.perf_counter() - began

    member = world.stable("g0")
    for number in range(1, 100):
        world.stable(f"g{number}")
    few = min(thousand_rounds() for _ in range(3))
    for number in range(100, 10_000):
        world.stable(f"g{number}")

    assert min(thousand_rounds() for _ in range(3)) < 4 * few


# --- expiry -----------------------------------------------------------------------------------------


def test_offsets_of_an_empty_group_expire_and_it_goes_with_them(world: World) -> None:
    member = world.stable("g")
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=member)
    world.at += 3 * DAY_S
    world.leave("g", member)

    world.at += 6 * DAY_S
    world.expire()
    assert world.offsets() == {0: 5}, "it is a week since the last one left that counts"

    world.at += 1.1 * DAY_S
    world.expire()
    assert world.listed() == {}
    world.restart()
    assert world.listed() == {}


def test_a_group_without_members_and_offsets_is_let_go(world: World) -> None:
    world.leave("empty", world.stable("empty"))
    world.ask(join_op(group_id="id given out"))
    world.stable("busy")
    world.commit({0: 1}, "kept")
    world.ask(txn_commit_op({0: 1}, "open transaction"))

    world.expire()

    assert set(world.listed()) == {"busy", "kept", "open transaction"}


def test_expiry_goes_through_groups_in_portions(world: World) -> None:
    for number in range(1200):
        world.commit({0: 1}, f"g{number}")
    world.at += 8 * DAY_S

    portions = [len(decision.facts) for decision in world.groups.expire(world.now)]

    assert portions == [1000, 1000, 400], "each group loses its offsets and itself"
    assert len(world.groups) == 0


def test_what_expires_between_two_portions_is_not_missed_or_met_twice(world: World) -> None:
    for number in range(600):
        world.commit({0: 1}, f"g{number}")
    world.at += 8 * DAY_S
    portions = world.groups.expire(world.now)
    world.take(next(portions))

    world.delete("g599")
    for decision in portions:
        world.take(decision)

    assert len(world.groups) == 0


# --- topics --------------------------------------------------------------------------------------------


def test_a_topics_offsets_go_with_it(world: World) -> None:
    world.commit({0: 5})

    world.groups.forget_topic(TOPIC)

    assert world.offsets() == {}
    assert world.listed() == {"g": "Empty"}


def test_offsets_of_topics_that_are_gone_do_not_come_back_with_a_restart(world: World) -> None:
    world.commit({0: 5})

    world.restart(topics=())

    assert world.offsets() == {}


# --- history -------------------------------------------------------------------------------------------


def history_op(after: int = 0, max_wait_ms: int = 0) -> ops.GroupHistory:
    return ops.GroupHistory(group_id="g", after=after, max_wait_ms=max_wait_ms)


def test_a_groups_history_names_it_and_its_rebalances(world: World) -> None:
    world.stable("g")

    reply = world.answer(history_op())

    assert reply.stable_id == world.groups.need((DEFAULT_ORG, "g")).group.stable_id
    assert reply.locator == "default/consumer-groups/g"
    assert [(told.number, told.outcome) for told in reply.rebalances] == [(1, "stable")]
    assert world.told == [((DEFAULT_ORG, "g"), reply.rebalances[0])]


def test_an_absent_group_has_no_history(world: World) -> None:
    reply = world.answer(history_op(max_wait_ms=1000))

    assert (reply.error_code, reply.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")


def test_whoever_waits_for_news_is_told_at_once(world: World) -> None:
    member = world.stable("g")
    waiting = world.ask(history_op(after=1, max_wait_ms=30_000))
    world.pass_time(3)
    assert waiting not in world.heard

    world.leave("g", member)

    reply = world.heard[waiting]
    assert isinstance(reply, ops.GroupHistoryReply)
    assert [told.outcome for told in reply.rebalances] == ["empty"]


def test_whoever_waits_in_vain_is_told_that(world: World) -> None:
    world.commit({0: 1})
    waiting = world.ask(history_op(max_wait_ms=30_000))
    long = world.ask(history_op(max_wait_ms=3_600_000))

    world.pass_time(30)
    reply = world.heard[waiting]
    assert isinstance(reply, ops.GroupHistoryReply)
    assert (reply.error_code, list(reply.rebalances)) == (ErrorCode.NONE, [])
    assert long not in world.heard
    world.pass_time(30)
    assert long in world.heard, "a minute is as long as anybody waits"


def test_whoever_waits_for_a_group_that_is_deleted_is_told_that(world: World) -> None:
    world.commit({0: 1})
    waiting = world.ask(history_op(max_wait_ms=30_000))

    world.delete("g")

    reply = world.heard[waiting]
    assert isinstance(reply, ops.GroupHistoryReply)
    assert reply.error_code is ErrorCode.GROUP_ID_NOT_FOUND


# --- beginning and end ------------------------------------------------------------------------------------


def test_a_restart_brings_everything_back(world: World) -> None:
    member = world.stable("g")
    world.commit({0: 5, 1: 6}, generation_id_or_member_epoch=1, member_id=member)
    world.pass_time(9)

    world.restart()

    assert world.listed() == {"g": "Stable"}
    assert world.offsets() == {0: 5, 1: 6}
    world.pass_time(9)
    heartbeat = ops.Heartbeat(group_id="g", generation_id=1, member_id=member)
    assert world.answer(heartbeat).error_code is ErrorCode.NONE
    world.pass_time(11)
    assert world.listed() == {"g": "Empty"}


def test_a_snapshot_leads_to_the_same_state(world: World) -> None:
    member = world.stable("g")
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=member)
    world.leave("gone", world.stable("gone"))
    world.ask(txn_commit_op({1: 7}, "pending"))
    world.commit({0: 1}, "deleted")
    world.delete("deleted")

    snapshot = list(world.groups.facts())
    world.groups = world.empty()
    world.replay(snapshot)

    assert list(world.groups.facts()) == snapshot
    assert world.listed() == {"g": "Stable", "gone": "Empty", "pending": "Empty"}
    world.take(world.groups.settle_transaction(DEFAULT_ORG, 7, committed=True))
    assert world.offsets("pending") == {1: 7}


def test_at_the_end_everybody_is_sent_to_another_coordinator(world: World) -> None:
    world.stable("g")
    joining = world.ask(join_op(group_id="g", id_required=False))
    watching = world.ask(history_op(after=100, max_wait_ms=1000))

    world.take(world.groups.abandon())

    told = world.heard[joining]
    assert isinstance(told, ops.JoinGroupReply)
    assert told.error_code is ErrorCode.NOT_COORDINATOR
    assert watching in world.heard
    assert world.commit({0: 1}, "new") is ErrorCode.NOT_COORDINATOR
    assert world.groups.deadline == inf
    world.expire()
    assert len(world.groups) == 1


def test_new_rules_hold_for_groups_that_are_there(world: World) -> None:
    world.stable("g")

    world.groups.reconfigure(GroupRules(new_uuid=Uuids(), max_size=1), Limits(history_size=1))

    assert world.answer(join_op(group_id="g")).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_facts_name_their_group(world: World) -> None:
    world.stable("g")
    world.commit({0: 1}, "h")
    world.delete("h")

    assert {fact.group_id for fact in world.journal} == {"g", "h"}  # type: ignore[attr-defined]
    assert isinstance(world.journal[-1], GroupDeleted)
