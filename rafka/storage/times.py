"""Records found by time inside one batch, at or above the log's start offset.

Lists of offsets by time (Kafka's L5, L6) first find the batch, by the greatest
timestamps of segments and batches, and then come here. In the batch that the start
offset cuts, the records below it must not be found.
"""

from __future__ import annotations

from ..records.batch import read_header
from ..records.record import times_of
from ..types import Buffer
from .backend import TimeFound


def first_at(batch: Buffer, timestamp: int, start_offset: int) -> TimeFound | None:
    """The first record at or after `timestamp`."""
    for offset, time in times_of(batch):
        if time >= timestamp and offset >= start_offset:
            return TimeFound(offset=offset, timestamp=time, epoch=read_header(batch).leader_epoch)
    return None


def latest_of(batch: Buffer, start_offset: int) -> TimeFound | None:
    """The first of the records with the greatest timestamp. None where no record has a time."""
    best = max(
        (found for found in times_of(batch) if found[0] >= start_offset),
        key=lambda found: found[1],  # max() keeps the first of equals
        default=None,
    )
    if best is None or best[1] < 0:
        return None
    return TimeFound(offset=best[0], timestamp=best[1], epoch=read_header(batch).leader_epoch)
