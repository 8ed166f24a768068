"""What is overdue is closed: by one watchman, once a second, on a clock that costs nothing."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.gateway import server
from rafka.gateway.server import Gateway
from rafka.ops import topics
from rafka.ops.base import Envelope, Later
from rafka.ops.log import Produce, ProduceReply

from .kit import Client, Gate, ScriptedLink, World, config, metadata, produce, written

LARGE = topics.MetadataReply(topics=[topics.TopicMetadata(name="x" * 30_000)] * 100)  # 3 MB


@asynccontextmanager
async def serving(link: ScriptedLink, **network: int) -> AsyncIterator[World]:
    gateway = Gateway(config(**network), link)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        yield World(gateway, link, nursery)
        nursery.cancel_scope.cancel()


async def closed_after(client: Client) -> float:
    """How long it takes until the gateway hangs up."""
    began = trio.current_time()
    assert await client.closed()
    return trio.current_time() - began


async def test_who_sends_no_request_is_closed(link: ScriptedLink, autojump_clock: MockClock) -> None:
    async with serving(link, first_request_ms=10_000) as world:
        assert await closed_after(world.connect()) == pytest.approx(11, abs=1)


async def test_who_sends_a_byte_now_and_then_has_sent_no_request(
    link: ScriptedLink, autojump_clock: MockClock
) -> None:
    """Bad input 5: the pieces of a first request do not put off its end for ever."""
    async with serving(link, first_request_ms=10_000, request_read_ms=30_000) as world:
        client = world.connect()
        began = trio.current_time()

        async def dribble() -> None:
            for byte in metadata():
                try:
                    await client.send(bytes((byte,)))
                except trio.BrokenResourceError:
                    return
                await trio.sleep(5)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(dribble)
            assert await client.closed()
            assert trio.current_time() - began < 40
            nursery.cancel_scope.cancel()


async def test_a_request_that_does_not_arrive_is_closed(
    link: ScriptedLink, autojump_clock: MockClock
) -> None:
    async with serving(link, request_read_ms=30_000) as world:
        client = world.connect()
        await client.send(metadata(1), metadata(2)[:-1])
        assert await client.correlation_id() == 1

        assert await closed_after(client) == pytest.approx(31, abs=1)


async def test_a_large_request_may_take_longer(link: ScriptedLink, autojump_clock: MockClock) -> None:
    """Bad input 5: a second more for each 64 KiB."""
    async with serving(link, request_read_ms=30_000) as world:
        client = world.connect()
        await client.send(metadata(1), produce(bytes(20 * 64 * 1024))[:100])
        await client.frame()

        assert await closed_after(client) == pytest.approx(51, abs=1.5)


async def test_requests_one_after_the_other_each_have_their_time(
    link: ScriptedLink, autojump_clock: MockClock
) -> None:
    """A busy client always has one in part; none of them is late."""
    async with serving(link, request_read_ms=10_000) as world:
        client = world.connect()
        data = b"".join(metadata(n) for n in range(30))
        middle = len(metadata(0)) // 2
        await client.send(data[:middle])
        for n in range(29):
            await trio.sleep(2)
            at = middle + n * len(metadata(0))
            await client.send(data[at : at + len(metadata(0))])
            assert await client.correlation_id() == n


async def test_who_asks_nothing_for_long_is_closed(link: ScriptedLink, autojump_clock: MockClock) -> None:
    async with serving(link, max_idle_ms=600_000) as world:
        client = world.connect()
        for n in range(3):
            await trio.sleep(500)
            if n == 0:
                client = world.connect()
            await client.send(metadata(n))
            assert await client.correlation_id() == n

        assert await closed_after(client) == pytest.approx(601, abs=1.5)


async def test_who_waits_for_an_answer_is_not_idle(link: ScriptedLink, autojump_clock: MockClock) -> None:
    """A JoinGroup may be held for as long as it takes."""
    gate = Gate()
    reply = topics.MetadataReply(topics=[])
    link.answers[topics.Metadata] = lambda _, op: gate.later(reply, overlaps=False)
    async with serving(link, max_idle_ms=10_000) as world:
        client = world.connect()
        await client.send(metadata(1))
        await trio.sleep(3600)
        gate.opened.set()
        assert await client.correlation_id() == 1
        await trio.sleep(5)

        await client.send(metadata(2))
        assert await client.correlation_id() == 2, "the time of its idleness begins with the answer"


async def test_who_takes_nothing_is_cut_off(link: ScriptedLink, autojump_clock: MockClock) -> None:
    """Bad input 11."""
    link.answers[topics.Metadata] = lambda _, op: LARGE
    async with serving(link, write_stall_ms=60_000) as world:
        client = world.connect_slowly()
        await client.send(metadata(1))
        await trio.sleep(58)
        assert len(world.gateway._connections) == 1

        await trio.sleep(5)

        assert not world.gateway._connections


async def test_who_takes_slowly_is_not_cut_off(link: ScriptedLink, autojump_clock: MockClock) -> None:
    """3 MB in three minutes, a little at a time."""
    link.answers[topics.Metadata] = lambda _, op: LARGE
    async with serving(link, write_stall_ms=60_000) as world:
        client = world.connect_slowly()
        await client.send(metadata(1))
        taken = bytearray()
        while len(taken) < 3_000_000:
            await trio.sleep(15)
            data = await client.stream.receive_some(256 * 1024)
            assert data, f"cut off after {len(taken)} bytes"
            taken += data


async def test_replies_that_nobody_takes_do_not_fill_the_memory(
    link: ScriptedLink, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those go first who have taken nothing for longest."""
    monkeypatch.setattr(server, "UNSENT_MAX", 7_000_000)
    link.answers[topics.Metadata] = lambda _, op: LARGE
    async with serving(link) as world:
        clients = []
        for n in range(3):
            clients.append(world.connect_slowly())
            await clients[n].send(metadata(n))
            await trio.sleep(1.5)

        await trio.sleep(2)

        assert len(world.gateway._connections) == 2
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await clients[0].frame()
        assert await clients[1].correlation_id() == 1


async def test_one_line_an_address_in_ten_seconds(
    link: ScriptedLink, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rafka")
    async with serving(link) as world:
        for _ in range(20):
            client = world.connect()
            await client.send(b"\0\0\0\0")
            assert await client.closed()
        assert len(caplog.records) == 1
        await trio.sleep(12)
        client = world.connect()
        await client.send(b"\0\0\0\0")
        assert await client.closed()

    assert len(caplog.records) == 2


# --- closing -------------------------------------------------------------------------------------


async def test_closing_lets_go_of_the_idle_and_answers_the_rest(link: ScriptedLink) -> None:
    """Reliability 6.3: what was taken in is answered, what follows it is not taken up."""
    gate = Gate()
    parked = topics.MetadataReply(topics=[])
    link.answers[topics.Metadata] = lambda _, op: gate.later(parked, overlaps=False)
    gateway = Gateway(config(), link)
    async with trio.open_nursery() as clients, trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        world = World(gateway, link, clients)
        idle, midway, busy = world.connect(), world.connect(), world.connect()
        await busy.send(metadata(1))
        await midway.send(metadata(1)[:-1])
        await wait_all_tasks_blocked()

        gateway.close()

        assert await idle.closed()
        assert await midway.closed()
        await wait_all_tasks_blocked()
        assert len(gateway._connections) == 1
        gate.opened.set()
        assert await busy.correlation_id() == 1
        assert await busy.closed()

    assert not gateway._connections


async def test_a_connection_cancelled_at_any_step_of_a_write_has_done_all_of_it_or_nothing(
    link: ScriptedLink,
) -> None:
    """Reliability 6.1, rule 7: cancelled before its k-th step."""

    def answer(gate: Gate, _: Envelope, op: Produce) -> Later[ProduceReply]:
        return gate.later(written(op), overlaps=True)

    gateway = Gateway(config(), link)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        world = World(gateway, link, nursery)
        for steps in range(10):
            link.asked.clear()
            gate = Gate()
            link.answers[Produce] = partial(answer, gate)
            client = world.connect()
            await client.send(produce(b"one", correlation_id=1), produce(b"two", correlation_id=2))
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            for connection in gateway._connections:
                connection.scope.cancel()
            gate.opened.set()
            await wait_all_tasks_blocked()
            assert not gateway._connections
            assert gate.waiting == 0, "nobody is left waiting"
            asked = [op for op in link.asked if isinstance(op, Produce)]
            assert len(asked) in (0, 2), "what one read brought is taken up without a break"
        nursery.cancel_scope.cancel()
