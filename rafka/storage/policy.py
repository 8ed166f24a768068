"""When a segment is closed and when it is removed: Kafka's rules, as plain functions.

Both backends ask here, so that they cannot differ. Nothing in this file knows a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from .backend import LogSettings, Segment

OFFSET_ENTRY = 8  # bytes of an entry of Kafka's offset index
TIME_ENTRY = 12
MAX_RELATIVE_OFFSET = 2**31 - 1  # index entries hold offsets relative to the base, in an int32


class Rollable(Protocol):
    """What rolling depends on in the active segment."""

    base_offset: int
    size: int
    jitter_ms: int  # taken off segment.ms, so that many partitions do not roll in one moment
    first_timestamp: int  # the greatest of the first batch; below 0 if that has none
    created_ms: int
    offset_entries: int
    time_entries: int


def must_roll(
    active: Rollable, settings: LogSettings, size: int, timestamp: int, last_offset: int, now_ms: int
) -> bool:
    """Whether a batch of this size, greatest timestamp and last offset belongs in a new segment."""
    if active.size == 0:
        return False
    if active.size + size > settings.segment_bytes:
        return True
    if active.first_timestamp >= 0 and timestamp >= 0:
        age = timestamp - active.first_timestamp
    else:
        age = now_ms - active.created_ms
    return (
        age > settings.segment_ms - active.jitter_ms
        or last_offset - active.base_offset > MAX_RELATIVE_OFFSET
        or active.offset_entries >= settings.index_max_bytes // OFFSET_ENTRY
        or active.time_entries >= settings.index_max_bytes // TIME_ENTRY - 1
    )


def expired(
    segments: Sequence[Segment],
    *,
    start_offset: int,
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
    upto: int,
) -> int:
    """How many of the oldest segments have to go. The last of `segments` is the active one.

    Kafka's order: what lies below the start offset, then what is above the size, then what
    is too old; each stops at the first segment that may stay. All of them may go, unless
    the last one is empty.
    """
    count = 0
    for _, after in pairwise(segments):
        if after.base_offset > min(start_offset, upto):
            break
        count += 1
    if retention_bytes >= 0:
        surplus = sum(segment.size for segment in segments[count:]) - retention_bytes
        for segment in segments[count:]:
            surplus -= segment.size
            if surplus < 0 or not _may_go(segment, segments, upto):
                break
            count += 1
    if retention_ms >= 0:
        for segment in segments[count:]:
            if not _may_go(segment, segments, upto) or now_ms - segment.largest_timestamp <= retention_ms:
                break
            count += 1
    return count


def _may_go(segment: Segment, segments: Sequence[Segment], upto: int) -> bool:
    return segment.next_offset <= upto and (segment.size > 0 or segment is not segments[-1])
