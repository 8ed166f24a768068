"""Files on their way out, or on their way to their final name: what a log still has to tidy.

Both wait for a checkpoint. An expired segment keeps its name until a checkpoint does
without it: the names of several files do not change at one moment, and a start that
found a hole among segments it was promised would have to call it a loss. A segment
that replaced others keeps the name of a swap until a checkpoint lists it (see `swap`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ...env import Disk
from . import names
from .look import LoadedIndexes, OpenFiles
from .segment import SegmentFile


@attrs.frozen
class Captured:
    expired: list[SegmentFile]
    swapped: list[SegmentFile]


class Leftovers:
    """Of one log. All of it happens on the event loop; removing is for a thread."""

    def __init__(self, disk: Disk, files: OpenFiles, indexes: LoadedIndexes) -> None:
        self._disk = disk
        self._files = files
        self._indexes = indexes
        self._expired: list[SegmentFile] = []
        self._swapped: list[SegmentFile] = []
        self._removable: list[tuple[int, str]] = []  # (not before, path)

    def expire(self, segment: SegmentFile, not_before_ms: int) -> None:
        """It has left the log."""
        segment.delete_at_ms = not_before_ms
        self._indexes.forget(segment)
        self._expired.append(segment)

    def swapped(self, segment: SegmentFile) -> None:
        """It is in the log under the name of a swap, and what it replaced is durably gone."""
        self._swapped.append(segment)

    @property
    def waiting(self) -> bool:
        return bool(self._expired or self._swapped)

    def captured(self) -> Captured | None:
        """What waits for the checkpoint that is taken now; it is the caller's until settled or returned."""
        if not self.waiting:
            return None
        captured = Captured(self._expired, self._swapped)
        self._expired, self._swapped = [], []
        return captured

    def returned(self, captured: Captured) -> None:
        """The checkpoint was not written: wait for another one."""
        self._expired[:0] = captured.expired
        self._swapped[:0] = captured.swapped

    def settle(self, captured: Captured, segments: Sequence[SegmentFile]) -> None:
        """The checkpoint is durable: change the names. `segments` are the log's. May raise OSError."""
        for segment in captured.swapped:
            if segment in segments:  # and not expired meanwhile
                final = segment.index_path(names.LOG)
                self._disk.rename(segment.path, final)
                segment.path = final
                segment.named = True
        for segment in captured.expired:
            self.set_aside(segment, segment.delete_at_ms)

    def set_aside(self, segment: SegmentFile, not_before_ms: int) -> None:
        """Name it `.deleted` and forget its index. Readers who hold it read on."""
        self._files.close(segment)
        deleted = segment.path + names.DELETED
        self._disk.rename(segment.path, deleted)
        segment.path = deleted
        self._indexes.forget(segment)
        if segment.named:
            for suffix in (names.INDEX, names.TIME_INDEX):
                if self._disk.exists(path := segment.index_path(suffix)):
                    self._disk.remove(path)
        if self._disk.exists(path := segment.index_path(names.TXN_INDEX)):
            self._disk.remove(path)
        self._removable.append((not_before_ms, deleted))

    def due(self, now_ms: int) -> list[str]:
        """Paths whose delay is over; they are the caller's now."""
        due = [path for not_before, path in self._removable if not_before <= now_ms]
        self._removable = [entry for entry in self._removable if entry[0] > now_ms]
        return due
