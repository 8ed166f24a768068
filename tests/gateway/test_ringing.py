"""Replies that ring when they have come: they go out in the step of whoever answers, and wake no task."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.config import Listener
from rafka.errors import ErrorCode, KafkaError
from rafka.gateway.connection import Connection
from rafka.gateway.listeners import bind_listeners
from rafka.gateway.readiness import HAS_EPOLL
from rafka.gateway.server import Gateway
from rafka.ops import log, topics
from rafka.wire.apis.metadata import METADATA

from .kit import Client, Gate, ScriptedLink, World, cluster, config, metadata, produce, request, written

pytestmark = [
    pytest.mark.usefixtures("ringing"),
    pytest.mark.skipif(not HAS_EPOLL, reason="plain sockets need epoll"),
]

PARKED = topics.MetadataReply(topics=[])


@pytest.fixture
async def gateway(link: ScriptedLink) -> AsyncIterator[Gateway]:
    bound = bind_listeners(config(listen=(Listener("127.0.0.1", 0),)).network)
    gateway = Gateway(config(), link, bound)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        yield gateway
        nursery.cancel_scope.cancel()


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[socket.socket]:
    """A plain socket, whose reads are made when the test says."""
    with socket.create_connection(gateway._bound[0].sockets[0].getsockname()) as sock:
        sock.setblocking(False)
        yield sock


async def taken_up(link: ScriptedLink, count: int) -> None:
    with trio.fail_after(5):
        while len(link.asked) < count:
            await trio.lowlevel.checkpoint()
    await wait_all_tasks_blocked(0.001)


def ids(data: bytes) -> list[int]:
    """The correlation ids of whole reply frames."""
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(int.from_bytes(data[4:8], "big"))
        data = data[4 + size :]
    return found


async def test_a_reply_goes_out_in_the_step_in_which_it_comes(
    link: ScriptedLink, client: socket.socket
) -> None:
    gate = Gate()
    link.answers[topics.Metadata] = lambda *_: gate.later(PARKED, overlaps=False)
    client.send(metadata(1))
    await taken_up(link, 1)

    gate.opened.set()

    assert ids(client.recv(1000)) == [1], "no other task had its turn"


async def test_what_replies_rest_on_is_kept_before_they_leave(
    link: ScriptedLink, client: socket.socket
) -> None:
    seen = []

    def keep() -> None:
        with pytest.raises(BlockingIOError):
            client.recv(1000)
        seen.append(len(link.asked))

    link.on_keep = keep
    client.send(cluster(1) + cluster(2))
    await taken_up(link, 2)

    assert ids(client.recv(1000)) == [1, 2]
    assert seen == [2], "once for all that one read brought"


async def test_replies_that_come_together_go_out_in_one_piece(
    link: ScriptedLink, client: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, sent = Gate(), []
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    flush = Connection._flush_now

    def counted(self: Connection) -> None:
        if self._out:
            sent.append(len(self._out))
        flush(self)

    monkeypatch.setattr(Connection, "_flush_now", counted)
    client.send(b"".join(produce(b"x", correlation_id=n) for n in range(20)))
    await taken_up(link, 20)

    gate.opened.set()

    assert ids(client.recv(100_000)) == list(range(20))
    assert len(sent) == 1


async def test_what_follows_a_parked_request_is_taken_up_when_its_reply_comes(
    link: ScriptedLink, client: socket.socket
) -> None:
    gate = Gate()
    link.answers[topics.Metadata] = lambda *_: gate.later(PARKED, overlaps=False)
    client.send(metadata(1) + cluster(2))
    await taken_up(link, 1)
    client.send(cluster(3))  # came while the first was parked
    await wait_all_tasks_blocked(0.01)
    assert len(link.asked) == 1

    gate.opened.set()

    assert ids(client.recv(1000)) == [1, 2, 3]


async def test_a_bell_rings_in_vain_for_a_reply_that_stands_behind_another(
    link: ScriptedLink, client: socket.socket
) -> None:
    first, second = Gate(), Gate()
    gates = iter((first, second))
    link.answers[log.Produce] = lambda _, op: next(gates).later(written(op), overlaps=True)
    client.send(produce(b"x", correlation_id=1) + produce(b"y", correlation_id=2))
    await taken_up(link, 2)

    second.opened.set()
    with pytest.raises(BlockingIOError):
        client.recv(1000)
    first.opened.set()

    assert ids(client.recv(1000)) == [1, 2]


async def test_a_refusal_and_a_mistake_are_answered_like_any_other(
    world: World, link: ScriptedLink, caplog: pytest.LogCaptureFixture
) -> None:
    replies: list[Any] = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR), ZeroDivisionError()]
    gate = Gate()
    link.answers[topics.Metadata] = lambda *_: gate.later(replies.pop(0), overlaps=True)
    client = world.connect()
    asked = METADATA.Request(topics=[METADATA.Request.Topics(name="t")])
    await client.send(request(METADATA, 1, asked), request(METADATA, 1, asked))
    await wait_all_tasks_blocked()

    gate.opened.set()

    codes = [(await client.reply(METADATA, 1)).topics[0].error_code for _ in range(2)]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "ZeroDivisionError" in caplog.text


async def test_a_client_that_has_gone_is_forgotten_by_whoever_would_have_answered(link: ScriptedLink) -> None:
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    gateway = Gateway(config(), link)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        world = World(gateway, link, nursery)
        await world.connect().send(*[produce(b"x") for _ in range(3)])
        await wait_all_tasks_blocked()
        assert gate.forgotten == 0
        nursery.cancel_scope.cancel()

    assert gate.forgotten == 3
    gate.opened.set()  # and nobody is harmed


async def test_a_reader_that_takes_nothing_is_waited_for(world: World, link: ScriptedLink) -> None:
    large = topics.MetadataReply(topics=[topics.TopicMetadata(name="x" * 30_000)])
    gate = Gate()
    link.answers[topics.Metadata] = lambda *_: gate.later(large, overlaps=True)
    client = world.connect_slowly()
    async with trio.open_nursery() as sending:
        for n in range(20):
            sending.start_soon(client.send, metadata(n))
            await wait_all_tasks_blocked()
        gate.opened.set()
        await wait_all_tasks_blocked()

        assert [await client.correlation_id() for _ in range(20)] == list(range(20))


@pytest.mark.parametrize("answered_first", [True, False])
async def test_a_gateway_that_closes_lets_a_parked_client_have_its_answer(
    link: ScriptedLink, autojump_clock: MockClock, answered_first: bool
) -> None:
    gate = Gate()
    link.answers[topics.Metadata] = lambda *_: gate.later(PARKED, overlaps=False)
    gateway = Gateway(config(), link)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        client = World(gateway, link, nursery).connect()
        await client.send(metadata(1), metadata(2))
        await wait_all_tasks_blocked()

        if answered_first:
            gate.opened.set()
            gateway.close()
        else:
            gateway.close()
            await trio.sleep(0.1)
            gate.opened.set()

        with trio.fail_after(5):
            assert await client.correlation_id() == 1
        await hung_up(client)


async def hung_up(client: Client) -> None:
    with trio.fail_after(5):
        while not await client.closed():
            pass


async def test_who_waits_for_a_reply_is_not_taken_for_idle(
    link: ScriptedLink, autojump_clock: MockClock
) -> None:
    """Its time begins anew with the answer."""
    gate = Gate()
    link.answers[topics.Metadata] = lambda *_: gate.later(PARKED, overlaps=False)
    gateway = Gateway(config(max_idle_ms=10_000), link)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        client = World(gateway, link, nursery).connect()
        await client.send(metadata(1))
        await trio.sleep(60)

        gate.opened.set()
        assert await client.correlation_id() == 1
        await trio.sleep(8)
        await client.send(cluster(2))
        assert await client.correlation_id() == 2

        with trio.fail_after(13):
            assert await client.closed()
        nursery.cancel_scope.cancel()
