"""Producers and consumers of a simulated world: careful ones, who write down all they see.

A producer is idempotent, waits for acks=all, has up to five requests under way, and
sends what was not acknowledged again, in order, for as long as it takes. A consumer
reads from the first offset on, in bites of any size, seeks back now and then, and asks
where the log ends. All of it in real bytes of Kafka's protocol, in versions that the
dice choose. What a right broker never answers goes into the history as a surprise.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any, Final
from zlib import crc32

import attrs
import trio

from rafka.errors import ErrorCode
from rafka.records.batch import crc_of, walk
from rafka.records.build import build
from rafka.records.record import Record, iterate
from rafka.types import NO_TOPIC_ID, TopicId
from rafka.wire.apis.create_topics import CREATE_TOPICS
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.init_producer_id import INIT_PRODUCER_ID
from rafka.wire.apis.list_offsets import LIST_OFFSETS
from rafka.wire.apis.metadata import METADATA
from rafka.wire.apis.produce import PRODUCE

from .history import AskedEnd, History, Poll, Result, Seen, Send, TopicPartition
from .wire_client import GONE, Connect, WireClient

IN_FLIGHT: Final = 5  # requests of a producer: as many as a broker remembers batches
BY_ID: Final = 13  # from this version on, Produce and Fetch name topics by id
CODECS: Final = (0, 0, 0, 1, 3, 4)
ZSTD: Final = 4
ZSTD_SINCE: Final = 7  # the version of Produce
CODES: Final = {int(code): code for code in ErrorCode}


@attrs.frozen
class Topic:
    name: str
    topic_id: TopicId
    partitions: int


class Client:
    """What all clients of a world have in common."""

    def __init__(self, name: str, connect: Connect, dice: random.Random, history: History) -> None:
        self.name = name
        self.dice = dice
        self.history = history
        self.wire = WireClient(connect, name)

    async def insist(self, ask: Callable[[], Any]) -> Any:
        """Ask until there is an answer. `ask` gives None for one that means: try again."""
        while True:
            try:
                answer = await ask()
            except GONE:
                await self.wire.hang_up()
            else:
                if answer is not None:
                    return answer
            await trio.sleep(self.dice.uniform(0.01, 0.3))

    def astonished(self, what: str) -> None:
        self.history.surprises.append(f"{self.name} at {trio.current_time():.4f} s: {what}")


async def create_topic(client: Client, name: str, partitions: int) -> Topic:
    """The topic, whether this request or an earlier one that nobody answered made it."""
    version = client.dice.choice(CREATE_TOPICS.versions)
    wanted = CREATE_TOPICS.Request.Topics(name=name, num_partitions=partitions, replication_factor=1)

    async def ask() -> bool | None:
        reply = await client.wire.ask(CREATE_TOPICS, version, CREATE_TOPICS.Request(topics=[wanted]))
        (topic,) = reply.topics
        if topic.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return True
        if not CODES[topic.error_code].retriable:
            client.astonished(f"{CODES[topic.error_code].name} for a new topic")
        return None

    await client.insist(ask)
    return Topic(name, await _topic_id(client, name), partitions)


async def _topic_id(client: Client, name: str) -> TopicId:
    request = METADATA.Request(topics=[METADATA.Request.Topics(name=name)], allow_auto_topic_creation=False)

    async def ask() -> TopicId | None:
        (topic,) = (await client.wire.ask(METADATA, 12, request)).topics
        return None if topic.topic_id == NO_TOPIC_ID else TopicId(topic.topic_id)

    return TopicId(await client.insist(ask))


# --- producing -----------------------------------------------------------------------


@attrs.define(eq=False)
class _Batch:
    partition: int
    records: list[Record]
    values: list[str]
    order: int
    begun: float
    data: bytes = b""


class Producer(Client):
    """Sends `count` batches and returns when the last is settled."""

    def __init__(
        self, name: str, connect: Connect, dice: random.Random, history: History, now: Callable[[], float]
    ) -> None:
        super().__init__(name, connect, dice, history)
        self._now = now
        self._version = dice.choice(PRODUCE.versions)
        self._id = self._epoch = -1
        self._sequences: dict[int, int] = {}
        self._order = 0
        self._codecs = [codec for codec in CODECS if codec != ZSTD or self._version >= ZSTD_SINCE]

    async def run(self, topic: Topic, count: int) -> None:
        under_way: list[list[_Batch]] = []
        while count or under_way:
            if self._id < 0:
                await self._identify()
            while count and len(under_way) < IN_FLIGHT and (not under_way or self.dice.random() < 0.7):
                partitions = self.dice.sample(range(topic.partitions), self.dice.randint(1, topic.partitions))
                under_way.append([self._batch(partition) for partition in partitions])
                count -= 1
            await self._exchange(topic, under_way)
            under_way = [left for left in under_way if left]
            if under_way:
                await trio.sleep(self.dice.uniform(0.01, 0.3))
            else:
                await trio.sleep(self.dice.expovariate(4))
        await self.wire.hang_up()

    async def _identify(self) -> None:
        version = self.dice.choice(INIT_PRODUCER_ID.versions)
        request = INIT_PRODUCER_ID.Request(transactional_id=None, transaction_timeout_ms=60_000)

        async def ask() -> Any:
            reply = await self.wire.ask(INIT_PRODUCER_ID, version, request)
            return reply if reply.error_code == ErrorCode.NONE else None

        reply = await self.insist(ask)
        self._id, self._epoch = reply.producer_id, reply.producer_epoch
        self._sequences.clear()

    def _batch(self, partition: int) -> _Batch:
        values: list[str] = []
        records = []
        for _ in range(self.dice.choice((1, 1, 2, 7))):
            value = f"{self.name}:{self._order}:{len(values)}:{self.dice.getrandbits(32):08x}"
            pad = self.dice.randbytes(self.dice.choice((0, 10, 300)))
            values.append(value)
            records.append(
                Record(0, int(self._now() * 1000), self.name.encode(), value.encode(), [("pad", pad)])
            )
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(records)
        batch = _Batch(partition, records, values, self._order, trio.current_time())
        batch.data = build(
            records,
            codec=self.dice.choice(self._codecs),
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
        )
        self._order += 1
        return batch

    async def _exchange(self, topic: Topic, under_way: list[list[_Batch]]) -> None:
        """Send everything, and take what is answered out of it."""
        try:
            for batches in under_way:
                await self.wire.send(PRODUCE, self._version, self._request(topic, batches))
            for batches in under_way:
                reply = await self.wire.answer()
                (answered,) = reply.responses
                for result in answered.partition_responses:
                    (batch,) = (batch for batch in batches if batch.partition == result.index)
                    if self._settle(topic, batch, result, under_way):
                        batches.remove(batch)
        except GONE:
            await self.wire.hang_up()
        if self._id < 0:  # the broker took this producer for another: nothing more is known of the rest
            for batch in (batch for batches in under_way for batch in batches):
                self._write_down(topic, batch, "info")
            under_way.clear()

    def _request(self, topic: Topic, batches: Iterable[_Batch]) -> Any:
        named = PRODUCE.Request.TopicData
        data = [named.PartitionData(index=batch.partition, records=batch.data) for batch in batches]
        by_id = self._version >= BY_ID
        return PRODUCE.Request(
            acks=-1,
            timeout_ms=3000,
            topic_data=[
                named(
                    name="" if by_id else topic.name,
                    topic_id=topic.topic_id if by_id else NO_TOPIC_ID,
                    partition_data=data,
                )
            ],
        )

    def _settle(self, topic: Topic, batch: _Batch, result: Any, under_way: list[list[_Batch]]) -> bool:
        """Whether no more has to be done for the batch."""
        code = CODES[result.error_code]
        if code is ErrorCode.NONE:
            self._write_down(topic, batch, "ok", result.base_offset)
            return True
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and _waits_for_another(batch, under_way):
            return False
        if code.retriable:
            return False
        self.astonished(f"{code.name} for {batch.values[0]}")
        self._write_down(topic, batch, "info")
        self._id = -1
        return True

    def _write_down(self, topic: Topic, batch: _Batch, result: Result, base: int = -1) -> None:
        for index, (value, record) in enumerate(zip(batch.values, batch.records, strict=True)):
            self.history.sends.append(
                Send(
                    producer=self.name,
                    tp=(topic.name, batch.partition),
                    value=value,
                    crc=_crc(record),
                    order=batch.order * 10 + index,
                    begun=batch.begun,
                    ended=trio.current_time(),
                    result=result,
                    offset=base + index if result == "ok" else -1,
                )
            )


def _waits_for_another(batch: _Batch, under_way: list[list[_Batch]]) -> bool:
    """Whether an earlier batch to the same partition is not acknowledged yet."""
    same = (other for batches in under_way for other in batches if other.partition == batch.partition)
    return next(same) is not batch


# --- consuming -----------------------------------------------------------------------


class Consumer(Client):
    """Reads all partitions of a topic until it is told to end and has read what there is."""

    def __init__(self, name: str, connect: Connect, dice: random.Random, history: History) -> None:
        super().__init__(name, connect, dice, history)
        self._version = dice.choice(FETCH.versions)
        self._isolation = dice.choice((0, 1))
        self._assignment = 0
        self._positions: dict[int, int] = {}
        history.full_readers.add(name)

    async def run(self, topic: Topic, ending: trio.Event) -> None:
        self._positions = dict.fromkeys(range(topic.partitions), 0)
        idle = 0
        while idle < 3:
            try:
                found = await self._poll(topic)
                idle = 0 if found or not ending.is_set() else idle + 1
                if self.dice.random() < 0.1:
                    await self._ask_end(topic)
            except GONE:
                await self.wire.hang_up()
                await trio.sleep(self.dice.uniform(0.01, 0.3))
            if not ending.is_set() and self.dice.random() < 0.03:
                self._seek_back()
        await self.wire.hang_up()

    async def read_through(self, topic: Topic) -> dict[TopicPartition, list[Seen]]:
        """Everything there is, from the first offset to the high watermark."""
        self.history.full_readers.discard(self.name)
        self._positions = dict.fromkeys(range(topic.partitions), 0)
        found: dict[TopicPartition, list[Seen]] = {
            (topic.name, partition): [] for partition in range(topic.partitions)
        }

        async def ask() -> dict[TopicPartition, list[Seen]] | None:
            before = len(self.history.polls)
            more = await self._poll(topic)
            for poll in self.history.polls[before:]:
                found[poll.tp] += poll.records
            return None if more else found

        return dict(await self.insist(ask))

    def _seek_back(self) -> None:
        self._assignment += 1
        for partition, position in self._positions.items():
            self._positions[partition] = self.dice.randint(0, position)

    async def _poll(self, topic: Topic) -> bool:
        """One fetch of all partitions; whether it brought anything."""
        begun = trio.current_time()
        reply = await self.wire.ask(FETCH, self._version, self._request(topic))
        found = False
        for answered in reply.responses:
            for partition in answered.partitions:
                code = CODES[partition.error_code]
                if code is ErrorCode.NONE:
                    found = self._take(topic, partition, begun) or found
                elif not code.retriable:
                    self.astonished(f"{code.name} at {self._positions[partition.partition_index]}")
        return found

    def _request(self, topic: Topic) -> Any:
        named = FETCH.Request.Topics
        partitions = [
            named.Partitions(
                partition=partition,
                fetch_offset=position,
                partition_max_bytes=self.dice.choice((1, 500, 1 << 20)),
            )
            for partition, position in self._positions.items()
        ]
        by_id = self._version >= BY_ID
        asked = named(
            topic="" if by_id else topic.name,
            topic_id=topic.topic_id if by_id else NO_TOPIC_ID,
            partitions=partitions,
        )
        return FETCH.Request(
            max_wait_ms=500,
            min_bytes=self.dice.choice((0, 1, 1, 2000)),
            max_bytes=self.dice.choice((1000, 50_000_000)),
            isolation_level=self._isolation,
            topics=[asked],
        )

    def _take(self, topic: Topic, partition: Any, begun: float) -> bool:
        position = self._positions[partition.partition_index]
        seen, after = _records(partition.records, position)
        self._positions[partition.partition_index] = after
        self.history.polls.append(
            Poll(
                reader=self.name,
                assignment=self._assignment,
                tp=(topic.name, partition.partition_index),
                position=position,
                begun=begun,
                ended=trio.current_time(),
                records=tuple(seen),
                high_watermark=partition.high_watermark,
                stable_offset=partition.last_stable_offset,
            )
        )
        return bool(seen)

    async def _ask_end(self, topic: Topic) -> None:
        asked = LIST_OFFSETS.Request.Topics
        partitions = [
            asked.Partitions(partition_index=partition, timestamp=-1) for partition in range(topic.partitions)
        ]
        request = LIST_OFFSETS.Request(
            replica_id=-1,
            isolation_level=self._isolation,
            topics=[asked(name=topic.name, partitions=partitions)],
        )
        begun = trio.current_time()
        reply = await self.wire.ask(LIST_OFFSETS, self.dice.choice(LIST_OFFSETS.versions), request)
        for answered in reply.topics[0].partitions:
            if answered.error_code == ErrorCode.NONE:
                self.history.ends.append(
                    AskedEnd(
                        (topic.name, answered.partition_index), begun, trio.current_time(), answered.offset
                    )
                )


def _records(data: Any, position: int) -> tuple[list[Seen], int]:
    """What a client makes of fetched batches: the records from its position on, and the next position."""
    seen = []
    view = memoryview(data or b"")
    for at, header in walk(view):
        if crc_of(view, at, header.size) != header.crc:
            seen.append(Seen(header.base_offset, f"damaged batch at {header.base_offset}", 0))
        elif not header.control:
            seen += [
                Seen(record.offset, (record.value or b"").decode(), _crc(record))
                for record in iterate(view[at : at + header.size])
                if record.offset >= position
            ]
        position = max(position, header.next_offset)
    return seen, position


def _crc(record: Record) -> int:
    return crc32(repr((record.timestamp, record.key, record.value, record.headers)).encode())
