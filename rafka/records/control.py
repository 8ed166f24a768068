"""Control batches: the markers that end a producer's transaction in a partition.

A marker is a batch of one record that takes an offset of its own. Every reader gets it;
clients pass over it, after they have learned from it how the transaction ended. The key
says what it is, the value which transaction coordinator said so.
"""

from __future__ import annotations

import struct
from typing import Final

from ..types import Buffer, message
from .batch import read_header
from .build import build
from .errors import damaged
from .record import Record, iterate

END_TXN_ABORT: Final = 0
END_TXN_COMMIT: Final = 1

_KEY: Final = struct.Struct(">hh")  # version, type
_VALUE: Final = struct.Struct(">hi")  # version, coordinator epoch
_VERSION: Final = 0


@message
class Marker:
    """What an end-of-transaction marker says."""

    committed: bool
    coordinator_epoch: int


def build_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    committed: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
    log_append_time: bool = False,
) -> bytes:
    """The batch that ends a transaction. `log_append_time`: it says so of its time, as others there."""
    key = _KEY.pack(_VERSION, END_TXN_COMMIT if committed else END_TXN_ABORT)
    value = _VALUE.pack(_VERSION, coordinator_epoch)
    return build(
        [Record(base_offset, timestamp, key, value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
        log_append_time=timestamp if log_append_time else None,
    )


def marker_type(batch: Buffer) -> int:
    """The type of a control batch: one of the two above, or another for what is not a client's business."""
    return _type_of(_record(batch))


def read_marker(batch: Buffer) -> Marker | None:
    """How the transaction ended; None for a control batch of another type."""
    record = _record(batch)
    kind = _type_of(record)
    if kind not in (END_TXN_ABORT, END_TXN_COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise damaged("an end-of-transaction marker without a coordinator")
    _, coordinator_epoch = _VALUE.unpack_from(record.value)
    return Marker(committed=kind == END_TXN_COMMIT, coordinator_epoch=coordinator_epoch)


def _record(batch: Buffer) -> Record:
    if not read_header(batch).control:
        raise damaged("not a control batch")
    for record in iterate(batch):
        return record
    raise damaged("a control batch without a record")


def _type_of(record: Record) -> int:
    if record.key is None or len(record.key) < _KEY.size:
        raise damaged("a control record without a type")
    _, kind = _KEY.unpack_from(record.key)
    return int(kind)
