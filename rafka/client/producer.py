"""Sends records: gathered into batches, one lane per broker, a result for each record.

    async with client.producer() as producer:
        delivery = await producer.send("orders", b"value", key=b"key")
        print((await delivery).offset)

`send` waits only while the buffer is full. Leaving the block sends what is left. By default the
producer is idempotent: whatever is retried, the broker writes each record once and in order.

A *lane* is the task that feeds one broker: it takes what is ready for the partitions that this
broker leads, posts it, and starts a task that waits for the answer. All decisions about batches
are the accumulator's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import trio

from ..errors import ErrorCode
from ..records.record import Record
from .accumulator import Accumulator, Batch
from .cluster import Cluster
from .connection import Connection, Pending
from .delivery import Delivery, ProducerSettings
from .encode import encode_batch, size_of
from .errors import BufferFull, ClientError, DeliveryTimedOut, UnknownTopic, error_code, refused
from .messages import InitProducerId, Produce, ProduceReply
from .messages.data import PartitionRecords, ProducedPartition, TopicRecords
from .model import Headers, TopicPartition
from .partitioner import StickyPartitioner

PURPOSE: Final = "produce"

Mine = Callable[[TopicPartition], bool]  # whether a partition is led by the broker of a lane

# The broker lost what it knew of the producer, or never knew it: sequence numbers start afresh.
LOST_TRACK: Final = (
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)


class Producer:
    """Made by `Client.producer`."""

    def __init__(self, cluster: Cluster, nursery: trio.Nursery, settings: ProducerSettings) -> None:
        self.settings: Final = settings
        self._cluster = cluster
        self._nursery = nursery
        self._queue: Accumulator = Accumulator(
            batch_size=settings.batch_size,
            linger=settings.linger,
            delivery_timeout=settings.delivery_timeout,
            sequenced=settings.sequenced,
        )
        self._partitioners: dict[str, StickyPartitioner] = {}
        self._lanes: set[int] = set()
        self._look = trio.Event()  # for the lanes: there may be something to take
        self._room = trio.Event()  # for `send`: something was delivered
        self._identity: tuple[int, int] | None = None if settings.sequenced else (-1, -1)
        self._identifying = trio.Lock()
        self._seen_generation = -1

    # --- sending -----------------------------------------------------------------

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """Put a record into its batch. `timestamp` is in milliseconds; None is now.

        Waits for the topic's metadata when it is new, and for room when the buffer is full.
        """
        while True:
            try:
                delivery = self.send_nowait(
                    topic, value, key=key, headers=headers, partition=partition, timestamp=timestamp
                )
            except trio.WouldBlock:
                await self._make_ready(topic)
                continue
            await trio.lowlevel.checkpoint()
            return delivery

    def send_nowait(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Delivery:
        """As `send`, or trio.WouldBlock where it would have to wait."""
        info = self._cluster.topics.get(topic)
        if info is None or not info.partitions:
            raise trio.WouldBlock
        size = size_of(key, value, headers)
        if self._queue.bytes + size > self.settings.buffer_size:
            if size > self.settings.buffer_size:
                raise BufferFull(f"a record of {size} bytes is larger than the buffer: raise buffer_size")
            raise trio.WouldBlock
        if partition is None:
            partition = self._partitioner(topic).choose(key, size, len(info.partitions))
        elif not 0 <= partition < len(info.partitions):
            raise UnknownTopic(f"{topic}-{partition} (the topic has {len(info.partitions)} partitions)")
        if timestamp is None:
            timestamp = time.time_ns() // 1_000_000
        record = Record(0, timestamp, key, value, headers)
        now = trio.current_time()
        batch, index, news = self._queue.add(TopicPartition(topic, partition), record, size, now)
        if news:
            self._wake()
        return Delivery(batch, index)

    async def flush(self) -> None:
        """Return once everything sent so far is delivered or has failed: the deliveries tell which."""
        self._queue.flushing += 1
        self._wake()
        try:
            for batch in self._queue.unfinished():
                await batch.wait()
        finally:
            self._queue.flushing -= 1

    async def _make_ready(self, topic: str) -> None:
        info = self._cluster.topics.get(topic)
        if info is None or not info.partitions:
            await self._cluster.persist(
                lambda: self._cluster.topic(topic, auto_create=self.settings.auto_create)
            )
        else:
            await self._room.wait()

    def _partitioner(self, topic: str) -> StickyPartitioner:
        partitioner = self._partitioners.get(topic)
        if partitioner is None:
            choice = self._cluster.settings.choice
            partitioner = self._partitioners[topic] = StickyPartitioner(self.settings.batch_size, choice)
        return partitioner

    # --- lanes -------------------------------------------------------------------

    def _wake(self) -> None:
        """Have the lanes look, and see that every leader has a lane."""
        self._look.set()
        if self._seen_generation != self._cluster.generation:
            self._seen_generation = self._cluster.generation
            for node_id in self._cluster.nodes:
                if node_id not in self._lanes:
                    self._lanes.add(node_id)
                    self._nursery.start_soon(self._lane, node_id)

    async def _lane(self, node_id: int) -> None:
        """Feed one broker for as long as it is part of the cluster."""
        in_flight = trio.Semaphore(self.settings.in_flight)

        def mine(target: TopicPartition) -> bool:
            return self._cluster.leader(target) == node_id

        while node_id in self._cluster.nodes:
            await in_flight.acquire()
            try:
                posted = await self._post_next(node_id, mine)
            except BaseException:
                in_flight.release()
                raise
            if posted is None:
                in_flight.release()
            else:
                self._nursery.start_soon(self._settle, *posted, in_flight)
        self._lanes.discard(node_id)
        self._seen_generation = -1

    async def _post_next(
        self, node_id: int, mine: Mine
    ) -> tuple[list[Batch], Connection, Pending[ProduceReply]] | None:
        """Wait until there is something to take, and post it. None: look again."""
        look = self._look = trio.Event() if self._look.is_set() else self._look
        now = trio.current_time()
        due = self._queue.next_look(mine, now)
        if due > now:
            with trio.move_on_at(due):
                await look.wait()
            return None
        try:
            connection = await self._cluster.connection(node_id, PURPOSE)
            identity = await self._identify()
        except ClientError as error:
            await self._stumble(mine, error)
            return None
        batches = self._queue.take(mine, trio.current_time(), self.settings.request_size)
        if not batches:
            return None
        try:
            request = self._request(batches, identity)
            return batches, connection, connection.post(request, answered=self.settings.acks != 0)
        except ClientError as error:
            for batch in batches:
                self._refuse(batch, error)
            return None

    def _request(self, batches: list[Batch], identity: tuple[int, int]) -> Produce:
        topics: dict[str, list[PartitionRecords]] = {}
        for batch in batches:
            if batch.data is None:
                batch.data = encode_batch(
                    batch.records, identity, batch.sequence, self.settings.compression, self.settings.level
                )
            entry = PartitionRecords(index=batch.target.partition, records=batch.data)
            topics.setdefault(batch.target.topic, []).append(entry)
        return Produce(
            acks=self.settings.acks,
            timeout_ms=int(self._cluster.settings.request_timeout * 1000),
            topic_data=[TopicRecords(name=name, partition_data=data) for name, data in topics.items()],
        )

    async def _stumble(self, mine: Mine, error: ClientError) -> None:
        """A broker is not there, or gives no producer id: pause, and learn who leads now."""
        if not error.retriable:
            self._queue.abandon(mine, error)
            return
        await trio.sleep(self._cluster.settings.pause(2))
        await self._learn_anew()

    async def _learn_anew(self) -> None:
        try:
            await self._cluster.refresh()
        except ClientError:  # batches wait for the next try, or for their deadline
            await trio.sleep(self._cluster.settings.pause(2))
        self._wake()

    # --- the producer id ---------------------------------------------------------

    async def _identify(self) -> tuple[int, int]:
        """The producer id and epoch to send under; new ones where numbering has to start afresh."""
        if self._identity is not None and not self._queue.stuck:
            return self._identity
        async with self._identifying:
            if self._identity is not None and not self._queue.stuck:
                return self._identity
            while self._queue.in_flight:
                await self._room.wait()
            reply = await self._cluster.ask_any(InitProducerId())
            if reply.error_code:
                raise refused(reply.error_code, "InitProducerId")
            self._identity = (reply.producer_id, reply.producer_epoch)
            self._queue.renumber()
            return self._identity

    # --- answers -----------------------------------------------------------------

    async def _settle(
        self,
        batches: list[Batch],
        connection: Connection,
        pending: Pending[ProduceReply],
        in_flight: trio.Semaphore,
    ) -> None:
        """Wait for the answer to one request and give each of its batches its end."""
        try:
            reply = await self._answer(connection, pending)
        except ClientError as error:
            for batch in batches:
                self._break(batch, error)
        else:
            answers = {
                (topic.name, one.index): one for topic in reply.responses for one in topic.partition_responses
            }
            for batch in batches:
                self._end(batch, answers.get(batch.target))
        finally:
            in_flight.release()
            self._room.set()
            self._room = trio.Event()
            self._wake()
        if any(not batch.finished for batch in batches):
            await self._learn_anew()

    async def _answer(self, connection: Connection, pending: Pending[ProduceReply]) -> ProduceReply:
        if self.settings.acks == 0:
            await pending.sent()
            return ProduceReply(responses=[])
        timeout = self._cluster.settings.request_timeout
        with trio.move_on_after(timeout):
            return await pending.reply()
        raise connection.timed_out(Produce, timeout)

    def _end(self, batch: Batch, answer: ProducedPartition | None) -> None:
        if answer is None:  # acks=0, or a broker that left the partition out
            self._queue.succeed(batch, -1, -1)
            return
        code = error_code(answer.error_code)
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._queue.succeed(batch, answer.base_offset, answer.log_append_time_ms)
            return
        if self.settings.sequenced and code in LOST_TRACK:
            if code is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER or not self._queue.explains(batch):
                self._queue.stuck = True
            self._again(batch)
            return
        self._refuse(batch, refused(answer.error_code, str(batch.target), _details(answer)))

    def _break(self, batch: Batch, error: ClientError) -> None:
        """The connection failed: nobody knows whether the batch was written."""
        if error.retriable:
            self._again(batch)
        else:
            self._queue.fail(batch, error, unknown=True)

    def _refuse(self, batch: Batch, error: ClientError) -> None:
        if error.retriable:
            self._again(batch)
        else:
            self._queue.fail(batch, error)

    def _again(self, batch: Batch) -> None:
        self._queue.retry(batch, trio.current_time() + self._cluster.settings.pause(1))

    async def expire(self) -> None:
        """Give up what has waited too long. A task of the producer's, for as long as it lives."""
        period = min(1.0, self.settings.delivery_timeout / 4)
        while True:
            await trio.sleep(period)
            self._queue.expire(trio.current_time(), self._too_late)
            self._room.set()
            self._room = trio.Event()
            if any(self._cluster.leader(target) is None for target in self._queue.waiting()):
                await self._learn_anew()
            self._wake()

    def _too_late(self, batch: Batch) -> ClientError:
        return DeliveryTimedOut(
            f"{batch.target}: not acknowledged within {self.settings.delivery_timeout:g} s: "
            f"{'its leader does not answer' if batch.sent else 'no leader could be reached'}"
        )


def _details(answer: ProducedPartition) -> str | None:
    """The broker's own words, record by record where it gives them."""
    words = [f"record {one.batch_index}: {one.batch_index_error_message}" for one in answer.record_errors[:3]]
    return "; ".join([answer.error_message, *words] if answer.error_message else words) or None
