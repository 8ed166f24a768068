"""Fetch: read many partitions within one limit, or wait until there is enough to read.

All in the task of whoever asks. A fetch that has to wait puts one watcher on each of
its partitions and sleeps on one event; there is no task and no timer per partition. A
read that would wait for the disk is made in a thread; everything else is a plain call.
"""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ..errors import ErrorCode, KafkaError
from ..machines.fetch_sessions import Asked, FetchSessions, Wanted
from ..ops.base import Envelope, Later
from ..ops.log import (
    EpochEnd,
    Fetch,
    FetchPartition,
    FetchReply,
    LeaderEpoch,
    PartitionFetchReply,
)
from .partition import Partition
from .topics import Topics

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
LOOK_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
DEBUGGER = -2  # the replica id of a client that may see what is not yet durable


class Fetcher:
    """Answers Fetch."""

    def __init__(
        self, topics: Topics, sessions: FetchSessions, *, node_id: int, max_bytes: int, max_wait_s: float
    ) -> None:
        self.topics = topics
        self.sessions = sessions
        self.node_id = node_id
        self.max_bytes = max_bytes
        self.max_wait_s = max_wait_s
        self.closing = False
        self._waiting: set[_Waiting] = set()

    def fetch(self, envelope: Envelope, op: Fetch) -> FetchReply | Later[FetchReply]:
        try:
            asked = self.sessions.open(op, envelope.org_id, trio.current_time())
        except KafkaError as refused:
            if refused.code is ErrorCode.UNKNOWN_SERVER_ERROR:
                return op.refusal(refused.code)
            return FetchReply(error_code=refused.code, responses=[])
        if op.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
            return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        reading = _Reading(self, envelope, op, asked)
        if not reading.go_on():
            return Later(self._finish, op, reading)
        if reading.taken < reading.limit and reading.unsettled():
            return Later(self._settle, op, reading)
        if self._must_wait(op, reading):
            return Later(self._wait, op, reading)
        return reading.reply()

    def close(self) -> None:
        """Let every waiting fetch answer with what there is."""
        self.closing = True
        for waiting in tuple(self._waiting):
            waiting.poke()

    def _must_wait(self, op: Fetch, reading: _Reading) -> bool:
        return (
            op.max_wait_ms > 0
            and reading.taken < min(op.min_bytes, reading.limit)
            and not reading.hurry
            and bool(reading.readable)
            and not self.closing
        )

    async def _settle(self, op: Fetch, reading: _Reading) -> FetchReply:
        """Read again once what was written before this request may be read."""
        for partition in reading.unsettled():
            await partition.settle()
        return await self._finish(op, _Reading(self, reading.envelope, op, reading.asked))

    async def _finish(self, op: Fetch, reading: _Reading) -> FetchReply:
        """Go on with a reading that came upon something not in memory."""
        await reading.go_on_cold()
        if self._must_wait(op, reading):
            return await self._wait(op, reading)
        return reading.reply()

    async def _wait(self, op: Fetch, reading: _Reading) -> FetchReply:
        waiting = _Waiting(reading, min(op.min_bytes, reading.limit))
        partitions = waiting.partitions
        self._waiting.add(waiting)
        for partition in partitions:
            partition.watchers.add(waiting)
        try:
            with trio.move_on_after(min(op.max_wait_ms / 1000, self.max_wait_s)):
                while not self.closing and not waiting.enough():
                    await waiting.poked()
        finally:
            self._waiting.discard(waiting)
            for partition in partitions:
                partition.watchers.discard(waiting)
        again = _Reading(self, reading.envelope, op, reading.asked, waited=True)
        if not again.go_on():
            await again.go_on_cold()
        return again.reply()


class _Reading:
    """One pass over the partitions of a request, in its order, within its limits."""

    def __init__(
        self, fetcher: Fetcher, envelope: Envelope, op: Fetch, asked: Asked, *, waited: bool = False
    ) -> None:
        self.envelope = envelope
        self.asked = asked
        self.limit = min(op.max_bytes, fetcher.max_bytes)
        self.taken = 0
        self.hurry = False  # something was found that the client should know at once
        self.unknown = False  # some partition was not even looked into
        self.readable: list[tuple[Partition, FetchPartition, int]] = []
        self.results: list[PartitionFetchReply] = []
        self._left = self.limit
        self._waited = waited
        self._fetcher = fetcher
        self._op = op

    def reply(self) -> FetchReply:
        return self.asked.reply(self.results, unknown_last=self.unknown)

    def go_on(self) -> bool:
        """Read what is left to read. False: the next partition would wait for the disk."""
        wanted = self.asked.wanted
        while len(self.results) < len(wanted):
            result = self._read(wanted[len(self.results)])
            if result is None:
                return False
            self._take(result)
        return True

    async def go_on_cold(self) -> None:
        """The same, waiting for the disk where need be."""
        while not self.go_on():
            partition, asked, ceiling = self.readable.pop()
            size, whole = self._room(asked)
            try:
                records = await partition.log.read_cold(asked.fetch_offset, ceiling, size, whole)
            except KafkaError as broken:
                self._take(self._error(asked, broken.code))
            else:
                self.readable.append((partition, asked, ceiling))
                self._take(self._found(partition, asked, records))

    def unsettled(self) -> list[Partition]:
        """Partitions with records that are written and may not be read yet."""
        return [partition for partition, _, _ in self.readable if not partition.settled]

    def _take(self, result: PartitionFetchReply) -> None:
        self.taken += len(result.records)
        self._left = max(self._left - len(result.records), 0)
        self.results.append(result)

    def _room(self, asked: FetchPartition) -> tuple[int, bool]:
        """How much of the next partition may be read, and whether its first batch comes in any case.

        The first batch of a reply is exempt from both limits, so that a reader never
        gets stuck before a batch that is larger than they are. A limit below 0 is a mistake
        of the client's; that of the request is told to the first partition alone.
        """
        size = min(asked.partition_max_bytes, self._left)
        if size < 0:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a limit of bytes is negative")
        return size, self.taken == 0

    def _read(self, wanted: Wanted) -> PartitionFetchReply | None:
        asked, op = wanted.asked, self._op
        topics = self._fetcher.topics
        try:
            if op.by_id:
                partition = topics.by_id(self.envelope.org_id, wanted.topic_id).partition(asked.partition)
            else:
                partition = topics.by_name(self.envelope.org_id, wanted.topic).partition(asked.partition)
        except KafkaError as unknown:
            return self._unknown(wanted, unknown.code)
        wanted.known_as = partition.name
        try:
            if op.replica_id >= 0:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if asked.current_leader_epoch >= 0:
                partition.check_epoch(asked.current_leader_epoch)
            if asked.last_fetched_epoch >= 0 and (diverging := _divergence(partition, asked)):
                self.hurry = True
                return self._found(partition, asked, diverging=diverging)
            return self._read_log(partition, asked)
        except KafkaError as refused:
            return self._error(asked, refused.code, partition)

    def _unknown(self, wanted: Wanted, code: ErrorCode) -> PartitionFetchReply:
        """Known before reading: nothing to hurry for. What was there under its id is missed by its name."""
        if wanted.known_as is not None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if self._op.by_id and self._fetcher.topics.find(self.envelope.org_id, wanted.known_as):
                return self._error(wanted.asked, ErrorCode.INCONSISTENT_TOPIC_ID)  # made again
            if self._waited:  # it went while the request waited
                return self._error(wanted.asked, code)
        self.unknown = True
        return PartitionFetchReply(
            partition_index=wanted.asked.partition, error_code=code, aborted_transactions=()
        )

    def _read_log(self, partition: Partition, asked: FetchPartition) -> PartitionFetchReply | None:
        log, op = partition.log, self._op
        offset = asked.fetch_offset
        if not log.start_offset <= offset <= log.end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if log.failed is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, log.failed)
        ceiling = log.end_offset if op.replica_id == DEBUGGER else partition.ceiling(op.isolation_level)
        self.readable.append((partition, asked, ceiling))
        records: bytes | None = b""
        if offset < ceiling:
            size, whole = self._room(asked)
            if size or whole:
                records = log.read(offset, ceiling, size, whole)
        if records is None:
            return None
        return self._found(partition, asked, records)

    def _found(
        self,
        partition: Partition,
        asked: FetchPartition,
        records: bytes = b"",
        diverging: EpochEnd | None = None,
    ) -> PartitionFetchReply:
        aborted = partition.aborted(asked.fetch_offset, records) if self._op.isolation_level else None
        return PartitionFetchReply(
            partition_index=asked.partition,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log.start_offset,
            diverging_epoch=diverging,
            aborted_transactions=aborted,
            records=records,
        )

    def _error(
        self, asked: FetchPartition, code: ErrorCode, partition: Partition | None = None
    ) -> PartitionFetchReply:
        self.hurry = True
        leader = None
        if partition is not None and self._op.leader_told and code in LOOK_ELSEWHERE:
            leader = LeaderEpoch(leader_id=self._fetcher.node_id, leader_epoch=partition.leader_epoch)
        return PartitionFetchReply(partition_index=asked.partition, error_code=code, current_leader=leader)


class _Waiting:
    """A fetch that sleeps until its partitions have enough."""

    def __init__(self, reading: _Reading, min_bytes: int) -> None:
        self.partitions: Sequence[Partition] = [partition for partition, _, _ in reading.readable]
        self._reading = reading
        self._min_bytes = min_bytes
        self._event = trio.Event()

    def poke(self) -> None:
        self._event.set()

    async def poked(self) -> None:
        await self._event.wait()
        self._event = trio.Event()

    def enough(self) -> bool:
        """Whether a new reading would now give enough, or an error."""
        isolation_level = self._reading._op.isolation_level
        total = 0
        for partition, asked, _ in self._reading.readable:
            log, offset = partition.log, asked.fetch_offset
            if log.failed is not None or not log.start_offset <= offset <= log.end_offset:
                return True
            ceiling = partition.ceiling(isolation_level)
            if offset < ceiling:
                closed = log.closed_segments()
                if closed and offset < closed[-1].next_offset <= ceiling:
                    return True  # more of this segment will not come, and a reading ends with it
                total += min(log.bytes_between(offset, ceiling), max(asked.partition_max_bytes, 0))
                if total >= self._min_bytes:
                    return True
        return False


def _divergence(partition: Partition, asked: FetchPartition) -> EpochEnd | None:
    """Where the client's log parts from ours, if it does. Rules F7, F8."""
    epoch, end = partition.epoch_end(asked.last_fetched_epoch)
    if epoch < 0 or asked.fetch_offset < partition.log.start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < asked.last_fetched_epoch or end < asked.fetch_offset:
        return EpochEnd(epoch=epoch, end_offset=end)
    return None
