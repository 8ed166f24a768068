"""What outlives the process: identity, numbers, members and assignments, and nobody who has gone."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.facts import Fact
from rafka.machines.groups.events import RebalanceBegan, Trigger
from rafka.machines.groups.facts import GroupDeleted, MembersRemoved
from rafka.machines.groups.group import Group
from rafka.machines.groups.model import State

from .kit import BOTH, KEY, World


@pytest.fixture
def world() -> World:
    return World()


def test_members_go_on_after_a_restart(world: World) -> None:
    """CG-146"""
    ann, bob = world.stable("ann", "bob", protocols=BOTH)
    world.restart()

    assert world.heartbeat(ann) is world.heartbeat(bob) is ErrorCode.NONE
    assert world.synced(world.sync("bob", bob)).assignment == b"bob"
    assert world.group.leader == ann
    again = world.join("bob", bob, protocols=BOTH)
    assert world.joined(again).generation_id == 1, "all that it offers is known, not only what was chosen"
    world.keep_alive(60, ann, bob)
    assert world.group.generation == 1


def test_sessions_begin_anew_with_a_restart(world: World) -> None:
    ann, _bob = world.stable("ann", "bob")
    world.pass_time(9)
    world.restart()

    world.pass_time(9)
    assert world.heartbeat(ann) is ErrorCode.NONE
    world.pass_time(1)

    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS, "bob has not come back"


def test_a_generation_without_assignments_is_lost_but_not_its_number(world: World) -> None:
    """CG-147: whoever was told of it is told that it is no more, and nobody gets its number again."""
    (ann,) = world.stable("ann")
    token = world.join("bob", id_required=False)
    world.join("ann", ann)
    bob = world.joined(token).member_id
    assert world.group.generation == 2
    world.restart()

    assert (world.state(), world.group.generation) == (State.STABLE, 1)
    assert world.heartbeat(ann, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert world.heartbeat(bob, generation=2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.joined(world.join("ann", ann)).generation_id == 3


def test_ids_given_out_are_forgotten(world: World) -> None:
    world.stable("ann")
    pending = world.joined(world.join("bob")).member_id
    world.restart()

    assert world.code(world.join("bob", pending)) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("way", ["left", "silent", "late"])
def test_whoever_has_gone_stays_gone_and_its_partitions_are_shared_out(world: World, way: str) -> None:
    ann, bob, cid = world.stable("ann", "bob", "cid", rebalance_timeout_ms=5_000)
    if way == "left":
        world.leave(bob)
    elif way == "silent":
        world.keep_alive(10, ann, cid)
    else:
        world.join("cid", cid, protocols=BOTH, rebalance_timeout_ms=5_000)
        world.join("ann", ann, rebalance_timeout_ms=5_000)
        world.pass_time(5)
    world.restart()

    assert world.heartbeat(bob, generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.heartbeat(ann, generation=1) is ErrorCode.REBALANCE_IN_PROGRESS
    begun = [event for event in world.events if isinstance(event, RebalanceBegan)]
    assert begun[-1].trigger is Trigger.RESTARTED
    world.join("ann", ann)
    token = world.join("cid", cid)
    assert world.joined(token).generation_id > 1


def test_where_all_have_gone_nobody_comes_back(world: World) -> None:
    (ann,) = world.stable("ann")
    world.leave(ann)
    world.restart()

    assert (world.state(), world.group.generation) == (State.EMPTY, 2)
    assert world.group.protocol_type == "consumer"
    world.member("bob")
    assert world.group.generation == 3


def test_a_leader_that_has_gone_is_succeeded(world: World) -> None:
    ann, bob = world.stable("ann", "bob")
    world.leave(ann)
    world.restart()

    assert world.joined(world.join("bob", bob)).leader == bob


def every_history() -> dict[str, World]:
    """Groups in all sorts of states that a snapshot may find them in."""
    worlds = {name: World() for name in ("fresh", "stable", "empty", "left", "forming", "replaced")}
    for name, world in worlds.items():
        if name != "fresh":
            world.stable("ann", "bob", "cid", static=True, protocols=BOTH)
    worlds["empty"].leave(*worlds["empty"].group.roster.by_id)
    for name in ("left", "forming"):
        worlds[name].leave(next(iter(worlds[name].group.roster.by_id)))
    for member_id in list(worlds["forming"].group.roster.by_id):
        worlds["forming"].join("x", member_id, protocols=BOTH)
    worlds["replaced"].join("ann", group_instance_id="i-ann", protocols=BOTH)
    return worlds


@pytest.mark.parametrize("name", ["fresh", "stable", "empty", "left", "forming", "replaced"])
def test_a_snapshot_says_the_same_as_the_whole_journal(name: str) -> None:
    world = every_history()[name]
    replayed: Group[str] = Group(KEY, "", world.rules)
    for fact in world.journal:
        replayed.apply(fact)
    from_snapshot: Group[str] = Group(KEY, "", world.rules)
    snapshot: list[Fact] = list(world.group.facts())
    for fact in snapshot:
        from_snapshot.apply(fact)

    assert from_snapshot.kept == world.group.kept
    replayed.kept.stable_id = world.group.stable_id
    assert replayed.kept == world.group.kept
    assert list(from_snapshot.facts()) == snapshot


def test_members_that_nobody_kept_leave_no_fact_behind(world: World) -> None:
    """A newcomer that gives up before its first generation was never in."""
    world.stable("ann")
    bob = world.member("bob")
    before = len(world.journal)

    world.leave(bob)

    assert not any(isinstance(fact, MembersRemoved) for fact in world.journal[before:])


def test_the_end_is_a_fact_too(world: World) -> None:
    group = world.group
    fact = group.begin_deletion()
    assert fact == GroupDeleted(*KEY)

    group.apply(fact)

    assert group.state is State.DEAD
    assert group.deadline == float("inf")


def test_what_is_no_fact_of_a_group_is_a_mistake_of_ours(world: World) -> None:
    with pytest.raises(TypeError, match="no fact"):
        world.group.apply(object())


def test_a_broker_that_closes_answers_everybody(world: World) -> None:
    ann, bob = world.stable("ann", "bob")
    joining = world.join("ann", ann)
    other = World()
    tokens = [other.join(name, id_required=False) for name in ("ann", "bob")]
    other.tick()
    syncing = other.sync("bob", other.joined(tokens[1]).member_id)

    for each in (world, other):
        for reply in each.group.abandon():
            each.heard[reply.to] = reply.answer

    assert world.code(joining) is other.code(syncing) is ErrorCode.NOT_COORDINATOR
    assert world.joined(joining).member_id == ann
    assert bob not in world.heard
    assert world.group.abandon() == []
