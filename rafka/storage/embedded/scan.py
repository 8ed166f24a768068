"""Batches read from a segment file one after another: for recovery, replay and lookups.

Only the front of each header is taken apart, and the file is read in large pieces: a
gigabyte of 16 KB batches takes a few tenths of a second, checksums included. What makes
no sense ends the walk with `Damaged`, which says where and why; whether that is a torn
tail to be cut or a loss to be told is for the caller to judge.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ...records.batch import CHECKED_FROM, LOG_OVERHEAD, OVERHEAD
from ...records.checksum import checksum
from ...types import Buffer

_FRONT: Final = struct.Struct(">qiibIhiqq")  # base offset to greatest timestamp
_MAGIC: Final = 2
_CHUNK: Final = 4 << 20

Read = Callable[[int, int], bytes]  # (size, at): up to `size` bytes, fewer only at the end


class Batch(NamedTuple):
    """Where a batch lies and what an index has to know of it."""

    position: int
    size: int
    base_offset: int
    next_offset: int
    epoch: int
    max_timestamp: int


class Damaged(Exception):
    """There is no sound batch at `position`."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position
        self.why = why


def batch_at(data: Buffer, at: int, position: int) -> Batch:
    """The batch whose header is at `data[at:]`, and which lies at `position` of its file."""
    if at + OVERHEAD > len(data):
        raise Damaged(position, f"{len(data) - at} bytes are less than a header")
    base, length, epoch, magic, _, _, delta, _, greatest = _FRONT.unpack_from(data, at)
    if magic != _MAGIC or length < OVERHEAD - LOG_OVERHEAD or base < 0 or delta < 0:
        raise Damaged(position, "this is not the header of a batch")
    return Batch(position, length + LOG_OVERHEAD, base, base + delta + 1, epoch, greatest)


def headers(read: Read, at: int, end: int, chunk: int = _CHUNK) -> Iterator[Batch]:
    """The batches from position `at` up to `end`, their checksums not looked at.

    A caller who needs only the next few gives a small `chunk`. Large bodies are passed over unread.
    """
    data, begin = b"", at
    while at < end:
        if at + OVERHEAD > begin + len(data):
            data, begin = read(min(chunk, end - at), at), at
        batch = batch_at(data, at - begin, at)
        if at + batch.size > end:
            raise Damaged(at, f"of its {batch.size} bytes {end - at} are there")
        yield batch
        at += batch.size


def check(read: Read, at: int, end: int, next_offset: int, epoch: int, *, gaps: bool) -> Iterator[Batch]:
    """The batches from position `at` up to `end`, checked: lengths, checksums, and what these leave out.

    That is the place in the log: offsets go on from `next_offset`, without gaps unless
    compaction may have made some, and epochs do not fall below `epoch`.
    """
    data, begin, there = memoryview(b""), at, 0
    while at < end:
        here = at - begin
        if here + OVERHEAD > there:
            data, begin, here = memoryview(read(min(_CHUNK, end - at), at)), at, 0
            there = len(data)
            if there < OVERHEAD:
                raise Damaged(at, f"{there} bytes are less than a header")
        base, length, batch_epoch, magic, crc, _, delta, _, greatest = _FRONT.unpack_from(data, here)
        size = length + LOG_OVERHEAD
        if magic != _MAGIC or size < OVERHEAD or delta < 0:
            raise Damaged(at, "this is not the header of a batch")
        if at + size > end:
            raise Damaged(at, f"of its {size} bytes {end - at} are there")
        if here + size > there:
            data, begin, here = memoryview(read(max(size, min(_CHUNK, end - at)), at)), at, 0
            there = len(data)
        if base != next_offset and (base < next_offset or not gaps):
            raise Damaged(at, f"its offset is {base}, where {next_offset} has been reached")
        if batch_epoch < epoch:
            raise Damaged(at, f"its epoch is {batch_epoch}, where {epoch} has been reached")
        if checksum(data[here + CHECKED_FROM : here + size]) != crc:
            raise Damaged(at, "its checksum is wrong")
        next_offset, epoch = base + delta + 1, batch_epoch
        yield Batch(at, size, base, next_offset, epoch, greatest)
        at += size
