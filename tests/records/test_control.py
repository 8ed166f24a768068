"""The markers that end transactions."""

from __future__ import annotations

import struct

import pytest

from rafka.records.batch import read_header
from rafka.records.build import build
from rafka.records.check import BadBatch
from rafka.records.control import (
    END_TXN_ABORT,
    END_TXN_COMMIT,
    Marker,
    build_marker,
    marker_type,
    read_marker,
)
from rafka.records.record import Record, iterate

from .kit import NOW, altered, batch, intact


def marker(*, committed: bool) -> bytes:
    return build_marker(
        producer_id=77,
        producer_epoch=3,
        committed=committed,
        coordinator_epoch=12,
        timestamp=NOW,
        base_offset=1000,
        leader_epoch=5,
    )


def test_a_marker_is_a_batch_as_kafka_writes_it() -> None:
    made = marker(committed=True)

    header = read_header(made)
    assert header.attributes == 0x30
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, -1)
    assert (header.base_offset, header.leader_epoch, header.count, header.last_offset) == (1000, 5, 1, 1000)
    assert list(iterate(made)) == [Record(1000, NOW, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 12))]
    assert intact(made)


@pytest.mark.parametrize(("committed", "kind"), [(True, END_TXN_COMMIT), (False, END_TXN_ABORT)])
def test_a_marker_tells_how_the_transaction_ended(committed: bool, kind: int) -> None:
    made = marker(committed=committed)

    assert marker_type(made) == kind
    assert read_marker(made) == Marker(committed=committed, coordinator_epoch=12)


def test_kafka_python_sees_a_control_batch() -> None:
    memory_records = pytest.importorskip("kafka.record.memory_records")

    theirs = memory_records.MemoryRecords(marker(committed=False)).next_batch()

    assert theirs.validate_crc()
    assert theirs.is_control_batch
    assert theirs.is_transactional


def test_control_batches_of_other_types_are_no_markers() -> None:
    leader_change = build([Record(0, NOW, struct.pack(">hh", 0, 2), b"")], control=True)

    assert marker_type(leader_change) == 2
    assert read_marker(leader_change) is None


@pytest.mark.parametrize(
    "broken",
    [
        batch(b"a"),
        build([Record(0, NOW, None, b"")], control=True),
        build([Record(0, NOW, b"\0\0", b"")], control=True),
        build([Record(0, NOW, struct.pack(">hh", 0, 1), None)], control=True),
        build([Record(0, NOW, struct.pack(">hh", 0, 0), b"\0")], control=True),
        altered(build([Record(0, NOW, b"", b"")], control=True), count=0, length=49)[:61],
    ],
    ids=["plain", "no key", "half a key", "no value", "half a value", "empty"],
)
def test_what_is_no_marker_is_a_bad_batch(broken: bytes) -> None:
    with pytest.raises(BadBatch):
        read_marker(broken)
