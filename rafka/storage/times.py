"""Records found by time inside one batch, at or above the log's start offset.

Lists of offsets by time (Kafka's L5, L6) first find the batch, by the greatest
timestamps of segments and batches, and then come here. In the batch that the start
offset cuts, the records below it must not be found.

Where the batch's codec is not installed its header has to do: the answer is then no later
than the record, for a reader that goes on from there, and the greatest time is that of the last.
"""

from __future__ import annotations

from ..records.batch import read_header
from ..records.compress import MissingCodec
from ..records.record import times_of
from ..types import Buffer
from .backend import TimeFound


def first_at(batch: Buffer, timestamp: int, start_offset: int) -> TimeFound | None:
    """The first record at or after `timestamp`."""
    header = read_header(batch)
    try:
        for offset, time in times_of(batch):
            if time >= timestamp and offset >= start_offset:
                return TimeFound(offset=offset, timestamp=time, epoch=header.leader_epoch)
    except MissingCodec:
        if header.max_timestamp >= timestamp:
            first, greatest = header.base_timestamp, header.max_timestamp
            return TimeFound(
                offset=max(header.base_offset, start_offset),
                timestamp=first if timestamp <= first <= greatest else greatest,
                epoch=header.leader_epoch,
            )
    return None


def latest_of(batch: Buffer, start_offset: int) -> TimeFound | None:
    """The first of the records with the greatest timestamp. None where no record has a time."""
    header = read_header(batch)
    try:
        times = [found for found in times_of(batch) if found[0] >= start_offset]
    except MissingCodec:
        first = max(header.base_offset, start_offset)
        times = [(first if header.log_append_time else header.last_offset, header.max_timestamp)]
    best = max(times, key=lambda found: found[1], default=None)  # max() keeps the first of equals
    if best is None or best[1] < 0:
        return None
    return TimeFound(offset=best[0], timestamp=best[1], epoch=header.leader_epoch)
