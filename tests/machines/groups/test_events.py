"""What a group tells of its rebalances: why, who, how long, and what came of it."""

from __future__ import annotations

import pytest

from rafka.machines.groups.events import Assigned, GenerationFormed, RebalanceBegan, Resumed, Share, Trigger
from rafka.machines.groups.model import GroupRules, Moment

from .kit import BEGAN_MS, BOTH, HOST, Uuids, World


@pytest.fixture
def world() -> World:
    return World()


def told(world: World) -> list[object]:
    """What was told since the last time somebody asked."""
    events, world.events = world.events, []
    return list(events)


def kinds(world: World) -> list[str]:
    return [type(event).__name__ for event in told(world)]


def share(member_id: str, name: str, before: bytes | None, after: bytes | None, pause_ms: int) -> Share:
    return Share(
        member_id=member_id,
        group_instance_id=None,
        client_id=name,
        client_host=HOST,
        before=before,
        after=after,
        pause_ms=pause_ms,
    )


def test_a_whole_rebalance_is_told(world: World) -> None:
    ann, bob = world.stable("ann", "bob")
    told(world)
    world.at = 1.0
    token = world.join("cid", id_required=False, reason="scaled up " + "x" * 300)
    world.at = 1.5
    world.heartbeat(ann)
    world.at = 2.0
    world.join("ann", ann)
    world.leave(bob)
    cid = world.joined(token).member_id
    world.at = 3.0
    world.sync("ann", ann, {ann: b"A", cid: b"C"})
    world.at = 3.25
    world.sync("cid", cid)

    began, formed, assigned, resumed = told(world)

    assert began == RebalanceBegan(
        at=Moment(1.0, BEGAN_MS + 1_000),
        trigger=Trigger.MEMBER_JOINED,
        member_id=cid,
        reason=("scaled up " + "x" * 300)[:255],
        members_before=2,
    )
    assert formed == GenerationFormed(
        at=Moment(2.0, BEGAN_MS + 2_000),
        generation=2,
        protocol_type="consumer",
        protocol_name="range",
        leader=ann,
        members=2,
        gone=[share(bob, "bob", b"bob", None, -1)],
    )
    assert assigned == Assigned(
        at=Moment(3.0, BEGAN_MS + 3_000),
        generation=2,
        shares=[share(ann, "ann", b"ann", b"A", 1_500), share(cid, "cid", None, b"C", -1)],
    )
    assert resumed == Resumed(at=Moment(3.25, BEGAN_MS + 3_250), generation=2, member_id=cid, pause_ms=2_250)


def test_the_way_to_an_empty_group_is_told(world: World) -> None:
    (ann,) = world.stable("ann")
    told(world)

    world.leave(ann)

    began, formed = told(world)
    assert isinstance(began, RebalanceBegan)
    assert began.trigger is Trigger.MEMBER_LEFT
    assert isinstance(formed, GenerationFormed)
    assert (formed.members, formed.leader) == (0, "")
    assert [gone.member_id for gone in formed.gone] == [ann]


def test_a_rebalance_that_is_overtaken_begins_twice(world: World) -> None:
    world.member("ann")
    world.member("bob")

    assert kinds(world) == ["RebalanceBegan", "GenerationFormed", "RebalanceBegan"]


def test_what_is_no_rebalance_is_not_told(world: World) -> None:
    ann, bob = world.stable("ann", "bob", static=True)
    told(world)

    world.join("bob", bob)
    world.join("bob", group_instance_id="i-bob")
    world.sync("ann", ann)
    world.join("cid")
    world.keep_alive(5, ann)

    assert told(world) == []


def test_a_replaced_member_is_the_same_in_the_next_generation(world: World) -> None:
    """Its assignment before is that of its old self."""
    ann, _bob = world.stable("ann", "bob", static=True)
    world.join("bob", group_instance_id="i-bob")
    world.join("ann", ann)
    token = world.join("bob", group_instance_id="i-bob")
    told(world)
    bob = world.joined(token).member_id
    world.sync("ann", ann, {ann: b"A", bob: b"B"})

    (assigned,) = told(world)

    assert isinstance(assigned, Assigned)
    assert [(s.member_id, s.before, s.after) for s in assigned.shares] == [
        (ann, b"ann", b"A"),
        (bob, b"bob", b"B"),
    ]


@pytest.mark.parametrize("trigger", list(Trigger), ids=lambda trigger: trigger.name)
def test_every_trigger_is_told(trigger: Trigger) -> None:
    world = World()
    ann, bob = world.stable("ann", "bob", static=True, protocols=BOTH)
    told(world)
    match trigger:
        case Trigger.MEMBER_JOINED:
            world.join("cid", id_required=False)
        case Trigger.MEMBER_LEFT:
            world.leave(bob)
        case Trigger.ID_GIVEN_BACK:
            world.leave(world.joined(world.join("cid")).member_id)
        case Trigger.SESSION_EXPIRED:
            world.keep_alive(10, ann)
        case Trigger.SYNC_TIMED_OUT:
            world.join("ann", ann, protocols=BOTH)
            world.join("bob", bob, protocols=BOTH)
            world.sync("ann", ann)
            world.keep_alive(10, ann, bob)
        case Trigger.LEADER_REJOINED:
            world.join("ann", ann, protocols=BOTH)
        case Trigger.PROTOCOLS_CHANGED:
            world.join("bob", bob, protocols=BOTH[:1])
        case Trigger.STATIC_MEMBER_REPLACED:
            world.join("bob", group_instance_id="i-bob", protocols=BOTH[1:])
        case Trigger.ASSIGNMENTS_TOO_LARGE:
            world.join("ann", ann, protocols=BOTH)
            world.join("bob", bob, protocols=BOTH)
            world.sync("ann", ann, {ann: bytes(2 << 20)})
        case Trigger.GROUP_TOO_LARGE:
            world.rules = GroupRules(new_uuid=Uuids(), max_size=1)
            world.restart()
        case Trigger.RESTARTED:
            world.leave(bob)
            world.restart()

    begun = [event for event in told(world) if isinstance(event, RebalanceBegan)]
    assert begun[-1].trigger is trigger
    assert begun[-1].members_before == (1 if trigger is Trigger.RESTARTED else 2)
