"""Logs in memory: for tests, trials and brokers that may forget. Nothing outlives the process.

A segment keeps its batches as they came and three parallel lists about them, so that a
read is a bisection and a join. Rolling and retention follow the same rules as on disk.
What is appended counts as flushed at once: there is nothing safer to wait for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import trio

from ..env import Env
from ..errors import ErrorCode, KafkaError
from ..records.batch import BatchHeader, read_header
from ..types import Buffer
from . import epochs as leader_epochs
from .aborted import AbortedIndex, AbortedRange
from .backend import Blobs, DirRoom, LogName, LogSettings, Replacement, Segment, TimeFound
from .policy import expired, must_roll
from .times import first_at, latest_of

__all__ = ["MemoryBackend", "MemoryLog"]


class MemorySegment:
    """Batches, and for each of them: the offset after it, the bytes up to its end, its greatest time."""

    offset_entries = time_entries = 0  # there is no index to fill up

    def __init__(self, base_offset: int, created_ms: int, jitter_ms: int = 0) -> None:
        self.base_offset = self.next_offset = base_offset
        self.size = 0
        self.created_ms = self.written_ms = created_ms
        self.jitter_ms = jitter_ms
        self.first_timestamp = -1
        self.greatest = -1
        self.batches: list[bytes] = []
        self.nexts: list[int] = []
        self.ends: list[int] = []
        self.timestamps: list[int] = []
        self.aborted: Sequence[AbortedRange] = ()  # as a `Replacement`

    @property
    def largest_timestamp(self) -> int:
        return self.greatest if self.greatest >= 0 else self.written_ms

    def add(self, batch: bytes, next_offset: int, timestamp: int) -> None:
        if not self.batches:
            self.first_timestamp = timestamp
        self.batches.append(batch)
        self.nexts.append(next_offset)
        self.size += len(batch)
        self.ends.append(self.size)
        self.timestamps.append(timestamp)
        self.greatest = max(self.greatest, timestamp)
        self.next_offset = next_offset

    def write(self, batch: Buffer) -> None:
        """As a `Replacement`."""
        header = read_header(batch)
        self.add(bytes(batch), header.next_offset, header.max_timestamp)

    def read(self, at: int, size: int) -> bytes:
        """As a `Segment`."""
        first = bisect_right(self.ends, at)
        last = bisect_left(self.ends, at + size) + 1
        begin = self.ends[first - 1] if first else 0
        return b"".join(self.batches[first:last])[at - begin : at - begin + size]

    def before(self, upto: int) -> int:
        """The bytes of the batches that lie wholly below `upto`."""
        index = bisect_right(self.nexts, upto)
        return self.ends[index - 1] if index else 0


class MemoryLog:
    """One partition's log. Its methods are documented in `backend.Log`."""

    durable = False

    def __init__(self, name: LogName, settings: LogSettings, env: Env) -> None:
        self.name = name
        self.settings = settings
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.compacted_to = 0
        self.size = 0
        self.epochs: leader_epochs.Epochs = []
        self.failed: str | None = None
        self.on_flush: Callable[[], None] | None = None
        self.on_flushed: Callable[[], None] | None = None  # never called: flushing is part of appending
        self.state_source: Callable[[], bytes] | None = None
        self.saved_state: tuple[int, bytes] | None = None
        self.aborted = AbortedIndex()
        self._env = env
        self._segments = [MemorySegment(0, self._now_ms())]

    def append(self, pieces: Sequence[Buffer], header: BatchHeader) -> None:
        self._check()
        assert header.base_offset == self.end_offset, "the batch is not placed at the end of the log"
        batch = b"".join(pieces)
        now_ms = self._now_ms()
        last_offset, timestamp = header.last_offset, header.max_timestamp
        if must_roll(self._segments[-1], self.settings, len(batch), timestamp, last_offset, now_ms):
            self.roll()
        active = self._segments[-1]
        active.add(batch, last_offset + 1, timestamp)
        active.written_ms = now_ms
        leader_epochs.grow(self.epochs, header.leader_epoch, self.end_offset)
        self.size += len(batch)
        self.end_offset = self.flushed_offset = last_offset + 1

    def read(self, offset: int, upto: int, max_bytes: int, whole_first: bool = True) -> bytes:
        self._check()
        if max_bytes < 0 or offset >= upto:
            return b""
        for segment in self._segments[self._index_of(offset) :]:
            first = bisect_right(segment.nexts, offset)
            last = bisect_right(segment.nexts, upto)
            if first >= last:
                continue  # compaction took the end of this segment: what follows is in the next one
            begin = segment.ends[first - 1] if first else 0
            if segment.ends[first] - begin > max_bytes:
                return segment.batches[first] if whole_first else b""
            last = min(last, bisect_left(segment.ends, begin + max_bytes) + 1)
            data = b"".join(segment.batches[first:last])
            return data if len(data) <= max_bytes else data[:max_bytes]
        return b""

    async def read_cold(self, offset: int, upto: int, max_bytes: int, whole_first: bool = True) -> bytes:
        await trio.lowlevel.checkpoint()
        return self.read(offset, upto, max_bytes, whole_first)

    def bytes_between(self, offset: int, upto: int) -> int:
        if offset >= upto:
            return 0
        total = 0
        for segment in self._segments[self._index_of(offset) :]:
            if segment.base_offset >= upto:
                break
            first = bisect_right(segment.nexts, offset)
            total += segment.before(upto) - (segment.ends[first - 1] if first else 0)
        return max(total, 0)

    async def find_time(self, timestamp: int) -> TimeFound | None:
        self._check()
        await trio.lowlevel.checkpoint()
        for batch, greatest in self._timed_batches():
            if greatest >= timestamp and (found := first_at(batch, timestamp, self.start_offset)):
                return found
        return None

    async def latest_time(self) -> TimeFound | None:
        self._check()
        await trio.lowlevel.checkpoint()
        best: TimeFound | None = None
        for batch, greatest in self._timed_batches():
            if greatest > (best.timestamp if best else -1):
                found = latest_of(batch, self.start_offset)
                if found and (best is None or found.timestamp > best.timestamp):
                    best = found
        return best

    def epoch_of(self, offset: int) -> int:
        return leader_epochs.epoch_at(self.epochs, offset)

    def note_aborted(self, range_: AbortedRange) -> None:
        self.aborted.add(range_)

    def headers(self, since: int) -> Iterator[BatchHeader]:
        return (header for header, _ in self.history(since))

    def history(self, since: int) -> Iterator[tuple[BatchHeader, Buffer]]:
        self._check()
        for segment in self._segments[self._index_of(since) :]:
            for index in range(bisect_right(segment.nexts, since), len(segment.nexts)):
                batch = segment.batches[index]
                header = read_header(batch)
                yield header, batch if header.control else b""

    def advance_start(self, offset: int) -> None:
        assert offset <= self.end_offset, "the start cannot pass the end"
        if offset > self.start_offset:
            self.start_offset = offset
            leader_epochs.cut_head(self.epochs, offset)

    def flush_soon(self) -> None:
        """Nothing here is ever unflushed."""

    async def wait_flushed(self, offset: int) -> None:
        self._check()
        await trio.lowlevel.checkpoint()

    # As `Segmented`

    def closed_segments(self) -> list[MemorySegment]:
        return self._segments[:-1]

    def roll(self) -> None:
        if self._segments[-1].size:
            jitter = self._env.rng.uniform(0, min(self.settings.segment_jitter_ms, self.settings.segment_ms))
            self._segments.append(MemorySegment(self.end_offset, self._now_ms(), int(jitter)))

    def replacement(self, old: Sequence[Segment]) -> MemorySegment:
        return MemorySegment(old[0].base_offset, self._now_ms())

    async def replace_segments(self, old: Sequence[Segment], new: Replacement) -> bool:
        self._check()
        await trio.lowlevel.checkpoint()
        closed = self._segments[:-1]
        at = bisect_left([segment.base_offset for segment in closed], old[0].base_offset)
        if closed[at : at + len(old)] != list(old):
            return False
        assert isinstance(new, MemorySegment)
        new.next_offset = old[-1].next_offset
        new.written_ms = closed[at + len(old) - 1].written_ms
        self._segments[at : at + len(old)] = [new]
        self.size += new.size - sum(segment.size for segment in old)
        self.aborted.replace(new.base_offset, new.next_offset, new.aborted)
        return True

    def expire(self, now_ms: int, retention_ms: int, retention_bytes: int, upto: int) -> int:
        self._check()
        count = expired(
            self._segments,
            start_offset=self.start_offset,
            now_ms=now_ms,
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            upto=upto,
        )
        if count == len(self._segments):
            self.roll()
        self.size -= sum(segment.size for segment in self._segments[:count])
        del self._segments[:count]
        self.aborted.cut_head(self._segments[0].base_offset)
        self.advance_start(self._segments[0].base_offset)
        return count

    # Private

    def _check(self) -> None:
        if self.failed is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {self.failed}")

    def _now_ms(self) -> int:
        return int(self._env.now() * 1000)

    def _index_of(self, offset: int) -> int:
        """The segment that `offset` belongs to; the first one, if it lies before that."""
        return max(0, bisect_right(self._segments, offset, key=lambda segment: segment.base_offset) - 1)

    def _timed_batches(self) -> Iterator[tuple[bytes, int]]:
        """The batches from start_offset on, each with its greatest timestamp."""
        for segment in self._segments[self._index_of(self.start_offset) :]:
            first = bisect_right(segment.nexts, self.start_offset)
            yield from zip(segment.batches[first:], segment.timestamps[first:], strict=True)


class MemoryBlobs:
    """As `backend.Blobs`."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def names(self) -> list[str]:
        return sorted(self._blobs)

    def load(self, name: str) -> bytes | None:
        return self._blobs.get(name)

    async def save(self, name: str, blob: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self._blobs[name] = bytes(blob)

    async def remove(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        self._blobs.pop(name, None)


class MemoryBackend:
    """As `backend.LogBackend`."""

    durable = False

    def __init__(self, env: Env) -> None:
        self.blobs: Blobs = MemoryBlobs()
        self._env = env
        self._logs: dict[LogName, MemoryLog] = {}

    async def start(self) -> list[LogName]:
        await trio.lowlevel.checkpoint()
        return sorted(self._logs)

    def open(self, name: LogName, settings: LogSettings) -> MemoryLog:
        if (log := self._logs.get(name)) is None:
            log = self._logs[name] = MemoryLog(name, settings, self._env)
        log.settings = settings
        return log

    async def delete(self, name: LogName) -> None:
        if (log := self._logs.pop(name, None)) is not None:
            log.failed = "it was deleted"
        await trio.lowlevel.checkpoint()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        task_status.started()
        await trio.sleep_forever()
        raise AssertionError("unreachable")

    async def checkpoint(self) -> None:
        await trio.lowlevel.checkpoint()

    async def remove_deleted(self, now_ms: int) -> int:
        await trio.lowlevel.checkpoint()
        return 0

    async def close(self) -> None:
        await trio.lowlevel.checkpoint()

    def abandon(self) -> None:
        """There is nothing to let go of."""

    def room(self) -> DirRoom:
        return DirRoom(path="memory", total=-1, usable=-1)
