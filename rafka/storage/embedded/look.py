"""Open files and loaded indexes: how many there may be, and how a reader gets at them.

Both are bounded, by `EmbeddedConfig.max_open_files` and `max_loaded_indexes`. What was
used since the last round of eviction stays; what has unsynced bytes or a thread at
work on it stays as well.
"""

from __future__ import annotations

import errno
from functools import partial
from typing import cast

from ...env import Disk, File
from .index import Index
from .segment import Cold, SegmentFile

_TOO_MANY = (errno.EMFILE, errno.ENFILE)


class OpenFiles:
    """The open files, least lately opened first."""

    def __init__(self, disk: Disk, limit: int) -> None:
        self._disk = disk
        self._limit = max(1, limit)
        self._open: dict[SegmentFile, None] = {}

    def get(self, segment: SegmentFile, *, create: bool = False) -> File:
        """The segment's file, opened if need be. OSError if that fails."""
        segment.used = True
        if segment.file is not None:
            return segment.file
        if len(self._open) >= self._limit:
            self._evict(len(self._open) - self._limit + 1)
        try:
            file = self._disk.open(segment.path, create=create)
        except OSError as error:
            if error.errno not in _TOO_MANY:
                raise
            self._evict(len(self._open) // 2 + 1)  # the rest of the process has taken more than was thought
            file = self._disk.open(segment.path, create=create)
        segment.file = file
        self._open[segment] = None
        return file

    def close(self, segment: SegmentFile) -> None:
        """Close it, unless a thread is at work on it: then eviction will."""
        if segment.file is not None and not segment.pins:
            segment.file.close()
            segment.file = None
            del self._open[segment]

    def close_all(self) -> None:
        for segment in list(self._open):
            self.close(segment)

    def _evict(self, count: int) -> None:
        for segment in list(self._open):
            if segment.dirty or segment.pins:
                continue
            if segment.used and count < len(self._open):  # a second chance, at the end of the queue
                segment.used = False
                self._open[segment] = self._open.pop(segment)
                continue
            self.close(segment)
            count -= 1
            if not count:
                return
        for segment in list(self._open):  # all were in use: the oldest have to go all the same
            if count and not segment.dirty and not segment.pins:
                self.close(segment)
                count -= 1


class LoadedIndexes:
    """The indexes of closed segments that are in memory, least lately loaded first."""

    def __init__(self, limit: int) -> None:
        self._limit = max(1, limit)
        self._loaded: dict[SegmentFile, None] = {}

    def keep(self, segment: SegmentFile, index: Index) -> None:
        """`segment` is closed, and from now on its index may be dropped when there are too many."""
        segment.index = index
        self._loaded[segment] = None
        if len(self._loaded) > self._limit:
            self._drop(len(self._loaded) - self._limit, segment)

    def forget(self, segment: SegmentFile) -> None:
        """The segment is gone."""
        segment.forget_positions()
        self._loaded.pop(segment, None)

    def _drop(self, count: int, newest: SegmentFile) -> None:
        for segment in list(self._loaded):
            index = segment.index
            if segment is newest or (index is not None and index.has_unwritten):
                continue
            self.forget(segment)
            count -= 1
            if not count:
                return


class Hot:
    """Looks only at what needs no waiting; `Cold` for the rest."""

    def __init__(self, files: OpenFiles) -> None:
        self._files = files

    def bytes(self, segment: SegmentFile, size: int, at: int) -> bytes:
        file = segment.file or self._files.get(segment)
        segment.used = True
        data = file.read_cached(size, at)
        if data is None:
            raise Cold(segment, (at, size), partial(file.read, size, at))
        return data

    def index(self, segment: SegmentFile, *, rebuild: bool = False) -> Index:
        if rebuild:
            raise Cold(segment, REBUILT, segment.rebuild_index)
        if segment.index is None:
            raise Cold(segment, LOADED, segment.load_index)
        return segment.index


LOADED: tuple[int, ...] = (0,)
REBUILT: tuple[int, ...] = (1,)


class Warmed:
    """As `Hot`, but knows the results of the jobs that were run meanwhile."""

    def __init__(self, hot: Hot) -> None:
        self._hot = hot
        self._known: dict[tuple[SegmentFile, tuple[int, ...]], object] = {}

    def learn(self, cold: Cold, result: object) -> None:
        """What came of `cold.job`."""
        self._known[cold.segment, cold.key] = result

    def bytes(self, segment: SegmentFile, size: int, at: int) -> bytes:
        data = self._known.get((segment, (at, size)))
        return self._hot.bytes(segment, size, at) if data is None else cast(bytes, data)

    def index(self, segment: SegmentFile, *, rebuild: bool = False) -> Index:
        # Known ones first: with little room for indexes, the next one drives out the last one.
        known = self._known.get((segment, REBUILT))
        if known is None and not rebuild and segment.index is None:
            known = self._known.get((segment, LOADED))
        return self._hot.index(segment, rebuild=rebuild) if known is None else cast(Index, known)


class Blocking:
    """Waits for the disk wherever it has to: for the start, where nobody waits for the event loop."""

    def __init__(self, files: OpenFiles, indexes: LoadedIndexes) -> None:
        self._files = files
        self._indexes = indexes

    def bytes(self, segment: SegmentFile, size: int, at: int) -> bytes:
        return self._files.get(segment).read(size, at)

    def index(self, segment: SegmentFile, *, rebuild: bool = False) -> Index:
        if segment.index is not None and not rebuild:
            return segment.index
        index = segment.rebuild_index() if rebuild else segment.load_index()
        if segment.closed:
            self._indexes.keep(segment, index)
        else:
            segment.index = index
        return index
