"""Which brokers there are, who leads what, and a connection to each.

The only part that knows addresses. It keeps a cache of the cluster's metadata, opens connections
when they are first needed, and tries again what failed for a passing reason: metadata is asked
anew, with growing pauses, until the time for the call is up.

A broker answers one connection's questions one after another, so a long poll would hold up all
that come behind it. Therefore connections are kept by broker *and* purpose.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeVar

import attrs
import trio

from ..errors import ErrorCode
from ..types import TopicId
from .address import Address
from .connection import Connection, open_connection
from .errors import (
    UNKNOWN_TOPIC_CODES,
    ClientError,
    ConnectionLost,
    NoBroker,
    NotReachable,
    UnknownTopic,
    error_code,
    refused,
)
from .messages import Metadata, MetadataReply, Request
from .messages.cluster import TopicEntry, WantedTopic
from .model import Node, PartitionInfo, TopicInfo, TopicPartition
from .settings import Settings

T = TypeVar("T")
ReplyT = TypeVar("ReplyT")

GENERAL: Final = "general"  # the purpose of all questions that are answered at once

PASSING_TOPIC_ERRORS: Final = (*UNKNOWN_TOPIC_CODES, ErrorCode.LEADER_NOT_AVAILABLE)


@attrs.define(eq=False)
class _Line:
    """The place of one connection. Its lock keeps two callers from opening it twice."""

    lock: trio.Lock = attrs.field(factory=trio.Lock)
    connection: Connection | None = None


class Cluster:
    def __init__(self, nursery: trio.Nursery, bootstrap: Sequence[Address], settings: Settings) -> None:
        self.settings: Final = settings
        self.nodes: dict[int, Node] = {}
        self.topics: dict[str, TopicInfo] = {}
        self.cluster_id: str | None = None
        self.controller_id: int | None = None
        self.generation = 0  # grows with every refresh
        self.learned = trio.Event()  # set by the next refresh, which puts another in its place
        self._nursery = nursery
        self._bootstrap = tuple(bootstrap)
        self._wanted: set[str] = set()
        self._lines: dict[tuple[int, str], _Line] = {}
        self._entrance = _Line()  # the first broker that let us in
        self._refreshing = trio.Lock()
        self._refreshed_at = -float("inf")

    # --- connections -------------------------------------------------------------

    async def connection(self, node_id: int, purpose: str = GENERAL) -> Connection:
        """An open connection to a broker of the metadata."""
        line = self._lines.setdefault((node_id, purpose), _Line())
        async with line.lock:
            if line.connection is None or line.connection.error is not None:
                node = self.nodes.get(node_id)
                if node is None:
                    raise ConnectionLost(f"broker {node_id} is no longer part of the cluster")
                line.connection = await self._open_advertised(node)
            return line.connection

    async def any_connection(self) -> Connection:
        """A connection to whichever broker lets us in, an open one if there is one."""
        for (_, purpose), line in self._lines.items():
            if purpose == GENERAL and line.connection is not None and line.connection.error is None:
                return line.connection
        async with self._entrance.lock:
            if self._entrance.connection is None or self._entrance.connection.error is not None:
                self._entrance.connection = await self._enter()
            return self._entrance.connection

    def meet(self, node: Node) -> None:
        """Know a broker that an answer named, though the metadata may not have it yet."""
        self.nodes.setdefault(node.node_id, node)

    def close_line(self, purpose: str) -> None:
        """Close the connections of a purpose that has come to its end."""
        for key in [key for key in self._lines if key[1] == purpose]:
            connection = self._lines.pop(key).connection
            if connection is not None:
                connection.close(ConnectionLost(f"the connection to {connection.broker} is needed no longer"))

    def close(self) -> None:
        """Close all connections. They outlive whatever is cancelled, so somebody has to."""
        for line in (self._entrance, *self._lines.values()):
            if line.connection is not None:
                line.connection.close(ConnectionLost(f"the client of {line.connection.broker} was closed"))

    async def controller(self) -> Connection:
        """A connection to the broker that takes administrative requests."""
        if self.controller_id is None or self.controller_id not in self.nodes:
            return await self.any_connection()
        return await self.connection(self.controller_id)

    async def _enter(self) -> Connection:
        known = [node.address for node in self.nodes.values()]
        tried: list[tuple[str, str]] = []
        for address in dict.fromkeys([*known, *self._bootstrap]):
            try:
                return await self._open(address, str(address))
            except (OSError, trio.TooSlowError, ClientError) as error:
                tried.append((str(address), _why(error, self.settings)))
        raise NotReachable(tried)

    async def _open_advertised(self, node: Node) -> Connection:
        name = f"broker {node.node_id} ({node.address})"
        try:
            return await self._open(node.address, name)
        except (OSError, trio.TooSlowError) as error:
            raise ConnectionLost(
                f"{name} cannot be reached at the address it advertises: {_why(error, self.settings)}"
            ) from error

    async def _open(self, address: Address, name: str) -> Connection:
        stream = await self.settings.reach(address)
        return await open_connection(
            self._nursery,
            stream,
            name,
            client_id=self.settings.client_id,
            within=self.settings.connect_timeout,
        )

    # --- metadata ----------------------------------------------------------------

    def leader(self, target: TopicPartition) -> int | None:
        """Who leads a partition, as far as is known."""
        info = self.topics.get(target.topic)
        if info is None or target.partition >= len(info.partitions):
            return None
        return info.partitions[target.partition].leader

    async def refresh(self, topics: Iterable[str] = (), *, auto_create: bool = False) -> None:
        """Ask for the brokers, and for these topics and all those asked for before.

        One try. Raises NoBroker where whoever answers knows none: what it says of topics then says nothing.
        """
        before = self.generation
        wanted = set(topics)
        news = not wanted <= self._wanted
        self._wanted |= wanted
        async with self._refreshing:
            if self.generation > before and not news and not auto_create:
                return  # somebody else's question was answered while this one waited
            names = [WantedTopic(name=name) for name in sorted(self._wanted)]
            reply = await self.ask_any(Metadata(topics=names, allow_auto_topic_creation=auto_create))
            self._learn(reply)
            if not reply.brokers:
                raise NoBroker

    async def learn(self, topics: Iterable[str] = ()) -> None:
        """As `refresh`, with the patience that every call has."""
        await self.persist(lambda: self.refresh(topics))

    async def all_topics(self) -> list[TopicInfo]:
        """Every topic of the cluster, internal ones too, by name. Not kept in the cache."""

        async def once() -> MetadataReply:
            reply = await self.ask_any(Metadata(topics=None))
            self._learn_nodes(reply)
            if not reply.brokers:
                raise NoBroker
            return reply

        reply = await self.persist(once)
        return sorted((_topic(entry) for entry in reply.topics), key=lambda topic: topic.name)

    async def topic(self, name: str, *, auto_create: bool = False) -> TopicInfo:
        """What is known of a topic, asked for if need be. Raises UnknownTopic."""
        patience = self.settings.retry_timeout if auto_create else self.settings.unknown_topic_patience
        give_up_at = trio.current_time() + patience
        tries = 0
        while True:
            info = self.topics.get(name)
            if info is not None and info.error is ErrorCode.NONE:
                return info
            if info is not None and tries > 0:
                passing = info.error in PASSING_TOPIC_ERRORS
                if not passing or trio.current_time() >= give_up_at:
                    raise _topic_error(info)
                await trio.sleep(self.settings.pause(tries))
            await self.refresh([name], auto_create=auto_create)
            tries += 1

    def forget(self, name: str) -> None:
        """Ask no longer for a topic."""
        self._wanted.discard(name)
        self.topics.pop(name, None)

    async def keep_fresh(self) -> None:
        """Ask again before the metadata is too old, so that new partitions are found."""
        while True:
            due = self._refreshed_at + self.settings.metadata_max_age
            if trio.current_time() < due:
                await trio.sleep_until(due)
                continue
            try:
                await self.refresh()
            except ClientError:  # whoever needs the metadata will meet the error, and say it
                await trio.sleep(self.settings.retry_most)

    def _learn(self, reply: MetadataReply) -> None:
        self._learn_nodes(reply)
        for entry in reply.topics:
            info = _topic(entry)
            self.topics[info.name] = info
        self.generation += 1
        self._refreshed_at = trio.current_time()
        self.learned.set()
        self.learned = trio.Event()

    def _learn_nodes(self, reply: MetadataReply) -> None:
        if reply.brokers:
            self.nodes = {
                one.node_id: Node(node_id=one.node_id, host=one.host, port=one.port, rack=one.rack)
                for one in reply.brokers
            }
        self.cluster_id = reply.cluster_id
        self.controller_id = reply.controller_id if reply.controller_id >= 0 else None

    # --- asking and trying again -------------------------------------------------

    async def ask_any(self, request: Request[ReplyT], *, at_least: int = 0) -> ReplyT:
        """Any broker's answer. Tries another once where a connection turns out to be dead."""
        within = self.settings.request_timeout
        connection = await self.any_connection()
        try:
            return await connection.ask(request, within=within, at_least=at_least)
        except ConnectionLost:
            connection = await self.any_connection()
            return await connection.ask(request, within=within, at_least=at_least)

    async def ask_controller(self, request: Request[ReplyT], *, at_least: int = 0) -> ReplyT:
        connection = await self.controller()
        return await connection.ask(request, within=self.settings.request_timeout, at_least=at_least)

    async def persist(self, attempt: Callable[[], Awaitable[T]], topics: Iterable[str] = ()) -> T:
        """Try until it succeeds, fails for good, or the time for one call is up.

        Between two tries the metadata is refreshed, since most passing errors mean that it is old.
        """
        began = trio.current_time()
        tries = 0
        while True:
            try:
                return await attempt()
            except ClientError as error:
                pause = self.settings.pause(tries)
                patience = self.settings.retry_timeout
                if isinstance(error, UnknownTopic):
                    patience = self.settings.unknown_topic_patience
                if not error.retriable or trio.current_time() + pause >= began + patience:
                    raise
            tries += 1
            await trio.sleep(pause)
            try:
                await self.refresh(topics)
            except ClientError as error:
                if not error.retriable:
                    raise


def _topic(entry: TopicEntry) -> TopicInfo:
    partitions = [
        PartitionInfo(
            partition=one.partition_index,
            leader=one.leader_id if one.leader_id >= 0 else None,
            leader_epoch=one.leader_epoch,
            replicas=tuple(one.replica_nodes),
            isr=tuple(one.isr_nodes),
            offline=tuple(one.offline_replicas),
        )
        for one in sorted(entry.partitions, key=lambda one: one.partition_index)
    ]
    return TopicInfo(
        name=entry.name or "",
        topic_id=TopicId(bytes(entry.topic_id)),
        internal=entry.is_internal,
        partitions=tuple(partitions),
        error=error_code(entry.error_code),
    )


def _topic_error(info: TopicInfo) -> ClientError:
    if info.error in UNKNOWN_TOPIC_CODES:
        return UnknownTopic(f"topic {info.name!r}")
    return refused(info.error, f"topic {info.name!r}")


def _why(error: Exception, settings: Settings) -> str:
    """Why an address could not be reached, in a few words."""
    if isinstance(error, trio.TooSlowError):
        return f"no answer within {settings.connect_timeout:g} s"
    cause: BaseException | None = error.__cause__
    while isinstance(cause, BaseExceptionGroup):  # one for each address that a name stands for
        cause = cause.exceptions[0]
    if isinstance(cause, OSError) and cause.errno is not None:
        error = cause  # trio's own words repeat the address
    if isinstance(error, OSError) and error.errno is not None:
        words = os.strerror(error.errno) if error.errno > 0 else error.strerror
        return (words or str(error)).lower()
    return str(error)
