"""The records of a batch, read one by one.

A broker does this seldom - to find a time, to compact, to write a batch anew - and a
client all the time. `split` is the one parser; `iterate` makes records of what it finds.

    length, attributes, timestamp delta, offset delta, key, value, headers
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import attrs

from ..types import Buffer
from .batch import LOG_APPEND_TIME_BIT, OVERHEAD, BatchHeader, read_header
from .compress import UNPACK_CAP, decompress
from .errors import damaged
from .varint import VarintTooLong, read_varint, varint_rest, varlong_rest

Header: TypeAlias = tuple[str, bytes | None]
Parts: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int]

_HALF: Final = 1 << 63
_WHOLE: Final = 1 << 64


@attrs.define
class Record:
    """One record as a reader gets it, and as `build` takes it: that gives the offset anew."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()


def iterate(batch: Buffer, cap: int = UNPACK_CAP) -> Iterator[Record]:
    """The records of the batch that `batch` begins with. BadBatch where they cannot be read."""
    header = read_header(batch)
    return records_of(header, payload_of(header, batch, cap))


def payload_of(header: BatchHeader, batch: Buffer, cap: int = UNPACK_CAP) -> bytes:
    """The bytes of a batch's records, decompressed."""
    if not OVERHEAD <= header.size <= len(batch):
        raise damaged(f"a batch of {header.size} bytes in {len(batch)}")
    return decompress(header.codec, memoryview(batch)[OVERHEAD : header.size], cap)


def records_of(header: BatchHeader, data: bytes) -> Iterator[Record]:
    """The records in these decompressed bytes."""
    base, same_time = header.base_offset, header.attributes & LOG_APPEND_TIME_BIT
    time, first_time = header.max_timestamp, header.base_timestamp
    for _, delta, number, _, key_at, key_size, value_at, value_size, headers_at, stop in split(
        data, header.count
    ):
        yield Record(
            base + number,
            time if same_time else wrapped(first_time + delta),
            data[key_at : key_at + key_size] if key_size >= 0 else None,
            data[value_at : value_at + value_size] if value_size >= 0 else None,
            _headers(data, headers_at) if stop - headers_at > 1 else (),
        )


def find_time(batch: Buffer, timestamp: int, cap: int = UNPACK_CAP) -> tuple[int, int] | None:
    """Offset and time of the first record at or after `timestamp`."""
    return next((found for found in times_of(batch, cap) if found[1] >= timestamp), None)


def latest_time(batch: Buffer, cap: int = UNPACK_CAP) -> tuple[int, int] | None:
    """Offset and time of the record with the greatest time, the first of them; None without records."""
    return max(times_of(batch, cap), key=lambda found: found[1], default=None)


def times_of(batch: Buffer, cap: int = UNPACK_CAP) -> Iterator[tuple[int, int]]:
    """Offset and time of each record of the batch that `batch` begins with."""
    header = read_header(batch)
    data = payload_of(header, batch, cap)
    base, first_time = header.base_offset, header.base_timestamp
    one_time = header.max_timestamp if header.log_append_time else None
    for _, delta, number, *_ in split(data, header.count):
        yield base + number, wrapped(first_time + delta) if one_time is None else one_time


def split(data: bytes, count: int) -> Iterator[Parts]:
    """Where the parts of each record lie.

    Start (of its length), timestamp delta, offset delta, start of what follows the two, key and its size
    (-1: null), value and its size, headers, end. BadBatch if there are not `count` records in these bytes.
    """
    at, end = 0, len(data)
    try:
        for index in range(count):
            start = at
            size, at = read_varint(data, at)
            stop = at + size
            if size < 0 or stop > end:
                raise damaged(f"record {index} says that it ends where it cannot")
            raw = data[at + 1]
            at += 2
            if raw > 0x7F:
                raw, at = varlong_rest(data, at, raw)
            time_delta = (raw >> 1) ^ -(raw & 1)
            raw = data[at]
            at += 1
            if raw > 0x7F:
                raw, at = varint_rest(data, at, raw)
            number = (raw >> 1) ^ -(raw & 1)

            rest_at = at
            key_size = data[at]
            at += 1
            if key_size > 0x7F:
                key_size, at = varint_rest(data, at, key_size)
            key_at = at
            key_size = -1 if key_size & 1 else key_size >> 1
            if key_size > 0:
                at += key_size
            value_size = data[at]
            at += 1
            if value_size > 0x7F:
                value_size, at = varint_rest(data, at, value_size)
            value_at = at
            value_size = -1 if value_size & 1 else value_size >> 1
            if value_size > 0:
                at += value_size

            headers_at = at
            raw = data[at]
            at += 1
            if raw:
                at = past_headers(data, at, raw, stop)
            if at != stop:
                raise damaged(f"record {index} ends elsewhere than it says")
            yield start, time_delta, number, rest_at, key_at, key_size, value_at, value_size, headers_at, stop
    except IndexError:
        raise damaged(f"the records end before there were {count}") from None
    except VarintTooLong as broken:
        raise damaged(str(broken)) from None


def past_headers(data: bytes, at: int, raw: int, stop: int) -> int:
    """Where the headers of a record end, whose count began with the byte `raw`."""
    if raw > 0x7F:
        raw, at = varint_rest(data, at, raw)
    count = raw >> 1
    if raw & 1 or count > stop - at:
        raise damaged(f"a record of {count} headers")
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0:
            raise damaged("a header without a key")
        size, at = read_varint(data, at + size)
        if size > 0:
            at += size
    return at


def _headers(data: bytes, at: int) -> list[Header]:
    count, at = read_varint(data, at)
    headers: list[Header] = []
    for _ in range(count):
        size, at = read_varint(data, at)
        key = data[at : at + size].decode(errors="replace")
        size, at = read_varint(data, at + size)
        if size < 0:
            headers.append((key, None))
        else:
            headers.append((key, data[at : at + size]))
            at += size
    return headers


def wrapped(number: int) -> int:
    """A sum as 64 bits hold it."""
    return number if -_HALF <= number < _HALF else (number + _HALF) % _WHOLE - _HALF
