"""One partition's log in segment files: appending, reading, and what the flusher takes.

The files of one log lie in one folder. A log that was never written to has neither; the
first append makes both. Everything here runs on the event loop and touches the disk
only where that cannot be waited for long: appends go to the page cache, reads ask what
is cached (`Hot`) and leave the rest to a thread (`Cold`).

    segments   [ closed | closed | ... | active ]
    offsets    start_offset ...... flushed_offset ... end_offset
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import attrs
import trio

from ...env import File
from ...errors import ErrorCode, KafkaError
from ...records.batch import OVERHEAD, BatchHeader, read_header
from ...types import Buffer
from .. import epochs as leader_epochs
from ..backend import LogName, LogSettings, Replacement, Segment, TimeFound
from ..policy import expired, must_roll
from . import search, swap
from .flusher import Work
from .index import Index, Progress
from .leftovers import Captured, Leftovers
from .look import LOADED, REBUILT, Warmed
from .marks import LogMark, SegmentMark, mark_of, packed
from .recovery import Recovered
from .scan import Damaged, batch_at
from .segment import Cold, Look, SegmentFile
from .shared import Shared

_log = logging.getLogger("rafka.storage")
_AHEAD = 64 << 10  # bytes read at a time by `headers`

_UNKNOWN = LogMark(start_offset=0, compacted_to=0, epochs=[], segments=[])

T = TypeVar("T")


@attrs.frozen
class CheckpointParts:
    """What a checkpoint takes from one log."""

    log: EmbeddedLog
    entry: bytes | None
    point_base: int
    indexes: list[tuple[str, int, bytes]]  # path, where, what
    epochs: bytes | None
    settle: Captured | None


class EmbeddedLog:
    """One partition's log. Its methods are documented in `backend.Log`."""

    def __init__(self, name: LogName, settings: LogSettings, shared: Shared) -> None:
        self.name = name
        self.settings = settings
        self.folder = f"{shared.root}/{name}"
        self.durable = shared.config.durable
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.size = 0
        self.epochs: leader_epochs.Epochs = []
        self.failed: str | None = None
        self.on_flushed: Callable[[], None] | None = None
        self.state_source: Callable[[], bytes] | None = None
        self.saved_state: tuple[int, bytes] | None = None
        self.saved_state_offset = -1  # of the newest state file, valid or not
        self.checkpointed_base = -1  # of the last segment that the checkpoint on disk knows
        self.leftovers = Leftovers(shared.env.disk, shared.files, shared.indexes)
        self._shared = shared
        self._compacted_to = 0
        self._epoch = -1
        self._segments: list[SegmentFile] = []
        self._bases: list[int] = []
        self._unsynced: list[SegmentFile] = []
        self._flushed = trio.Event()  # a new one after every flush
        self._point: SegmentMark | None = None  # the end of what is flushed
        self._packed: bytes | None = None  # this log's part of the checkpoint, if nothing changed since
        self._since_checkpoint = 0
        self._told_trouble = False
        self._epochs_written: leader_epochs.Epochs = []

    def restore(self, found: Recovered, kept: LogMark | None) -> None:
        """Take over what recovery found; all of it is durable. The last segment is the active one.

        A refused log keeps what the last checkpoint said of it, for the next start to judge by.
        """
        if found.refused is not None:
            self.fail(found.refused)
            self._packed = packed(self.name, kept or _UNKNOWN)
            return
        segments = self._segments = found.segments
        self._bases = [segment.base_offset for segment in segments]
        self.size = sum(segment.size for segment in segments)
        self.end_offset = self.flushed_offset = segments[-1].next_offset
        self.start_offset = found.start_offset
        self._compacted_to = found.compacted_to
        self.saved_state = found.saved_state
        self.saved_state_offset = found.saved_state[0] if found.saved_state else -1
        self.epochs = found.epochs
        self._epoch = self.epochs[-1][0] if self.epochs else -1
        leader_epochs.cut_head(self.epochs, self.start_offset)
        if not found.walked and not found.cut:
            self._epochs_written = list(self.epochs)
        self._point = mark_of(segments[-1])
        for segment in segments[:-1]:
            if segment.index is not None:
                self._shared.indexes.keep(segment, segment.index)
        for segment in found.swapped:
            self.leftovers.swapped(segment)

    def bump_epoch(self) -> None:
        """Begin a new leader epoch at the end: clients that read further once can tell (KIP-320)."""
        self._epoch += 1
        leader_epochs.grow(self.epochs, self._epoch, self.end_offset)
        self._packed = None

    # Appending

    def append(self, pieces: Sequence[Buffer], header: BatchHeader) -> None:
        if self.failed is not None:
            raise self._refused(self.failed)
        assert header.base_offset == self.end_offset, "the batch is not placed at the end of the log"
        shared = self._shared
        settings = self.settings
        size = sum(map(len, pieces))
        shared.reserve.take(size, essential=settings.essential)
        last_offset = header.base_offset + header.last_offset_delta
        timestamp = header.max_timestamp
        try:
            if not self._segments:
                self._begin()
            active = self._segments[-1]
            now_ms = shared.now_ms()
            if must_roll(active, settings, size, timestamp, last_offset, now_ms):
                self._roll()
                active = self._segments[-1]
            if (file := active.file) is None or active.index is None:
                file = self._ready(active)
            position = active.size
        except OSError as error:
            raise self._trouble(error) from error
        try:
            file.write(pieces, position)
        except OSError as error:
            raise self._undone(active, file, position, error) from error
        active.note(position, size, last_offset + 1, timestamp)
        active.written_ms = now_ms
        if header.leader_epoch > self._epoch:
            self._epoch = header.leader_epoch
            leader_epochs.grow(self.epochs, header.leader_epoch, header.base_offset)
        self.size += size
        self.end_offset = last_offset + 1
        if not active.dirty:
            self._dirtied(active)
        self._since_checkpoint += size
        if self._since_checkpoint > shared.config.checkpoint_bytes:
            self._since_checkpoint = 0
            shared.want_checkpoint()
        if not self.durable and self.end_offset - self.flushed_offset >= settings.flush_messages:
            shared.flusher.want(self)

    def _begin(self) -> None:
        """The first append: make the folder and the first segment."""
        disk = self._shared.env.disk
        above = self.folder
        while above != self._shared.root and not disk.exists(above):
            above = above.rpartition("/")[0]
            self._shared.flusher.note_folder(above)  # a name is made in it
        disk.make_dir(self.folder)
        self._add_segment(self.end_offset)

    def _add_segment(self, base_offset: int) -> None:
        shared = self._shared
        settings = self.settings
        jitter = int(shared.env.rng.uniform(0, min(settings.segment_jitter_ms, settings.segment_ms)))
        segment = SegmentFile(shared.env.disk, self.folder, base_offset, shared.now_ms(), jitter)
        segment.index = Index(base_offset)
        segment.progress = Progress(settings.index_interval_bytes)
        try:
            file = shared.files.get(segment, create=True)
            if file.size():
                file.truncate(0)  # the leftover of an attempt that failed
            if settings.preallocate:
                file.allocate(settings.segment_bytes)
        except OSError:
            shared.files.close(segment)
            raise
        self._segments.append(segment)
        self._bases.append(base_offset)
        shared.flusher.note_folder(self.folder)
        self._dirtied(segment)

    def _roll(self) -> None:
        """Close the active segment and begin another. Raises OSError, and then nothing has changed."""
        shared = self._shared
        active = self._segments[-1]
        file = self._ready(active)
        if self.settings.preallocate:
            file.truncate(active.size)
        self._add_segment(self.end_offset)
        active.seal()
        assert active.index is not None
        shared.indexes.keep(active, active.index)
        shared.flusher.want(self)  # closed segments do not stay unsynced, in page-cache mode either
        shared.want_checkpoint()

    def _ready(self, active: SegmentFile) -> File:
        """The active segment was not written to for long: open its file, load its index."""
        active.progress.interval = self.settings.index_interval_bytes
        if active.index is None:
            active.index = active.load_index()
            active.offset_entries, active.time_entries = len(active.index.offsets), len(active.index.times)
        return self._shared.files.get(active)

    def _undone(self, active: SegmentFile, file: File, position: int, error: OSError) -> KafkaError:
        """Take back what a failed write may have left, so that no part of it is ever taken for a batch."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self._shared.reserve.full()
        try:
            file.truncate(position)
        except OSError as again:
            self.fail(f"{active.path} can neither be written to nor cut back: {again}")
        return self._trouble(error)

    def _dirtied(self, segment: SegmentFile) -> None:
        segment.dirty = True
        self._unsynced.append(segment)
        self._packed = None
        self._shared.flusher.note(self)

    def trim(self) -> None:
        """Give back the room that was taken in advance: the backend is closing."""
        if self.settings.preallocate and self._segments and self.failed is None:
            active = self._segments[-1]
            file = self._shared.files.get(active)
            if file.size() > active.size:
                file.truncate(active.size)
                self._dirtied(active)

    # Flushing and checkpoints

    def take_work(self) -> Work | None:
        """As `flusher.Flushable`."""
        if not self._unsynced or self.failed is not None:
            return None
        work = Work(self._unsynced, mark_of(self._segments[-1]))
        self._unsynced = []
        for segment in work.segments:
            segment.dirty = False
        return work

    def work_done(self, work: Work) -> None:
        """As `flusher.Flushable`."""
        self._point = work.point
        self._packed = None
        if work.point.next_offset > self.flushed_offset:
            self.flushed_offset = work.point.next_offset
            flushed, self._flushed = self._flushed, trio.Event()
            flushed.set()
            if self.on_flushed is not None:
                self.on_flushed()

    async def wait_flushed(self, offset: int) -> None:
        assert offset <= self.end_offset, "nothing to wait for"
        await trio.lowlevel.checkpoint()
        while self.flushed_offset < offset:
            if self.failed is not None:
                raise self._refused(self.failed)
            flushed = self._flushed
            if not self.durable:
                self._shared.flusher.want(self)
            await flushed.wait()

    def fail(self, why: str, *, tell: bool = True) -> None:
        """Refuse everything from now on, and wake those who wait."""
        if self.failed is None:
            self.failed = why
            self._flushed.set()
            if tell:
                _log.error("%s is refused from now on: %s", self.name, why)

    def gone(self) -> None:
        """It was deleted: whoever holds it is refused, and nothing of it is synced any more."""
        self.failed = "it was deleted"
        self._flushed.set()
        self._shared.flusher.forget(self)
        for segment in self._segments:
            segment.dirty = False
            self._shared.indexes.forget(segment)
            self._shared.files.close(segment)

    def _checkpoint_entry(self, point: SegmentMark) -> bytes:
        """This log's part of the checkpoint."""
        if self._packed is None:
            closed = [
                mark_of(segment) for segment in self._segments if segment.base_offset < point.base_offset
            ]
            mark = LogMark(
                start_offset=min(self.start_offset, point.next_offset),
                compacted_to=self._compacted_to,
                epochs=[entry for entry in self.epochs if entry[1] <= point.next_offset],
                segments=[*closed, point],
            )
            self._packed = packed(self.name, mark)
        return self._packed

    def checkpoint_parts(self) -> CheckpointParts:
        """All that a checkpoint taken now has to write of this log, and what to do once it is durable."""
        self._since_checkpoint = 0
        point = self._point
        if self.failed is not None or point is None:
            return CheckpointParts(self, self._packed, -1, [], None, None)
        indexes = self._indexes_to_write()  # first: the entry has the proof of them
        holder = next((s for s in self._segments if s.base_offset == point.base_offset), None)
        if holder is not None:
            point = point._replace(proof=holder.proof)
        return CheckpointParts(
            self,
            self._checkpoint_entry(point),
            point.base_offset,
            indexes,
            self._epochs_to_write(),
            # A segment that expired while it was being flushed is what this checkpoint ends with.
            self.leftovers.captured() if holder is not None else None,
        )

    def settle(self, parts: CheckpointParts) -> None:
        """The checkpoint is durable."""
        self.checkpointed_base = parts.point_base
        if parts.settle is not None and self.failed is None:
            try:
                self.leftovers.settle(parts.settle, self._segments)
                self._shared.flusher.note_folder(self.folder)
            except OSError as error:
                self._trouble(error)

    def unsettled(self, parts: CheckpointParts) -> None:
        """The checkpoint could not be written: what it would have settled waits for the next one."""
        self._epochs_written = []
        for segment in self._segments:
            if segment.index is not None and any(
                path.startswith(segment.stem) for path, _, _ in parts.indexes
            ):
                segment.index.stale = True
        if parts.settle is not None:
            self.leftovers.returned(parts.settle)

    @property
    def changed(self) -> bool:
        """Whether a checkpoint would say something new of this log."""
        return self._since_checkpoint > 0 or self.leftovers.waiting

    def state_to_save(self) -> tuple[int, bytes] | None:
        """The broker's state of this partition, if it may have changed since it was last saved."""
        if self.state_source is None or self.failed is not None or self.end_offset == self.saved_state_offset:
            return None
        if not self._segments:
            return None
        return self.end_offset, self.state_source()

    def _epochs_to_write(self) -> bytes | None:
        """The file of leader epochs, for Kafka's tools: the truth is in the checkpoint."""
        if not self._segments or self.epochs == self._epochs_written:
            return None
        self._epochs_written = list(self.epochs)
        return leader_epochs.to_text(self.epochs)

    def _indexes_to_write(self) -> list[tuple[str, int, bytes]]:
        """(path, where, what) of the index entries that the files lack; from now on they count as written."""
        writes: list[tuple[str, int, bytes]] = []
        for segment in self._segments:
            if segment.index is not None and segment.index.has_unwritten and segment.named:
                writes += segment.index_writes()
                self._packed = None
        return writes

    # Reading

    def read(self, offset: int, upto: int, max_bytes: int, whole_first: bool = True) -> bytes | None:
        if self.failed is not None:
            raise self._refused(self.failed)
        try:
            return self._read(offset, upto, max_bytes, whole_first, self._shared.hot)
        except Cold:
            return None
        except (Damaged, OSError) as error:
            raise self._trouble(error) from error

    async def read_cold(self, offset: int, upto: int, max_bytes: int, whole_first: bool = True) -> bytes:
        return await self._warming(lambda look: self._read(offset, upto, max_bytes, whole_first, look))

    def _read(self, offset: int, upto: int, max_bytes: int, whole_first: bool, look: Look) -> bytes:
        if max_bytes < 0 or offset >= upto:
            return b""
        segments = self._segments
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            index = 0
        for segment in segments[index:]:
            if segment.base_offset >= upto:
                break
            begin = segment.position_of(offset, look)
            end = segment.size if upto >= segment.next_offset else segment.position_of(upto, look)
            if begin >= end:
                continue  # compaction took the end of this segment: what follows is in the next one
            there = end - begin
            wanted = there if there <= max_bytes else max(max_bytes, min(OVERHEAD, there))
            data = look.bytes(segment, wanted, begin)
            if len(data) < wanted:
                raise Damaged(begin + len(data), f"{segment.path} ends here, at {segment.size} it should")
            first = batch_at(data, 0, begin).size
            if first > there:
                raise Damaged(begin, f"a batch of {segment.path} is longer than what is there of it")
            if first > max_bytes:
                return look.bytes(segment, first, begin) if whole_first else b""
            if wanted < there:
                segment.remember_end(data, begin)
            return data
        return b""

    def bytes_between(self, offset: int, upto: int) -> int:
        if offset >= upto or not self._segments:
            return 0
        total = 0
        for segment in self._segments[max(0, bisect_right(self._bases, offset) - 1) :]:
            if segment.base_offset >= upto:
                break
            total += segment.least_bytes(offset, upto)
        return max(total, 1)

    async def find_time(self, timestamp: int) -> TimeFound | None:
        since = self.start_offset
        while True:
            found = await self._warming(partial(search.time_candidate, self._segments, timestamp, since))
            if found is None:
                return None
            data, since = found
            record = await self._shared.in_thread(search.first_at, data, timestamp, self.start_offset)
            if record is not None:
                return record

    async def latest_time(self) -> TimeFound | None:
        start = self.start_offset
        data = await self._warming(lambda look: search.latest_candidate(self._segments, start, look))
        return None if data is None else await self._shared.in_thread(search.latest_of, data, start)

    def epoch_of(self, offset: int) -> int:
        return leader_epochs.epoch_at(self.epochs, offset)

    def headers(self, since: int) -> Iterator[BatchHeader]:
        look = self._shared.blocking
        try:
            for segment in list(self._segments[max(0, bisect_right(self._bases, since) - 1) :]):
                at = segment.position_of(since, look)
                data, begin = b"", at
                while at < segment.size:
                    if at + OVERHEAD > begin + len(data):
                        data, begin = look.bytes(segment, min(_AHEAD, segment.size - at), at), at
                    size = batch_at(data, at - begin, at).size
                    yield read_header(data, at - begin)
                    at += size
        except (Damaged, OSError) as error:
            raise self._trouble(error) from error

    async def _warming(self, attempt: Callable[[Look], T]) -> T:
        """Try, and fetch in a thread what is not in memory, until nothing more is missing."""
        await trio.lowlevel.checkpoint()
        look = Warmed(self._shared.hot)
        while True:
            if self.failed is not None:
                raise self._refused(self.failed)
            try:
                return attempt(look)
            except Cold as missing:
                cold = missing
            except (Damaged, OSError) as error:
                raise self._trouble(error) from error
            segment = cold.segment
            segment.pins += 1
            try:
                result = await self._shared.in_thread(cold.job)
            except (Damaged, OSError) as error:
                raise self._trouble(error) from error
            finally:
                segment.pins -= 1
            look.learn(cold, result)
            if isinstance(result, Index) and cold.key in (LOADED, REBUILT):
                self._loaded(segment, result)

    def _loaded(self, segment: SegmentFile, index: Index) -> None:
        if segment.closed:
            self._shared.indexes.keep(segment, index)
        elif segment.index is None:  # else an append was faster, and its index has grown since
            segment.index = index

    # Retention and compaction

    @property
    def compacted_to(self) -> int:
        return self._compacted_to

    @compacted_to.setter
    def compacted_to(self, offset: int) -> None:
        self._compacted_to = offset
        self._packed = None

    def advance_start(self, offset: int) -> None:
        assert offset <= self.end_offset, "the start cannot pass the end"
        if offset > self.start_offset:
            self.start_offset = offset
            leader_epochs.cut_head(self.epochs, offset)
            self._packed = None

    def closed_segments(self) -> list[SegmentFile]:
        return self._segments[:-1]

    def roll(self) -> None:
        if self.failed is not None:
            raise self._refused(self.failed)
        if self._segments and self._segments[-1].size:
            try:
                self._roll()
            except OSError as error:
                raise self._trouble(error) from error

    def expire(self, now_ms: int, retention_ms: int, retention_bytes: int, upto: int) -> int:
        if self.failed is not None:
            raise self._refused(self.failed)
        if not self._segments:
            return 0
        count = expired(
            self._segments,
            start_offset=self.start_offset,
            now_ms=now_ms,
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            upto=upto,
        )
        if count == 0:
            return 0
        if count == len(self._segments):
            self.roll()
        gone = self._segments[:count]
        for segment in gone:
            self.leftovers.expire(segment, now_ms + self.settings.file_delete_delay_ms)
        del self._segments[:count], self._bases[:count]
        self.size -= sum(segment.size for segment in gone)
        self.advance_start(self._segments[0].base_offset)
        self._packed = None
        self._shared.want_checkpoint()
        return count

    def replacement(self, old: Sequence[Segment]) -> swap.Rewrite:
        return swap.Rewrite(self._shared.env.disk, self.folder, old, self.settings.index_interval_bytes)

    async def replace_segments(self, old: Sequence[Segment], new: Replacement) -> bool:
        if self.failed is not None:
            raise self._refused(self.failed)
        assert isinstance(new, swap.Rewrite)
        try:
            return await swap.replace(self, self._shared, old, new)
        except OSError as error:
            raise self._trouble(error) from error

    def put_in_place(self, old: Sequence[Segment], new: SegmentFile) -> bool:
        """The moment of a swap, for `swap.replace`. False if one of the old ones is gone."""
        at = bisect_right(self._bases, old[0].base_offset) - 1
        found = self._segments[at : at + len(old)]
        if at < 0 or found != list(old) or at + len(old) >= len(self._segments):
            return False
        self._segments[at : at + len(old)] = [new]
        self._bases[at : at + len(old)] = [new.base_offset]
        self.size += new.size - sum(segment.size for segment in found)
        self._packed = None
        for segment in found:
            not_before_ms = self._shared.now_ms() + self.settings.file_delete_delay_ms
            self.leftovers.set_aside(segment, not_before_ms)
        return True

    # Trouble

    def _refused(self, why: str) -> KafkaError:
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {why}")

    def _trouble(self, error: Exception) -> KafkaError:
        """The disk or what is on it is not well. Told once; the log goes on as well as it can."""
        if self.failed is not None:
            return self._refused(self.failed)
        if not self._told_trouble:
            self._told_trouble = True
            _log.error("%s: %s", self.name, error)
        return self._refused(str(error))
