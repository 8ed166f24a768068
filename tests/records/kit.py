"""Batches for the tests of this room, honest ones and others.

Honest ones come from `build`, which is held against kafka-python elsewhere. `altered`
makes a header lie while its checksum is right; `raw_record` and `raw_batch` write records
byte by byte, so that each part of them can be wrong.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import attrs
import pytest

from rafka.errors import ErrorCode
from rafka.records.batch import CHECKED_FROM, OVERHEAD, read_header, write_header
from rafka.records.build import build
from rafka.records.check import Accepted, BadBatch, Rules, check
from rafka.records.checksum import checksum
from rafka.records.compress import NAMES, compress
from rafka.records.record import Record, iterate
from rafka.records.varint import varint
from rafka.types import Buffer

NOW = 1_700_000_000_000
HOUR = 3_600_000
LIBRARIES = {"none": "zlib", "gzip": "zlib", "snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}

every_codec = pytest.mark.parametrize(
    "codec",
    [
        pytest.param(
            number, id=name, marks=pytest.mark.skipif(find_spec(LIBRARIES[name]) is None, reason=name)
        )
        for number, name in enumerate(NAMES)
    ],
)
every_compression = pytest.mark.parametrize(
    "codec",
    [
        pytest.param(
            number, id=name, marks=pytest.mark.skipif(find_spec(LIBRARIES[name]) is None, reason=name)
        )
        for number, name in enumerate(NAMES)
        if number
    ],
)

DEEP = Rules(deep=True)
both_ways = pytest.mark.parametrize("rules", [Rules(), DEEP], ids=["shallow", "deep"])


def record(value: bytes | None = b"v", key: bytes | None = b"k", at: int = NOW) -> Record:
    return Record(0, at, key, value)


def batch(*values: bytes | None, **options: Any) -> bytes:
    """A batch of these values, one millisecond apart."""
    return build([record(value, at=NOW + i) for i, value in enumerate(values or (b"v",))], **options)


def altered(batch: bytes, **fields: int) -> bytes:
    """The same batch with other numbers in its header, and the checksum of those unless `crc` is given."""
    header = attrs.evolve(read_header(batch), **fields)
    body = batch[OVERHEAD:]
    if "crc" not in fields:
        header.crc = checksum(bytes(write_header(header))[CHECKED_FROM:] + body)
    return bytes(write_header(header)) + body


def raw_record(
    *,
    attributes: bytes = b"\0",
    time: bytes = varint(0),
    number: bytes = varint(0),
    key: bytes = varint(1) + b"k",
    value: bytes = varint(1) + b"v",
    headers: bytes = varint(0),
    more: bytes = b"",
    size: bytes | None = None,
) -> bytes:
    """One record, whose parts may be anything."""
    body = attributes + time + number + key + value + headers + more
    return (varint(len(body)) if size is None else size) + body


def raw_batch(
    records: bytes, count: int = 1, *, codec: int = 0, packed: bytes | None = None, **fields: int
) -> bytes:
    """A batch around these bytes of records, or around `packed` as what the codec made of them."""
    body = compress(codec, records) if packed is None else packed
    some = batch()[:OVERHEAD] + body
    wanted = {"attributes": codec, "length": len(some) - 12, "count": count, "last_offset_delta": count - 1}
    wanted |= fields
    return altered(some, **wanted)


def refused(records: Buffer | None, rules: Rules | None = None, now_ms: int = NOW) -> BadBatch:
    """Why these records are not taken."""
    with pytest.raises(BadBatch) as caught:
        check(records, rules or Rules(), now_ms)
    return caught.value


def code_of(records: Buffer | None, rules: Rules | None = None) -> ErrorCode:
    return refused(records, rules).code


def stored(accepted: Accepted) -> bytes:
    """The batch as it will lie in the log, but for its place there."""
    return bytes(write_header(accepted.header)) + b"".join(bytes(piece) for piece in accepted.pieces)


def taken(records: Buffer, rules: Rules | None = None, now_ms: int = NOW) -> bytes:
    """The batch that is stored for these records."""
    return stored(check(records, rules or Rules(), now_ms))


def contents(batch: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Number, time, key and value of each record."""
    return [(r.offset, r.timestamp, r.key, r.value) for r in iterate(batch)]


def intact(batch: bytes) -> bool:
    """Whether length and checksum are right."""
    header = read_header(batch)
    return header.size == len(batch) and header.crc == checksum(batch[CHECKED_FROM:])
