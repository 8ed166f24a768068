"""Plain sockets: edges that come at any time, writes in pieces, and how many connections there may be."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rafka.config import Listener
from rafka.gateway.listeners import bind_listeners
from rafka.gateway.readiness import Readiness, Slot
from rafka.gateway.server import Gateway
from rafka.gateway.transport import SocketTransport
from rafka.ops import topics
from rafka.ops.base import Envelope

from .kit import Client, ScriptedLink, config, metadata


@pytest.fixture
async def readiness() -> AsyncIterator[Readiness]:
    readiness = Readiness()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readiness.run)
        yield readiness
        nursery.cancel_scope.cancel()
    readiness.close()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Ours and the client's."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    yield ours, theirs
    ours.close()
    theirs.close()


Pair = tuple[socket.socket, socket.socket]


async def is_ready(slot: Slot) -> bool:
    with trio.move_on_after(0.02):
        await slot.wait()
        return True
    return False


# --- slots ---------------------------------------------------------------------------------


async def test_a_task_that_waits_is_woken_by_bytes(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    slot = readiness.register(ours.fileno())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(slot.wait)
        await wait_all_tasks_blocked()
        theirs.send(b"x")

    readiness.unregister(slot)


async def test_bytes_that_come_while_nobody_waits_are_not_missed(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    slot = readiness.register(ours.fileno())
    assert not await is_ready(slot)
    theirs.send(b"x")
    await trio.sleep(0.02)

    assert await is_ready(slot)
    assert not await is_ready(slot), "an edge counts once"
    readiness.unregister(slot)


async def test_bytes_that_were_there_before_registering_count(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    theirs.send(b"x")

    slot = readiness.register(ours.fileno())

    assert await is_ready(slot)
    readiness.unregister(slot)


async def test_once_the_other_side_is_gone_there_is_always_something_to_read(
    readiness: Readiness, pair: Pair
) -> None:
    ours, theirs = pair
    slot = readiness.register(ours.fileno())
    theirs.close()
    await trio.sleep(0.02)

    assert await is_ready(slot)
    assert await is_ready(slot)
    readiness.unregister(slot)


async def test_a_wait_that_is_cancelled_leaves_the_slot_free(readiness: Readiness, pair: Pair) -> None:
    ours, theirs = pair
    slot = readiness.register(ours.fileno())
    with trio.move_on_after(0.01):
        await slot.wait()

    theirs.send(b"x")

    with trio.fail_after(1):
        await slot.wait()
    readiness.unregister(slot)


async def test_a_number_that_comes_back_as_another_socket_is_another_slot(readiness: Readiness) -> None:
    first, other = socket.socketpair()
    slot = readiness.register(first.fileno())
    other.send(b"x")
    readiness.unregister(slot)
    number = first.fileno()
    first.close()
    other.close()

    again, other = socket.socketpair()
    assert again.fileno() == number
    slot = readiness.register(number)
    assert not await is_ready(slot)
    other.send(b"x")
    assert await is_ready(slot)
    readiness.unregister(slot)
    again.close()
    other.close()


async def test_many_sockets_wake_their_own_tasks(readiness: Readiness) -> None:
    pairs = [socket.socketpair() for _ in range(50)]
    slots = [readiness.register(ours.fileno()) for ours, _ in pairs]
    woken: list[int] = []

    async def wait(n: int) -> None:
        await slots[n].wait()
        woken.append(n)

    async with trio.open_nursery() as nursery:
        for n in range(50):
            nursery.start_soon(wait, n)
        await wait_all_tasks_blocked()
        for n in range(0, 50, 2):
            pairs[n][1].send(b"x")
        await trio.sleep(0.05)
        assert sorted(woken) == list(range(0, 50, 2))
        for n in range(1, 50, 2):
            pairs[n][1].send(b"x")

    for slot, (ours, theirs) in zip(slots, pairs, strict=True):
        readiness.unregister(slot)
        ours.close()
        theirs.close()


# --- transport --------------------------------------------------------------------------------


async def read_all(transport: SocketTransport, size: int = 10) -> bytes:
    """To the end, in a buffer of this size."""
    data = b""
    buffer = memoryview(bytearray(size))
    while got := await transport.receive_into(buffer):
        data += buffer[:got]
    return data


@pytest.mark.parametrize("size", [1, 3, 5, 6, 100])
async def test_bytes_and_the_end_that_come_at_once_are_both_read(
    readiness: Readiness, pair: Pair, size: int
) -> None:
    """Of one edge: whatever the buffer holds, nothing is waited for that has come already."""
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    theirs.send(b"hello")
    theirs.close()

    with trio.fail_after(2):
        assert await read_all(transport, size) == b"hello"
    transport.close()


@pytest.mark.parametrize("size", [1, 2, 7, 64])
async def test_what_comes_bit_by_bit_is_all_read(readiness: Readiness, pair: Pair, size: int) -> None:
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    sent = bytes(range(256))

    async def send() -> None:
        for at in range(0, 256, 7):
            theirs.send(sent[at : at + 7])
            for _ in range(at % 3):
                await trio.lowlevel.checkpoint()
        theirs.close()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            assert await read_all(transport, size) == sent
    transport.close()


async def test_a_sender_without_pause_does_not_keep_others_from_their_turn(
    readiness: Readiness, pair: Pair
) -> None:
    ours, theirs = pair
    transport = SocketTransport(ours, readiness)
    theirs.send(bytes(10_000))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        buffer = memoryview(bytearray(10))
        for _ in range(500):
            await transport.receive_into(buffer)
        nursery.cancel_scope.cancel()

    assert turns > 20
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
            nursery.start_soon(read)
            await transport.send([body[at : at + step] for at in range(0, len(body), step)])

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
        await transport.receive_into(memoryview(bytearray(1)))


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
