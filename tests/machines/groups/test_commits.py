"""Who may commit in the name of a group."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.model import State

from .kit import World

NONE, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID
OLD = ErrorCode.ILLEGAL_GENERATION


@pytest.fixture
def world() -> World:
    return World()


def test_outsiders_commit_only_where_nobody_is_in(world: World) -> None:
    """CG-121 CG-122"""
    assert world.commit() is NONE
    (ann,) = world.stable("ann")
    assert world.commit() is UNKNOWN
    world.leave(ann)
    assert world.commit() is NONE


def test_members_commit_in_their_generation(world: World) -> None:
    """CG-124"""
    ann, _bob = world.stable("ann", "bob", static=True)

    assert world.commit(ann, 1) is NONE
    assert world.commit(ann, 1, "i-ann") is NONE
    assert world.commit(ann, 2) is OLD
    assert world.commit("x", 1) is UNKNOWN
    assert world.commit(ann, 1, "i-bob") is FENCED
    assert world.commit(ann, 1, "none") is UNKNOWN


def test_nobody_commits_between_join_and_sync(world: World) -> None:
    """CG-125: while members join, they still commit in the generation that they come from."""
    (ann,) = world.stable("ann")
    newcomer = world.member("bob")
    assert world.state() is State.PREPARING
    assert world.commit(ann, 1) is NONE
    assert world.commit(newcomer, 1) is NONE, "CG-192"

    world.join("ann", ann)

    assert world.state() is State.COMPLETING
    assert world.commit(ann, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_who_names_a_generation_must_be_in(world: World) -> None:
    """CG-204"""
    assert world.commit("x", -1) is NONE
    assert world.commit("", 1) is UNKNOWN
    assert world.commit("x", 0) is UNKNOWN
    (ann,) = world.stable("ann")
    pending = world.joined(world.join("bob")).member_id

    assert world.commit(ann, -1) is OLD
    assert world.commit(pending, 1) is UNKNOWN


def test_transactions_commit_in_any_state(world: World) -> None:
    """CG-208"""
    ann, _bob = world.stable("ann", "bob", static=True)
    for state in (State.STABLE, State.PREPARING):
        assert world.state() is state
        assert world.txn_commit() is NONE
        assert world.txn_commit(ann, 1) is NONE
        assert world.txn_commit(ann, 5) is world.txn_commit(ann, -1) is OLD
        assert world.txn_commit("x", 1) is UNKNOWN
        assert world.txn_commit("", -1, "none") is UNKNOWN
        assert world.txn_commit(ann, 1, "i-bob") is FENCED
        world.join("ann", ann)

    other = World()
    cid = other.member("cid")
    assert other.group.state is State.COMPLETING
    assert other.txn_commit(cid, 1) is NONE


def test_transactions_are_no_sign_of_life(world: World) -> None:
    """T7"""
    (ann,) = world.stable("ann")
    world.pass_time(9)
    world.txn_commit(ann, 1)

    world.pass_time(1)

    assert world.state() is State.EMPTY


def test_a_group_that_is_gone_takes_no_commit(world: World) -> None:
    world.group.apply(world.group.begin_deletion())

    assert world.commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.txn_commit() is ErrorCode.COORDINATOR_NOT_AVAILABLE
