"""Static members: a restart that nobody notices, and the old self that is fenced."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.model import State

from .kit import BOTH, RANGE, World


@pytest.fixture
def world() -> World:
    return World()


def settled(world: World, *names: str) -> list[str]:
    return world.stable(*names, static=True)


def test_a_follower_that_restarts_disturbs_nobody(world: World) -> None:
    """CG-056"""
    ann, bob = settled(world, "ann", "bob")

    answer = world.joined(world.join("bob", group_instance_id="i-bob"))

    assert (answer.error_code, answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, ann)
    assert answer.member_id.startswith("i-bob-")
    assert answer.member_id != bob
    assert not answer.members
    assert not answer.skip_assignment
    assert world.heartbeat(ann) is ErrorCode.NONE


def test_a_member_that_restarts_is_shown_as_who_held_its_instance_id_first(world: World) -> None:
    settled(world, "ann", "bob")

    world.join("bob", group_instance_id="i-bob", client_id="bob-again")

    assert {m.client_id for m in world.group.describe(absence_told=True).members} == {"ann", "bob"}


def test_a_leader_that_restarts_leads_on_and_assigns_nothing(world: World) -> None:
    """CG-057"""
    _ann, bob = settled(world, "ann", "bob")

    answer = world.joined(world.join("ann", group_instance_id="i-ann"))

    assert answer.generation_id == 1
    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert {m.member_id for m in answer.members} == {bob, answer.member_id}


def test_an_old_leader_that_restarts_takes_itself_for_a_follower(world: World) -> None:
    """CG-058"""
    ann, _bob = settled(world, "ann", "bob")

    answer = world.joined(world.join("ann", group_instance_id="i-ann", may_skip=False))

    assert answer.leader == ann
    assert not answer.members
    assert not answer.skip_assignment
    assert world.synced(world.sync("ann", answer.member_id)).assignment == b"ann"


def test_the_old_self_is_fenced(world: World) -> None:
    """CG-059 CG-060"""
    _ann, bob = settled(world, "ann", "bob")
    world.join("bob", group_instance_id="i-bob")

    assert world.heartbeat(bob, instance="i-bob") is ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(bob) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(world.sync("bob", bob, group_instance_id="i-bob")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.commit(bob, 1, "i-bob") is ErrorCode.FENCED_INSTANCE_ID


def test_the_new_self_has_the_old_assignment(world: World) -> None:
    """CG-061"""
    settled(world, "ann", "bob")
    bob = world.joined(world.join("bob", group_instance_id="i-bob")).member_id

    assert world.synced(world.sync("bob", bob)).assignment == b"bob"


def test_a_restart_that_changes_the_vote_makes_all_join(world: World) -> None:
    """CG-062"""
    (ann, _bob) = world.stable("ann", "bob", static=True, protocols=BOTH)

    token = world.join("bob", group_instance_id="i-bob", protocols=BOTH[1:])
    assert world.parked(token)
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("ann", ann, protocols=BOTH)

    assert world.joined(token).protocol_name == "roundrobin"


@pytest.mark.parametrize("offer", [(("range", b"new"),), (("range", b"new"), ("other", b""))])
def test_a_restart_with_other_metadata_is_stored_and_disturbs_nobody(
    world: World, offer: tuple[tuple[str, bytes], ...]
) -> None:
    """CG-063: whether or not there are other protocols beside the one that is used."""
    settled(world, "ann", "bob")

    token = world.join("bob", group_instance_id="i-bob", protocols=offer)

    assert world.code(token) is ErrorCode.NONE
    assert world.state() is State.STABLE
    described = {m.group_instance_id: m.member_metadata for m in world.group.describe(True).members}
    assert described == {"i-ann": b"r", "i-bob": b"new"}


def test_a_double_before_the_sync_makes_all_join(world: World) -> None:
    """CG-064"""
    tokens = [world.join(name, group_instance_id=f"i-{name}") for name in ("ann", "bob", "cid")]
    world.tick()
    _ann, bob, cid = (world.joined(token).member_id for token in tokens)
    waiting = {name: world.sync(name, member_id) for name, member_id in (("bob", bob), ("cid", cid))}

    world.join("double", group_instance_id="i-bob")

    assert world.code(waiting["bob"]) is ErrorCode.FENCED_INSTANCE_ID
    assert world.code(waiting["cid"]) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.state() is State.PREPARING


def test_a_double_takes_the_place_of_one_that_waits(world: World) -> None:
    """CG-065"""
    ann, bob = settled(world, "ann", "bob")
    first = world.join("bob", bob, group_instance_id="i-bob", protocols=BOTH)
    second = world.join("bob", group_instance_id="i-bob", protocols=BOTH)
    assert world.code(first) is ErrorCode.FENCED_INSTANCE_ID
    assert world.joined(first).member_id == bob
    assert world.parked(second)

    world.join("ann", ann, group_instance_id="i-ann")

    assert world.joined(second).generation_id == 2


def test_each_restart_has_an_id_of_its_own(world: World) -> None:
    """CG-066"""
    settled(world, "ann", "bob")

    ids = {world.joined(world.join("bob", group_instance_id="i-bob")).member_id for _ in range(2)}

    assert len(ids) == 2


def test_a_static_follower_that_joins_unchanged_is_told_what_it_knows(world: World) -> None:
    """CG-067"""
    _ann, bob = settled(world, "ann", "bob")

    answer = world.joined(world.join("bob", bob, group_instance_id="i-bob"))

    assert (answer.generation_id, list(answer.members)) == (1, [])


def test_a_static_leader_that_joins_with_its_id_makes_all_join(world: World) -> None:
    """CG-068"""
    ann, bob = settled(world, "ann", "bob")

    assert world.parked(world.join("ann", ann, group_instance_id="i-ann"))
    assert world.heartbeat(bob) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_dead_static_member_is_out_after_its_session_and_may_come_anew(world: World) -> None:
    """CG-069"""
    ann, _bob = settled(world, "ann", "bob")
    world.keep_alive(10, ann)
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    world.join("ann", ann)

    token = world.join("bob", group_instance_id="i-bob")
    world.sync("ann", ann)
    world.join("ann", ann)

    assert world.joined(token).generation_id == 3


def test_a_static_member_that_leaves_its_instance_id_out_is_known(world: World) -> None:
    """CG-180"""
    _ann, bob = settled(world, "ann", "bob")

    assert world.heartbeat(bob) is ErrorCode.NONE
    assert world.synced(world.sync("bob", bob)).assignment == b"bob"
    assert world.joined(world.join("bob", bob)).generation_id == 1
    described = {m.member_id: m.group_instance_id for m in world.group.describe(True).members}
    assert described[bob] == "i-bob"


def test_a_restart_before_the_sync_is_over_needs_only_to_sync(world: World) -> None:
    """CG-196: Kafka makes everybody join for the id that is no more."""
    tokens = [world.join(name, group_instance_id=f"i-{name}") for name in ("ann", "bob")]
    world.tick()
    ann, bob = (world.joined(token).member_id for token in tokens)
    world.sync("ann", ann, {ann: b"a", bob: b"b"})
    new = world.joined(world.join("bob", group_instance_id="i-bob")).member_id
    assert world.synced(world.sync("bob", new)).assignment == b"b"

    world.keep_alive(20, ann, new)

    assert world.state() is State.STABLE
    assert world.group.generation == 1


def test_a_restart_that_does_not_sync_is_out_in_time(world: World) -> None:
    """The other side of CG-196: the new id stands in for the old one."""
    tokens = [world.join(name, group_instance_id=f"i-{name}") for name in ("ann", "bob")]
    world.tick()
    ann = world.joined(tokens[0]).member_id
    world.sync("ann", ann)
    new = world.joined(world.join("bob", group_instance_id="i-bob")).member_id

    world.keep_alive(10, ann, new)

    assert world.heartbeat(new) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_restart_that_offers_nothing_in_common_leaves_all_as_it_was(world: World) -> None:
    """J11 comes before the replacement."""
    _ann, bob = settled(world, "ann", "bob")

    token = world.join("bob", group_instance_id="i-bob", protocols=(("other", b""),))

    assert world.code(token) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.heartbeat(bob, instance="i-bob") is ErrorCode.NONE


def test_five_members_restart_one_by_one_without_a_rebalance(world: World) -> None:
    names = ("ann", "bob", "cid", "dan", "eve")
    ids = dict(zip(names, settled(world, *names), strict=True))
    begun = len(world.events)

    for name in names:
        ids[name] = world.joined(world.join(name, group_instance_id=f"i-{name}")).member_id
        assert world.synced(world.sync(name, ids[name])).assignment == name.encode()
        world.keep_alive(3, *ids.values())

    assert world.group.generation == 1
    assert len(world.events) == begun
    assert world.group.leader == ids["ann"]


def test_a_restart_of_the_broker_knows_the_new_selves(world: World) -> None:
    """In a stable group, and in the middle of a rebalance as well: else they would be fenced."""
    ann, _bob = settled(world, "ann", "bob")
    new = world.joined(world.join("bob", group_instance_id="i-bob")).member_id
    world.restart()
    assert world.heartbeat(new, instance="i-bob") is ErrorCode.NONE
    assert world.synced(world.sync("bob", new)).assignment == b"bob"

    world.join("ann", ann, group_instance_id="i-ann")
    world.join("bob", group_instance_id="i-bob", protocols=BOTH)
    newest = world.group.roster.by_instance["i-bob"].member_id
    world.restart()

    assert world.group.generation == 1
    assert world.heartbeat(newest, generation=1, instance="i-bob") is ErrorCode.NONE
    assert world.group.roster.by_id[newest].protocols == RANGE, "as the generation was that came back"


def test_a_restart_that_leaves_a_tie_as_it_was_disturbs_nobody(world: World) -> None:
    """Among equal votes the place of a voter decides, and whoever restarts comes last."""
    tokens = [
        world.join("ann", group_instance_id="i-ann", protocols=BOTH),
        world.join("bob", group_instance_id="i-bob", protocols=BOTH[::-1]),
    ]
    world.tick()
    ann, bob = (world.joined(token).member_id for token in tokens)
    world.sync("bob", bob)
    world.sync("ann", ann, {ann: b"a", bob: b"b"})
    assert world.group.protocol_name == "range"

    token = world.join("ann", group_instance_id="i-ann", protocols=(*BOTH, ("other", b"")))

    assert world.code(token) is ErrorCode.NONE
    assert world.state() is State.STABLE
