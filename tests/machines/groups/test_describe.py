"""How a group looks from outside."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups.describe import described_absent
from rafka.ops.group import DescribedGroup, DescribedMember, ListedGroup

from .kit import HOST, KEY, World


@pytest.fixture
def world() -> World:
    return World()


def test_a_stable_group_shows_all(world: World) -> None:
    """CG-149"""
    (ann,) = world.stable("ann", static=True)

    assert world.group.describe(True) == DescribedGroup(
        group_id=KEY[1],
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            DescribedMember(
                member_id=ann,
                group_instance_id="i-ann",
                client_id="ann",
                client_host=HOST,
                member_metadata=b"r",
                member_assignment=b"ann",
            )
        ],
    )


def test_while_members_join_their_last_assignments_are_shown(world: World) -> None:
    """CG-150"""
    world.stable("ann")
    world.member("bob")

    described = world.group.describe(True)

    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [(m.member_metadata, m.member_assignment) for m in described.members] == [
        (b"", b"ann"),
        (b"", b""),
    ]


def test_a_sync_that_was_stopped_leaves_no_assignments(world: World) -> None:
    """DE3"""
    (ann,) = world.stable("ann")
    world.join("ann", ann)
    assert [m.member_assignment for m in world.group.describe(True).members] == [b"ann"]

    world.member("bob")

    assert [m.member_assignment for m in world.group.describe(True).members] == [b"", b""]


def test_a_group_that_is_not_there_is_dead() -> None:
    """CG-151"""
    old = described_absent("g", absence_told=False)
    new = described_absent("g", absence_told=True)

    assert (old.group_state, old.error_code) == ("Dead", ErrorCode.NONE)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert new.error_message == "Group g not found."


def test_ids_given_out_make_no_members(world: World) -> None:
    """CG-210"""
    pending = world.joined(world.join("ann")).member_id

    described = world.group.describe(True)
    assert (described.group_state, described.protocol_type, described.members) == ("Empty", "", [])
    assert world.group.listed() == ListedGroup(
        group_id=KEY[1], protocol_type="", group_state="Empty", group_type="classic"
    )

    world.group.apply(world.group.begin_deletion())
    assert world.code(world.join("ann", pending)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.group.describe(True) == described_absent(KEY[1], absence_told=True)


def test_only_an_empty_group_is_deleted(world: World) -> None:
    """CG-140, as far as members go"""
    (ann,) = world.stable("ann")
    for _ in range(3):
        with pytest.raises(KafkaError, match="NON_EMPTY_GROUP"):
            world.group.begin_deletion()
        world.join("ann", ann)
    world.leave(ann)

    world.group.apply(world.group.begin_deletion())

    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        world.group.begin_deletion()


def test_a_group_knows_since_when_it_is_empty(world: World) -> None:
    """A.14: the day from which its offsets are counted."""
    assert world.group.empty_since_ms is None
    (ann,) = world.stable("ann")
    assert world.group.empty_since_ms is None
    world.pass_time(5)
    world.leave(ann)
    since = world.now.wall_ms
    world.pass_time(50)

    assert world.group.empty_since_ms == since
    world.restart()
    assert world.group.empty_since_ms == since


def test_a_group_knows_what_its_generation_subscribed_to(world: World) -> None:
    """A.6.2: while the next one forms as well."""
    topics = (("range", b"\0\1\0\0\0\1\0\4news"),)
    assert world.group.subscribed_to("news") is False
    (ann,) = world.stable("ann", protocols=topics)
    assert world.group.subscribed_to("news") is True
    assert world.group.subscribed_to("other") is False

    world.join("bob", id_required=False, protocols=(("range", b"\0\1\0\0\0\1\0\5other"),))
    assert world.group.subscribed_to("other") is False
    world.join("ann", ann, protocols=topics)
    assert world.group.subscribed_to("other") is True
    assert world.group.subscribed_to("news") is True


def test_what_cannot_be_read_may_mean_every_topic(world: World) -> None:
    """A.6.2, CG-142"""
    world.stable("ann", protocols=(("range", b"\0"),))
    assert world.group.subscribed_to("news") is None

    other = World()
    other.stable("ann", protocol_type="connect", protocols=(("v1", b"\0\1\0\0\0\1\0\4news"),))
    assert other.group.subscribed_to("news") is None
