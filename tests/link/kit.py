"""A link in memory: a broker that answers as the test says, and gateways that reach it, or do not.

`World.ask` is what a connection does: ask, and wait where there is something to wait for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import trio.testing

from rafka.link import Link
from rafka.link.frames import Framed
from rafka.link.hello import Limits, Welcome
from rafka.link.packed import PackedLink, Patience
from rafka.link.serving import LinkServer
from rafka.ops import group, log, topics
from rafka.ops.base import Envelope, Later, Op

from ..gateway.kit import Gate, ScriptedLink, written

__all__ = ["Gate", "World", "open_world", "written"]

METADATA = topics.Metadata(topics=None)
NOTHING_THERE = topics.MetadataReply(topics=[])


def heartbeat(member: str = "m") -> group.Heartbeat:
    return group.Heartbeat(group_id="g", generation_id=1, member_id=member)


def join(member: str = "m", metadata: bytes = b"") -> group.JoinGroup:
    protocols = [group.JoinProtocol(name="range", metadata=metadata)]
    return group.JoinGroup(
        group_id="g",
        session_timeout_ms=10_000,
        member_id=member,
        protocol_type="consumer",
        protocols=protocols,
    )


def fetch(max_wait_ms: int = 500) -> log.Fetch:
    partition = log.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    wanted = [log.FetchTopic(topic="t", partitions=[partition])]
    return log.Fetch(max_wait_ms=max_wait_ms, min_bytes=1, topics=wanted)


def produce(records: bytes = b"batch", acks: int = -1) -> log.Produce:
    data = log.PartitionData(index=0, records=records)
    return log.Produce(
        acks=acks, timeout_ms=1000, topic_data=[log.TopicData(name="t", partition_data=[data])]
    )


@attrs.define(eq=False)
class World:
    broker: ScriptedLink
    server: LinkServer
    nursery: trio.Nursery
    welcome: Welcome
    reachable: bool = True
    attempts: list[float] = attrs.field(factory=list)  # when a gateway tried to connect
    streams: list[trio.abc.Stream] = attrs.field(factory=list)  # the broker's ends

    async def connect(self) -> trio.abc.Stream:
        self.attempts.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if not self.reachable:
            raise ConnectionRefusedError(111, "Connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        self.streams.append(theirs)
        self.nursery.start_soon(self.server.serve_stream, theirs)
        return ours

    async def gateway(self, **options: Any) -> PackedLink:
        """One more gateway, connected."""
        options.setdefault("patience", Patience(chance=lambda: 0.5))
        link = PackedLink(self.connect, to="memory", name="gw", **options)
        await self.nursery.start(link.run)
        return link

    async def bare_gateway(self) -> Framed:
        """A stream to the broker for a test that speaks frames itself."""
        stream = await self.connect()
        return Framed(stream, 1 << 20)

    async def lose(self) -> None:
        """The broker is gone without a word, and cannot be reached."""
        self.reachable = False
        for stream in self.streams:
            await trio.aclose_forcefully(stream)
        self.streams.clear()
        await trio.testing.wait_all_tasks_blocked()

    def asked(self) -> list[str]:
        """The ops that came to the broker, by name."""
        return [type(op).__name__ for op in self.broker.asked]


async def ask(link: Link, op: Op[Any], envelope: Envelope | None = None) -> Any:
    answer = link.ask(envelope or Envelope(), op)
    return await answer.wait() if isinstance(answer, Later) else answer


def asks(link: PackedLink, op: Op[Any], envelope: Envelope) -> Later[Any]:
    """Ask without waiting."""
    answer = link.ask(envelope, op)
    assert isinstance(answer, Later)
    return answer


def always(reply: Any) -> Callable[[Envelope, Any], Any]:
    return lambda envelope, op: reply


@asynccontextmanager
async def open_world(
    limits: Limits | None = None, settings: Mapping[str, str] | None = None, served: Link | None = None
) -> AsyncIterator[World]:
    """`served` is asked instead of the broker that answers as the test says."""
    broker = ScriptedLink(
        {
            topics.Metadata: always(NOTHING_THERE),
            group.Heartbeat: always(group.HeartbeatReply()),
            log.Produce: lambda envelope, op: written(op),
        }
    )
    welcome = Welcome(cluster_id="c1", node_id=0, limits=limits or Limits(), settings=settings or {})
    async with trio.open_nursery() as nursery:
        server = LinkServer(served or broker, lambda: welcome)
        await nursery.start(server.run)
        yield World(broker, server, nursery, welcome)
        nursery.cancel_scope.cancel()
