"""Who goes, alone or many at once, and what that means for the others."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups.events import RebalanceBegan
from rafka.machines.groups.leave import leave_nothing
from rafka.machines.groups.model import State
from rafka.ops.group import LeaveGroup, Leaver

from .kit import KEY, World

NONE, UNKNOWN, FENCED = ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID


@pytest.fixture
def world() -> World:
    return World()


def test_from_a_group_that_is_not_there_nobody_can_go() -> None:
    """CG-107"""
    op = LeaveGroup(group_id=KEY[1], members=[Leaver(member_id="x", group_instance_id="i")])

    answer = leave_nothing(op)

    assert answer.error_code is NONE
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in answer.members] == [("x", "i", UNKNOWN)]


def test_strangers_cannot_go(world: World) -> None:
    """CG-108 CG-114"""
    world.stable("ann")

    assert world.leave("x") == [UNKNOWN]
    assert world.leave(("", None)) == [UNKNOWN]
    assert world.state() is State.STABLE


def test_the_last_to_go_leaves_an_empty_group(world: World) -> None:
    """CG-109"""
    (ann,) = world.stable("ann")

    assert world.leave(ann) == [NONE]

    described = world.group.describe(True)
    assert (described.group_state, described.protocol_type) == ("Empty", "consumer")
    assert world.group.generation == 2


def test_the_others_share_what_is_free(world: World) -> None:
    """CG-110"""
    ann, bob = world.stable("ann", "bob")
    world.leave(bob)
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS

    answer = world.joined(world.join("ann", ann))

    assert answer.generation_id == 2
    assert [m.member_id for m in answer.members] == [ann]


def test_an_operator_takes_static_members_out(world: World) -> None:
    """CG-111"""
    world.stable("ann", "bob", static=True)

    assert world.leave(("", "i-ann"), ("", "i-bob")) == [NONE, NONE]

    assert world.state() is State.EMPTY
    assert world.group.generation == 2


def test_each_is_judged_by_itself(world: World) -> None:
    """CG-112"""
    world.stable("ann", "bob", static=True)

    assert world.leave(("", "i-ann"), ("", "none")) == [NONE, UNKNOWN]
    assert world.state() is State.PREPARING


def test_whoever_is_fenced_takes_nobody_out(world: World) -> None:
    """CG-113"""
    ann, _bob = world.stable("ann", "bob", static=True)

    assert world.leave((ann, "i-bob")) == [FENCED]
    assert world.state() is State.STABLE


def test_an_id_given_back_makes_members_join_but_wakes_no_empty_group(world: World) -> None:
    """CG-115"""
    pending = world.joined(world.join("bob")).member_id
    assert world.leave(pending) == [NONE]
    assert world.state() is State.EMPTY

    (ann,) = world.stable("ann")
    pending = world.joined(world.join("bob")).member_id
    assert world.leave(pending) == [NONE]
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.code(world.join("bob", pending)) is UNKNOWN

    world.join("ann", ann)
    pending = world.joined(world.join("bob")).member_id
    world.leave(pending)
    assert world.code(world.sync("ann", ann)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_last_to_go_waits_for_nobody_who_was_only_given_an_id(world: World) -> None:
    (ann,) = world.stable("ann")
    pending = world.joined(world.join("bob")).member_id

    world.leave(ann)

    assert (world.state(), world.group.generation) == (State.EMPTY, 2)
    world.join("bob", pending)
    world.pass_time(0.01)
    assert world.group.generation == 3


def test_an_id_that_is_forgotten_disturbs_nobody(world: World) -> None:
    """CG-115"""
    (ann,) = world.stable("ann")
    pending = world.joined(world.join("bob")).member_id

    world.keep_alive(11, ann)

    assert world.heartbeat(ann) is NONE
    assert world.code(world.join("bob", pending)) is UNKNOWN


def test_one_who_waits_to_join_is_told_that_it_is_out(world: World) -> None:
    """CG-116"""
    _ann, bob = world.stable("ann", "bob")
    world.member("cid")
    waiting = world.join("bob", bob)

    assert world.leave(bob) == [NONE]

    assert world.code(waiting) is UNKNOWN
    assert world.joined(waiting).member_id == ""


def test_a_group_must_have_a_name(world: World) -> None:
    """CG-118"""
    op = LeaveGroup(group_id="", members=[])

    with pytest.raises(KafkaError, match="INVALID_GROUP_ID"):
        world.group.leave(op, "t", world.now)
    with pytest.raises(KafkaError, match="INVALID_GROUP_ID"):
        leave_nothing(op)


def test_who_goes_is_waited_for_no_longer(world: World) -> None:
    """CG-119"""
    ann, bob = world.stable("ann", "bob")
    newcomer = world.join("cid", id_required=False)
    again = world.join("bob", bob)

    world.leave(ann)

    assert world.joined(again).generation_id == world.joined(newcomer).generation_id == 2
    assert world.joined(again).leader == bob


def test_nobody_may_go_and_nobody_goes_twice(world: World) -> None:
    """CG-197"""
    ann, bob = world.stable("ann", "bob", static=True)

    assert world.leave() == []
    assert world.leave(ann, ann) == [NONE, UNKNOWN]
    assert world.leave(("", "i-bob"), (bob, "i-bob")) == [NONE, UNKNOWN]


def test_many_who_go_together_make_one_generation(world: World) -> None:
    """CG-198: a static member goes by its id alone."""
    ann, bob, cid = world.stable("ann", "bob", "cid", static=True)

    assert world.leave(bob, cid) == [NONE, NONE]

    assert world.joined(world.join("ann", ann)).generation_id == 2


def test_one_who_waits_for_its_assignment_is_told_that_it_is_out(world: World) -> None:
    """CG-199: Kafka never answers it."""
    tokens = [world.join(name, id_required=False) for name in ("ann", "bob")]
    world.tick()
    bob = world.joined(tokens[1]).member_id
    waiting = world.sync("bob", bob)

    assert world.leave(bob) == [NONE]

    assert world.code(waiting) is UNKNOWN


def test_an_instance_id_goes_with_the_first_who_leaves_by_it(world: World) -> None:
    """Rows L7 and L13: the second is judged as if the first had gone already."""
    ann, bob = world.stable("ann", "bob", static=True)

    assert world.leave((ann, "i-ann"), ("somebody", "i-ann"), ("", "i-ann")) == [NONE, UNKNOWN, UNKNOWN]
    assert world.leave(("somebody", "i-bob"), (bob, "i-bob")) == [FENCED, NONE]


def test_it_is_told_who_was_taken_out_by_instance_id(world: World) -> None:
    ann, _bob = world.stable("ann", "bob", static=True)
    world.events.clear()

    world.leave(("", "i-ann"))

    [began] = [event for event in world.events if isinstance(event, RebalanceBegan)]
    assert began.member_id == ann


def test_an_empty_instance_id_is_not_that_of_members_who_have_none(world: World) -> None:
    tokens = [world.join("ann", group_instance_id=""), world.join("bob", id_required=False)]
    world.tick()
    ann, bob = (world.joined(token).member_id for token in tokens)

    assert world.leave((ann, ""), bob) == [NONE, NONE]
