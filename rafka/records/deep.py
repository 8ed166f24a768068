"""The walk over every record of a batch that a producer sent.

One pass in one function, for speed: it makes no objects, and only finds out whether the
records are whole and nothing about them is remarkable. Where something is - a time out of
bounds, a number out of order, a key that is missing - a second, slower pass decides as
Kafka does, and names the records.
"""

from __future__ import annotations

from typing import Final

import attrs

from ..errors import ErrorCode
from .batch import LOG_APPEND_TIME_BIT, NO_TIMESTAMP, BatchHeader
from .errors import BadBatch, damaged, unreadable
from .record import past_headers, split, wrapped
from .rules import Rules
from .varint import VarintTooLong, varint_rest, varlong_rest

MAX_RECORD_ERRORS: Final = 10_000  # Kafka names them all, and a small batch then asks for a huge reply

_HALF: Final = 1 << 63


@attrs.define
class Seen:
    """What the records say."""

    data: bytes  # the records, decompressed
    max_timestamp: int
    earliest: int  # the least timestamp
    in_order: bool  # they are numbered 0, 1, 2 ...


def times_in_doubt(header: BatchHeader, rules: Rules, now_ms: int) -> bool:
    """Whether the header's times are such that only the records can settle the matter."""
    if header.attributes & LOG_APPEND_TIME_BIT:
        return True
    if rules.log_append_time:
        return False
    base, top = header.base_timestamp, header.max_timestamp
    if base == top == NO_TIMESTAMP:
        return False
    return top < base or base < 0 or top - now_ms > rules.after_max_ms or now_ms - base > rules.before_max_ms


def refuse_by_header(header: BatchHeader, rules: Rules, now_ms: int) -> None:
    """Rules of time where the records cannot be read: the header speaks for them, and no record is named."""
    base, top = header.base_timestamp, header.max_timestamp
    if header.log_append_time:
        bad = rules.log_append_time or top == NO_TIMESTAMP or not _in_range(top, rules, now_ms)
    else:
        bad = not rules.log_append_time and any(
            time != NO_TIMESTAMP and not _in_range(time, rules, now_ms) for time in (base, top)
        )
    if bad:
        raise _rejected([], timestamps=True)


def inspect(
    header: BatchHeader, data: bytes, rules: Rules, now_ms: int, *, strict: bool, limit: int | None = None
) -> Seen:
    """Walk the records, or the first `limit`; BadBatch where they break a rule.

    `strict`: the records have to be numbered 0, 1, 2 ..., as nobody will number them anew.
    """
    count = header.count if limit is None else min(header.count, limit)
    latest, earliest, in_order, keys, at = _scan(data, count, header.codec)
    if at != len(data) and count == header.count:
        raise damaged(f"{len(data) - at} bytes are left over after {count} records")

    base = header.base_timestamp
    plain_times = latest >= 0 and not header.log_append_time and base + latest < _HALF
    if (
        not plain_times
        or (rules.compacted and not keys)
        or (strict and not in_order)
        or not (rules.log_append_time or _all_in_range(base + earliest, base + latest, rules, now_ms))
    ):
        max_timestamp = _judge(header, data, count, rules, now_ms, strict)
    else:
        max_timestamp = max(NO_TIMESTAMP, base + latest)
    if count < header.count and not header.log_append_time:
        max_timestamp = max(max_timestamp, header.max_timestamp)
    return Seen(data, max_timestamp, base + earliest, in_order)


def _scan(data: bytes, count: int, codec: int) -> tuple[int, int, bool, bool, int]:
    """The fast pass: greatest and least timestamp delta, whether all are in order and have keys, the end.

    The greatest delta is -1 where none is 0 or more; the least is never above 0.
    """
    latest = earliest = -1  # zig-zag: even numbers stand for 0 and up, odd ones for -1 and down
    in_order = keys = True
    at, end = 0, len(data)
    try:
        for expected in range(0, count + count, 2):
            raw = data[at]
            at += 1
            if raw > 0x7F:
                raw, at = _length_rest(data, at, raw, codec)
            stop = at + (raw >> 1)
            if raw & 1 or stop > end:
                raise damaged(f"record {expected >> 1} says that it ends where it cannot")

            raw = data[at + 1]  # before it are the attributes of the record, which nobody looks at
            at += 2
            if raw > 0x7F:
                raw, at = varlong_rest(data, at, raw)
            if raw & 1:
                if raw > earliest:
                    earliest = raw
            elif raw > latest:
                latest = raw

            raw = data[at]
            at += 1
            if raw > 0x7F:
                if (byte := data[at]) < 0x80:
                    raw = raw & 0x7F | byte << 7
                    at += 1
                else:
                    raw, at = varint_rest(data, at, raw)
            if raw != expected:
                in_order = False

            raw = data[at]
            at += 1
            if raw > 0x7F:
                raw, at = varint_rest(data, at, raw)
            if raw & 1:
                keys = False
            else:
                at += raw >> 1

            raw = data[at]
            at += 1
            if raw > 0x7F:
                if (byte := data[at]) < 0x80:
                    raw = raw & 0x7F | byte << 7
                    at += 1
                else:
                    raw, at = varint_rest(data, at, raw)
            if not raw & 1:
                at += raw >> 1

            raw = data[at]
            at += 1
            if raw:
                at = past_headers(data, at, raw, stop)
            if at != stop:
                raise damaged(f"record {expected >> 1} ends elsewhere than it says")
    except IndexError:
        raise damaged(f"the records end before there were {count}") from None
    except VarintTooLong as broken:
        raise damaged(str(broken)) from None
    return latest >> 1, -(earliest >> 1) - 1 if earliest > 0 else 0, in_order, keys, at


def _length_rest(data: bytes, at: int, first: int, codec: int) -> tuple[int, int]:
    """The length of a record; where it is too long a varint, Kafka's readers differ."""
    try:
        return varint_rest(data, at, first)
    except VarintTooLong as broken:
        raise (damaged if codec else unreadable)(str(broken)) from None


def _judge(header: BatchHeader, data: bytes, count: int, rules: Rules, now_ms: int, strict: bool) -> int:
    """The slow pass, record by record in Kafka's order: the greatest timestamp, or BadBatch."""
    errors: list[tuple[int, str | None]] = []
    timestamps = False
    greatest = NO_TIMESTAMP
    for index, (_, delta, number, _, _, key_size, *_) in enumerate(split(data, count)):
        time = header.max_timestamp if header.log_append_time else wrapped(header.base_timestamp + delta)
        if rules.compacted and key_size < 0:
            errors.append((index, "A compacted topic cannot take a record without a key."))
        elif wrong := _wrong_time(header, time, rules, now_ms):
            errors.append((index, wrong))
            timestamps = True
        elif strict and number != index:
            raise unreadable(f"record {index} is numbered {number}, in a compressed batch")
        elif time > greatest:
            greatest = time
    if errors:
        raise _rejected(errors, timestamps=timestamps)
    return greatest


def _wrong_time(header: BatchHeader, time: int, rules: Rules, now_ms: int) -> str | None:
    if not rules.log_append_time and time != NO_TIMESTAMP:
        if not _in_range(time, rules, now_ms):
            earliest, latest = now_ms - rules.before_max_ms, now_ms + rules.after_max_ms
            return f"The timestamp {time} is out of range: it should be within [{earliest}, {latest}]."
    elif header.log_append_time:
        return "A producer should not set the timestamp type to LogAppendTime."
    return None


def _in_range(time: int, rules: Rules, now_ms: int) -> bool:
    """Kafka's comparison, in 64 bits as it makes it: -2**63 is not long ago but in the future."""
    return -rules.after_max_ms <= wrapped(now_ms - time) <= rules.before_max_ms


def _all_in_range(earliest: int, latest: int, rules: Rules, now_ms: int) -> bool:
    return _in_range(earliest, rules, now_ms) and _in_range(latest, rules, now_ms)


def _rejected(errors: list[tuple[int, str | None]], *, timestamps: bool) -> BadBatch:
    code = ErrorCode.INVALID_TIMESTAMP if timestamps else ErrorCode.INVALID_RECORD
    cause = "invalid timestamps" if timestamps else f"{len(errors)} record errors"
    text = f"One or more records have been rejected due to {cause}"
    return BadBatch(code, text, appending=True, message=text, record_errors=errors[:MAX_RECORD_ERRORS])
