"""A batch's records in another codec than the producer's."""

from __future__ import annotations

from .batch import BatchHeader
from .compress import NONE, compress
from .deep import Seen
from .record import split
from .varint import varint, write_varint


def recompressed(header: BatchHeader, seen: Seen, codec: int, level: int | None) -> bytes:
    """The new payload; the records are numbered 0, 1, 2 ... where they were not."""
    data = seen.data if seen.in_order else renumbered(seen.data, header.count)
    return data if codec == NONE else compress(codec, data, level)


def renumbered(data: bytes, count: int) -> bytes:
    """The same records with offset deltas 0, 1, 2 ...; all else as it was."""
    out = bytearray()
    for index, (_, time_delta, _, rest_at, *_, stop) in enumerate(split(data, count)):
        front = b"\0" + varint(time_delta) + varint(index)
        write_varint(len(front) + stop - rest_at, out)
        out += front
        out += data[rest_at:stop]
    return bytes(out)
