"""A broker over memory, and clients that ask it about groups in bytes: for whoever means it no good."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio
import trio.testing

from rafka.config import load
from rafka.server import RunningBroker, open_broker
from rafka.wire.api import Api
from rafka.wire.apis.create_topics import CREATE_TOPICS
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.sync_group import SYNC_GROUP

from .simulation.wire_client import WireClient

TOPIC: Final = "t"
HUNG_UP: Final = (ConnectionError, trio.BrokenResourceError, trio.ClosedResourceError)


@attrs.frozen
class World:
    broker: RunningBroker
    nursery: trio.Nursery

    def client(self, client_id: str = "test") -> WireClient:
        async def connect() -> trio.abc.Stream:
            near, far = trio.testing.memory_stream_pair()
            self.nursery.start_soon(self._serve, far)
            return near

        return WireClient(connect, client_id, timeout=600)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        async with stream:
            await self.broker.serve_stream(stream)


@asynccontextmanager
async def serving(**settings: str) -> AsyncIterator[World]:
    flags = {"storage": "memory:"} | {name.replace("_", "."): value for name, value in settings.items()}
    config = load(flags=[(name, value, "a test") for name, value in flags.items()])
    async with open_broker(config, listen=False) as broker, trio.open_nursery() as nursery:
        world = World(broker, nursery)
        await make_topic(world)
        yield world
        await is_served(world)
        nursery.cancel_scope.cancel()


async def make_topic(world: World) -> None:
    topic = CREATE_TOPICS.Request.Topics(name=TOPIC, num_partitions=1, replication_factor=1)
    reply = await world.client().ask(CREATE_TOPICS, 7, CREATE_TOPICS.Request(topics=[topic]))
    assert reply.topics[0].error_code == 0


async def is_served(world: World) -> None:
    """Somebody who behaves makes a generation of one in no time at all."""
    client = world.client()
    with trio.fail_after(5):
        joined = await client.ask(JOIN_GROUP, 3, joining(group_id="sensible"))
        assert joined.error_code == 0
        synced = await sync(client, joined, group_id="sensible")
    assert synced.error_code == 0


def joining(**given: Any) -> Any:
    return JOIN_GROUP.Request(
        **{
            "group_id": "g",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "",
            "protocol_type": "consumer",
            "protocols": protocols("range"),
            **given,
        }
    )


def protocols(*names: str, metadata: bytes = b"m") -> list[Any]:
    return [JOIN_GROUP.Request.Protocols(name=name, metadata=metadata) for name in names]


async def join(client: WireClient, version: int = 3, **given: Any) -> Any:
    return await client.ask(JOIN_GROUP, version, joining(**given))


async def sync(client: WireClient, joined: Any, shares: dict[str, bytes] | None = None, **given: Any) -> Any:
    request = SYNC_GROUP.Request(
        **{
            "group_id": "g",
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
            "assignments": [
                SYNC_GROUP.Request.Assignments(member_id=member_id, assignment=share)
                for member_id, share in (shares or {}).items()
            ],
            **given,
        }
    )
    return await client.ask(SYNC_GROUP, 3, request)


async def commit(client: WireClient, partitions: Iterable[Any], version: int = 8, **given: Any) -> Any:
    topic = OFFSET_COMMIT.Request.Topics(name=given.pop("topic", TOPIC), partitions=list(partitions))
    request = OFFSET_COMMIT.Request(**{"group_id": "g", "topics": [topic], **given})
    return await client.ask(OFFSET_COMMIT, version, request)


def offset(value: int, partition: int = 0, metadata: str = "") -> Any:
    return OFFSET_COMMIT.Request.Topics.Partitions(
        partition_index=partition, committed_offset=value, committed_metadata=metadata
    )


async def beat(client: WireClient, **given: Any) -> int:
    request = HEARTBEAT.Request(**{"group_id": "g", "generation_id": 1, "member_id": "", **given})
    return int((await client.ask(HEARTBEAT, 3, request)).error_code)


async def hangs_up_on(client: WireClient, api: Api, version: int, request: Any) -> bool:
    with trio.fail_after(60):
        try:
            await client.ask(api, version, request)
        except HUNG_UP:
            return True
    return False
