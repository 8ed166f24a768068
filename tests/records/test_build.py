"""Batches that are built: read back by us, and both ways by kafka-python, which we did not write."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.records.batch import read_header
from rafka.records.build import build, build_pairs
from rafka.records.check import Rules
from rafka.records.compress import NAMES
from rafka.records.record import Record, iterate
from rafka.records.varint import read_varint, read_varlong, varint

from .kit import DEEP, NOW, batch, every_codec, intact, taken

a_record = st.builds(
    Record,
    st.just(0),
    st.integers(-1, 2**48),
    st.none() | st.binary(max_size=300),
    st.none() | st.binary(max_size=300),
    st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
)


def numbered(records: list[Record], base: int = 0) -> list[tuple[Any, ...]]:
    return [(base + i, r.timestamp, r.key, r.value, list(r.headers)) for i, r in enumerate(records)]


def as_tuples(batch: bytes) -> list[tuple[Any, ...]]:
    return [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in iterate(batch)]


@given(st.lists(a_record, min_size=1, max_size=20), st.integers(0, 2**40))
def test_what_is_built_is_read_back(records: list[Record], base: int) -> None:
    made = build(records, base_offset=base)

    assert as_tuples(made) == numbered(records, base)
    assert intact(made)


some_bytes = st.binary(max_size=300) | st.integers(4090, 9000).map(bytes)


@given(st.lists(st.tuples(some_bytes, some_bytes), min_size=1, max_size=20), st.integers(0, 2**40))
def test_pairs_are_built_to_the_same_bytes(pairs: list[tuple[bytes, bytes]], base: int) -> None:
    header, pieces = build_pairs(pairs, NOW, base_offset=base, leader_epoch=3)

    made = b"".join(pieces)
    records = [Record(0, NOW, key, value) for key, value in pairs]
    assert made == build(records, base_offset=base, leader_epoch=3)
    assert header == read_header(made)


def test_more_pairs_than_are_looked_up_are_built_too() -> None:
    pairs = [(b"k", b"v")] * 5000

    _, pieces = build_pairs(iter(pairs), NOW)

    assert b"".join(pieces) == build([Record(0, NOW, b"k", b"v")] * 5000)


def test_no_pairs_are_no_batch() -> None:
    with pytest.raises(ValueError, match="one record at the least"):
        build_pairs([], NOW)


@given(st.lists(a_record, min_size=1, max_size=20))
def test_what_is_built_passes_every_check(records: list[Record]) -> None:
    made = build(records)

    assert taken(made, Rules(deep=True, after_max_ms=2**62)) == made


@every_codec
@given(st.lists(a_record, min_size=1, max_size=20))
def test_every_codec_gives_the_records_back(codec: int, records: list[Record]) -> None:
    assert as_tuples(build(records, codec=codec)) == numbered(records)


def test_everything_in_the_header_can_be_said() -> None:
    made = build(
        [Record(0, NOW + 5, None, b"a"), Record(0, NOW, None, b"b")],
        base_offset=100,
        codec=1,
        producer_id=7,
        producer_epoch=2,
        base_sequence=30,
        transactional=True,
        leader_epoch=4,
    )

    header = read_header(made)
    assert (header.base_offset, header.leader_epoch, header.magic, header.attributes) == (100, 4, 2, 0x11)
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 5, NOW + 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 30)
    assert (header.last_offset_delta, header.count, header.last_sequence) == (1, 2, 31)


def test_what_is_not_said_is_what_a_plain_producer_says() -> None:
    header = read_header(build([Record(99, NOW, None, b"a")]))

    assert (header.base_offset, header.leader_epoch, header.attributes) == (0, -1, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_records_may_come_from_any_iterable() -> None:
    assert build(Record(0, NOW + i, b"k", v) for i, v in enumerate((b"a", b"b"))) == batch(b"a", b"b")


def test_a_batch_of_nothing_is_not_built() -> None:
    with pytest.raises(ValueError, match="one record"):
        build([])


def test_times_that_are_far_apart_wrap_and_come_back() -> None:
    records = [Record(0, 2**63 - 1, None, b""), Record(0, -(2**63), None, b"")]

    assert [r.timestamp for r in iterate(build(records))] == [2**63 - 1, -(2**63)]


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_is_read_back(number: int) -> None:
    written = varint(number)

    assert read_varlong(b"x" + written, 1) == (number, 1 + len(written))
    if -(2**31) <= number < 2**31:
        assert read_varint(written, 0) == (number, len(written))
        assert len(written) <= 5


# kafka-python, whose versions since 2.2 agree on these two


def kafka_python(module: str) -> Any:
    return pytest.importorskip(f"kafka.record.{module}")


def readable_by_kafka_python(codec: int) -> None:
    if codec and not getattr(pytest.importorskip("kafka.codec"), f"has_{NAMES[codec]}")():
        pytest.skip(f"kafka-python finds no {NAMES[codec]} library")


RECORDS = [
    Record(0, NOW, b"key", b"value" * 100, [("header", b"x"), ("null", None)]),
    Record(0, NOW + 3, None, b""),
    Record(0, NOW - 5, b"", None),
    Record(0, NOW + 70_000, b"k" * 200, b"v" * 20_000, [("é", b"")]),
]


@every_codec
def test_kafka_python_reads_what_is_built(codec: int) -> None:
    readable_by_kafka_python(codec)
    made = build(
        RECORDS,
        base_offset=40,
        codec=codec,
        producer_id=9,
        producer_epoch=1,
        base_sequence=5,
        transactional=True,
    )

    batches = kafka_python("memory_records").MemoryRecords(made)

    theirs = batches.next_batch()
    assert not batches.has_next()
    assert theirs.validate_crc()
    assert (theirs.base_offset, theirs.compression_type, theirs.is_transactional) == (40, codec, True)
    assert (theirs.producer_id, theirs.max_timestamp) == (9, NOW + 70_000)
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in theirs] == numbered(RECORDS, 40)


@every_codec
def test_what_kafka_python_builds_is_read_and_taken(codec: int) -> None:
    readable_by_kafka_python(codec)
    builder = kafka_python("default_records").DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=True,
        producer_id=9,
        producer_epoch=1,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for number, r in enumerate(RECORDS):
        assert builder.append(
            number, timestamp=r.timestamp, key=r.key, value=r.value, headers=list(r.headers)
        )

    theirs = bytes(builder.build())

    assert as_tuples(theirs) == numbered(RECORDS)
    assert taken(theirs, DEEP) == theirs
    header = read_header(theirs)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (9, 1, 5, 4)
    assert header.transactional


@every_codec
def test_a_batch_compressed_anew_is_read_by_kafka_python(codec: int) -> None:
    readable_by_kafka_python(codec)

    stored = taken(build(RECORDS), Rules(compression=codec, log_append_time=True), NOW + 1)

    theirs = kafka_python("memory_records").MemoryRecords(stored).next_batch()
    assert theirs.validate_crc()
    assert [(r.timestamp, r.value) for r in theirs] == [(NOW + 1, r.value) for r in RECORDS]
