"""A plain stream does what every Trio stream does, and starves nobody."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from rafka.link.plain import IMPATIENCE, PlainStream


def pair() -> tuple[PlainStream, PlainStream]:
    ours, theirs = socket.socketpair()
    return PlainStream(ours), PlainStream(theirs)


@pytest.fixture
async def streams() -> AsyncIterator[tuple[PlainStream, PlainStream]]:
    ours, theirs = pair()
    async with ours, theirs:
        yield ours, theirs


async def test_more_than_the_socket_takes_passes_whole(streams: tuple[PlainStream, PlainStream]) -> None:
    ours, theirs = streams
    data = bytes(range(256)) * 20_000
    found = bytearray()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.send_all, data)
        while len(found) < len(data):
            found += await theirs.receive_some(100_000)

    assert found == data


async def test_what_lies_there_is_read_in_pieces_as_large_as_asked_for(
    streams: tuple[PlainStream, PlainStream],
) -> None:
    ours, theirs = streams
    await ours.send_all(b"abcdefg")

    pieces = [await theirs.receive_some(3) for _ in range(3)]

    assert pieces == [b"abc", b"def", b"g"]


async def test_an_end_is_an_end_however_often_it_is_asked_for() -> None:
    ours, theirs = pair()
    await ours.send_all(b"last")
    await ours.aclose()

    async with theirs:
        assert [await theirs.receive_some() for _ in range(3)] == [b"last", b"", b""]


async def test_whoever_sends_to_nobody_is_told() -> None:
    ours, theirs = pair()
    await theirs.aclose()

    async with ours:
        with pytest.raises(trio.BrokenResourceError):
            await ours.send_all(b"hello?")


async def test_a_closed_stream_says_so_and_wakes_who_waits_on_it() -> None:
    ours, theirs = pair()
    woken = []

    async def wait() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await ours.receive_some()
        woken.append(True)

    async with theirs, trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        await ours.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")
    with pytest.raises(trio.ClosedResourceError):
        await ours.receive_some()
    await ours.aclose()

    assert woken == [True]


async def test_others_get_their_turn_while_a_stream_never_has_to_wait(
    streams: tuple[PlainStream, PlainStream],
) -> None:
    ours, theirs = streams
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        for _ in range(10 * IMPATIENCE):
            await ours.send_all(b"xy")
        sending = turns
        for _ in range(10 * IMPATIENCE):
            await theirs.receive_some(1)
        nursery.cancel_scope.cancel()

    assert sending >= 9
    assert turns - sending >= 9
