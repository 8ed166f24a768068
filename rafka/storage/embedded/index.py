"""The two sparse indexes of a segment, in Kafka's formats.

Offsets: 8-byte entries (last offset of a batch, relative to the segment's base; position
of the batch). Times: 12-byte entries (greatest timestamp so far; the last offset of the
batch that has it). An entry is added for the first batch after every
`index_interval_bytes`. Both can always be rebuilt from the batches, so nothing ever
waits for them to be durable; but then they may come back torn from a loss of power, and
Kafka's formats have no checksum. So each checkpoint keeps a `Proof` of what was written.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from ...records.checksum import checksum
from ..aborted import ENTRY as ABORTED_ENTRY
from ..policy import OFFSET_ENTRY, TIME_ENTRY
from .scan import Batch

_SWAPPED = sys.byteorder == "little"  # the files are big-endian


class DamagedIndex(Exception):
    """The files do not have the bytes that were written to them."""


class Proof(NamedTuple):
    """How many entries the two files begin with, and the checksums of those."""

    entries: int
    times: int
    crc: int
    times_crc: int


class Index:
    """Both indexes of one segment, in memory. `written` tells what of them the files have."""

    __slots__ = (
        "base_offset",
        "offsets",
        "positions",
        "stale",
        "time_offsets",
        "times",
        "written",
    )

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")
        self.times = array("q")
        self.time_offsets = array("i")
        self.written = NOTHING
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
        return self.stale or self.written[:2] != (len(self.offsets), len(self.times))

    def unwritten(self) -> tuple[int, bytes, int, bytes]:
        """Where in the two files to go on writing, and what; from now on it counts as written.

        The files end after it.
        """
        written = NOTHING if self.stale else self.written
        self.stale = False
        offsets = _offset_bytes(self.offsets[written.entries :], self.positions[written.entries :])
        times = _time_bytes(self.times[written.times :], self.time_offsets[written.times :])
        self.written = Proof(
            len(self.offsets),
            len(self.times),
            checksum(offsets, written.crc),
            checksum(times, written.times_crc),
        )
        return written.entries * OFFSET_ENTRY, offsets, written.times * TIME_ENTRY, times

    def cut(self, position: int, next_offset: int) -> None:
        """Forget entries of batches at `position` or after, and of offsets from `next_offset` on."""
        keep = bisect_left(self.positions, position)
        keep_times = bisect_left(self.time_offsets, next_offset - self.base_offset)
        if (keep, keep_times) != (len(self.offsets), len(self.times)):
            del self.offsets[keep:], self.positions[keep:]
            del self.times[keep_times:], self.time_offsets[keep_times:]
            self.stale = True


NOTHING = Proof(0, 0, 0, 0)


class AbortedProof(NamedTuple):
    """The same of the file of aborted transactions (see `storage.aborted`)."""

    entries: int
    crc: int

    def matches(self, data: bytes) -> bool:
        """Whether these are the proven bytes, no more and no less."""
        return len(data) == self.entries * ABORTED_ENTRY.size and checksum(data) == self.crc

    def grown(self, data: bytes) -> AbortedProof:
        """The proof once these entries are written behind those that it is of."""
        return AbortedProof(self.entries + len(data) // ABORTED_ENTRY.size, checksum(data, self.crc))


NO_ABORTED = AbortedProof(0, 0)


def load(base_offset: int, offsets: bytes, times: bytes, proof: Proof) -> Index:
    """An index from its files' bytes, as far as they are proven. DamagedIndex if they are not."""
    offsets, times = offsets[: proof.entries * OFFSET_ENTRY], times[: proof.times * TIME_ENTRY]
    if (
        len(offsets) < proof.entries * OFFSET_ENTRY
        or len(times) < proof.times * TIME_ENTRY
        or checksum(offsets) != proof.crc
        or checksum(times) != proof.times_crc
    ):
        raise DamagedIndex
    index = Index(base_offset)
    pairs, triples = _ints("i", offsets), _ints("i", times)
    index.offsets, index.positions = pairs[0::2], pairs[1::2]
    index.time_offsets = triples[2::3]
    index.times = _ints("q", b"".join(times[at : at + 8] for at in range(0, len(times), TIME_ENTRY)))
    index.written = proof
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
