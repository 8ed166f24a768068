"""What a partition takes from a producer, decided for one record set.

The rules are Kafka's, in Kafka's order, so that a batch with two faults is refused for
the same one. Most batches are judged by their header alone: length, checksum, counts and
times. Records are looked at only where a rule needs them - `deep` rules, a compacted
topic, a change of codec - or where the header looks odd, and then the records decide.

What the caller has checked before: the topic, the leader, authorisation. What it checks
after: the producer's sequence numbers. A sound set comes back as a header that has yet to
get its place in the log (`batch.placed`) and the pieces to write behind it.
"""

from __future__ import annotations

from typing import Final

from ..errors import ErrorCode
from ..types import Buffer, message
from .batch import (
    CHECKED_FROM,
    CODEC_BITS,
    CONTROL_BIT,
    KNOWN_BITS,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    OVERHEAD,
    BatchHeader,
    read_header,
    sealed,
)
from .checksum import checksum
from .compress import ZSTD, MissingCodec, decompress
from .deep import Seen, inspect, refuse_by_header, times_in_doubt
from .errors import BadBatch, damaged, too_large, unreadable
from .rewrite import recompressed
from .rules import Rules

__all__ = ["Accepted", "BadBatch", "Rules", "check", "first_look"]

_SHORTEST: Final = 14  # a length field below that fits no format: damage, not an older one
_UP_TO_MAGIC: Final = 17


@message
class Accepted:
    """A sound batch: `header` still to be placed, `pieces` the bytes that follow its 61."""

    header: BatchHeader
    pieces: list[Buffer]


def check(records: Buffer | None, rules: Rules, now_ms: int) -> Accepted:
    """Take the record set of one partition, or raise BadBatch."""
    header, view = first_look(records, rules)
    size = LOG_OVERHEAD + header.length

    if header.base_offset:
        raise damaged(f"base offset {header.base_offset}, where a producer says 0")
    if size > rules.max_bytes:
        raise too_large(f"{size} bytes, where the topic takes {rules.max_bytes}")
    if size < OVERHEAD or checksum(view[CHECKED_FROM:size]) != header.crc:
        raise BadBatch(ErrorCode.CORRUPT_MESSAGE, "the checksum is wrong", appending=False)

    attributes, count = header.attributes, header.count
    codec = attributes & CODEC_BITS
    if codec > ZSTD:
        raise unreadable(f"no such codec: {codec}")
    if count <= 0 or header.last_offset_delta != count - 1:
        raise damaged(f"{count} records, the last one numbered {header.last_offset_delta}")
    if attributes & CONTROL_BIT:
        raise damaged("a control batch from a client")
    if header.base_sequence < 0 <= header.producer_id:
        raise damaged(f"producer {header.producer_id} gives no sequence number")

    accepted = Accepted(header=header, pieces=[view[OVERHEAD:size]])
    if (
        rules.deep
        or rules.compacted
        or rules.compression is not None
        or times_in_doubt(header, rules, now_ms)
    ):
        _by_records(accepted, rules, now_ms)
    elif rules.log_append_time:
        _settle(accepted, LOG_APPEND_TIME_BIT, now_ms)
    if header.length + LOG_OVERHEAD > rules.segment_bytes:
        raise BadBatch(ErrorCode.RECORD_LIST_TOO_LARGE, "it does not fit a segment", appending=False)
    return accepted


def first_look(records: Buffer | None, rules: Rules) -> tuple[BatchHeader, memoryview]:
    """What is found before anything else is known of the request: is it one batch, of a format we take?"""
    if records is None:
        raise _malformed("no record set")
    view = records if type(records) is memoryview else memoryview(records)
    return _only_batch(view, rules), view


def _only_batch(view: memoryview, rules: Rules) -> BatchHeader:
    """The header of the one batch; an incomplete batch behind it is dropped."""
    if len(view) >= OVERHEAD and rules.zstd_allowed:
        header = read_header(view)
        if header.magic == 2 and header.length + LOG_OVERHEAD == len(view):
            return header  # one whole batch and nothing else: nearly always
    size = _next_batch(view, 0)
    if size is None:
        raise _malformed("not one whole batch")
    if view[16] < 2:
        raise _malformed(f"format {view[16]}, which Kafka 4 no longer takes")
    header = _header_of(view[:size])
    if not rules.zstd_allowed:
        _refuse_zstd(header.codec)
    if _next_batch(view, size) is not None:
        raise _malformed("more than one batch")
    return header


def _next_batch(view: memoryview, at: int) -> int | None:
    """The size of the whole batch at `at`, None where there is none; damage comes first, as in Kafka."""
    left = len(view) - at
    if left < LOG_OVERHEAD:
        return None
    length = int.from_bytes(view[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
    if length < _SHORTEST:
        raise _no_batch(f"a batch of length {length}", at)
    if left < _UP_TO_MAGIC:
        return None
    if view[at + 16] > 2:
        raise _no_batch(f"format {view[at + 16]}, which nobody knows", at)
    size = LOG_OVERHEAD + length
    return size if size <= left else None


def _header_of(batch: memoryview) -> BatchHeader:
    """The header, of a batch too short for one as well: a wrong base offset is told before the shortness."""
    return read_header(batch if len(batch) >= OVERHEAD else bytes(batch).ljust(OVERHEAD, b"\0"))


def _refuse_zstd(codec: int) -> None:
    if codec > ZSTD:
        raise BadBatch(ErrorCode.UNKNOWN_SERVER_ERROR, f"no such codec: {codec}", appending=False)
    if codec == ZSTD:
        raise BadBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd before Produce v7", appending=False)


def _no_batch(reason: str, at: int) -> BadBatch:
    """What Kafka's reader of batches chokes on; the client is told why if it was the first batch."""
    told = None if at else reason
    return BadBatch(ErrorCode.CORRUPT_MESSAGE, reason, appending=False, message=told)


def _malformed(reason: str) -> BadBatch:
    """Found before Kafka begins to append."""
    return BadBatch(ErrorCode.INVALID_RECORD, reason, appending=False)


def _by_records(accepted: Accepted, rules: Rules, now_ms: int) -> None:
    """Judge a batch by its records, and write it anew where the topic wants another codec."""
    header = accepted.header
    target = header.codec if rules.compression is None else rules.compression
    anew = target != header.codec
    needed = rules.deep or rules.compacted or anew or times_in_doubt(header, rules, now_ms)
    seen = _look(accepted, rules, now_ms, anew) if needed else None
    if seen and anew:
        accepted.pieces[:] = [recompressed(header, seen, target, rules.level)]

    if rules.log_append_time:
        _settle(accepted, LOG_APPEND_TIME_BIT, now_ms, anew)
    else:
        _settle(accepted, 0, seen.max_timestamp if seen else header.max_timestamp, anew)
    if anew and header.size > rules.max_bytes:
        raise too_large(f"{header.size} bytes once compressed anew, where the topic takes {rules.max_bytes}")


def _look(accepted: Accepted, rules: Rules, now_ms: int, anew: bool) -> Seen | None:
    """What the records say; None where their codec is not installed and the header will have to do."""
    header = accepted.header
    try:
        data = decompress(header.codec, accepted.pieces[0], max(rules.unpack_cap, rules.max_bytes))
    except MissingCodec:
        if anew or rules.compacted:
            raise
        refuse_by_header(header, rules, now_ms)
        return None
    limit = None if anew or rules.compacted else rules.deep_limit
    return inspect(header, data, rules, now_ms, strict=header.codec != 0 and not anew, limit=limit)


def _settle(accepted: Accepted, time_type: int, max_timestamp: int, anew: bool = False) -> None:
    """Give the batch its type of time and its greatest time, and a new checksum if that changed a byte."""
    header = accepted.header
    if (
        not anew
        and header.max_timestamp == max_timestamp
        and header.attributes & LOG_APPEND_TIME_BIT == time_type
    ):
        return
    header.attributes = header.attributes & KNOWN_BITS & ~LOG_APPEND_TIME_BIT | time_type
    header.max_timestamp = max_timestamp
    sealed(header, *accepted.pieces)
