"""Records looked for by time, over all segments of a log (Kafka's L5 and L6).

Segment by segment by their greatest timestamps, then by the time index, then header by
header to the batch; the record in it is found by `times`, in a thread, because the batch
may be compressed. Timestamps need not ascend: the first record in order of *offsets* counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..times import first_at, latest_of
from .scan import Batch, Damaged, headers
from .segment import Look, SegmentFile

__all__ = ["first_at", "latest_candidate", "latest_of", "time_candidate"]

_STEP = 16 << 10  # bytes read at a time


def time_candidate(
    segments: Sequence[SegmentFile], timestamp: int, since: int, look: Look
) -> tuple[bytes, int] | None:
    """The first batch above `since` that has a record at or after `timestamp`; and the offset after it."""
    for segment in segments:
        if segment.next_offset <= since or segment.progress.timestamp < timestamp:
            continue
        offset = max(look.index(segment).offset_before_time(timestamp), since)
        for batch in _batches(segment, segment.position_of(offset, look), look):
            if batch.max_timestamp >= timestamp and batch.next_offset > since:
                return _whole(segment, batch, look), batch.next_offset
    return None


def latest_candidate(segments: Sequence[SegmentFile], start_offset: int, look: Look) -> bytes | None:
    """The first batch that has the greatest timestamp of all from `start_offset` on."""
    best, where = -1, None
    for segment in segments:
        if segment.next_offset <= start_offset:
            continue
        if segment.base_offset < start_offset:  # what lies below must not count
            for batch in _batches(segment, segment.position_of(start_offset, look), look):
                greatest = batch.max_timestamp
                if batch.base_offset < start_offset:
                    found = latest_of(_whole(segment, batch, look), start_offset)
                    greatest = found.timestamp if found else -1
                if greatest > best:
                    best, where = greatest, (segment, batch.next_offset - 1)
        elif segment.progress.timestamp > best:
            best, where = segment.progress.timestamp, (segment, segment.progress.time_offset)
    if where is None:
        return None
    segment, offset = where
    position = segment.position_of(offset, look)
    return _whole(segment, next(_batches(segment, position, look)), look)


def _batches(segment: SegmentFile, position: int, look: Look) -> Iterator[Batch]:
    return headers(lambda size, at: look.bytes(segment, size, at), position, segment.size, _STEP)


def _whole(segment: SegmentFile, batch: Batch, look: Look) -> bytes:
    data = look.bytes(segment, batch.size, batch.position)
    if len(data) < batch.size:
        raise Damaged(batch.position, f"{segment.path} is shorter than it was")
    return data
