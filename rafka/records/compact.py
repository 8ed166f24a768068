"""What compaction does to one batch: look at its keys, and write it anew with fewer records.

Records that stay are carried over as the bytes they are, so that nothing about them
changes, unknown attributes included. A batch keeps its offsets, its producer and its
sequence numbers whatever it loses: the log has no gaps between batches where it had none,
and a producer's last sequence number outlives its records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import attrs

from ..types import Buffer
from .batch import CODEC_BITS, DELETE_HORIZON_BIT, NO_TIMESTAMP, BatchHeader, read_header
from .build import assembled
from .compress import NONE, UNPACK_CAP, compress
from .record import payload_of, split, wrapped
from .varint import varint, write_varint


class Candidate(NamedTuple):
    """A record that may stay or go."""

    offset: int
    key: bytes | None
    tombstone: bool  # a null value: the key is deleted
    raw: bytes  # the record as it lies in the batch, decompressed


def candidates(batch: Buffer, cap: int = UNPACK_CAP) -> Iterator[Candidate]:
    """The records of the batch that `batch` begins with. BadBatch where they cannot be read."""
    header = read_header(batch)
    data = payload_of(header, batch, cap)
    for start, _, number, _, key_at, key_size, _, value_size, _, stop in split(data, header.count):
        yield Candidate(
            header.base_offset + number,
            data[key_at : key_at + key_size] if key_size >= 0 else None,
            value_size < 0,
            data[start:stop],
        )


def rebuild(
    header: BatchHeader,
    kept: Iterable[bytes],
    *,
    level: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """The batch with only these records of its own (`Candidate.raw`, in their order), or with none.

    `delete_horizon_ms` is the time from which tombstones and markers in it may go. It is written where
    the base timestamp was, so that the records' timestamps have to be counted from there; a batch that
    has such a time keeps the one it has.
    """
    raws = list(kept)
    shrunk = attrs.evolve(header, count=len(raws))
    if not raws:
        shrunk.attributes &= ~CODEC_BITS
        return assembled(_with_horizon(shrunk, delete_horizon_ms), b"")
    data = b"".join(raws)
    if not header.log_append_time:
        shrunk.max_timestamp = _latest(header.base_timestamp, data, len(raws))
    if delete_horizon_ms is not None and not header.has_delete_horizon:
        data = _counted_from(delete_horizon_ms, header.base_timestamp, data, len(raws))
    body = data if header.codec == NONE else compress(header.codec, data, level)
    return assembled(_with_horizon(shrunk, delete_horizon_ms), body)


def _with_horizon(header: BatchHeader, delete_horizon_ms: int | None) -> BatchHeader:
    if delete_horizon_ms is not None and not header.has_delete_horizon:
        header.attributes |= DELETE_HORIZON_BIT
        header.base_timestamp = delete_horizon_ms
    return header


def _latest(base_timestamp: int, data: bytes, count: int) -> int:
    """The greatest time of the records: times are looked up by it, and the latest record may be gone."""
    return max(NO_TIMESTAMP, *(wrapped(base_timestamp + delta) for _, delta, *_ in split(data, count)))


def _counted_from(new_base: int, old_base: int, data: bytes, count: int) -> bytes:
    """The same records with their timestamps counted from another time."""
    out = bytearray()
    for _, delta, number, rest_at, *_, stop in split(data, count):
        front = b"\0" + varint(wrapped(old_base + delta - new_base)) + varint(number)
        write_varint(len(front) + stop - rest_at, out)
        out += front
        out += data[rest_at:stop]
    return bytes(out)
