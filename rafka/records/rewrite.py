"""A batch written anew because the topic wants another codec than the producer's."""

from __future__ import annotations

from .batch import LOG_APPEND_TIME_BIT, NO_TIMESTAMP, TRANSACTIONAL_BIT, BatchHeader
from .compress import NONE, compress
from .deep import Seen
from .errors import unreadable
from .record import split, wrapped
from .varint import varint, write_varint


def recompressed(header: BatchHeader, seen: Seen, codec: int, level: int | None) -> bytes:
    """The new payload. `header` is told all but its length, its checksum and its greatest time.

    The records are numbered 0, 1, 2 ... where they were not. Where the producer had given them all
    one time, by the bit that is not its to set, each of them gets that time for its own.
    """
    data = seen.data
    if header.log_append_time:
        data = _numbered(data, header.count, one_time=True)
        header.base_timestamp = header.max_timestamp
    else:
        if seen.earliest < 0:
            _refuse_times_before_1970(header, data)
        if not seen.in_order:
            data = _numbered(data, header.count)
    header.attributes = header.attributes & (TRANSACTIONAL_BIT | LOG_APPEND_TIME_BIT) | codec
    return data if codec == NONE else compress(codec, data, level)


def _numbered(data: bytes, count: int, *, one_time: bool = False) -> bytes:
    """The same records with offset deltas 0, 1, 2 ..., and with no timestamp deltas if they have one time."""
    out = bytearray()
    for index, (_, delta, _, rest_at, *_, stop) in enumerate(split(data, count)):
        front = b"\0" + varint(0 if one_time else delta) + varint(index)
        write_varint(len(front) + stop - rest_at, out)
        out += front
        out += data[rest_at:stop]
    return bytes(out)


def _refuse_times_before_1970(header: BatchHeader, data: bytes) -> None:
    """Kafka stores such times as they come, but stumbles over them when it writes records itself."""
    for _, delta, *_ in split(data, header.count):
        time = wrapped(header.base_timestamp + delta)
        if time < 0 and time != NO_TIMESTAMP:
            raise unreadable(f"a timestamp of {time} in a batch that is to be written anew")
