"""Frames out of bytes: whatever the cuts, the same frames; and memory only for what has come."""

from __future__ import annotations

from collections import deque

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.gateway.budget import ByteBudget
from rafka.gateway.buffers import Buffers
from rafka.gateway.incoming import Incoming
from rafka.types import Buffer
from rafka.wire.errors import WireError

FRAME_MAX = 100 * 1024 * 1024


class Chunks:
    """As `transport.Transport`: gives these pieces, one a call, and then the end."""

    sent = 0
    more = True

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = deque(chunks)

    def receive_into(self, buffer: memoryview) -> int:
        if not self.chunks:
            return 0
        chunk = self.chunks.popleft()
        size = min(len(chunk), len(buffer))
        buffer[:size] = chunk[:size]
        if size < len(chunk):
            self.chunks.appendleft(chunk[size:])
        return size

    def watch(self, on_readable: object) -> None:
        raise AssertionError("nothing is watched here")

    def again(self) -> None:
        raise AssertionError("nothing is watched here")

    def send_now(self, pieces: object) -> list[Buffer]:
        raise AssertionError("nothing is sent here")

    async def send(self, pieces: object) -> None:
        raise AssertionError("nothing is sent here")

    def close(self) -> None:
        pass


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


async def received(incoming: Incoming) -> memoryview | None:
    """The next bytes to work on, whatever has to be waited for; None at the end."""
    while not incoming.ended:
        await trio.lowlevel.checkpoint()
        if incoming.starved:
            await incoming.wait_for_memory()
        if (data := incoming.receive()) is not None:
            return data
    return None


async def frames(incoming: Incoming) -> list[bytes]:
    """All frames until the end, each copied out as soon as it is told."""
    found = []
    while (data := await received(incoming)) is not None:
        at = 0
        while (end := incoming.frame_end(data, at)) > 0:
            found.append(bytes(data[at + 4 : end]))
            at = end
        incoming.release()
    return found


def receiving(*chunks: bytes, shared: int = 1024, limit: int = -1, frame_max: int = FRAME_MAX) -> Incoming:
    return Incoming(Chunks(*chunks), memoryview(bytearray(shared)), Buffers(), ByteBudget(limit), frame_max)


@given(
    bodies=st.lists(st.binary(min_size=1, max_size=300), max_size=8),
    cuts=st.lists(st.integers(1, 400), max_size=30),
    shared=st.integers(4, 512),
)
def test_frames_are_the_same_however_they_are_cut(bodies: list[bytes], cuts: list[int], shared: int) -> None:
    data, chunks, at = b"".join(map(framed, bodies)), [], 0
    for cut in cuts:
        chunks.append(data[at : at + cut])
        at += cut
    chunks.append(data[at:])

    assert trio.run(frames, receiving(*filter(None, chunks), shared=shared)) == bodies


async def test_frames_cut_at_every_byte_are_whole() -> None:
    """Bad input 12."""
    bodies = [b"one", b"two two", b"3"]
    data = b"".join(map(framed, bodies))

    for cut in range(1, len(data)):
        assert await frames(receiving(data[:cut], data[cut:])) == bodies
    assert await frames(receiving(*(data[n : n + 1] for n in range(len(data))))) == bodies


async def test_a_frame_larger_than_the_buffer_comes_in_small_pieces() -> None:
    body = bytes(range(256)) * (3 * 4096)  # 3 MB
    pieces = [framed(body)[at : at + 1000] for at in range(0, len(body) + 4, 1000)]

    assert await frames(receiving(framed(b"before"), *pieces, framed(b"after"))) == [
        b"before",
        body,
        b"after",
    ]


async def test_a_claim_costs_next_to_nothing() -> None:
    """Reliability 4, law (a): the buffer grows with what has come."""
    incoming = receiving((99 * 1024 * 1024).to_bytes(4, "big") + b"x", limit=10)

    data = incoming.receive()

    assert data is not None
    assert incoming.frame_end(data, 0) == -1
    assert incoming.midway
    assert incoming._body is not None
    assert len(incoming._body) <= 1 << 20
    assert incoming._budget.used == 0


@pytest.mark.parametrize("size", [0, -1, 1001, -(2**31), 2**31 - 1])
async def test_an_impossible_size_is_refused_as_soon_as_it_is_read(size: int) -> None:
    """N1; bad inputs 1 to 4."""
    incoming = receiving(size.to_bytes(4, "big", signed=True), frame_max=1000)
    data = incoming.receive()

    assert data is not None
    with pytest.raises(WireError):
        incoming.frame_end(data, 0)


async def test_the_largest_size_is_taken() -> None:
    assert await frames(receiving(framed(bytes(1000)), frame_max=1000)) == [bytes(1000)]


async def test_an_end_in_the_middle_of_a_frame_is_an_end() -> None:
    assert await frames(receiving(framed(b"one"), framed(b"two")[:-1])) == [b"one"]
    assert await frames(receiving(framed(b"one"), b"\0\0")) == [b"one"]


# --- the budget --------------------------------------------------------------------------------


async def test_large_frames_wait_for_each_other_where_memory_is_bounded(autojump_clock: MockClock) -> None:
    """Reliability 6.4: and what one gives back wakes the next."""
    budget = ByteBudget(300_000)
    body = bytes(200_000)
    done: list[int] = []

    async def receive(n: int) -> None:
        incoming = Incoming(Chunks(framed(body)), memoryview(bytearray(1024)), Buffers(), budget, FRAME_MAX)
        data = incoming.receive()
        assert data is not None
        assert incoming.frame_end(data, 0) == -1
        while (data := await received(incoming)) is not None:
            assert incoming.frame_end(data, 0) == len(data)
            await trio.sleep(1)  # it is being worked on
            done.append(n)
            incoming.release()
            incoming.frame_end(data[:0], 0)

    async with trio.open_nursery() as nursery:
        for n in range(6):
            nursery.start_soon(receive, n)

    assert sorted(done) == list(range(6))
    assert budget.used == 0


@pytest.mark.parametrize("limit", [1, 100_000, 1_000_000])
async def test_requests_that_have_come_in_part_do_not_wait_for_each_other_for_ever(
    limit: int, autojump_clock: MockClock
) -> None:
    """Each has a share of the budget, and none can have it all: one is let through."""
    budget = ByteBudget(limit)
    body = bytes(700_000)
    pieces = [framed(body)[at : at + 50_000] for at in range(0, 700_004, 50_000)]
    done = 0

    async def receive() -> None:
        nonlocal done
        incoming = Incoming(Chunks(*pieces), memoryview(bytearray(60_000)), Buffers(), budget, FRAME_MAX)
        assert await frames(incoming) == [body]
        done += 1

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(receive)

    assert done == 8
    assert budget.used == 0


async def test_whoever_is_let_through_and_goes_lets_the_next_one_through() -> None:
    budget = ByteBudget(10)
    first, second = object(), object()
    await budget.take(50, first)
    taken = trio.Event()

    async def take() -> None:
        await budget.take(50, second)
        taken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await wait_all_tasks_blocked()
        assert not taken.is_set()
        budget.give_back(50, first)

    assert budget.used == 50


async def test_a_wait_for_memory_may_be_cancelled() -> None:
    budget = ByteBudget(10)
    holder = object()
    await budget.take(50, holder)

    with trio.CancelScope() as scope:
        scope.cancel()
        await budget.take(50, object())

    budget.give_back(50, holder)
    assert budget.used == 0


async def test_small_frames_are_not_worth_counting() -> None:
    budget = ByteBudget(1)
    body = bytes(60_000)
    chunks = [framed(body)[at : at + 1000] for at in range(0, 60_004, 1000)]
    incoming = Incoming(Chunks(*chunks), memoryview(bytearray(1024)), Buffers(), budget, FRAME_MAX)
    await budget.take(100, object())

    assert await frames(incoming) == [body]
