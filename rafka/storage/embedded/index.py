"""The two sparse indexes of a segment, in Kafka's formats.

Offsets: 8-byte entries (last offset of a batch, relative to the segment's base; position
of the batch). Times: 12-byte entries (greatest timestamp so far; the last offset of the
batch that has it). An entry is added for the first batch after every
`index_interval_bytes`. Both can always be rebuilt from the batches, so nothing ever
waits for them to be durable, and a lookup does not take them at their word: it ends in
reading the header that an entry points to.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise

from .scan import Batch

_SWAPPED = sys.byteorder == "little"  # the files are big-endian


class DamagedIndex(Exception):
    """The bytes cannot be an index of this segment."""


class Index:
    """Both indexes of one segment, in memory. `written_*` tell how many entries the files have."""

    __slots__ = (
        "base_offset",
        "offsets",
        "positions",
        "stale",
        "time_offsets",
        "times",
        "written",
        "written_times",
    )

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")
        self.times = array("q")
        self.time_offsets = array("i")
        self.written = 0
        self.written_times = 0
        self.stale = False  # the files have other entries, or more

    def add(self, last_offset: int, position: int) -> None:
        self.offsets.append(last_offset - self.base_offset)
        self.positions.append(position)

    def add_time(self, timestamp: int, offset: int) -> bool:
        """As Kafka: an entry that is not later than the last one is left out; whether it was added."""
        if timestamp < 0 or (self.times and timestamp <= self.times[-1]):
            return False
        self.times.append(timestamp)
        self.time_offsets.append(offset - self.base_offset)
        return True

    def entry_before(self, offset: int) -> tuple[int, int | None]:
        """A position at or before that of the batch that holds `offset`; the last offset of what is there."""
        at = bisect_right(self.offsets, offset - self.base_offset)
        return (self.positions[at - 1], self.base_offset + self.offsets[at - 1]) if at else (0, None)

    def position_after(self, offset: int, size: int) -> int:
        """A position at or after it: the next entry's, or the end of the segment."""
        at = bisect_left(self.offsets, offset - self.base_offset)
        return self.positions[at] if at < len(self.positions) else size

    def before_position(self, position: int) -> int:
        """The position of the last entry at or before `position`; 0 where there is none."""
        at = bisect_right(self.positions, position)
        return self.positions[at - 1] if at else 0

    def offset_before_time(self, timestamp: int) -> int:
        """An offset in a batch before which all records are older than `timestamp`."""
        at = bisect_right(self.times, timestamp)
        return self.base_offset + self.time_offsets[at - 1] if at else self.base_offset

    # As files

    @property
    def has_unwritten(self) -> bool:
        return self.stale or self.written < len(self.offsets) or self.written_times < len(self.times)

    def unwritten(self) -> tuple[int, bytes, int, bytes]:
        """Where in the two files to go on writing, and what; from now on it counts as written.

        The files end after it.
        """
        at, time_at = (0, 0) if self.stale else (self.written, self.written_times)
        self.stale = False
        self.written, self.written_times = len(self.offsets), len(self.times)
        return (
            at * 8,
            _offset_bytes(self.offsets[at:], self.positions[at:]),
            time_at * 12,
            _time_bytes(self.times[time_at:], self.time_offsets[time_at:]),
        )

    def cut(self, position: int, next_offset: int) -> None:
        """Forget entries of batches at `position` or after, and of offsets from `next_offset` on."""
        keep = bisect_left(self.positions, position)
        del self.offsets[keep:], self.positions[keep:]
        keep_times = bisect_left(self.time_offsets, next_offset - self.base_offset)
        del self.times[keep_times:], self.time_offsets[keep_times:]
        self.written = min(self.written, keep)
        self.written_times = min(self.written_times, keep_times)


def load(base_offset: int, size: int, offsets: bytes, times: bytes) -> Index:
    """An index from its files' bytes. DamagedIndex unless all its entries ascend and fit the segment."""
    if len(offsets) % 8 or len(times) % 12:
        raise DamagedIndex("its size is not a whole number of entries")
    index = Index(base_offset)
    pairs = _ints("i", offsets)
    index.offsets, index.positions = pairs[0::2], pairs[1::2]
    triples = _ints("i", times)
    index.time_offsets = triples[2::3]
    index.times = _ints("q", b"".join(times[at : at + 8] for at in range(0, len(times), 12)))
    for numbers in (index.offsets, index.positions, index.times):
        if any(a >= b for a, b in pairwise(numbers)):
            raise DamagedIndex("its entries do not ascend")
    if any(a > b for a, b in pairwise(index.time_offsets)):
        raise DamagedIndex("its entries do not ascend")
    if index.offsets and (index.offsets[0] < 0 or index.positions[0] < 0 or index.positions[-1] >= size):
        raise DamagedIndex("it points outside the segment")
    if index.times and (index.times[0] < 0 or index.time_offsets[0] < 0):
        raise DamagedIndex("it points outside the segment")
    index.written, index.written_times = len(index.offsets), len(index.times)
    return index


class Progress:
    """What an index says next depends on the batches so far. One of these per growing segment."""

    __slots__ = ("interval", "since_entry", "time_offset", "timestamp")

    def __init__(
        self, interval: int, since_entry: int = 0, timestamp: int = -1, time_offset: int = -1
    ) -> None:
        self.interval = interval
        self.since_entry = since_entry  # bytes since the last entry
        self.timestamp = timestamp  # the greatest so far
        self.time_offset = time_offset  # the last offset of the first batch that has it

    def note(self, index: Index, batch: Batch) -> None:
        """Take a batch in: for rebuilding. Appending does the same, spelled out for speed."""
        if batch.max_timestamp > self.timestamp:
            self.timestamp, self.time_offset = batch.max_timestamp, batch.next_offset - 1
        if self.since_entry > self.interval:
            index.add(batch.next_offset - 1, batch.position)
            index.add_time(self.timestamp, self.time_offset)
            self.since_entry = 0
        self.since_entry += batch.size


def _ints(kind: str, data: bytes) -> array[int]:
    numbers = array(kind)
    numbers.frombytes(data)
    if _SWAPPED:
        numbers.byteswap()
    return numbers


def _offset_bytes(offsets: array[int], positions: array[int]) -> bytes:
    pairs = array("i", bytes(8 * len(offsets)))
    pairs[0::2], pairs[1::2] = offsets, positions
    if _SWAPPED:
        pairs.byteswap()
    return pairs.tobytes()


def _time_bytes(times: array[int], offsets: array[int]) -> bytes:
    return b"".join(
        timestamp.to_bytes(8, "big", signed=True) + offset.to_bytes(4, "big", signed=True)
        for timestamp, offset in zip(times, offsets, strict=True)
    )
