"""The half of a log that is read: by offset, by time, and how much there is.

What is in memory is read at once (`Hot`). What is not ends the attempt with `Cold`; the
asynchronous calls then fetch it in a thread and try again, on the event loop, until
nothing is missing: so positions and segments are only ever looked up there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import trio

from ...records.batch import OVERHEAD, BatchHeader, read_header
from ...types import Buffer
from .. import epochs as leader_epochs
from ..backend import TimeFound
from . import search
from .index import Index
from .look import LOADED, REBUILT, Warmed
from .scan import Damaged, batch_at
from .segment import Cold, Look, SegmentFile
from .written import WrittenLog

_AHEAD = 64 << 10  # bytes read at a time by `history`

T = TypeVar("T")


class ReadLog(WrittenLog):
    """Public names are documented in `backend.Log`."""

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
        return (header for header, _ in self.history(since))

    def history(self, since: int) -> Iterator[tuple[BatchHeader, Buffer]]:
        look = self._shared.blocking
        try:
            for segment in list(self._segments[max(0, bisect_right(self._bases, since) - 1) :]):
                at = segment.position_of(since, look)
                data, begin = b"", at
                while at < segment.size:
                    if at + OVERHEAD > begin + len(data):
                        data, begin = look.bytes(segment, min(_AHEAD, segment.size - at), at), at
                    size = batch_at(data, at - begin, at).size
                    if at + size > segment.size:
                        raise Damaged(at, f"a batch of {segment.path} is longer than what is there of it")
                    header = read_header(data, at - begin)
                    batch = b""
                    if header.control:
                        batch = data[at - begin : at - begin + size]
                        if len(batch) < size:
                            batch = look.bytes(segment, size, at)
                    yield header, batch
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
