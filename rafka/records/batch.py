"""The header of a record batch (format 2), read and written.

A batch is 61 bytes of header and then its records, plain or compressed. A broker
moves whole batches: it reads the header, gives the batch its place in the log, and
never looks at a record unless a rule of Kafka's makes it. The place - base offset
and leader epoch - lies outside the checksum, so giving it costs nothing.

    0 base offset        12 leader epoch     17 CRC-32C of all that follows
    8 length of the rest 16 magic            21 attributes, counts, times, producer
                                             61 records

Nothing here says whether a batch is sound: that is `check`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import attrs

from ..types import Buffer
from .checksum import checksum

OVERHEAD: Final = 61  # bytes before the first record
LOG_OVERHEAD: Final = 12  # bytes that the length field does not count: base offset and itself
CHECKED_FROM: Final = 21  # the checksum covers everything from here

NO_TIMESTAMP: Final = -1
NO_PRODUCER: Final = -1

CODEC_BITS: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
KNOWN_BITS: Final = 0x7F  # Kafka writes only these when it writes a header anew

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_unpack = _HEADER.unpack_from
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_UNCHECKED: Final = struct.Struct(">qiibI")  # the header in two: what the checksum leaves out, with it
_CHECKED: Final = struct.Struct(">hiqqqhii")
_COPIED_BELOW: Final = 4096  # bytes of records: to join them with their header costs less than two pieces
_unpack_int32 = _INT32.unpack_from
_SEQUENCES: Final = 1 << 31  # producers count to 2**31 - 1 and start again at 0


@attrs.define
class BatchHeader:
    """The 61 bytes as numbers; the fields in the order in which they lie."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LOG_OVERHEAD + self.length

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def log_append_time(self) -> bool:
        """Whether all records have the time of the append, which is `max_timestamp`."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def control(self) -> bool:
        """Whether this is an end-of-transaction marker, which clients pass over."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is the time from which compaction may drop tombstones and markers."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; -1 where the batch has none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES


def read_header(buf: Buffer, at: int = 0) -> BatchHeader:
    """The header at `at`. Raises struct.error where fewer than 61 bytes are left."""
    return BatchHeader(*_unpack(buf, at))


def write_header(header: BatchHeader) -> bytearray:
    """The 61 bytes of a header, just as its fields say."""
    return bytearray(
        _HEADER.pack(
            header.base_offset,
            header.length,
            header.leader_epoch,
            header.magic,
            header.crc,
            header.attributes,
            header.last_offset_delta,
            header.base_timestamp,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.count,
        )
    )


def placed(header: BatchHeader, base_offset: int, leader_epoch: int) -> bytearray:
    """The 61 bytes of a batch that has its place in the log, told to `header` as well."""
    header.base_offset = base_offset
    header.leader_epoch = leader_epoch
    return write_header(header)


def place(batch: bytearray | memoryview, base_offset: int, leader_epoch: int) -> None:
    """Give a whole batch its place, in its own bytes."""
    _INT64.pack_into(batch, 0, base_offset)
    _INT32.pack_into(batch, LOG_OVERHEAD, leader_epoch)


def sealed(header: BatchHeader, *records: Buffer) -> BatchHeader:
    """The same header with length and checksum made right for these bytes of records."""
    header.length = OVERHEAD - LOG_OVERHEAD + sum(map(len, records))
    crc = checksum(memoryview(write_header(header))[CHECKED_FROM:])
    for piece in records:
        crc = checksum(piece, crc)
    header.crc = crc
    return header


def plain_batch(
    records: bytes, count: int, timestamp: int, base_offset: int, leader_epoch: int
) -> tuple[BatchHeader, list[Buffer]]:
    """A batch of records that share one time and have no producer: its header, and its bytes."""
    length = OVERHEAD - LOG_OVERHEAD + len(records)
    checked = _CHECKED.pack(0, count - 1, timestamp, timestamp, NO_PRODUCER, -1, -1, count)
    if len(records) < _COPIED_BELOW:
        checked += records
        crc = checksum(checked)
        pieces: list[Buffer] = [_UNCHECKED.pack(base_offset, length, leader_epoch, 2, crc) + checked]
    else:
        crc = checksum(records, checksum(checked))
        pieces = [_UNCHECKED.pack(base_offset, length, leader_epoch, 2, crc) + checked, records]
    header = BatchHeader(
        base_offset,
        length,
        leader_epoch,
        2,
        crc,
        0,
        count - 1,
        timestamp,
        timestamp,
        NO_PRODUCER,
        -1,
        -1,
        count,
    )
    return header, pieces


def walk(buf: Buffer, at: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch from `at` on; ends before one that is cut short or no batch."""
    end = len(buf)
    while at + OVERHEAD <= end:
        header = BatchHeader(*_unpack(buf, at))
        size = LOG_OVERHEAD + header.length
        if size < OVERHEAD or at + size > end:
            return
        yield at, header
        at += size


def end_of(buf: Buffer) -> int:
    """The offset after the last whole batch; -1 where there is none. Faster than `walk`."""
    at, last, end = 0, -1, len(buf)
    while at + OVERHEAD <= end:
        size = LOG_OVERHEAD + _unpack_int32(buf, at + 8)[0]
        if size < OVERHEAD or at + size > end:
            break
        at, last = at + size, at
    return -1 if last < 0 else read_header(buf, last).next_offset


def crc_of(buf: Buffer, at: int, size: int) -> int:
    """The checksum that a batch of `size` bytes at `at` should have. Copies nothing."""
    return checksum(memoryview(buf)[at + CHECKED_FROM : at + size])
