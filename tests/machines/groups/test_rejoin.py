"""Members that join again: when that is a question, and when it makes everybody join."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.model import State

from .kit import BOTH, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_follower_that_joins_unchanged_is_told_what_it_knows(world: World) -> None:
    """CG-047"""
    ann, bob = world.stable("ann", "bob")

    answer = world.joined(world.join("bob", bob))

    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, ann)
    assert not answer.members
    assert world.state() is State.STABLE


@pytest.mark.parametrize(
    "changed", [(("range", b"new"), BOTH[1]), BOTH[::-1]], ids=["CG-048 metadata", "CG-049 order"]
)
def test_a_follower_that_offers_something_else_makes_all_join(
    world: World, changed: tuple[tuple[str, bytes], ...]
) -> None:
    """CG-048 CG-049"""
    ann, bob = world.stable("ann", "bob", protocols=BOTH)

    token = world.join("bob", bob, protocols=changed)
    assert world.parked(token)
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("ann", ann, protocols=BOTH)

    assert world.joined(token).generation_id == 2


def test_a_leader_that_joins_makes_all_join(world: World) -> None:
    """CG-050"""
    ann, bob = world.stable("ann", "bob")

    token = world.join("ann", ann)

    assert world.parked(token)
    assert world.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS


def test_before_the_sync_whoever_joins_unchanged_is_told_again(world: World) -> None:
    """CG-051 CG-052"""
    tokens = [world.join(name, id_required=False) for name in ("ann", "bob")]
    world.tick()
    ann, bob = (world.joined(token).member_id for token in tokens)

    follower = world.joined(world.join("bob", bob))
    leader = world.joined(world.join("ann", ann))

    assert (follower.generation_id, list(follower.members)) == (1, [])
    assert (leader.generation_id, [m.member_id for m in leader.members]) == (1, [ann, bob])
    assert world.state() is State.COMPLETING


def test_before_the_sync_whoever_joins_changed_stops_it(world: World) -> None:
    """CG-053"""
    tokens = [world.join(name, id_required=False) for name in ("ann", "bob", "cid")]
    world.tick()
    _ann, bob, cid = (world.joined(token).member_id for token in tokens)
    waiting = world.sync("bob", bob)

    token = world.join("cid", cid, protocols=BOTH)

    assert world.parked(token)
    assert world.code(waiting) is ErrorCode.REBALANCE_IN_PROGRESS


def test_only_the_last_of_two_joins_gets_the_generation(world: World) -> None:
    """CG-054: the first is told to join again, where Kafka says nothing."""
    ann, bob = world.stable("ann", "bob")
    first = world.join("bob", bob, protocols=BOTH)
    second = world.join("bob", bob, protocols=BOTH)
    assert world.code(first) is ErrorCode.REBALANCE_IN_PROGRESS

    world.join("ann", ann)

    assert world.joined(second).generation_id == 2


def test_timeouts_may_change_with_a_join(world: World) -> None:
    """CG-055"""
    (ann,) = world.stable("ann")
    world.join("ann", ann, session_timeout_ms=20_000, rebalance_timeout_ms=60_000)
    world.sync("ann", ann)

    world.pass_time(19.999)
    assert world.heartbeat(ann) is ErrorCode.NONE
    world.pass_time(20)
    assert world.heartbeat(ann) is ErrorCode.UNKNOWN_MEMBER_ID
