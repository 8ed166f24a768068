"""The half of a log that is written to: appending, rolling, and how far it is durable.

A log that was never written to has no files; the first append makes its folder and its
first segment. Appends go to the page cache and return; the flusher takes from here what
has to be synced (`take_work`), and says when that is done.
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence

import trio

from ...env import File
from ...errors import ErrorCode, KafkaError
from ...records.batch import BatchHeader
from ...types import Buffer
from .. import epochs as leader_epochs
from ..aborted import AbortedIndex, AbortedRange
from ..backend import LogName, LogSettings, StorageFailed
from ..policy import must_roll
from .flusher import Work
from .index import Index, Progress
from .leftovers import Leftovers
from .marks import SegmentMark, mark_of
from .segment import SegmentFile
from .shared import Shared

_log = logging.getLogger("rafka.storage")


class WrittenLog:
    """Public names are documented in `backend.Log`."""

    def __init__(self, name: LogName, settings: LogSettings, shared: Shared) -> None:
        self.name = name
        self._settings = settings
        self.folder = f"{shared.root}/{name}"
        self.durable = shared.config.durable
        self.start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.size = 0
        self.epochs: leader_epochs.Epochs = []
        self.failed: str | None = None
        self.on_flush: Callable[[], None] | None = None
        self.on_flushed: Callable[[], None] | None = None
        self.state_source: Callable[[], bytes] | None = None
        self.saved_state: tuple[int, bytes] | None = None
        self.saved_state_offset = -1  # of the newest state file, valid or not
        self.checkpointed_base = -1  # of the last segment that the checkpoint on disk knows
        self.aborted = AbortedIndex()
        self.leftovers = Leftovers(shared.env.disk, shared.files, shared.indexes)
        self._shared = shared
        self._compacted_to = 0
        self._epoch = -1
        self._segments: list[SegmentFile] = []
        self._bases: list[int] = []
        self._aborted_in: dict[SegmentFile, None] = {}  # segments of whose entries their files lack some
        self._unsynced: list[SegmentFile] = []
        self._flushed = trio.Event()  # a new one after every flush
        self._point: SegmentMark | None = None  # the end of what is flushed
        self._packed: bytes | None = None  # this log's part of the checkpoint, if nothing changed since
        self._since_checkpoint = 0
        self._told_trouble = False
        self._epochs_written: leader_epochs.Epochs = []

    @property
    def settings(self) -> LogSettings:
        return self._settings

    @settings.setter
    def settings(self, settings: LogSettings) -> None:
        self._settings = settings
        for segment in self._segments:
            segment.progress.interval = settings.index_interval_bytes

    # Appending

    def append(self, pieces: Sequence[Buffer], header: BatchHeader) -> None:
        if self.failed is not None:
            raise self._refused(self.failed)
        assert header.base_offset == self.end_offset, "the batch is not placed at the end of the log"
        shared = self._shared
        settings = self._settings
        size = sum(map(len, pieces))
        now_ms = int(shared.env.now() * 1000)
        shared.reserve.take(size, now_ms, essential=settings.essential)
        last_offset = header.base_offset + header.last_offset_delta
        timestamp = header.max_timestamp
        try:
            if not self._segments:
                self._begin()
            active = self._segments[-1]
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

    def note_aborted(self, range_: AbortedRange) -> None:
        if self.aborted.add(range_):
            self._aborted_in[self._segments[bisect_right(self._bases, range_.last_offset) - 1]] = None

    def roll(self) -> None:
        if self.failed is not None:
            raise self._refused(self.failed)
        if self._segments and self._segments[-1].size:
            try:
                self._roll()
            except OSError as error:
                raise self._trouble(error) from error

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
        settings = self._settings
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
        if self._settings.preallocate:
            file.truncate(active.size)
            if not active.dirty:
                self._dirtied(active)  # an unsynced cut lets the zeros come back after a loss of power
        self._add_segment(self.end_offset)
        active.seal()
        assert active.index is not None
        shared.indexes.keep(active, active.index)
        shared.flusher.want(self)  # closed segments do not stay unsynced, in page-cache mode either
        shared.want_checkpoint()

    def _ready(self, active: SegmentFile) -> File:
        """The active segment was not written to for long: open its file, load its index."""
        if active.index is None:
            active.index = active.load_index()
            active.offset_entries, active.time_entries = len(active.index.offsets), len(active.index.times)
        return self._shared.files.get(active)

    def _undone(self, active: SegmentFile, file: File, position: int, error: OSError) -> KafkaError:
        """Take back what a failed write may have left, so that no part of it is ever taken for a batch."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            self._shared.reserve.full(self._shared.now_ms())
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

    # Flushing

    def take_work(self) -> Work | None:
        """As `flusher.Flushable`."""
        if self.on_flush is not None and self.failed is None:
            self._append_last(self.on_flush)
        if not self._unsynced or self.failed is not None:
            return None
        work = Work(self._unsynced, mark_of(self._segments[-1]))
        self._unsynced = []
        for segment in work.segments:
            segment.dirty = False
        return work

    def _append_last(self, on_flush: Callable[[], None]) -> None:
        """What goes with this flush. If it cannot, nobody may go on: it counts already for who gave it."""
        try:
            on_flush()
        except KafkaError as error:
            raise StorageFailed(
                f"{self.name} could not be written: {error.message}; nothing more is acknowledged"
            ) from error

    def flush_soon(self) -> None:
        self._shared.flusher.note(self)

    def work_done(self, work: Work) -> None:
        """As `flusher.Flushable`."""
        if self.failed is not None:
            return
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
