"""Frames come out of a stream as they were put in, however the stream cuts them."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from rafka.link.frames import LENGTH, Framed, Kind, LinkBroken, packed_frame
from rafka.types import Buffer

FRAMES = st.lists(
    st.tuples(
        st.integers(0, 99), st.binary(max_size=300), st.lists(st.text(max_size=5), max_size=3).map(tuple)
    ),
    max_size=8,
)


@given(FRAMES, st.lists(st.integers(3, 400), min_size=1, max_size=30))
def test_any_cut_of_the_stream_gives_the_same_frames(
    frames: list[tuple[object, ...]], cuts: list[int]
) -> None:
    data = b"".join(LENGTH.pack(len(p)) + p for p in (packed_frame(*frame) for frame in frames))

    async def main() -> list[object]:
        ours, theirs = trio.testing.memory_stream_pair()
        found: list[object] = []

        async def read() -> None:
            framed = Framed(ours, 10_000)
            while (came := await framed.receive()) is not None:
                found.extend(frame for _, frame in came)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            at = 0
            while at < len(data):
                size = cuts[at % len(cuts)]
                await theirs.send_all(data[at : at + size])
                await trio.testing.wait_all_tasks_blocked()
                at += size
            await theirs.send_eof()
        return found

    assert trio.run(main) == frames


async def test_what_is_put_goes_out_in_order_and_as_few_pieces() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    sent: list[int] = []
    send_all = ours.send_all

    async def count(data: Buffer) -> None:
        sent.append(len(data))
        await send_all(data)

    ours.send_all = count  # type: ignore[method-assign]
    framed, other = Framed(ours, 1 << 20), Framed(theirs, 1 << 20)
    for number in range(100):
        framed.put(Kind.CANCEL, number)
    framed.put(Kind.REPLY, 1, bytes(100_000))
    framed.put(Kind.PING)

    await framed.flush()
    found: list[tuple[int, ...]] = []
    while len(found) < 102:
        found += [frame for _, frame in await other.receive() or []]

    assert len(sent) == 3  # the small ones, the large one, the last
    assert [frame[1] for frame in found[:100]] == list(range(100))
    assert found[-1] == (Kind.PING,)


async def test_room_is_waited_for_until_the_stream_has_taken_enough() -> None:
    ours, theirs = trio.testing.lockstep_stream_pair()
    framed = Framed(ours, 1000)
    framed.put(Kind.REPLY, 1, bytes(500))
    events: list[str] = []

    async def wait() -> None:
        await framed.room(100)
        events.append("room")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(framed.send_all)
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        events.append("read")
        await theirs.receive_some(10_000)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert events == ["read", "room"]
    assert framed.unsent == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (LENGTH.pack(1001), "a frame of 1001 bytes came, and 1000 are the most"),
        (LENGTH.pack(2) + b"\xc1\xc1", "is not msgpack"),
        (LENGTH.pack(2) + b"\x90\x90", "is not msgpack"),
        (LENGTH.pack(1) + b"\x07", "is no array"),
        (LENGTH.pack(0), "is not msgpack"),
    ],
)
async def test_nonsense_is_told_from_frames(said: bytes, why: str) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(said)

    with pytest.raises(LinkBroken, match=why):
        await Framed(ours, 1000).receive()


async def test_an_end_within_a_frame_is_no_end() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(LENGTH.pack(10) + b"abc")
    await theirs.send_eof()

    with pytest.raises(LinkBroken, match="within a frame"):
        await Framed(ours, 1000).receive()


async def test_text_that_is_no_unicode_passes() -> None:
    """What a client sends may hold what Python keeps as a lone surrogate."""
    ours, theirs = trio.testing.memory_stream_pair()
    framed = Framed(ours, 1000)

    framed.put(Kind.REFUSED, "\udc80")
    await framed.flush()

    assert await Framed(theirs, 1000).receive_one() == (Kind.REFUSED, "\udc80")
