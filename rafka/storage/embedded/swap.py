"""Closed segments replaced by what compaction has made of them, safely against any crash.

    <base>.log.cleaned        being written; a start removes it
    <base>.log.<end>.swap     complete: it stands for all segments from <base> up to <end>,
                              and a start finishes what is below
    <base>.log                once a checkpoint knows of it

The one moment that counts is the first of these renames becoming durable. Until a
checkpoint lists the new segment the file keeps the second name, so that a start can
tell "replaced" from "lost" whichever of the two checkpoints it finds. The old index
files are gone, durably, before the new log file gets the name that they would fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...env import Disk, File
from ...types import Buffer
from ..aborted import AbortedRange
from ..backend import Segment
from . import names
from .index import Index, Progress
from .scan import batch_at
from .segment import SegmentFile
from .shared import Shared

if TYPE_CHECKING:
    from .log import EmbeddedLog

_BUFFERED = 1 << 20


class Rewrite:
    """The segment that is to replace others, being written. As `backend.Replacement`."""

    def __init__(self, disk: Disk, folder: str, old: Sequence[Segment], interval: int) -> None:
        self.size = 0
        self.old = old
        self.aborted: Sequence[AbortedRange] = ()
        self.path = f"{folder}/{names.stem(old[0].base_offset)}{names.LOG}{names.CLEANED}"
        self.index = Index(old[0].base_offset)
        self.progress = Progress(interval)
        self.first_timestamp = -1
        self._disk = disk
        self._file: File | None = None
        self._buffered: list[bytes] = []
        self._written = 0

    def write(self, batch: Buffer) -> None:
        there = batch_at(batch, 0, self.size)
        assert there.size == len(batch), "one whole batch at a time"
        if self.size == 0:
            self.first_timestamp = there.max_timestamp
        self.progress.note(self.index, there)
        self._buffered.append(bytes(batch))
        self.size += there.size
        if self.size - self._written >= _BUFFERED:
            self.write_out()

    def write_out(self) -> File:
        """Write the rest; the file has yet to be synced. Blocks."""
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)
            self._file.truncate(0)
        self._file.write(self._buffered, self._written)
        self._buffered.clear()
        self._written = self.size
        return self._file


async def replace(log: EmbeddedLog, shared: Shared, old: Sequence[Segment], new: Rewrite) -> bool:
    """Make `new` durable, put it in the place of `old`, give the files their names."""
    disk, flusher = shared.env.disk, shared.flusher
    segments = [segment for segment in log.closed_segments() if segment in old]
    if segments != list(old):
        return False
    if log.checkpointed_base <= old[-1].base_offset:
        await shared.checkpoint()  # a start walks all above the checkpoint, and expects no gaps there
    file = await shared.in_thread(new.write_out)
    await flusher.sync_now([(new.path, file)], [])
    file.close()
    segment = _segment(disk, log.folder, new, segments[-1])
    disk.rename(new.path, segment.path)
    await flusher.sync_now([], [log.folder])
    if log.failed is not None or not log.put_in_place(segments, segment, new.aborted):
        if disk.exists(segment.path):  # not so if the whole log was deleted
            disk.remove(segment.path)
            flusher.note_folder(log.folder)
        return False
    shared.indexes.keep(segment, new.index)
    await flusher.sync_now([], [log.folder])
    log.leftovers.swapped(segment)
    await shared.checkpoint()
    return True


def _segment(disk: Disk, folder: str, new: Rewrite, last: SegmentFile) -> SegmentFile:
    """The new segment, under the name of a swap."""
    segment = SegmentFile(disk, folder, new.old[0].base_offset, last.created_ms)
    segment.next_offset = last.next_offset
    segment.path = f"{folder}/{names.swap(segment.base_offset, segment.next_offset)}"
    segment.named = False
    segment.written_ms = last.written_ms
    segment.closed = True
    segment.size = new.size
    segment.first_timestamp = new.first_timestamp
    segment.progress = new.progress
    new.index.add_time(new.progress.timestamp, new.progress.time_offset)
    segment.offset_entries, segment.time_entries = len(new.index.offsets), len(new.index.times)
    return segment
