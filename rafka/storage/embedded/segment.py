"""One segment: a file of batches, its indexes, and where in it an offset lies.

A segment knows positions, never policy: when to roll, to sync or to remove is for its
log. What it needs from the disk it asks of a `Look`, which either answers at once or
raises `Cold`; so the same code serves a reader on the event loop and one who can wait.

An offset is looked for in the *lately appended* batches, then among the *remembered*
positions where an earlier read or lookup ended, and only then in the sparse index and
from there on header by header.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from ...env import Disk, File
from ...records.batch import OVERHEAD
from . import names
from .index import NO_ABORTED, NOTHING, DamagedIndex, Index, Progress, load
from .scan import Damaged, batch_at, headers

_LATELY: Final = 1024  # batches whose exact place an active segment keeps, at least
_REMEMBERED: Final = 256  # positions kept per segment
_STEP: Final = 4096  # bytes read at a time while walking from an index entry to an offset

T = TypeVar("T")


class Cold(Exception):
    """The disk has to be waited for: run `job` in a thread, then try again with its result under `key`."""

    def __init__(self, segment: SegmentFile, key: tuple[int, ...], job: Callable[[], object]) -> None:
        super().__init__()
        self.segment = segment
        self.key = key
        self.job = job


class Look(Protocol):
    """How a reader gets at bytes and indexes."""

    def bytes(self, segment: SegmentFile, size: int, at: int) -> bytes:
        """Up to `size` bytes from `at`."""

    def index(self, segment: SegmentFile, *, rebuild: bool = False) -> Index:
        """The index; `rebuild` if the one there is has been caught lying."""


class SegmentFile:
    """A segment as it is on disk. `path` is that of its log file."""

    __slots__ = (
        "_disk",
        "_lately_next",
        "_lately_position",
        "_remembered",
        "aborted_proof",
        "base_offset",
        "closed",
        "created_ms",
        "delete_at_ms",
        "dirty",
        "file",
        "first_timestamp",
        "folder",
        "index",
        "jitter_ms",
        "named",
        "next_offset",
        "offset_entries",
        "path",
        "pins",
        "progress",
        "proof",
        "size",
        "time_entries",
        "used",
        "written_ms",
    )

    def __init__(
        self, disk: Disk, folder: str, base_offset: int, created_ms: int, jitter_ms: int = 0
    ) -> None:
        self._disk = disk
        self.folder = folder
        self.base_offset = self.next_offset = base_offset
        self.path = f"{folder}/{names.stem(base_offset)}{names.LOG}"
        self.size = 0
        self.created_ms = self.written_ms = created_ms
        self.jitter_ms = jitter_ms
        self.first_timestamp = -1
        self.progress = Progress(0)
        self.index: Index | None = None  # loaded, if it is
        self.proof = NOTHING  # of the index files
        self.aborted_proof = NO_ABORTED
        self.offset_entries = self.time_entries = 0
        self.file: File | None = None  # open, if it is
        self.named = True  # not so while it is still under the name of a swap
        self.closed = False
        self.delete_at_ms = 0
        self.dirty = False  # has bytes that are not synced
        self.pins = 0  # threads at work on the file: it must not be closed
        self.used = False  # lately; for the caches
        self._lately_next: list[int] = []
        self._lately_position: list[int] = []
        self._remembered: dict[int, int] = {}

    # As `backend.Segment`

    @property
    def largest_timestamp(self) -> int:
        if self.progress.timestamp >= 0:
            return self.progress.timestamp
        return self.written_ms

    def read(self, at: int, size: int) -> bytes:
        """With a handle of its own, so that it works in any thread."""
        while True:
            path = self.path
            try:
                file = self._disk.open(path)
            except FileNotFoundError:
                if path == self.path:  # otherwise it was renamed just now
                    raise
                continue
            try:
                return file.read(min(size, max(0, self.size - at)), at)
            finally:
                file.close()

    # Growing

    def note(self, position: int, size: int, next_offset: int, timestamp: int) -> None:
        """Take in the batch that was written at `position`. On the path of every append."""
        progress = self.progress
        if position == 0:
            self.first_timestamp = timestamp
        if timestamp > progress.timestamp:
            progress.timestamp = timestamp
            progress.time_offset = next_offset - 1
        if progress.since_entry > progress.interval:
            index = self.index
            assert index is not None, "an active segment has its index loaded"
            index.add(next_offset - 1, position)
            index.add_time(progress.timestamp, progress.time_offset)
            self.offset_entries = len(index.offsets)
            self.time_entries = len(index.times)
            progress.since_entry = 0
        progress.since_entry += size
        lately = self._lately_next
        lately.append(next_offset)
        self._lately_position.append(position)
        if len(lately) > 2 * _LATELY:
            del lately[:_LATELY], self._lately_position[:_LATELY]
        self.size = position + size
        self.next_offset = next_offset

    def seal(self) -> None:
        """Nothing more is appended: let the time index end with the greatest time, as Kafka does."""
        self.closed = True
        if self.index is not None and self.progress.timestamp >= 0:
            self.index.add_time(self.progress.timestamp, self.progress.time_offset)
            self.time_entries = len(self.index.times)

    # Finding

    def position_of(self, offset: int, look: Look) -> int:
        """Where the batch that holds `offset` begins, or else the next one; the size, if there is none."""
        if offset <= self.base_offset:
            return 0
        if offset >= self.next_offset:
            return self.size
        lately = self._lately_next
        if lately and offset >= lately[0]:
            return self._lately_position[bisect_right(lately, offset)]
        position = self._remembered.get(offset)
        if position is None:
            position = self._walk_to(offset, look)
            self.remember(offset, position)
        return position

    def remember(self, offset: int, position: int) -> None:
        """A reader will most likely go on at `offset`, which lies at `position`."""
        remembered = self._remembered
        remembered[offset] = position
        if len(remembered) > _REMEMBERED:
            del remembered[next(iter(remembered))]

    def forget_positions(self) -> None:
        """Free the memory that a closed segment takes, but for its own few numbers."""
        self.index = None
        self._lately_next.clear()
        self._lately_position.clear()
        self._remembered.clear()

    def _walk_to(self, offset: int, look: Look, rebuilt: bool = False) -> int:
        index = look.index(self)
        at, named = index.entry_before(offset)
        try:
            for batch in headers(lambda size, at: look.bytes(self, size, at), at, self.size, _STEP):
                if batch.position == at and named not in (None, batch.next_offset - 1):
                    raise Damaged(at, "the index points to another batch")
                if batch.next_offset > offset:
                    return batch.position
        except Damaged:
            if at == 0 or rebuilt or not self.closed:
                raise
            look.index(self, rebuild=True)
            return self._walk_to(offset, look, rebuilt=True)
        return self.size

    def least_bytes(self, offset: int, upto: int) -> int:
        """The bytes from one offset to the other, or somewhat less. Never asks the disk."""
        return max(0, self._about(upto, under=True) - self._about(offset, under=False))

    def _about(self, offset: int, *, under: bool) -> int:
        lately = self._lately_next
        if offset <= self.base_offset or offset >= self.next_offset or (lately and offset >= lately[0]):
            return self.position_of(offset, _NO_LOOK)
        if (position := self._remembered.get(offset)) is not None:
            return position
        if self.index is None:
            share = (offset - self.base_offset) / (self.next_offset - self.base_offset)
            return int(self.size * share)
        return self.index.entry_before(offset)[0] if under else self.index.position_after(offset, self.size)

    def remember_end(self, data: bytes, at: int) -> None:
        """Remember where a reader will go on who was given `data`, cut off in the middle of a batch."""
        if self.index is None:
            return
        end = at + len(data)
        position = max(at, self.index.before_position(end))
        offset = None
        try:
            while position + OVERHEAD <= end:
                batch = batch_at(data, position - at, position)
                offset = batch.base_offset
                if position + batch.size > end:
                    break
                position += batch.size
                offset = batch.next_offset
        except Damaged:
            return  # the client will tell by the checksum
        if offset is not None:
            self.remember(offset, position)

    # Indexes and files

    @property
    def stem(self) -> str:
        return f"{self.folder}/{names.stem(self.base_offset)}"

    def index_path(self, suffix: str) -> str:
        return self.stem + suffix

    def index_writes(self) -> list[tuple[str, int, bytes]]:
        """(path, where, what) of the entries that the files lack; from now on they count as written."""
        assert self.index is not None
        at, offsets, time_at, times = self.index.unwritten()
        self.proof = self.index.written
        return [
            (self.index_path(names.INDEX), at, offsets),
            (self.index_path(names.TIME_INDEX), time_at, times),
        ]

    def load_index(self) -> Index:
        """From its files; where they are missing or damaged, from the batches. May block.

        Asked for in a thread: so nothing here is changed, but what is returned.
        """
        try:
            return self.index_from_files()
        except (DamagedIndex, FileNotFoundError):
            return self.rebuild_index()

    def index_from_files(self) -> Index:
        """DamagedIndex or FileNotFoundError where they do not have what was written."""
        offsets = read_whole(self._disk, self.index_path(names.INDEX))
        times = read_whole(self._disk, self.index_path(names.TIME_INDEX))
        return load(self.base_offset, offsets, times, self.proof)

    def rebuild_index(self) -> Index:
        """By walking the headers of all batches."""
        index = Index(self.base_offset)
        progress = Progress(self.progress.interval)
        for batch in headers(lambda size, at: self.read(at, size), 0, self.size):
            progress.note(index, batch)
        if self.closed:
            index.add_time(progress.timestamp, progress.time_offset)
        index.stale = True
        return index

    def __repr__(self) -> str:
        return f"<SegmentFile {self.path} {self.next_offset} {self.size}>"


class _NoLook:
    def bytes(self, segment: SegmentFile, size: int, at: int) -> bytes:
        raise AssertionError("this lookup does without the disk")

    def index(self, segment: SegmentFile, *, rebuild: bool = False) -> Index:
        raise AssertionError("this lookup does without the disk")


_NO_LOOK = _NoLook()


def read_whole(disk: Disk, path: str) -> bytes:
    file = disk.open(path)
    try:
        return file.read(file.size(), 0)
    finally:
        file.close()
