"""All groups together: how they come to be and go, and what absent ones answer."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.directory import Limits
from rafka.machines.groups.facts import GroupCreated
from rafka.ops import group as ops
from rafka.ops import offsets as offset_ops
from rafka.types import DEFAULT_ORG, OrgId

from .directory_kit import OTHER_TOPIC, TOPIC, World, commit_op, fetch_op, txn_commit_op
from .kit import join_op, sync_op


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
        (join_op(group_id="g", session_timeout_ms=1), ErrorCode.INVALID_SESSION_TIMEOUT),
        (join_op(group_id=""), ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_a_join_that_is_refused_makes_no_group(world: World, op: ops.JoinGroup, code: ErrorCode) -> None:
    assert world.answer(op).error_code is code
    assert (len(world.groups), world.journal) == (0, [])


def test_a_member_of_nothing_is_unknown_by_the_id_that_it_gave(world: World) -> None:
    """CG-008"""
    told = world.answer(join_op("x", group_id="g"))

    assert (told.error_code, told.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "x")
    assert world.listed() == {}


@pytest.mark.parametrize("wrong", [{"protocols": ()}, {"protocol_type": ""}])
def test_a_group_is_made_even_for_a_member_that_offers_nothing_it_could_do(
    world: World, wrong: dict[str, Any]
) -> None:
    """J8, J11: as Kafka's clients and tools see it."""
    assert world.answer(join_op(group_id="g", **wrong)).error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    assert world.listed() == {"g": "Empty"}
    assert [type(fact) for fact in world.journal] == [GroupCreated]


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
    ("absence_told", "code", "may"),
    [(True, ErrorCode.GROUP_ID_NOT_FOUND, ops.NOT_ASKED), (False, ErrorCode.NONE, 3400)],
)
def test_an_absent_group_is_dead_to_those_who_look(
    world: World, absence_told: bool, code: ErrorCode, may: int
) -> None:
    op = ops.DescribeGroups(groups=["g"], absence_told=absence_told, include_authorized_operations=True)

    (told,) = world.answer(op).groups

    assert (told.group_state, told.error_code, told.authorized_operations) == ("Dead", code, may)


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


@pytest.mark.parametrize(
    ("states", "groups"),
    [
        (["stable"], {"busy"}),
        ([" Stable "], {"busy"}),
        (["nope"], set()),
        ([""], set()),
        ([], {"busy", "idle"}),
    ],
)
def test_states_are_matched_in_any_case_and_with_space_around_them(
    world: World, states: list[str], groups: set[str]
) -> None:
    """CG-152"""
    world.stable("busy")
    world.commit({0: 1}, "idle")

    assert set(world.listed(states_filter=states)) == groups


@pytest.mark.parametrize(
    ("types", "groups"), [(["consumer"], set()), (["Classic"], {"g"}), ([" classic "], set())]
)
def test_types_are_matched_in_any_case_and_as_they_stand(
    world: World, types: list[str], groups: set[str]
) -> None:
    """CG-153: there is a difference between the two filters in Kafka, too."""
    world.stable("g")

    assert set(world.listed(types_filter=types)) == groups


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


def test_a_deleted_group_is_as_one_that_never_was(world: World) -> None:
    """CG-211"""
    ann = world.stable("g")
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=ann)
    world.leave("g", ann)

    world.delete("g")

    [described] = world.answer(ops.DescribeGroups(groups=["g"])).groups
    beat = ops.Heartbeat(group_id="g", generation_id=1, member_id=ann)
    assert described.group_state == "Dead"
    assert world.answer(beat).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.offsets() == {}
    world.join("g")
    assert world.generation("g") == 1
    assert world.offsets() == {}


def test_a_deleted_group_does_not_come_back(world: World) -> None:
    world.commit({0: 5})
    world.delete("g")

    world.restart()

    assert world.listed() == {}


def delete_offset(world: World, name: str) -> ErrorCode:
    """Of partition 0 of a topic."""
    partitions = [offset_ops.DeleteOffsetsPartition(partition_index=0)]
    topic = offset_ops.DeleteOffsetsTopic(name=name, partitions=partitions)
    topic.topic_id = TOPIC if name == "t" else OTHER_TOPIC  # type: ignore[misc]
    reply = world.answer(offset_ops.OffsetDelete(group_id="g", topics=[topic]))
    return reply.topics[0].partitions[0].error_code


def test_offsets_that_members_read_are_kept(world: World) -> None:
    subscribed = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"
    member = world.stable("g", protocols=(("range", subscribed),))
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=member)

    assert delete_offset(world, "t") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offset(world, "other") is ErrorCode.NONE
    assert world.offsets() == {0: 5}

    world.leave("g", member)
    assert delete_offset(world, "t") is ErrorCode.NONE
    assert world.offsets() == {}


def test_before_the_first_generation_members_may_read_anything(world: World) -> None:
    """As Kafka answers while a new group waits for company."""
    world.groups.reconfigure(attrs.evolve(world.groups.rules, initial_delay_ms=3_000), world.groups.limits)
    world.commit({0: 5})
    world.ask(join_op(group_id="g", id_required=False))

    assert delete_offset(world, "t") is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


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


@pytest.mark.parametrize("how", ["group", "topic", "offset"])
def test_of_what_was_deleted_from_under_a_transaction_nothing_is_remembered(world: World, how: str) -> None:
    world.ask(txn_commit_op({0: 5}))
    if how == "group":
        world.delete("g")
    elif how == "topic":
        world.groups.forget_topic(TOPIC)
    else:
        assert delete_offset(world, "t") is ErrorCode.NONE

    world.take(world.groups.settle_transaction(DEFAULT_ORG, 7, True))

    assert not world.groups._producers


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
