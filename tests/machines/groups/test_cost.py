"""What a request costs does not grow with the group: only a generation that forms looks at everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.model import State
from rafka.machines.groups.roster import Member

from .kit import BOTH, World


class NotToBeCounted(dict[str, Member[str]]):
    """Members may be looked up, and not looked through."""

    def _refuse(self) -> NoReturn:
        raise AssertionError("looks at every member")

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def values(self) -> NoReturn:
        self._refuse()

    def items(self) -> NoReturn:
        self._refuse()

    def keys(self) -> NoReturn:
        self._refuse()


@pytest.fixture
def world() -> World:
    return World()


def forbid_counting(world: World) -> None:
    world.group.roster.by_id = NotToBeCounted(world.group.roster.by_id)


def allow_counting(world: World) -> None:
    world.group.roster.by_id = dict(dict.items(world.group.roster.by_id))


def test_in_a_stable_group_nobody_is_looked_through(world: World) -> None:
    names = [f"m{at}" for at in range(20)]
    ids = world.stable(*names, static=True)
    forbid_counting(world)

    assert world.heartbeat(ids[3]) is ErrorCode.NONE
    assert world.commit(ids[3], 1) is ErrorCode.NONE
    assert world.code(world.sync("m3", ids[3])) is ErrorCode.NONE
    assert world.code(world.join("m3", ids[3])) is ErrorCode.NONE
    assert world.code(world.join("m3", group_instance_id="i-m3")) is ErrorCode.NONE
    assert world.code(world.join("new")) is ErrorCode.MEMBER_ID_REQUIRED
    world.pass_time(9)
    assert world.state() is State.STABLE


def test_while_members_join_only_the_last_of_them_looks_through(world: World) -> None:
    names = [f"m{at}" for at in range(20)]
    ids = world.stable(*names, protocols=BOTH)
    tokens = [world.join("m0", ids[0], protocols=BOTH)]
    forbid_counting(world)

    for at in range(1, 19):
        assert world.heartbeat(ids[at]) is ErrorCode.REBALANCE_IN_PROGRESS
        tokens.append(world.join(names[at], ids[at], protocols=BOTH[at % 2 :]))
    tokens.append(world.join("new", id_required=False, protocols=BOTH))
    allow_counting(world)
    tokens.append(world.join("m19", ids[19], protocols=BOTH))

    assert {world.joined(token).generation_id for token in tokens} == {2}


def test_while_members_sync_only_the_leader_looks_through(world: World) -> None:
    tokens = [world.join(f"m{at}", id_required=False) for at in range(20)]
    world.tick()
    leader, *followers = (world.joined(token).member_id for token in tokens)
    forbid_counting(world)
    for follower in followers[:10]:
        world.sync("early", follower)
    allow_counting(world)
    world.sync("leader", leader, {member_id: member_id.encode() for member_id in followers})
    forbid_counting(world)

    for follower in followers[10:]:
        assert world.synced(world.sync("late", follower)).assignment == follower.encode()


def test_members_that_go_one_by_one_cost_the_same_each(world: World) -> None:
    ids = world.stable(*[f"m{at}" for at in range(20)])
    world.group.kept.members = NotToBeCounted(world.group.kept.members)  # type: ignore[assignment,arg-type]

    world.leave(ids[3])
    world.leave(ids[4])

    assert ids[3] not in world.group.kept.members
    assert ids[5] in world.group.kept.members
