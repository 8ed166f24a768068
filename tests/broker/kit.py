"""A broker without a gateway: ops in, replies out, over logs in memory and a clock that tests set.

`open_world` puts it together as `rafka.server` does. `SlowBackend` is storage that promises
durability and keeps its promise when the test says so: `flushed_offset` moves by hand.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from rafka.broker.broker import Broker
from rafka.broker.catalog_keeper import CatalogKeeper
from rafka.broker.coordinator import Coordinator
from rafka.broker.partition import Partition
from rafka.broker.topics import Topics
from rafka.config import Config
from rafka.env import Env, real_env
from rafka.ops import cluster, log, topics
from rafka.ops.base import Envelope, Later, Op
from rafka.records.batch import BatchHeader
from rafka.records.build import build
from rafka.records.record import Record, iterate
from rafka.server import _assemble
from rafka.storage.backend import LogName, LogSettings
from rafka.storage.memory import MemoryBackend, MemoryLog
from rafka.types import DEFAULT_ORG, NO_TOPIC_ID, Buffer, OrgId, TopicId

NOW = 1_700_000_000  # when every world begins; its clock goes by Trio's
TOPIC = 2  # a resource type


def make_env(seed: int = 0) -> Env:
    start = trio.current_time()

    async def inline(fn: Callable[..., Any], *args: Any, limiter: object = None) -> Any:
        await trio.lowlevel.checkpoint()  # a real thread would let the clock run away
        return fn(*args)

    return Env(lambda: NOW + trio.current_time() - start, random.Random(seed), real_env().disk, inline)


# --- storage that is slow to promise ---------------------------------------------------------


class SlowLog(MemoryLog):
    """Durable once the test says so."""

    durable = True

    def __init__(self, name: LogName, settings: LogSettings, env: Env, backend: SlowBackend) -> None:
        super().__init__(name, settings, env)
        self._backend = backend
        self._moved = trio.Event()
        self.appends = 0

    def append(self, pieces: Any, header: BatchHeader) -> None:
        before = self.flushed_offset
        super().append(pieces, header)
        self.appends += 1
        if not self._backend.at_once:
            self.flushed_offset = before

    def flush(self, upto: int | None = None) -> None:
        if self.on_flush is not None:
            self.on_flush()
        self.flushed_offset = self.end_offset if upto is None else upto
        self._wake()
        if self.on_flushed is not None:
            self.on_flushed()

    def flush_soon(self) -> None:
        if self._backend.at_once:
            self.flush()

    def fail(self, why: str) -> None:
        self.failed = why
        self._wake()

    async def wait_flushed(self, offset: int) -> None:
        assert offset <= self.end_offset
        await trio.lowlevel.checkpoint()
        while self.flushed_offset < offset:
            self._check()
            await self._moved.wait()

    def _wake(self) -> None:
        moved, self._moved = self._moved, trio.Event()
        moved.set()


class SlowBackend(MemoryBackend):
    durable = True

    def __init__(self, env: Env, *, at_once: bool = False) -> None:
        super().__init__(env)
        self.at_once = at_once

    def open(self, name: LogName, settings: LogSettings) -> SlowLog:
        log = self._logs.get(name)
        if log is None:
            log = self._logs[name] = SlowLog(name, settings, self._env, self)
        log.settings = settings
        assert isinstance(log, SlowLog)
        return log

    async def delete(self, name: LogName) -> None:
        log = self._logs.pop(name, None)
        if isinstance(log, SlowLog):
            log.fail("it was deleted")
        await trio.lowlevel.checkpoint()

    @property
    def journal(self) -> SlowLog:
        return self.open(LogName("journal"), LogSettings())

    def flush_all(self) -> None:
        for each in self._logs.values():
            assert isinstance(each, SlowLog)
            each.flush()


# --- a broker ----------------------------------------------------------------------------------


@attrs.define(eq=False)
class World:
    broker: Broker
    topics: Topics
    keeper: CatalogKeeper
    coordinator: Coordinator
    backend: MemoryBackend
    config: Config
    envelope: Envelope = attrs.Factory(lambda: Envelope(client_host="/127.0.0.1", host="here", port=9092))

    async def ask(self, op: Op[Any], org: OrgId = DEFAULT_ORG) -> Any:
        answer = self.answer(op, org)
        return await answer.wait() if isinstance(answer, Later) else answer

    def answer(self, op: Op[Any], org: OrgId = DEFAULT_ORG) -> Any:
        """The reply, or what to wait for. It leaves, as from a gateway."""
        self.envelope.org_id = org
        answer = self.broker.ask(self.envelope, op)
        self.broker.keep()
        return answer

    async def create(
        self, name: str = "t", partitions: int = 1, org: OrgId = DEFAULT_ORG, **configs: str
    ) -> TopicId:
        new = topics.NewTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                topics.NewTopicConfig(name=key.replace("_", "."), value=v) for key, v in configs.items()
            ],
        )
        [created] = (await self.ask(topics.CreateTopics(topics=[new]), org)).topics
        assert created.error_code == 0, created
        return TopicId(created.topic_id)

    async def delete(self, name: str = "t") -> None:
        [gone] = (await self.ask(topics.DeleteTopics(topic_names=[name]))).responses
        assert gone.error_code == 0

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        return self.topics.by_name(DEFAULT_ORG, name).partition(index)

    def log(self, name: str = "t", index: int = 0) -> SlowLog:
        found = self.partition(name, index).log
        assert isinstance(found, SlowLog)
        return found

    async def write(
        self, *values: bytes, topic: str = "t", index: int = 0, acks: int = 1, at_ms: int = NOW * 1000
    ) -> int:
        """Append one batch of these values; its base offset."""
        reply = await self.ask(produce(batch(*values, at_ms=at_ms), topic=topic, index=index, acks=acks))
        [partition] = reply.responses[0].partition_responses
        assert partition.error_code == 0, partition
        return int(partition.base_offset)

    async def alter(self, **configs: str | None) -> None:
        """Set configs of the topic t; None takes one away."""
        changes = [
            cluster.ConfigChange(
                name=key.replace("_", "."), config_operation=0 if value is not None else 1, value=value
            )
            for key, value in configs.items()
        ]
        resource = cluster.ChangedResource(resource_type=TOPIC, resource_name="t", configs=changes)
        op = cluster.IncrementalAlterConfigs(resources=[resource], validate_only=False)
        [altered] = (await self.ask(op)).responses
        assert altered.error_code == 0, altered

    def no_watcher_left(self) -> bool:
        return not any(p.watchers for live in self.topics for p in live.opened()) and (
            not self.broker.fetcher._waiting
        )


@asynccontextmanager
async def open_world(
    config: Config | None = None, backend: MemoryBackend | None = None, env: Env | None = None
) -> AsyncIterator[World]:
    env = env or make_env()
    config = config or Config()
    backend = backend or MemoryBackend(env)
    names = await backend.start()
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run)
        assembly = await _assemble(config, env, backend, names)
        for run in assembly.actors:
            await nursery.start(run)
        yield World(assembly.broker, assembly.topics, assembly.keeper, assembly.coordinator, backend, config)
        nursery.cancel_scope.cancel()


# --- ops in short --------------------------------------------------------------------------------


def batch(*values: bytes, at_ms: int = NOW * 1000, **options: Any) -> bytes:
    return build([Record(0, at_ms, b"k", value) for value in values or (b"v",)], **options)


def produce(
    records: Buffer | None,
    *,
    topic: str = "t",
    index: int = 0,
    acks: int = 1,
    timeout_ms: int = 30_000,
    **options: Any,
) -> log.Produce:
    return produce_many((topic, index, records), acks=acks, timeout_ms=timeout_ms, **options)


def produce_many(
    *wanted: tuple[str, int, Buffer | None], acks: int = 1, timeout_ms: int = 30_000, **options: Any
) -> log.Produce:
    """Several partitions; neighbours of one topic under one heading."""
    data: list[log.TopicData] = []
    for topic, index, records in wanted:
        if not data or data[-1].name != topic:
            data.append(log.TopicData(name=topic, partition_data=[]))
        data[-1].partition_data.append(log.PartitionData(index=index, records=records))
    return log.Produce(acks=acks, timeout_ms=timeout_ms, topic_data=data, **options)


def told(reply: log.ProduceReply) -> list[log.PartitionProduceReply]:
    return [p for topic in reply.responses for p in topic.partition_responses]


def fetch(
    *wanted: tuple[str, int, int],
    topic_ids: Iterable[TopicId] = (),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    partition_max_bytes: int = 1 << 20,
    **options: Any,
) -> log.Fetch:
    """Partitions as (topic, index, offset). With `topic_ids` they are named by those instead."""
    ids = list(topic_ids)
    asked = [
        log.FetchTopic(
            topic="" if ids else topic,
            topic_id=ids[at] if ids else NO_TOPIC_ID,
            partitions=[
                log.FetchPartition(
                    partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes
                )
            ],
        )
        for at, (topic, index, offset) in enumerate(wanted)
    ]
    return log.Fetch(max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=asked, by_id=bool(ids), **options)


def found(reply: log.FetchReply) -> list[log.PartitionFetchReply]:
    return [p for topic in reply.responses for p in topic.partitions]


def values(records: Buffer) -> list[bytes | None]:
    """The values of all whole batches."""
    from rafka.records.batch import walk

    return [
        record.value
        for at, header in walk(records)
        for record in iterate(memoryview(records)[at : at + header.size])
    ]
