"""What a start has to know of each log: the checkpoint file of a data directory.

One file for all logs, so that a start costs one read and a listing per log, whatever
the number of bytes; written beside and renamed over the old one, so that there is
always a whole one. It holds, per log: start offset, how far compaction has come, leader
epochs, and the segments up to the *recovery point* - all that was flushed when the
checkpoint was taken. What lies above is walked after an unclean stop, and only that.
Damage to it is noticed by its checksum, and answered by walking everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgpack

from ...env import Disk
from ...records.checksum import checksum
from ...types import message
from ..backend import LogName
from . import names
from .index import AbortedProof, Proof
from .segment import SegmentFile, read_whole

CHECKPOINT = "checkpoint"
_FORMAT = 2


class SegmentMark(NamedTuple):
    """A segment as it was at some moment, all its bytes up to then flushed."""

    base_offset: int
    next_offset: int
    size: int
    created_ms: int
    written_ms: int
    first_timestamp: int
    timestamp: int
    time_offset: int
    since_entry: int
    proof: Proof
    aborted: AbortedProof


@message
class LogMark:
    """A log up to its recovery point."""

    start_offset: int
    compacted_to: int
    epochs: list[tuple[int, int]]
    segments: list[SegmentMark]  # the recovery point is the end of the last one

    @property
    def recovery_point(self) -> int:
        return self.segments[-1].next_offset


@message
class Checkpoint:
    clean: bool  # whether the process said goodbye: then nothing lies above the recovery points
    durable: bool  # whether it promised flushed data
    logs: dict[LogName, LogMark]


def mark_of(segment: SegmentFile) -> SegmentMark:
    progress = segment.progress
    return SegmentMark(
        segment.base_offset,
        segment.next_offset,
        segment.size,
        segment.created_ms,
        segment.written_ms,
        segment.first_timestamp,
        progress.timestamp,
        progress.time_offset,
        progress.since_entry,
        segment.proof,
        segment.aborted_proof,
    )


def packed(name: LogName, mark: LogMark) -> bytes:
    """One log's part of the file. Kept by the log until it changes."""
    data: bytes = msgpack.packb((name, mark.start_offset, mark.compacted_to, mark.epochs, mark.segments))
    return data


def save(disk: Disk, root: str, marks: Iterable[bytes], *, clean: bool, durable: bool) -> None:
    """Replace the checkpoint, durably. May block."""
    body = msgpack.packb((_FORMAT, clean, durable)) + b"".join(marks)
    replace_file(disk, root, CHECKPOINT, checksum(body).to_bytes(4, "big") + body)


def load(disk: Disk, root: str) -> Checkpoint | None:
    """None where it is damaged, or where there is none."""
    try:
        data = read_whole(disk, f"{root}/{CHECKPOINT}")
    except FileNotFoundError:
        return None
    if len(data) < 4 or checksum(data[4:]) != int.from_bytes(data[:4], "big"):
        return None
    try:
        return _read(data[4:])
    except (TypeError, ValueError, StopIteration):  # its sum is right, so another version wrote it
        return None


def _read(body: bytes) -> Checkpoint | None:
    rows = msgpack.Unpacker(use_list=False, max_buffer_size=len(body))
    rows.feed(body)
    form, clean, durable = next(rows)
    if form != _FORMAT:
        return None
    logs = {
        LogName(name): LogMark(
            start_offset=start,
            compacted_to=compacted,
            epochs=list(epochs),
            segments=[
                SegmentMark._make((*segment[:-2], Proof._make(segment[-2]), AbortedProof._make(segment[-1])))
                for segment in segments
            ],
        )
        for name, start, compacted, epochs, segments in rows
    }
    return Checkpoint(clean=clean, durable=durable, logs=logs)


def replace_file(disk: Disk, folder: str, name: str, data: bytes) -> None:
    """Write a file as a whole or not at all, durably."""
    temporary = f"{folder}/{name}{names.TEMPORARY}"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write([data], 0)
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, f"{folder}/{name}")
    disk.sync_dir(folder)
