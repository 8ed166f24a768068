"""What a fetch brought becomes the records that a reader should see."""

from __future__ import annotations

import pytest

from rafka.client.errors import CorruptBatch
from rafka.client.messages.data import AbortedTransaction
from rafka.client.unpack import Unpacker
from rafka.records.build import build
from rafka.records.control import build_marker
from rafka.records.record import Record


def batch(at: int, *values: str, producer: int = -1, transactional: bool = False) -> bytes:
    return build(
        [Record(0, 1000, None, value.encode()) for value in values],
        base_offset=at,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0 if producer >= 0 else -1,
        transactional=transactional,
    )


def marker(at: int, producer: int, committed: bool) -> bytes:
    return build_marker(
        producer_id=producer,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=1000,
        base_offset=at,
    )


def seen(unpacker: Unpacker, data: bytes) -> list[tuple[int, str]]:
    return [(record.offset, (record.value or b"").decode()) for record in unpacker.unpack(data)]


def test_a_batch_that_begins_earlier_is_read_from_the_offset_on() -> None:
    unpacker = Unpacker("t-0", 2, None)

    assert seen(unpacker, batch(0, "a", "b", "c", "d")) == [(2, "c"), (3, "d")]
    assert unpacker.next_offset == 4


def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch() -> None:
    unpacker = Unpacker("t-0", 0, None)

    assert seen(unpacker, batch(0, "a") + batch(1, "b")[:-1]) == [(0, "a")]
    assert unpacker.next_offset == 1


def test_markers_take_an_offset_and_are_not_seen() -> None:
    unpacker = Unpacker("t-0", 0, None)
    data = batch(0, "a", producer=7, transactional=True) + marker(1, 7, committed=True) + batch(2, "b")

    assert seen(unpacker, data) == [(0, "a"), (2, "b")]
    assert unpacker.next_offset == 3


def test_what_was_aborted_is_hidden_up_to_its_marker() -> None:
    aborted = [
        AbortedTransaction(producer_id=7, first_offset=0),
        AbortedTransaction(producer_id=8, first_offset=5),
    ]
    unpacker = Unpacker("t-0", 0, aborted)
    data = b"".join(
        [
            batch(0, "aborted", producer=7, transactional=True),
            batch(1, "other", producer=9, transactional=True),
            marker(2, 7, committed=False),
            batch(3, "committed", producer=7, transactional=True),
            batch(4, "committed too", producer=8, transactional=True),
            batch(5, "aborted later", producer=8, transactional=True),
            batch(6, "plain", producer=8),
            marker(7, 8, committed=False),
        ]
    )

    assert seen(unpacker, data) == [(1, "other"), (3, "committed"), (4, "committed too"), (6, "plain")]
    assert unpacker.next_offset == 8


def test_uncommitted_reading_sees_what_was_aborted() -> None:
    unpacker = Unpacker("t-0", 0, None)
    data = batch(0, "aborted", producer=7, transactional=True) + marker(1, 7, committed=False)

    assert seen(unpacker, data) == [(0, "aborted")]


def test_a_wrong_checksum_is_told_with_the_way_past_it() -> None:
    data = bytearray(batch(0, "a", "b"))
    data[-2] ^= 1  # in the last value

    with pytest.raises(CorruptBatch, match=r"t-0: the batch at offset 0 fails its checksum: .* offset 2"):
        Unpacker("t-0", 0, None).unpack(data)
    assert len(Unpacker("t-0", 0, None, check_crc=False).unpack(data)) == 2


def test_an_old_format_is_named() -> None:
    data = bytearray(batch(0, "a"))
    data[16] = 1

    with pytest.raises(CorruptBatch, match="format 1"):
        Unpacker("t-0", 0, None).unpack(data)


def test_records_that_cannot_be_read_are_told() -> None:
    whole = bytearray(build([Record(0, 0, None, b"a" * 50)], codec=1))
    whole[61:71] = b"not gzip.."

    with pytest.raises(CorruptBatch, match="cannot be read: gzip"):
        Unpacker("t-0", 0, None, check_crc=False).unpack(whole)
