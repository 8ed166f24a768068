"""A group has room for so many, and who finds none is told so."""

from __future__ import annotations

from rafka.errors import ErrorCode
from rafka.machines.groups.model import GroupRules, State
from rafka.machines.groups.roster import ITSELF

from .kit import Uuids, World


def small(size: int) -> World:
    return World(GroupRules(new_uuid=Uuids(), max_size=size))


def test_whoever_joins_last_finds_no_room() -> None:
    """CG-071: ids are given to more than there is room for."""
    world = small(3)
    given = [world.joined(world.join(f"m{at}")).member_id for at in range(4)]
    tokens = [world.join(f"m{at}", member_id) for at, member_id in enumerate(given)]
    world.tick()

    assert [world.code(token) for token in tokens] == [
        *[ErrorCode.NONE] * 3,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]
    assert world.joined(tokens[3]).member_id == ""


def test_an_old_client_finds_no_room_either() -> None:
    """CG-072"""
    world = small(2)
    world.stable("ann", "bob")

    assert world.code(world.join("cid", id_required=False)) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_members_of_a_full_group_join_again() -> None:
    """CG-073"""
    world = small(2)
    ann, bob = world.stable("ann", "bob")

    tokens = [world.join("ann", ann), world.join("bob", bob)]

    assert {world.joined(token).generation_id for token in tokens} == {2}


def test_a_group_larger_than_allowed_keeps_those_who_join_first() -> None:
    """CG-074: and does not wait for those who were turned away."""
    world = World()
    ids = world.stable("ann", "bob", "cid", "dan")
    world.rules = GroupRules(new_uuid=Uuids(), max_size=2)
    world.restart()
    assert world.state() is State.PREPARING

    tokens = [world.join(name, ids[at]) for at, name in enumerate(("ann", "bob", "cid", "dan"))]

    assert [world.code(token) for token in tokens] == [
        *[ErrorCode.NONE] * 2,
        *[ErrorCode.GROUP_MAX_SIZE_REACHED] * 2,
    ]
    assert world.joined(tokens[0]).generation_id == 2
    world.restart()
    assert [m.member_id for m in world.group.describe(absence_told=True).members] == ids[:2]


def test_an_empty_group_has_room() -> None:
    """CG-075: it can only be the first."""
    world = small(1)
    (ann,) = world.stable("ann")
    world.leave(ann)

    assert world.member("bob")
    assert world.group.generation == 3


def test_a_static_member_that_restarts_finds_its_group_full() -> None:
    """CG-070: as in Kafka, who comes without an id is a newcomer to this check."""
    world = small(2)
    world.stable("ann", "bob", static=True)

    token = world.join("ann", group_instance_id="i-ann")

    assert world.code(token) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_group_has_room_for_so_much_metadata() -> None:
    """Ours: a generation is kept as one fact, which has to have an end. Who brings no more may rejoin."""
    rules = GroupRules(new_uuid=Uuids(), max_metadata_bytes=20, max_group_bytes=2 * ITSELF + 31)
    world = World(rules)
    ann, bob = world.stable("ann", "bob", protocols=(("range", b"x" * 10),))

    assert world.code(world.join("cid", id_required=False)) is ErrorCode.GROUP_MAX_SIZE_REACHED
    tokens = [world.join("ann", ann, protocols=(("range", b"y" * 10),))]
    tokens.append(world.join("bob", bob, protocols=(("range", b"y" * 11),)))
    assert {world.joined(token).generation_id for token in tokens} == {2}

    assert world.code(world.join("bob", bob, protocols=(("range", b"y" * 12),))) is (
        ErrorCode.GROUP_MAX_SIZE_REACHED
    )
    assert world.heartbeat(bob) is ErrorCode.NONE, "it is in as it was"
    world.leave(ann, bob)
    assert world.group.roster.weight == 0


def test_whoever_was_given_an_id_and_finds_no_room_is_not_waited_for() -> None:
    """CG-071: the id is gone with the refusal. Else the others would wait until it is forgotten."""
    world = small(2)
    (ann,) = world.stable("ann")
    ids = [world.joined(world.join(name)).member_id for name in ("bob", "cid")]
    tokens = [world.join("ann", ann), world.join("bob", ids[0])]
    assert world.parked(tokens[0])

    assert world.code(world.join("cid", ids[1])) is ErrorCode.GROUP_MAX_SIZE_REACHED

    assert {world.joined(token).generation_id for token in tokens} == {2}
    assert not world.group.pending


def test_whoever_was_given_an_id_and_brings_too_much_is_not_waited_for() -> None:
    world = World(GroupRules(new_uuid=Uuids(), max_metadata_bytes=20, max_group_bytes=2 * ITSELF + 25))
    (ann,) = world.stable("ann", protocols=(("range", b"x" * 10),))
    bob = world.joined(world.join("bob")).member_id
    token = world.join("ann", ann, protocols=(("range", b"y" * 10),))
    assert world.parked(token)

    refused = world.join("bob", bob, protocols=(("range", b"z" * 10),))

    assert world.code(refused) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.joined(token).generation_id == 2


def test_members_count_for_more_than_what_they_bring() -> None:
    """Else a million who bring nothing would be no load at all."""
    world = World(GroupRules(new_uuid=Uuids(), max_metadata_bytes=20, max_group_bytes=2 * ITSELF))
    world.stable("ann", protocols=(("r", b""),))

    assert world.code(world.join("bob", protocols=(("r", b""),))) is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_static_member_that_restarts_brings_what_it_had_brought() -> None:
    world = World(GroupRules(new_uuid=Uuids(), max_metadata_bytes=20, max_group_bytes=ITSELF + 30))
    world.stable("ann", static=True, protocols=(("range", b"x" * 15),))

    token = world.join("ann", group_instance_id="i-ann", protocols=(("range", b"x" * 15),))

    assert world.code(token) is ErrorCode.NONE


def test_a_newcomer_does_not_count_for_a_member_with_an_empty_instance_id() -> None:
    world = World(GroupRules(new_uuid=Uuids(), max_metadata_bytes=20, max_group_bytes=ITSELF + 30))
    world.join("ann", group_instance_id="", protocols=(("range", b"x" * 15),))
    world.tick()

    token = world.join("bob", id_required=False, protocols=(("range", b"x" * 15),))

    assert world.code(token) is ErrorCode.GROUP_MAX_SIZE_REACHED
