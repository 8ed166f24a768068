"""The table of states, all of it: what is in it happens, and what is not in it is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rafka.machines.groups.model import TRANSITIONS, State

from .kit import World


def in_state(state: State) -> tuple[World, str]:
    """A group in this state, and one of its members if it has any."""
    world = World()
    if state is State.EMPTY:
        return world, ""
    if state is State.DEAD:
        world.group.apply(world.group.begin_deletion())
        return world, ""
    if state is State.COMPLETING:
        return world, world.member("ann")
    (ann,) = world.stable("ann")
    if state is State.PREPARING:
        world.member("bob")
    assert world.group.state is state
    return world, ann


def last_one_goes(world: World, _member: str) -> None:
    world.leave(*world.group.roster.by_id)


def all_join(world: World, member: str) -> None:
    world.join("ann", member)


# How each transition of the table comes about, from a group in the first state.
WAYS: dict[tuple[State, State], Callable[[World, str], object]] = {
    (State.EMPTY, State.PREPARING): lambda world, _: world.join("ann", id_required=False),
    (State.EMPTY, State.DEAD): lambda world, _: world.group.apply(world.group.begin_deletion()),
    (State.PREPARING, State.COMPLETING): all_join,
    (State.PREPARING, State.EMPTY): last_one_goes,
    (State.PREPARING, State.DEAD): lambda world, _: world.group.abandon(),
    (State.COMPLETING, State.STABLE): lambda world, ann: world.sync("ann", ann),
    (State.COMPLETING, State.PREPARING): lambda world, _: world.join("bob", id_required=False),
    (State.COMPLETING, State.DEAD): lambda world, _: world.group.abandon(),
    (State.STABLE, State.PREPARING): lambda world, _: world.join("bob", id_required=False),
    (State.STABLE, State.DEAD): lambda world, _: world.group.abandon(),
}

PAIRS = [(old, new) for old in State for new in State]


def test_every_transition_of_the_table_has_a_way() -> None:
    assert set(WAYS) == {(old, new) for old, following in TRANSITIONS.items() for new in following}


@pytest.mark.parametrize(("old", "new"), sorted(WAYS, key=str), ids=lambda state: state.name)
def test_what_is_in_the_table_happens(old: State, new: State) -> None:
    world, member = in_state(old)

    WAYS[old, new](world, member)

    assert world.group.state is new


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=lambda state: state.name)
def test_what_is_not_in_the_table_is_refused(old: State, new: State) -> None:
    world, _ = in_state(old)

    if new in TRANSITIONS[old]:
        world.group.move_to(new)
        assert world.group.state is new
    else:
        with pytest.raises(AssertionError, match=f"{old.name} cannot become {new.name}"):
            world.group.move_to(new)
        assert world.group.state is old


def test_states_have_kafkas_names() -> None:
    assert [state.shown for state in State] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
    ]
