"""A record batch from records: what clients send, and what the broker writes of its own.

The records are numbered in the order in which they come, whatever offsets they have. The
loop is short because a client's throughput is this loop: the small numbers of which
records are full are looked up, not encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final

from ..types import Buffer
from .batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    NO_PRODUCER,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    plain_batch,
    sealed,
    write_header,
)
from .compress import NONE, compress
from .record import Header, Record, wrapped
from .varint import varint

_SMALL: Final = 4096
_NO_HEADERS: Final = b"\0"
_SAME_TIME: Final = b"\0\0"  # attributes, and no difference from the batch's first timestamp
_NULL: Final = varint(-1)


def build(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    codec: int = NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    leader_epoch: int = -1,
) -> bytes:
    """A whole batch. `log_append_time` is a time for all of the records, if it is the broker's to give."""
    records = records if isinstance(records, Sequence) else list(records)
    if not records:
        raise ValueError("a batch has one record at the least")
    base_timestamp = records[0].timestamp
    max_timestamp, data = _records(records, base_timestamp)
    body = data if codec == NONE else compress(codec, data, level)
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=codec
        | (0 if log_append_time is None else LOG_APPEND_TIME_BIT)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0),
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp if log_append_time is None else log_append_time,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )
    return assembled(header, body)


def build_pairs(
    pairs: Iterable[tuple[bytes, bytes]], timestamp: int, *, base_offset: int = 0, leader_epoch: int = -1
) -> tuple[BatchHeader, list[Buffer]]:
    """A batch of keys and values that share one time: its header, and its bytes, in one piece or two.

    The same bytes as `build` makes of such records, sooner: the broker waits for its own.
    """
    small = _small_varints()
    parts: list[bytes] = []
    count = 0
    for key, value in pairs:
        size = len(key)
        front = _SAME_TIME + (small[count] if count < _SMALL else varint(count))
        front += (small[size] if size < _SMALL else varint(size)) + key
        size = len(value)
        front += small[size] if size < _SMALL else varint(size)
        size += len(front) + 1
        parts += (small[size] if size < _SMALL else varint(size), front, value, _NO_HEADERS)
        count += 1
    if not count:
        raise ValueError("a batch has one record at the least")
    return plain_batch(b"".join(parts), count, timestamp, base_offset, leader_epoch)


def assembled(header: BatchHeader, body: Buffer) -> bytes:
    """The batch of this header and these bytes of records; length and checksum are filled in."""
    return bytes(write_header(sealed(header, body)) + body)


def _records(records: Sequence[Record], base_timestamp: int) -> tuple[int, bytes]:
    """The greatest timestamp, and the records in their wire form."""
    small = _small_varints()
    parts: list[bytes] = []
    latest = NO_TIMESTAMP
    for index, record in enumerate(records):
        time, key, value, headers = record.timestamp, record.key, record.value, record.headers
        if time > latest:
            latest = time
        delta = time - base_timestamp
        front = b"\0" + (small[delta] if 0 <= delta < _SMALL else varint(wrapped(delta)))
        front += small[index] if index < _SMALL else varint(index)
        if key is None:
            front += _NULL
        else:
            size = len(key)
            front += (small[size] if size < _SMALL else varint(size)) + key
        if value is None:
            front += _NULL
            value = b""
        else:
            size = len(value)
            front += small[size] if size < _SMALL else varint(size)
        end = _headers(headers) if headers else _NO_HEADERS
        size = len(front) + len(value) + len(end)
        parts += (small[size] if size < _SMALL else varint(size), front, value, end)
    return latest, b"".join(parts)


def _headers(headers: Sequence[Header]) -> bytes:
    out = bytearray(varint(len(headers)))
    for name, value in headers:
        key = name.encode()
        out += varint(len(key)) + key
        out += _NULL if value is None else varint(len(value)) + value
    return bytes(out)


@cache
def _small_varints() -> tuple[bytes, ...]:
    return tuple(map(varint, range(_SMALL)))
