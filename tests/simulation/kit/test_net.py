"""The network in memory carries every byte in order, pushes back, and breaks as sockets break."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

from .net import CONNECT_TIMEOUT, WINDOW, SimNet, SimStream
from .runner import Chance, run


def on_a_net(seed: int, scene: Callable[[SimNet, SimStream, SimStream], Awaitable[None]]) -> None:
    """Play a scene with one connection: the net, the client's end, the server's end."""

    async def world(chance: Chance) -> None:
        async with trio.open_nursery() as nursery:
            net = SimNet(nursery, chance.stream("net"))
            accepted = net.listen()
            client = await net.connect()
            await scene(net, client, await accepted.receive())
            nursery.cancel_scope.cancel()

    run(seed, world, horizon=600)


async def read_all(stream: SimStream, size: int = 1 << 20) -> bytes:
    whole = bytearray()
    while data := await stream.receive_some(size):
        whole += data
    return bytes(whole)


@pytest.mark.parametrize("seed", range(10))
def test_every_byte_arrives_once_and_in_order_both_ways(seed: int) -> None:
    up = bytes(range(256)) * 1000
    down = up[::-1]

    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        read: dict[str, bytes] = {}

        async def write(stream: SimStream, data: bytes) -> None:
            await stream.send_all(data)
            await stream.send_eof()

        async def read_as(name: str, stream: SimStream) -> None:
            read[name] = await read_all(stream, 777)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, client, up)
            nursery.start_soon(write, server, down)
            nursery.start_soon(read_as, "server", server)
            nursery.start_soon(read_as, "client", client)

        assert read == {"server": up, "client": down}

    on_a_net(seed, scene)


def test_bytes_come_in_pieces_that_the_sender_did_not_choose() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        sizes: list[int] = []
        await client.send_all(bytes(100_000))
        while sum(sizes) < 100_000:
            sizes.append(len(await server.receive_some()))

        assert len(sizes) > 2

    on_a_net(4, scene)


def test_a_peer_that_does_not_read_is_felt() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        with trio.move_on_after(60) as blocked:
            await client.send_all(bytes(10 * WINDOW))

        assert blocked.cancelled_caught

    on_a_net(1, scene)


def test_after_a_reset_both_ends_are_broken() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        await client.send_all(b"on its way")
        net.reset_all()

        for end in client, server:
            with pytest.raises(trio.BrokenResourceError):
                await end.receive_some()
            with pytest.raises(trio.BrokenResourceError):
                await end.send_all(b"x")

    on_a_net(1, scene)


def test_who_waits_is_woken_by_a_reset() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                with pytest.raises(trio.BrokenResourceError):
                    await client.receive_some()

            nursery.start_soon(wait)
            await trio.sleep(1)
            net.reset_all()

    on_a_net(1, scene)


def test_writing_to_one_who_left_ends_in_a_reset() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        await server.aclose()

        assert await client.receive_some() == b""
        await client.send_all(b"too late")
        await trio.sleep(1)
        with pytest.raises(trio.BrokenResourceError):
            await client.send_all(b"still there?")

    on_a_net(1, scene)


def test_a_closed_end_is_used_no_more() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        await client.aclose()

        with pytest.raises(trio.ClosedResourceError):
            await client.send_all(b"x")
        with pytest.raises(trio.ClosedResourceError):
            await client.receive_some()

    on_a_net(1, scene)


def test_two_tasks_cannot_read_one_end() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.receive_some)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trio.BusyResourceError):
                await client.receive_some()
            nursery.cancel_scope.cancel()

    on_a_net(1, scene)


def test_a_partition_holds_bytes_back_and_then_delivers_them() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        net.partitioned = True
        await client.send_all(b"hello")
        with trio.move_on_after(30) as silence:
            await server.receive_some()
        net.partitioned = False

        assert silence.cancelled_caught
        assert await server.receive_some() == b"hello"

    on_a_net(1, scene)


def test_connecting_fails_as_sockets_fail() -> None:
    async def scene(net: SimNet, client: SimStream, server: SimStream) -> None:
        net.partitioned = True
        before = trio.current_time()
        with pytest.raises(TimeoutError):
            await net.connect()
        assert trio.current_time() - before >= CONNECT_TIMEOUT

        net.partitioned = False
        net.unlisten()
        with pytest.raises(ConnectionRefusedError):
            await net.connect()

    on_a_net(1, scene)
