"""The names of a log's files. They are Kafka's, so that its tools find their way.

    00000000000000000000.log         record batches, the first at this offset or above
    00000000000000000000.index       offset -> position, sparse
    00000000000000000000.timeindex   greatest time so far -> offset, sparse
    00000000000000000000.txnindex    aborted transactions whose markers are here; only where there are some
    00000000000000000042.snapshot    the producers' state as of offset 42
    leader-epoch-checkpoint          which epoch each stretch of offsets was written in

A suffix after these tells what is to become of a file: `.deleted` waits to be removed,
`.cleaned` is still being written, and `<end>.swap` is complete and takes the place of
all segments from its own offset up to `<end>`.
"""

from __future__ import annotations

import re

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
EPOCHS = "leader-epoch-checkpoint"

DELETED = ".deleted"
CLEANED = ".cleaned"
TEMPORARY = ".tmp"

_SEGMENT = re.compile(r"(\d{20})\.log")
_SNAPSHOT = re.compile(r"(\d{20})\.snapshot")
_SWAP = re.compile(r"(\d{20})\.log\.(\d{20})\.swap")


def stem(offset: int) -> str:
    return f"{offset:020}"


def swap(base_offset: int, next_offset: int) -> str:
    return f"{base_offset:020}{LOG}.{next_offset:020}.swap"


def segment_base(name: str) -> int | None:
    """The base offset, if this is the name of a segment's log file."""
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match else None


def snapshot_offset(name: str) -> int | None:
    match = _SNAPSHOT.fullmatch(name)
    return int(match[1]) if match else None


def swap_range(name: str) -> tuple[int, int] | None:
    """The offsets that a swap file replaces: from the first up to the second."""
    match = _SWAP.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None
