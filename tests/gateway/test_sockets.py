"""Plain sockets: edges that come at any time, writes in pieces, and how many connections there may be."""

from __future__ import annotations

import gc
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio

from rafka.config import Listener
from rafka.gateway.connection import Connection
from rafka.gateway.listeners import bind_listeners
from rafka.gateway.readiness import ROUNDS, Readiness
from rafka.gateway.server import Gateway
from rafka.gateway.transport import NOTHING, SocketTransport
from rafka.ops import topics
from rafka.ops.base import Envelope

from .kit import Client, ScriptedLink, config, metadata


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Ours and the client's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


Pair = tuple[socket.socket, socket.socket]


@attrs.define(eq=False)
class Edges:
    """Counts the calls, and lets a test wait for the next one."""

    count: int = 0
    gone: bool = False
    _next: trio.Event = attrs.Factory(trio.Event)

    def __call__(self, gone: bool) -> None:
        self.count += 1
        self.gone = gone
        self._next.set()

    async def reached(self, count: int) -> bool:
        """Whether there are so many calls, now or in a moment."""
        with trio.move_on_after(0.05):
            while self.count < count:
                self._next = trio.Event()
                await self._next.wait()
        return self.count >= count


# --- edges ---------------------------------------------------------------------------------


async def test_whoever_registered_is_called_when_bytes_come(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    edges = Edges()
    readiness.register(ours.fileno(), edges)
    assert not await edges.reached(1)

    theirs.send(b"x")

    assert await edges.reached(1)
    assert not await edges.reached(2), "an edge counts once"
    theirs.send(b"y")
    assert await edges.reached(2)
    readiness.unregister(ours.fileno())


async def test_bytes_that_were_there_before_registering_count(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"x")
    edges = Edges()

    readiness.register(ours.fileno(), edges)

    assert await edges.reached(1)
    readiness.unregister(ours.fileno())


async def test_whoever_asks_is_called_again_for_what_is_still_there(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    edges = Edges()
    readiness.register(ours.fileno(), edges)
    theirs.send(b"x")
    assert await edges.reached(1)

    readiness.again(ours.fileno())

    assert await edges.reached(2)
    ours.recv(1)
    readiness.again(ours.fileno())
    assert not await edges.reached(3), "there is nothing any more"
    readiness.unregister(ours.fileno())


async def test_it_is_told_that_the_other_side_is_gone(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    edges = Edges()
    readiness.register(ours.fileno(), edges)

    theirs.close()

    assert await edges.reached(1)
    assert edges.gone
    readiness.unregister(ours.fileno())


async def test_a_number_that_comes_back_as_another_socket_is_another(readiness: Readiness) -> None:
    first, other = socket.socketpair()
    old, new = Edges(), Edges()
    readiness.register(first.fileno(), old)
    other.send(b"x")
    readiness.unregister(first.fileno())
    number = first.fileno()
    first.close()
    other.close()

    again, other = socket.socketpair()
    assert again.fileno() == number
    readiness.register(number, new)
    assert not await new.reached(1)
    other.send(b"x")
    assert await new.reached(1)
    assert not old.count
    readiness.unregister(number)
    again.close()
    other.close()


async def test_of_many_sockets_those_are_called_that_have_something(readiness: Readiness) -> None:
    pairs = [socket.socketpair() for _ in range(50)]
    edges = [Edges() for _ in pairs]
    for (ours, _), each in zip(pairs, edges, strict=True):
        readiness.register(ours.fileno(), each)

    for n in range(0, 50, 2):
        pairs[n][1].send(b"x")
    await trio.sleep(0.05)

    assert [each.count for each in edges] == [1, 0] * 25
    for ours, theirs in pairs:
        readiness.unregister(ours.fileno())
        ours.close()
        theirs.close()


async def test_who_always_has_more_does_not_keep_others_from_their_turn(
    readiness: Readiness, pair: Pair
) -> None:
    ours, theirs = pair
    theirs.send(b"x")
    enough, count, turns = trio.Event(), 0, 0

    def insatiable(gone: bool) -> None:
        nonlocal count
        count += 1
        readiness.again(ours.fileno())
        if count >= 400:
            enough.set()

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        readiness.register(ours.fileno(), insatiable)
        await enough.wait()
        nursery.cancel_scope.cancel()

    assert turns >= 400 // ROUNDS
    readiness.unregister(ours.fileno())


# --- transport --------------------------------------------------------------------------------


class Reading:
    """Reads all that comes into a buffer of this size, `at_once` times in a row."""

    def __init__(self, transport: SocketTransport, size: int, at_once: int = 1000) -> None:
        self.data = b""
        self.ended = trio.Event()
        self._transport = transport
        self._buffer = memoryview(bytearray(size))
        self._at_once = at_once
        transport.watch(self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(self._at_once):
            size = self._transport.receive_into(self._buffer)
            if size == 0:
                self.ended.set()
                return
            if size > 0:
                self.data += self._buffer[:size]
            if not self._transport.more:
                return
        self._transport.again()


@pytest.mark.parametrize("at_once", [1, 2, 1000])
@pytest.mark.parametrize("size", [1, 3, 5, 6, 100])
async def test_bytes_and_the_end_that_come_at_once_are_both_read(
    readiness: Readiness, pair: Pair, size: int, at_once: int
) -> None:
    """Of one edge: whatever the buffer holds, nothing is waited for that has come already."""
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    theirs.send(b"hello")
    theirs.close()

    reading = Reading(transport, size, at_once)

    with trio.fail_after(2):
        await reading.ended.wait()
    assert reading.data == b"hello"
    transport.close()


@pytest.mark.parametrize("size", [1, 2, 7, 64])
async def test_what_comes_bit_by_bit_is_all_read(readiness: Readiness, pair: Pair, size: int) -> None:
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    sent = bytes(range(256))
    reading = Reading(transport, size, at_once=2)

    for at in range(0, 256, 7):
        theirs.send(sent[at : at + 7])
        for _ in range(at % 3):
            await trio.lowlevel.checkpoint()
    theirs.close()

    with trio.fail_after(5):
        await reading.ended.wait()
    assert reading.data == sent
    transport.close()


async def test_where_nothing_has_come_nothing_is_read(readiness: Readiness, pair: Pair) -> None:
    ours, _ = pair
    transport = SocketTransport(ours, readiness)

    assert transport.receive_into(memoryview(bytearray(10))) == NOTHING
    assert not transport.more
    transport.close()


@pytest.mark.parametrize("pieces", [1, 3, 3000])
async def test_more_than_the_kernel_takes_is_sent_as_the_reader_reads(
    readiness: Readiness, pair: Pair, pieces: int
) -> None:
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    theirs.setblocking(False)
    body = bytes(range(256)) * 16_384  # 4 MB
    step = len(body) // pieces + 1
    got = bytearray()

    async def read() -> None:
        while len(got) < len(body):
            await trio.lowlevel.wait_readable(theirs)
            got.extend(theirs.recv(100_000))

    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            left = transport.send_now([body[at : at + step] for at in range(0, len(body), step)])
            assert 0 < sum(map(len, left)) == len(body) - transport.sent
            nursery.start_soon(read)
            await transport.send(left)

    assert bytes(got) == body
    assert transport.sent == len(body), "which is how the watchman sees that something moves"
    transport.close()


async def test_sending_to_who_has_gone_is_an_oserror(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    theirs.close()

    for pieces in ([b"x"], [b"x", b"y"]):
        with pytest.raises(OSError):
            await transport.send(pieces)
    transport.close()
    transport.close()
    with pytest.raises(OSError):
        transport.receive_into(memoryview(bytearray(1)))


# --- listeners ----------------------------------------------------------------------------------


@attrs.define
class Listening:
    """A gateway on a port of this machine, and its clients."""

    gateway: Gateway
    port: int
    clients: list[Client] = attrs.Factory(list)

    async def connect(self) -> Client:
        self.clients.append(Client(await trio.open_tcp_stream("127.0.0.1", self.port)))
        return self.clients[-1]


@asynccontextmanager
async def listening(link: ScriptedLink, **network: Any) -> AsyncIterator[Listening]:
    settings = config(listen=(Listener("127.0.0.1", 0),), **network)
    bound = bind_listeners(settings.network)
    gateway = Gateway(settings, link, bound)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        place = Listening(gateway, bound[0].listener.port)
        yield place
        for client in place.clients:
            await client.stream.aclose()
        nursery.cancel_scope.cancel()


async def test_a_client_over_tcp_is_answered_and_told_where_it_came(link: ScriptedLink) -> None:
    seen = []

    def answer(envelope: Envelope, _: object) -> topics.MetadataReply:
        seen.append((envelope.client_host, envelope.host, envelope.port))
        return topics.MetadataReply(topics=[])

    link.answers[topics.Metadata] = answer
    async with listening(link) as place:
        client = await place.connect()
        await client.send(*[metadata(n) for n in range(100)])
        assert [await client.correlation_id() for _ in range(100)] == list(range(100))

    assert seen[0] == ("/127.0.0.1", "127.0.0.1", place.port)


async def test_clients_who_come_together_are_accepted_together(link: ScriptedLink) -> None:
    """A turn of a busy broker's loop takes long: were there one in each, a crowd would wait for seconds."""
    async with listening(link) as place:
        crowd = [socket.create_connection(("127.0.0.1", place.port)) for _ in range(50)]
        await trio.sleep(0.001)  # until the listener looks
        turns = 0
        while len(place.gateway._connections) < len(crowd):
            await trio.lowlevel.checkpoint()
            turns += 1
        for sock in crowd:
            sock.close()

    assert turns <= 5


async def test_no_more_connections_are_served_than_there_may_be(link: ScriptedLink) -> None:
    """More wait to be accepted, and are, once somebody goes."""
    async with listening(link, max_connections=3) as place:
        clients = [await place.connect() for _ in range(6)]
        for client in clients:
            await client.send(metadata(1))
        await trio.sleep(0.05)
        assert len(place.gateway._connections) == 3
        answered = 0

        async def serve_out(client: Client) -> None:
            nonlocal answered
            assert await client.correlation_id() == 1
            answered += 1
            assert len(place.gateway._connections) <= 3
            await client.stream.aclose()

        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                for client in clients:
                    nursery.start_soon(serve_out, client)

    assert answered == 6


async def test_no_more_connections_come_from_one_address_than_may(link: ScriptedLink) -> None:
    """More are closed, and the others live; who goes makes room."""
    async with listening(link, max_connections_per_ip=2) as place:
        clients = [await place.connect() for _ in range(5)]
        await trio.sleep(0.05)
        assert len(place.gateway._connections) == 2
        for client in clients[:2]:
            await client.send(metadata(1))
            assert await client.correlation_id() == 1
        for client in clients[2:]:
            assert await client.closed()
        await clients[0].stream.aclose()
        await trio.sleep(0.05)

        again = await place.connect()
        await again.send(metadata(1))
        assert await again.correlation_id() == 1


async def test_a_client_that_resets_at_once_harms_nobody(link: ScriptedLink) -> None:
    linger = b"\1\0\0\0\0\0\0\0"
    async with listening(link) as place:
        for _ in range(20):
            sock = socket.create_connection(("127.0.0.1", place.port))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            sock.close()
        client = await place.connect()
        await client.send(metadata(1))
        assert await client.correlation_id() == 1
        await trio.sleep(0.02)
        assert len(place.gateway._connections) == 1
        assert place.gateway._per_address == {"127.0.0.1": 1}


async def test_a_connection_that_has_gone_leaves_nothing_to_collect(link: ScriptedLink) -> None:
    """Garbage is looked for seldom: thousands of connections that come and go must not pile up until then."""
    async with listening(link) as place:
        client = await place.connect()
        await client.send(metadata(1))
        await client.frame()
        gc.collect()
        gc.disable()
        try:
            await client.stream.aclose()
            await trio.sleep(0.05)
            assert not place.gateway._connections
            assert not [thing for thing in gc.get_objects() if isinstance(thing, Connection)]
        finally:
            gc.enable()
