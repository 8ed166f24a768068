"""The bound on what is under way, in the moments in which two things happen at once."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from rafka.link.hello import Limits
from rafka.link.room import Room


async def test_a_turn_that_comes_to_somebody_who_has_just_gone_goes_to_the_next() -> None:
    room = Room(Limits(ops=1))
    assert room.take_at_once(1)
    gone, taken = trio.CancelScope(), []

    async def take(name: str, scope: trio.CancelScope) -> None:
        with scope:
            await room.take(1)
            taken.append(name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take, "gone", gone)
        await wait_all_tasks_blocked()
        nursery.start_soon(take, "next", trio.CancelScope())
        await wait_all_tasks_blocked()
        gone.cancel()
        room.give_back(1)  # before whoever is gone has run again
        await wait_all_tasks_blocked()
        assert taken == ["next"]

    room.give_back(1)
    assert room.take_at_once(1)


async def test_nobody_takes_a_turn_before_those_who_wait() -> None:
    room = Room(Limits(ops=10, bytes=100))
    assert room.take_at_once(60)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.take, 50)
        await wait_all_tasks_blocked()

        assert not room.take_at_once(1)
        room.give_back(60)

    assert room.take_at_once(50)


async def test_when_the_room_is_closed_nobody_waits_any_more() -> None:
    room = Room(Limits(ops=1))
    assert room.take_at_once(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.take, 1)
        await wait_all_tasks_blocked()
        room.close()
    with trio.fail_after(1):
        await room.take(1)
