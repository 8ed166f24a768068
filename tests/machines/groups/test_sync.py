"""Assignments: brought by the leader, waited for by the others, and kept to be asked for again."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.model import State
from rafka.ops.group import SyncGroupReply

from .kit import BOTH, World


@pytest.fixture
def world() -> World:
    return World()


def joined(world: World, *names: str) -> list[str]:
    """A generation that has formed and waits for its leader, the first of these."""
    tokens = [world.join(name, id_required=False) for name in names]
    world.tick()
    assert world.state() is State.COMPLETING
    return [world.joined(token).member_id for token in tokens]


def test_followers_wait_for_the_leader(world: World) -> None:
    """CG-076"""
    ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob)
    assert world.parked(waiting)

    leading = world.sync("ann", ann, {ann: b"a", bob: b"b"})

    assert world.synced(leading).assignment == b"a"
    assert world.synced(waiting).assignment == b"b"
    assert world.state() is State.STABLE


def test_after_the_leader_nobody_waits(world: World) -> None:
    """CG-077"""
    ann, bob = joined(world, "ann", "bob")
    world.sync("ann", ann, {ann: b"a", bob: b"b"})

    assert world.synced(world.sync("bob", bob)).assignment == b"b"


def test_whom_the_leader_leaves_out_gets_nothing(world: World) -> None:
    """CG-078"""
    ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob)

    world.sync("ann", ann, {ann: b"a"})

    assert world.synced(waiting) == SyncGroupReply(
        protocol_type="consumer", protocol_name="range", assignment=b""
    )


def test_whom_the_leader_leaves_out_does_not_keep_what_it_had(world: World) -> None:
    ann, bob = world.stable("ann", "bob")
    world.join("ann", ann)
    world.join("bob", bob)

    world.sync("ann", ann, {ann: b"ann and bob"})

    assert world.synced(world.sync("bob", bob)).assignment == b""


def test_assignments_of_strangers_are_passed_over(world: World) -> None:
    """CG-079"""
    (ann,) = joined(world, "ann")

    world.sync("ann", ann, {ann: b"a", "stranger": b"s"})

    assert [m.member_id for m in world.group.describe(True).members] == [ann]


def test_an_empty_group_has_nobody_to_sync(world: World) -> None:
    """CG-080"""
    (ann,) = world.stable("ann")
    world.leave(ann)

    assert world.code(world.sync("ann", ann)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_strangers_do_not_sync(world: World) -> None:
    """CG-081 CG-094"""
    ann, _bob = world.stable("ann", "bob", static=True)
    pending = world.joined(world.join("cid")).member_id

    assert world.code(world.sync("x", "x")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(world.sync("cid", pending)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(world.sync("ann", ann, group_instance_id="none")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(world.sync("ann", ann, group_instance_id="i-bob")) is ErrorCode.FENCED_INSTANCE_ID


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_the_generation_must_be_the_current_one(world: World, generation: int) -> None:
    """CG-082"""
    (ann,) = joined(world, "ann")

    token = world.sync("ann", ann, generation_id=generation)

    assert world.code(token) is ErrorCode.ILLEGAL_GENERATION


def test_who_has_to_join_need_not_sync(world: World) -> None:
    """CG-083 CG-192: even a member whose own join is parked."""
    (ann,) = world.stable("ann")
    newcomer = world.member("bob")

    assert world.code(world.sync("ann", ann)) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.code(world.sync("bob", newcomer)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_protocol_type_and_name_must_be_the_groups_where_they_are_told(world: World) -> None:
    """CG-084 CG-085 CG-086"""
    (ann,) = joined(world, "ann")

    wrong_type = world.sync("ann", ann, protocol_type="connect", protocol_name="range")
    wrong_name = world.sync("ann", ann, protocol_type="consumer", protocol_name="other")
    right = world.sync("ann", ann, {ann: b"a"}, protocol_type="consumer", protocol_name="range")
    silent = world.sync("ann", ann)

    assert world.code(wrong_type) is world.code(wrong_name) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.synced(right) == world.synced(silent)
    assert (world.synced(right).protocol_type, world.synced(right).protocol_name) == ("consumer", "range")


def test_a_stable_group_keeps_its_assignments(world: World) -> None:
    """CG-087 CG-191: whatever leader or followers bring later."""
    ann, bob = world.stable("ann", "bob")

    again = world.sync("ann", ann, {ann: b"other", bob: b"other"})
    follower = world.sync("bob", bob, {bob: b"mine"})

    assert world.synced(again).assignment == b"ann"
    assert world.synced(follower).assignment == b"bob"


def test_what_followers_bring_is_not_looked_at(world: World) -> None:
    """CG-191"""
    ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob, {bob: b"mine"})

    world.sync("ann", ann, {ann: b"a"})

    assert world.synced(waiting).assignment == b""


def test_a_newcomer_sends_those_who_wait_back_to_join(world: World) -> None:
    """CG-088"""
    _ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob)

    world.join("cid", id_required=False)

    assert world.code(waiting) is ErrorCode.REBALANCE_IN_PROGRESS


def test_without_its_leader_a_generation_forms_anew(world: World) -> None:
    """CG-089"""
    ann, bob, cid = joined(world, "ann", "bob", "cid")
    waiting = world.sync("bob", bob)

    world.leave(ann)
    assert world.code(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    tokens = [world.join("cid", cid), world.join("bob", bob)]

    assert {world.joined(token).generation_id for token in tokens} == {2}
    assert {world.joined(token).leader for token in tokens} <= {bob, cid}


def test_a_silent_leader_does_not_hold_the_others_for_ever(world: World) -> None:
    """CG-090"""
    ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob)

    world.pass_time(10)

    assert world.code(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(ann) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_never_syncs_is_out_in_time(world: World) -> None:
    """CG-091: though it sends heartbeats, and though the group is stable."""
    ann, bob = joined(world, "ann", "bob")
    world.sync("ann", ann)
    assert world.state() is State.STABLE

    world.keep_alive(9, ann, bob)
    assert world.heartbeat(bob) is ErrorCode.NONE
    world.keep_alive(1, ann, bob)

    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(bob) is ErrorCode.UNKNOWN_MEMBER_ID


def test_where_nobody_syncs_nobody_stays(world: World) -> None:
    """CG-092"""
    ids = joined(world, "ann", "bob")

    world.keep_alive(10, *ids)

    assert world.state() is State.EMPTY
    assert world.group.generation == 2


def test_where_all_have_synced_time_changes_nothing(world: World) -> None:
    """CG-093"""
    ids = world.stable("ann", "bob")

    world.keep_alive(60, *ids)

    assert world.state() is State.STABLE
    assert world.group.generation == 1


def test_a_group_must_have_a_name(world: World) -> None:
    """CG-095"""
    assert world.code(world.sync("ann", "x", group_id="")) is ErrorCode.INVALID_GROUP_ID


def test_assignments_have_a_limit_in_all(world: World) -> None:
    """CG-096"""
    ann, bob = joined(world, "ann", "bob")
    large = {ann: b"a" * 520_000, bob: b"b" * 520_000}
    waiting = world.sync("bob", bob)
    world.sync("ann", ann, large)
    assert world.synced(waiting).assignment == large[bob]

    world.join("ann", ann)
    world.join("bob", bob)
    waiting = world.sync("bob", bob)
    leading = world.sync("ann", ann, {ann: b"", bob: b"b" * 1_100_000})

    assert world.code(waiting) is world.code(leading) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.state() is State.PREPARING
    assert world.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS


def test_assignments_that_were_left_out_on_their_way_are_too_large(world: World) -> None:
    """A link between processes has a limit of its own."""
    ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob)
    leading = world.sync("ann", ann, too_large=True)

    assert world.code(waiting) is world.code(leading) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.state() is State.PREPARING


def test_what_a_follower_could_not_bring_is_not_looked_at_either(world: World) -> None:
    _ann, bob = joined(world, "ann", "bob")

    assert world.parked(world.sync("bob", bob, too_large=True))


@pytest.mark.parametrize("why", ["too large", "a newcomer"])
def test_who_is_sent_back_to_join_has_to_say_that_it_lives(world: World, why: str) -> None:
    """It waited, and did not need to; now its session begins again."""
    tokens = [world.join(name, id_required=False, rebalance_timeout_ms=60_000) for name in ("ann", "bob")]
    world.tick()
    ann, bob = (world.joined(token).member_id for token in tokens)
    world.sync("bob", bob)
    world.keep_alive(20, ann)

    if why == "too large":
        world.sync("ann", ann, {ann: bytes(2 << 20)})
    else:
        world.join("cid", id_required=False)

    world.keep_alive(9, ann)
    assert world.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS
    world.keep_alive(10, ann)
    assert world.heartbeat(bob) is ErrorCode.UNKNOWN_MEMBER_ID


def test_what_is_wrong_is_told_in_kafkas_order(world: World) -> None:
    """CG-190"""
    ann, _bob = world.stable("ann", "bob", static=True)

    unknown = world.sync("x", "x", protocol_name="other")
    old = world.sync("ann", ann, generation_id=0, protocol_name="other")

    assert world.code(unknown) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(old) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(ann, generation=0, instance="i-bob") is ErrorCode.FENCED_INSTANCE_ID


def test_the_second_of_two_syncs_is_answered(world: World) -> None:
    """CG-193: the first is told to join again, where Kafka says nothing."""
    ann, bob = joined(world, "ann", "bob")
    first, second = world.sync("bob", bob), world.sync("bob", bob)
    assert world.code(first) is ErrorCode.REBALANCE_IN_PROGRESS

    world.sync("ann", ann, {bob: b"b"})

    assert world.synced(second).assignment == b"b"


def test_one_who_waits_for_the_leader_need_not_say_that_it_lives(world: World) -> None:
    tokens = [world.join(name, id_required=False, rebalance_timeout_ms=60_000) for name in ("ann", "bob")]
    world.tick()
    ann, bob = (world.joined(token).member_id for token in tokens)
    waiting = world.sync("bob", bob)
    world.keep_alive(30, ann)

    world.sync("ann", ann, {bob: b"b"})

    assert world.synced(waiting).assignment == b"b"
    world.pass_time(9.9)
    assert world.heartbeat(bob) is ErrorCode.NONE


def test_a_member_that_waits_for_its_assignment_may_ask_to_join_again(world: World) -> None:
    """J24: it is told its generation once more, and its sync goes on waiting."""
    ann, bob = joined(world, "ann", "bob")
    waiting = world.sync("bob", bob)

    assert world.joined(world.join("bob", bob)).generation_id == 1
    assert world.parked(waiting)
    assert world.parked(world.join("bob", bob, protocols=BOTH))
    assert world.code(waiting) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
