"""Records found by time inside one batch, at or above the log's start offset.

Lists of offsets by time (Kafka's L5, L6) first find the batch, by the greatest
timestamps of segments and batches, and then come here. Most batches lie wholly above
the start offset, and the records room answers for them; in the one that the start
offset cuts, the records below it must not be found.
"""

from __future__ import annotations

from ..records.batch import read_header
from ..records.record import find_time, iterate, latest_time
from ..types import Buffer
from .backend import TimeFound


def first_at(batch: Buffer, timestamp: int, start_offset: int) -> TimeFound | None:
    """The first record at or after `timestamp`."""
    header = read_header(batch)
    if header.base_offset >= start_offset:
        found = find_time(batch, timestamp)
    else:
        later = (
            (record.offset, record.timestamp)
            for record in iterate(batch)
            if record.offset >= start_offset and record.timestamp >= timestamp
        )
        found = next(later, None)
    return TimeFound(offset=found[0], timestamp=found[1], epoch=header.leader_epoch) if found else None


def latest_of(batch: Buffer, start_offset: int) -> TimeFound | None:
    """The first of the records with the greatest timestamp. None where no record has a time."""
    header = read_header(batch)
    if header.base_offset >= start_offset:
        found = latest_time(batch)
    else:
        times = (
            (record.offset, record.timestamp) for record in iterate(batch) if record.offset >= start_offset
        )
        found = max(times, key=lambda time: time[1], default=None)  # max() keeps the first of equals
    if found is None or found[1] < 0:
        return None
    return TimeFound(offset=found[0], timestamp=found[1], epoch=header.leader_epoch)
