"""The aborted transactions of a log: whose records readers of committed records have to leave out.

One entry for each transaction that was aborted after it had written something, in the
order of their markers. A log keeps all of its entries in memory, 32 bytes each, and
they go with the segments that their markers are in. On disk they lie beside those in
Kafka's `.txnindex` format. All of it can be had again from the batches of the log.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from ..types import message

ENTRY: Final = struct.Struct(">hqqqq")  # version, producer, first offset, last offset, last stable offset
_VERSION: Final = 0


@message
class AbortedRange:
    """A transaction that was aborted: from its first record to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    # What was stable once it was decided: all that was decided later begins there or above.
    last_stable_offset: int = -1


class AbortedIndex:
    """The entries of one log, their `last_offset` ascending."""

    __slots__ = ("_firsts", "_lasts", "_producers", "_stables")

    def __init__(self, ranges: Iterable[AbortedRange] = ()) -> None:
        self._producers = array("q")
        self._firsts = array("q")
        self._lasts = array("q")
        self._stables = array("q")
        for range_ in ranges:
            self.add(range_)

    def __len__(self) -> int:
        return len(self._lasts)

    def add(self, range_: AbortedRange) -> bool:
        """Add one at the end; False where one of that marker or a later one is there already."""
        if self._lasts and range_.last_offset <= self._lasts[-1]:
            return False
        self._producers.append(range_.producer_id)
        self._firsts.append(range_.first_offset)
        self._lasts.append(range_.last_offset)
        self._stables.append(range_.last_stable_offset)
        return True

    def count_from(self, offset: int) -> int:
        """How many have their markers at `offset` or above."""
        return len(self._lasts) - bisect_left(self._lasts, offset)

    def collect(self, offset: int, upto: int) -> list[AbortedRange]:
        """All that a reader of the records from `offset` up to `upto` has to know of."""
        found = []
        firsts, stables = self._firsts, self._stables
        for at in range(bisect_left(self._lasts, offset), len(self._lasts)):
            if firsts[at] < upto:
                found.append(self._range(at))
            if stables[at] >= upto:
                break  # what was decided after this begins at `upto` or above
        return found

    def ended_in(self, since: int, upto: int) -> list[AbortedRange]:
        """Those whose markers lie from `since` up to `upto`."""
        return [self._range(at) for at in range(*self._span(since, upto))]

    def cut_head(self, offset: int) -> None:
        """Forget those whose markers lie below `offset`: these are gone."""
        if self._lasts and self._lasts[0] < offset:
            self._put(0, bisect_left(self._lasts, offset), ())

    def replace(self, since: int, upto: int, ranges: Iterable[AbortedRange]) -> None:
        """Let these be all whose markers lie from `since` up to `upto`."""
        self._put(*self._span(since, upto), ranges)

    # As a file

    def packed(self, since: int, upto: int, skip: int) -> bytes:
        """The entries whose markers lie from `since` up to `upto`, without the first `skip`."""
        begin, end = self._span(since, upto)
        return b"".join(
            ENTRY.pack(_VERSION, self._producers[at], self._firsts[at], self._lasts[at], self._stables[at])
            for at in range(begin + skip, end)
        )

    # Private

    def _span(self, since: int, upto: int) -> tuple[int, int]:
        return bisect_left(self._lasts, since), bisect_left(self._lasts, upto)

    def _range(self, at: int) -> AbortedRange:
        return AbortedRange(
            producer_id=self._producers[at],
            first_offset=self._firsts[at],
            last_offset=self._lasts[at],
            last_stable_offset=self._stables[at],
        )

    def _put(self, begin: int, end: int, ranges: Iterable[AbortedRange]) -> None:
        new = AbortedIndex(ranges)
        self._producers[begin:end] = new._producers
        self._firsts[begin:end] = new._firsts
        self._lasts[begin:end] = new._lasts
        self._stables[begin:end] = new._stables


def unpacked(data: bytes) -> Iterator[AbortedRange]:
    """The entries of a file."""
    for _, producer_id, first, last, stable in ENTRY.iter_unpack(data):
        yield AbortedRange(
            producer_id=producer_id, first_offset=first, last_offset=last, last_stable_offset=stable
        )
