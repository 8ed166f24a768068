"""Reads partitions: a fetch loop per leader, records in order, from wherever one likes.

    async with client.consumer({TopicPartition("orders", 0): Beginning()}) as consumer:
        async for record in consumer:
            print(record.offset, record.value)

Each broker that leads one of the partitions has a task that long-polls it on a connection of its
own. What it brings goes through one channel to whoever reads; the channel is short, so a slow
reader slows the fetching. A group is not joined: the partitions are those given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Final

import attrs
import trio

from ..errors import ErrorCode
from ..records.record import Record
from ..types import message
from .cluster import Cluster
from .errors import (
    UNKNOWN_TOPIC_CODES,
    ClientError,
    OffsetOutOfRange,
    error_code,
    refused,
)
from .messages import Fetch, FetchReply
from .messages.data import FetchedPartition, PartitionToFetch, TopicToFetch
from .model import TopicPartition
from .offsets import Beginning, End, Start, list_offsets, resolve
from .unpack import Unpacker

PURPOSE: Final = "fetch"
CHUNKS_MAX: Final = 8  # fetched and not yet read; when it is full the fetch loops wait for the reader


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """Times are in seconds, sizes in bytes. Defaults are the Java client's."""

    read_committed: bool = False
    max_wait: float = 0.5  # how long a broker may wait for `min_bytes`
    min_bytes: int = 1
    max_bytes: int = 50 * 1024 * 1024  # of one answer
    partition_max_bytes: int = 1024 * 1024  # of one partition in an answer
    check_crc: bool = True
    out_of_range: Start | None = None  # where to go on when the offset is not in the log; None: raise


@message
class ConsumedRecord:
    """One record, and where it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


@message
class Chunk:
    """What one fetch brought of one partition; maybe no record at all, where all were hidden."""

    target: TopicPartition
    records: list[Record]
    next_offset: int
    end_offset: int  # the high watermark, or the last stable offset where only committed records are read
    size: int  # bytes as they came


@attrs.define(eq=False)
class _Partition:
    target: TopicPartition
    offset: int  # where the next fetch begins
    reached: int  # where the reader is
    turn: int  # another one after every seek, so that what was fetched before is known
    held: bool = False  # not fetched, after an error, until the next seek
    paused: bool = False  # not fetched until it is resumed
    failing_since: float | None = None


class Consumer:
    """Made by `Client.consumer`."""

    def __init__(self, cluster: Cluster, nursery: trio.Nursery, settings: ConsumerSettings) -> None:
        self.settings: Final = settings
        self._cluster = cluster
        self._nursery = nursery
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._turns = count()
        self._loops: set[int] = set()
        self._changed = trio.Event()
        send, receive = trio.open_memory_channel[tuple[int, TopicPartition, Chunk | ClientError]](CHUNKS_MAX)
        self._send = send
        self._receive = receive
        self._unread: list[ConsumedRecord] = []  # of the last chunk, the first last
        self._chunk_end = 0  # where the chunk ends that `_unread` is of

    # --- what is read ------------------------------------------------------------

    async def assign(self, starts: Mapping[TopicPartition, Start]) -> None:
        """Read these partitions, and no others, from these starts."""
        offsets = await resolve(self._cluster, starts, read_committed=self.settings.read_committed)
        self._partitions.clear()
        self._unread.clear()
        self.add(offsets)

    def add(self, offsets: Mapping[TopicPartition, int], *, paused: bool = False) -> None:
        """Read these partitions, too."""
        for target, offset in offsets.items():
            partition = _Partition(target, offset, offset, next(self._turns), paused=paused)
            self._partitions[target] = partition
        self._stir()

    def seek(self, target: TopicPartition, offset: int) -> None:
        """Go on reading a partition from this offset."""
        partition = self._partitions[target]
        partition.offset = partition.reached = offset
        partition.turn = next(self._turns)
        partition.held = False
        self._skip_unread(target)
        self._stir()

    def drop(self, target: TopicPartition) -> None:
        """Read a partition no longer."""
        self._partitions.pop(target, None)
        self._skip_unread(target)

    def pause(self, targets: Iterable[TopicPartition]) -> None:
        """Give the reader nothing more of these, not even what has been fetched, until `resume`."""
        for target in targets:
            partition = self._partitions[target]
            partition.paused = True
            partition.offset = partition.reached
            partition.turn = next(self._turns)
            self._skip_unread(target)

    def resume(self, targets: Iterable[TopicPartition]) -> None:
        for target in targets:
            self._partitions[target].paused = False
        self._stir()

    def _skip_unread(self, target: TopicPartition) -> None:
        self._unread = [one for one in self._unread if (one.topic, one.partition) != target]

    def position(self, target: TopicPartition) -> int:
        """The offset behind the last record, or chunk, that was given to the reader."""
        return self._partitions[target].reached

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return tuple(self._partitions)

    async def end_offsets(self) -> dict[TopicPartition, int]:
        """Where each partition ends now, for a reader of this isolation level."""
        found = await list_offsets(
            self._cluster,
            dict.fromkeys(self._partitions, -1),
            read_committed=self.settings.read_committed,
        )
        return {target: one.offset for target, one in found.items()}

    # --- reading -----------------------------------------------------------------

    async def next_chunk(self) -> Chunk:
        """The next records of some partition, as many as came together."""
        while True:
            turn, target, chunk = await self._receive.receive()
            partition = self._partitions.get(target)
            if partition is None or partition.turn != turn:
                continue  # fetched before a seek
            if isinstance(chunk, ClientError):
                raise chunk
            partition.reached = chunk.next_offset
            return chunk

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> ConsumedRecord:
        """One record after another, without end."""
        while not self._unread:
            chunk = await self.next_chunk()
            topic, partition = chunk.target
            self._chunk_end = chunk.next_offset
            self._unread = [
                ConsumedRecord(
                    topic=topic,
                    partition=partition,
                    offset=one.offset,
                    timestamp=one.timestamp,
                    key=one.key,
                    value=one.value,
                    headers=one.headers,
                )
                for one in reversed(chunk.records)
            ]
        record = self._unread.pop()
        state = self._partitions.get(TopicPartition(record.topic, record.partition))
        if state is not None:
            state.reached = record.offset + 1 if self._unread else self._chunk_end
        return record

    # --- fetching ----------------------------------------------------------------

    def _stir(self) -> None:
        """Have the loops look at the partitions again, and see that every broker has a loop."""
        self._changed.set()
        self._changed = trio.Event()
        for node_id in self._cluster.nodes:
            if node_id not in self._loops:
                self._loops.add(node_id)
                self._nursery.start_soon(self._fetch_loop, node_id)

    async def _fetch_loop(self, node_id: int) -> None:
        """Long-poll one broker for as long as it is part of the cluster."""
        tries = 0
        while node_id in self._cluster.nodes:
            wanted = [
                one
                for one in self._partitions.values()
                if not (one.held or one.paused) and self._cluster.leader(one.target) == node_id
            ]
            if not wanted:
                await self._changed.wait()
                continue
            turns = {one.target: one.turn for one in wanted}
            try:
                reply = await self._fetch(node_id, wanted)
            except ClientError as error:
                await self._stumble(wanted, error, tries)
                tries += 1
                continue
            tries = 0 if await self._deal_out(reply, turns) else tries + 1
            if tries:
                await self._learn_anew(tries)
        self._loops.discard(node_id)

    async def _fetch(self, node_id: int, wanted: list[_Partition]) -> FetchReply:
        settings = self.settings
        topics: dict[str, list[PartitionToFetch]] = {}
        for one in wanted:
            entry = PartitionToFetch(
                partition=one.target.partition,
                fetch_offset=one.offset,
                partition_max_bytes=settings.partition_max_bytes,
            )
            topics.setdefault(one.target.topic, []).append(entry)
        request = Fetch(
            max_wait_ms=int(settings.max_wait * 1000),
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=int(settings.read_committed),
            topics=[TopicToFetch(topic=name, partitions=entries) for name, entries in topics.items()],
        )
        connection = await self._cluster.connection(node_id, PURPOSE)
        timeout = settings.max_wait + self._cluster.settings.request_timeout
        reply = await connection.ask(request, within=timeout)
        if reply.error_code:
            raise refused(reply.error_code, "Fetch")
        return reply

    async def _deal_out(self, reply: FetchReply, turns: Mapping[TopicPartition, int]) -> bool:
        """Hand on what came. False: some partition needs newer metadata before it is asked for again."""
        well = True
        for topic in reply.responses:
            for answer in topic.partitions:
                target = TopicPartition(topic.topic, answer.partition_index)
                partition = self._partitions.get(target)
                if partition is None or partition.turn != turns.get(target):
                    continue
                try:
                    well = await self._take(partition, answer) and well
                except ClientError as error:
                    await self._report(partition, error)
        return well

    async def _take(self, partition: _Partition, answer: FetchedPartition) -> bool:
        code = error_code(answer.error_code)
        if code is not ErrorCode.NONE:
            return await self._refused(partition, code)
        partition.failing_since = None
        committed = self.settings.read_committed
        if not answer.records:
            return True
        unpacker = Unpacker(
            str(partition.target),
            partition.offset,
            answer.aborted_transactions if committed else None,
            check_crc=self.settings.check_crc,
        )
        records = unpacker.unpack(answer.records)
        if unpacker.next_offset > partition.offset:
            partition.offset = unpacker.next_offset
            chunk = Chunk(
                target=partition.target,
                records=records,
                next_offset=unpacker.next_offset,
                end_offset=answer.last_stable_offset if committed else answer.high_watermark,
                size=len(answer.records),
            )
            # The next answer begins with other partitions, so that none is starved by the size limit.
            if self._partitions.get(partition.target) is partition:
                self._partitions[partition.target] = self._partitions.pop(partition.target)
            await self._send.send((partition.turn, partition.target, chunk))
        return True

    # --- when it does not go well -------------------------------------------------

    async def _refused(self, partition: _Partition, code: ErrorCode) -> bool:
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._go_back_into_range(partition)
            return True
        error = refused(code, str(partition.target))
        if not error.retriable:
            raise error
        patience = self._cluster.settings.retry_timeout
        if code in UNKNOWN_TOPIC_CODES:
            patience = self._cluster.settings.unknown_topic_patience
        now = trio.current_time()
        if partition.failing_since is None:
            partition.failing_since = now
        elif now - partition.failing_since > patience:
            raise error
        return False

    async def _go_back_into_range(self, partition: _Partition) -> None:
        target, start = partition.target, self.settings.out_of_range
        committed = self.settings.read_committed
        if start is not None:
            turn = partition.turn
            offset = (await resolve(self._cluster, {target: start}, read_committed=committed))[target]
            if partition.turn == turn:
                partition.offset = offset
            return
        ends = [
            (await resolve(self._cluster, {target: where}, read_committed=committed))[target]
            for where in (Beginning(), End())
        ]
        raise OffsetOutOfRange(
            f"{target}: offset {partition.offset} is not in the log, which goes from {ends[0]} to {ends[1]}"
        )

    async def _report(self, partition: _Partition, error: ClientError) -> None:
        """Tell the reader, and fetch the partition no more until it seeks."""
        partition.held = True
        await self._send.send((partition.turn, partition.target, error))

    async def _stumble(self, wanted: list[_Partition], error: ClientError, tries: int) -> None:
        """The broker could not be asked."""
        now = trio.current_time()
        for partition in wanted:
            if partition.failing_since is None:
                partition.failing_since = now
            late = now - partition.failing_since > self._cluster.settings.retry_timeout
            if late or not error.retriable:
                await self._report(partition, error)
        await self._learn_anew(tries)

    async def _learn_anew(self, tries: int) -> None:
        await trio.sleep(self._cluster.settings.pause(tries))
        try:
            await self._cluster.refresh({target.topic for target in self._partitions})
        except ClientError:  # the fetch that follows meets it again, and counts the time
            return
        self._stir()

    async def find_leaders(self) -> None:
        """Ask again while a partition has no leader. A task of the consumer's, for as long as it lives.

        Others ask for the metadata too, and what they are told may be that there is a leader again.
        """
        while True:
            with trio.move_on_after(self._cluster.settings.retry_most):
                await self._cluster.learned.wait()
                self._stir()
                continue
            if any(self._cluster.leader(target) is None for target in self._partitions):
                await self._learn_anew(0)
