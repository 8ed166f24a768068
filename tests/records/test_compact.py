"""Batches looked at by key, and written anew with fewer records."""

from __future__ import annotations

import pytest

from rafka.records.batch import DELETE_HORIZON_BIT, read_header
from rafka.records.build import build
from rafka.records.check import BadBatch
from rafka.records.compact import Candidate, candidates, rebuild
from rafka.records.record import Record, find_time, iterate
from rafka.records.varint import varint

from .kit import NOW, altered, contents, every_codec, intact, raw_batch, raw_record

FIVE = [
    Record(0, NOW + i, key, value)
    for i, (key, value) in enumerate(
        [(b"a", b"1"), (b"b", b"2"), (b"a", None), (None, b"4"), (b"c", b"5" * 200)]
    )
]


def log_batch(codec: int = 0, **options: int) -> bytes:
    made = build(
        FIVE, base_offset=100, leader_epoch=6, codec=codec, producer_id=7, producer_epoch=1, base_sequence=40
    )
    return altered(made, **options) if options else made


def kept(log: bytes, *numbers: int) -> list[bytes]:
    return [c.raw for c in candidates(log) if c.offset - 100 in numbers]


@every_codec
def test_each_record_is_shown_with_its_key(codec: int) -> None:
    seen = list(candidates(log_batch(codec)))

    assert [(c.offset, c.key, c.tombstone) for c in seen] == [
        (100, b"a", False),
        (101, b"b", False),
        (102, b"a", True),
        (103, None, False),
        (104, b"c", False),
    ]


def test_a_raw_record_is_the_bytes_as_they_lie() -> None:
    odd = raw_record(
        attributes=b"\x55", number=b"\x80\x00", headers=varint(1) + varint(1) + b"\xff" + varint(-1)
    )
    log = raw_batch(odd, base_offset=9)

    assert list(candidates(log)) == [Candidate(9, b"k", False, odd)]
    assert rebuild(read_header(log), [odd]) == log


def test_a_damaged_batch_is_not_looked_at() -> None:
    with pytest.raises(BadBatch):
        list(candidates(raw_batch(raw_record(size=varint(2)))))


@every_codec
def test_a_batch_keeps_all_but_the_records_that_went(codec: int) -> None:
    log = log_batch(codec)

    shrunk = rebuild(read_header(log), kept(log, 1, 2))

    before, after = read_header(log), read_header(shrunk)
    assert contents(shrunk) == [(101, NOW + 1, b"b", b"2"), (102, NOW + 2, b"a", None)]
    assert (after.base_offset, after.last_offset, after.leader_epoch, after.count) == (100, 104, 6, 2)
    assert (after.producer_id, after.producer_epoch) == (7, 1)
    assert (after.base_sequence, after.last_sequence) == (40, before.last_sequence)
    assert (after.codec, after.base_timestamp) == (codec, NOW)
    assert intact(shrunk)


def test_the_header_that_was_given_is_left_alone() -> None:
    log = log_batch()
    header = read_header(log)

    rebuild(header, [], delete_horizon_ms=5)

    assert header == read_header(log)


@every_codec
def test_a_batch_that_lost_nothing_is_the_same_batch(codec: int) -> None:
    log = log_batch(codec)

    assert rebuild(read_header(log), kept(log, 0, 1, 2, 3, 4)) == log


def test_the_greatest_time_is_that_of_the_records_left() -> None:
    """A search by time trusts it"""
    log = log_batch()

    shrunk = rebuild(read_header(log), kept(log, 0, 1))

    assert read_header(shrunk).max_timestamp == NOW + 1
    assert find_time(shrunk, NOW + 1) == (101, NOW + 1)


def test_the_time_of_the_append_stays() -> None:
    log = log_batch(attributes=8, max_timestamp=NOW + 99)

    shrunk = rebuild(read_header(log), kept(log, 0))

    assert contents(shrunk) == [(100, NOW + 99, b"a", b"1")]


@every_codec
def test_a_batch_may_lose_all(codec: int) -> None:
    """It stays for its producer's sequence number and for the offsets"""
    log = log_batch(codec)

    empty = rebuild(read_header(log), [])

    header = read_header(empty)
    assert (len(empty), header.count, header.codec) == (61, 0, 0)
    assert (header.base_offset, header.last_offset, header.last_sequence) == (100, 104, 44)
    assert header.max_timestamp == NOW + 4
    assert list(iterate(empty)) == []
    assert rebuild(header, []) == empty
    assert intact(empty)


@every_codec
def test_a_delete_horizon_stands_where_the_base_time_was(codec: int) -> None:
    """KIP-534: and the records have the times they had"""
    log, horizon = log_batch(codec), NOW + 86_400_000

    marked = rebuild(read_header(log), kept(log, 0, 2), delete_horizon_ms=horizon)

    header = read_header(marked)
    assert header.attributes == codec | DELETE_HORIZON_BIT
    assert (header.base_timestamp, header.max_timestamp) == (horizon, NOW + 2)
    assert contents(marked) == [(100, NOW, b"a", b"1"), (102, NOW + 2, b"a", None)]
    assert intact(marked)


def test_a_delete_horizon_is_set_once() -> None:
    log = log_batch()
    marked = rebuild(read_header(log), kept(log, 0, 2), delete_horizon_ms=NOW + 1000)

    again = rebuild(read_header(marked), [c.raw for c in candidates(marked)], delete_horizon_ms=NOW + 2000)

    assert again == marked


def test_an_empty_batch_may_have_a_delete_horizon() -> None:
    """A marker's batch is kept until then"""
    empty = rebuild(read_header(log_batch()), [], delete_horizon_ms=NOW + 1000)

    assert read_header(empty).has_delete_horizon
    assert read_header(empty).base_timestamp == NOW + 1000
