"""FindCoordinator: the gateway names itself, at the address that the client's listener advertises."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from rafka.config import Config, load
from rafka.errors import ErrorCode
from rafka.gateway.server import Gateway
from rafka.ops.base import Envelope
from rafka.server import open_broker
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR

from .kit import Client, ScriptedLink, World, metadata, raw, request

ONE_KEY = range(4)
MANY_KEYS = range(4, 7)
HERE = Envelope(host="broker.example", port=9093)
GROUP, TRANSACTION, SHARE = 0, 1, 2


async def found(client: Client, version: int, *keys: str, key_type: int = GROUP) -> Any:
    """A reply of before version 4 in the form of later ones."""
    asked = FIND_COORDINATOR.Request(key_type=key_type)
    if version in ONE_KEY:
        [asked.key] = keys
    else:
        asked.coordinator_keys = list(keys)
    await client.send(request(FIND_COORDINATOR, version, asked))
    reply = await client.reply(FIND_COORDINATOR, version)
    return [reply] if version in ONE_KEY else reply.coordinators


@pytest.mark.parametrize("version", FIND_COORDINATOR.versions)
@pytest.mark.parametrize("key", ["g", "", "ein Team", "名前" * 60])
async def test_the_gateway_names_itself_and_asks_nobody(
    world: World, link: ScriptedLink, version: int, key: str
) -> None:
    """FC7, CG-154."""
    client = world.connect(HERE)

    [coordinator] = await found(client, version, key)

    assert coordinator.error_code == 0
    assert (coordinator.node_id, coordinator.host, coordinator.port) == (0, "broker.example", 9093)
    assert not link.asked


@pytest.mark.parametrize("version", FIND_COORDINATOR.versions)
async def test_the_message_of_a_success_is_what_it_always_was(world: World, version: int) -> None:
    """FC7: "NONE" in versions 1 to 3; version 0 has no place for it."""
    client = world.connect(HERE)

    [coordinator] = await found(client, version, "g")

    assert coordinator.error_message == ("NONE" if version in (1, 2, 3) else "")


@pytest.mark.parametrize("version", range(1, 7))
async def test_transactions_have_the_same_coordinator(world: World, version: int) -> None:
    client = world.connect(HERE)

    [coordinator] = await found(client, version, "t", key_type=TRANSACTION)

    assert (coordinator.error_code, coordinator.node_id, coordinator.port) == (0, 0, 9093)


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("key_type", [SHARE, 3, 9, -1])
async def test_other_keys_have_none(world: World, version: int, key_type: int) -> None:
    """FC3, FC4, CG-155."""
    client = world.connect(HERE)
    keys = ["a"] if version in ONE_KEY else ["a", "b"]

    coordinators = await found(client, version, *keys, key_type=key_type)

    assert len(coordinators) == len(keys)
    for coordinator in coordinators:
        assert coordinator.error_code == ErrorCode.INVALID_REQUEST
        assert (coordinator.node_id, coordinator.host, coordinator.port) == (-1, "", -1)
        assert coordinator.error_message


@pytest.mark.parametrize("version", MANY_KEYS)
async def test_each_key_is_answered_in_its_place_as_often_as_it_comes(world: World, version: int) -> None:
    client = world.connect(HERE)

    assert [c.key for c in await found(client, version, "b", "a", "", "b")] == ["b", "a", "", "b"]
    assert await found(client, version) == []


async def test_every_client_is_told_the_address_it_came_to(world: World) -> None:
    clients = [world.connect(Envelope(host=f"listener-{n}", port=n)) for n in range(3)]

    for _ in range(2):
        told = [(await found(client, 4, "g"))[0] for client in clients]
        assert [(c.host, c.port) for c in told] == [(f"listener-{n}", n) for n in range(3)]


async def test_each_listener_tells_the_address_that_it_advertises() -> None:
    told = ("a.example:1", "b.example:2")
    flags = [("storage", "memory:"), ("listen", "127.0.0.1:0,127.0.0.1:0"), ("advertise", ",".join(told))]

    async with open_broker(load(flags=[(key, value, "") for key, value in flags])) as broker:
        for bound, address in zip(broker.bound, told, strict=True):
            stream = await trio.open_tcp_stream("127.0.0.1", bound.listener.port)
            async with stream:
                [coordinator] = await found(Client(stream), 2, "g")
                assert f"{coordinator.host}:{coordinator.port}" == address


async def test_the_address_is_not_left_behind_with_whoever_served_the_stream(world: World) -> None:
    """A task that serves one stream after another, as an embedding program may."""

    async def serve_both() -> None:
        for ours in (near, far):
            await world.gateway.serve_stream(ours[1], ours[2])

    pairs = [trio.testing.memory_stream_pair() for _ in range(2)]
    near, far = ((*pair, Envelope(host=host, port=1)) for pair, host in zip(pairs, ("a", "b"), strict=True))
    world.nursery.start_soon(serve_both)

    for ours, _, envelope in (near, far):
        assert [c.host for c in await found(Client(ours), 5, "g")] == [envelope.host]
        await ours.aclose()


async def test_the_node_is_the_one_that_metadata_names(link: ScriptedLink, nursery: trio.Nursery) -> None:
    plain = Config()
    config = attrs.evolve(plain, broker=attrs.evolve(plain.broker, node_id=7))
    world = World(Gateway(config, link), link, nursery)

    [coordinator] = await found(world.connect(HERE), 0, "g")

    assert coordinator.node_id == 7
    nursery.cancel_scope.cancel()


async def test_a_null_key_closes_the_connection(world: World) -> None:
    client = world.connect(HERE)

    await client.send(metadata(1), raw(10, 0, b"\xff\xff"))

    assert await client.correlation_id() == 1
    assert await client.closed()
