"""Who lives: heartbeats, commits as signs of life, and sessions that end."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups.model import State
from rafka.ops.group import Heartbeat

from .kit import BOTH, World


@pytest.fixture
def world() -> World:
    return World()


def test_strangers_are_told_so(world: World) -> None:
    """CG-097"""
    world.stable("ann")
    pending = world.joined(world.join("bob")).member_id

    assert world.heartbeat("x") is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(pending) is ErrorCode.UNKNOWN_MEMBER_ID


def test_another_generation_is_told_so_even_while_the_next_one_forms(world: World) -> None:
    """CG-098 CG-192"""
    (ann,) = world.stable("ann")
    assert world.heartbeat(ann, generation=0) is ErrorCode.ILLEGAL_GENERATION
    bob = world.member("bob")

    assert world.heartbeat(ann, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(bob, generation=-1) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_member_has_to_join_only_while_the_next_generation_forms(world: World) -> None:
    """CG-099"""
    (ann,) = world.stable("ann")
    assert world.heartbeat(ann) is ErrorCode.NONE
    world.member("bob")
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("ann", ann)

    assert world.state() is State.COMPLETING
    assert world.heartbeat(ann) is ErrorCode.NONE


def test_nobody_is_in_an_empty_group(world: World) -> None:
    """CG-100"""
    (ann,) = world.stable("ann")
    world.leave(ann)

    assert world.heartbeat(ann) is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_silent_for_a_session_is_out(world: World) -> None:
    """CG-101"""
    ann, bob = world.stable("ann", "bob")

    world.keep_alive(9, ann)
    world.pass_time(0.999)
    assert world.heartbeat(ann) is ErrorCode.NONE
    world.pass_time(0.001)

    assert world.heartbeat(bob) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_member_in(world: World) -> None:
    """CG-102"""
    (ann,) = world.stable("ann")

    for _ in range(20):
        world.pass_time(5)
        assert world.heartbeat(ann) is ErrorCode.NONE


def test_commits_alone_keep_a_member_in(world: World) -> None:
    """CG-104"""
    (ann,) = world.stable("ann")

    for _ in range(20):
        world.pass_time(5)
        assert world.commit(ann, 1) is ErrorCode.NONE


def test_commits_keep_a_member_in_while_the_next_generation_forms(world: World) -> None:
    """CG-195"""
    (ann,) = world.stable("ann", rebalance_timeout_ms=30_000)
    newcomer = world.join("bob", id_required=False)

    for _ in range(29):
        world.pass_time(1)
        assert world.commit(ann, 1) is ErrorCode.NONE
    world.join("ann", ann)

    assert world.joined(newcomer).generation_id == 2


def test_a_heartbeat_of_a_newcomer_does_not_begin_its_session(world: World) -> None:
    """CG-043: nothing but its generation does."""
    ann = world.stable("ann", rebalance_timeout_ms=60_000)[0]
    token = world.join("bob", id_required=False, session_timeout_ms=6_000)
    bob = next(m.member_id for m in world.group.roster.by_id.values() if m.join_waiter == token)
    assert world.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS

    world.keep_alive(30, ann)

    assert world.parked(token)


def test_another_members_instance_id_is_fenced(world: World) -> None:
    """CG-105"""
    ann, _bob = world.stable("ann", "bob", static=True)

    assert world.heartbeat(ann, instance="i-bob") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(ann, instance="none") is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_must_have_a_name(world: World) -> None:
    """CG-106"""
    op = Heartbeat(group_id="", generation_id=1, member_id="x")

    with pytest.raises(KafkaError, match="INVALID_GROUP_ID"):
        world.group.heartbeat(op, "t", world.now)


def test_all_who_fell_silent_together_are_out_together(world: World) -> None:
    world.stable("ann", "bob", "cid")

    world.pass_time(1_000)

    assert world.state() is State.EMPTY
    assert world.group.generation == 2


def test_a_clock_that_leaps_ends_every_session_but_those_of_who_waits(world: World) -> None:
    """As when the machine slept: what is due is done at once, in one tick."""
    _ann, bob = world.stable("ann", "bob")
    token = world.join("bob", bob, protocols=BOTH)

    world.at += 86_400
    world.tick()

    assert world.joined(token).generation_id == 2
    assert [m.member_id for m in world.joined(token).members] == [bob]
