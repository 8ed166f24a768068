"""Batches that the broker writes anew, because the topic wants another codec."""

from __future__ import annotations

import gzip
from importlib.util import find_spec

import pytest

from rafka.errors import ErrorCode
from rafka.records import compress
from rafka.records.batch import DELETE_HORIZON_BIT, read_header
from rafka.records.build import build
from rafka.records.check import BadBatch, Rules
from rafka.records.compress import MissingCodec
from rafka.records.record import payload_of
from rafka.records.varint import varint

from .kit import (
    DEEP,
    NOW,
    altered,
    batch,
    code_of,
    contents,
    every_codec,
    every_compression,
    intact,
    raw_batch,
    raw_record,
    record,
    refused,
    taken,
)


@every_codec
@pytest.mark.parametrize("target", [0, 1], ids=["to plain", "to gzip"])
def test_the_same_records_in_another_codec(codec: int, target: int) -> None:
    sent = batch(
        b"a" * 50,
        None,
        b"c",
        codec=codec,
        producer_id=5,
        producer_epoch=1,
        base_sequence=9,
        transactional=True,
    )

    kept = taken(sent, Rules(compression=target))

    header = read_header(kept)
    assert (header.codec, header.count, header.last_offset_delta) == (target, 3, 2)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 1, 9)
    assert header.transactional
    assert contents(kept) == contents(sent)
    assert intact(kept)


@every_codec
def test_the_producers_codec_is_kept_if_it_is_the_topics(codec: int) -> None:
    sent = batch(b"a", codec=codec)

    assert taken(sent, Rules(compression=codec)) == sent
    assert taken(sent, Rules(compression=None)) == sent


@every_compression
def test_records_are_numbered_anew_where_they_must_be_written(codec: int) -> None:
    """2.2"""
    gaps = raw_record() + raw_record(number=varint(2), time=varint(7)) + raw_record(number=varint(4))

    kept = taken(raw_batch(gaps, 3), Rules(compression=codec))

    assert [(number, time) for number, time, _, _ in contents(kept)] == [(0, NOW), (1, NOW + 7), (2, NOW)]
    assert intact(kept)


def test_records_of_a_compressed_batch_are_numbered_anew_too() -> None:
    sent = raw_batch(raw_record(number=varint(5)), codec=1)

    assert contents(taken(sent, Rules(compression=0)))[0][0] == 0


def test_what_the_topic_wants_is_told_to_every_record() -> None:
    """B15-B17 hold for a batch that is to be written anew, whether records are looked at otherwise or not"""
    broken = raw_batch(raw_record(more=b"zz"))
    keyless = build([record(key=None)])

    assert code_of(broken, Rules(compression=1)) is ErrorCode.INVALID_RECORD
    assert code_of(keyless, Rules(compression=1, compacted=True)) is ErrorCode.INVALID_RECORD
    assert code_of(broken, Rules(compression=1, deep_limit=0)) is ErrorCode.INVALID_RECORD


def test_the_time_of_the_append_and_another_codec() -> None:
    kept = taken(batch(b"a", b"b"), Rules(compression=1, log_append_time=True), NOW + 9)

    assert read_header(kept).attributes == 1 | 8
    assert [time for _, time, _, _ in contents(kept)] == [NOW + 9, NOW + 9]
    assert intact(kept)


def test_a_wrong_greatest_time_is_put_right() -> None:
    sent = altered(batch(b"a", b"b"), max_timestamp=NOW + 5)

    assert read_header(taken(sent, Rules(compression=1))).max_timestamp == NOW + 1


def test_the_one_time_that_a_client_gave_to_all_becomes_that_of_each() -> None:
    """B18"""
    sent = altered(batch(b"a", b"b"), attributes=8, max_timestamp=NOW + 500)

    kept = taken(sent, Rules(compression=1))

    assert read_header(kept).attributes == 1
    assert read_header(kept).base_timestamp == NOW + 500
    assert [time for _, time, _, _ in contents(kept)] == [NOW + 500, NOW + 500]


def test_a_delete_horizon_of_the_clients_is_gone() -> None:
    """B23"""
    sent = altered(batch(b"a"), attributes=DELETE_HORIZON_BIT | 0x4080)

    assert read_header(taken(sent, Rules(compression=1))).attributes == 1


@pytest.mark.parametrize("time", [-2, -NOW])
def test_a_time_before_1970_cannot_be_written_anew(time: int) -> None:
    sent = build([record(at=time), record(at=NOW)])

    assert code_of(sent, Rules(compression=1)) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_no_time_can() -> None:
    sent = build([record(at=-1), record(at=NOW)])

    assert [time for _, time, _, _ in contents(taken(sent, Rules(compression=1)))] == [-1, NOW]


def test_the_size_limit_holds_for_what_is_written() -> None:
    """B20"""
    small = batch(b"x" * 1000, codec=1)

    error = refused(small, Rules(compression=0, max_bytes=len(small)))

    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert not error.appending


def test_a_segment_must_hold_what_is_written() -> None:
    """B21"""
    small = batch(b"x" * 1000, codec=1)

    assert code_of(small, Rules(compression=0, segment_bytes=900)) is ErrorCode.RECORD_LIST_TOO_LARGE
    assert taken(small, Rules(segment_bytes=900)) == small


@pytest.mark.parametrize("level", [1, 9])
def test_a_level_is_the_codecs(level: int) -> None:
    sent = build([record(b"%d" % (i * 7919)) for i in range(500)])

    kept = taken(sent, Rules(compression=1, level=level))

    assert kept[61:] == compress.compress(1, sent[61:], level)
    assert gzip.decompress(kept[61:]) == sent[61:]


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rafka without its extras."""

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("rafka.records.compress.importlib.import_module", missing)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("codec", [2, 3, 4])
def test_without_the_codec_a_batch_is_taken_on_its_header(codec: int) -> None:
    sent = altered(batch(b"a"), attributes=codec)

    assert taken(sent, DEEP) == sent
    assert read_header(taken(sent, Rules(deep=True, log_append_time=True))).attributes == codec | 8


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    "rules", [Rules(compression=0), Rules(compression=1), Rules(compacted=True), Rules(compression=2)]
)
def test_without_the_codec_a_batch_cannot_be_written_anew_or_asked_for_keys(rules: Rules) -> None:
    with pytest.raises(MissingCodec, match=r"lz4 is not installed here: pip install rafka\[compression\]"):
        taken(altered(batch(b"a"), attributes=3), rules)


@pytest.mark.usefixtures("nothing_installed")
def test_a_topics_codec_that_is_not_installed_is_named() -> None:
    with pytest.raises(MissingCodec, match="zstd") as caught:
        taken(batch(b"a"), Rules(compression=4))

    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"max_timestamp": NOW + 3_600_001}, Rules()),
        ({"base_timestamp": NOW - 1001}, Rules(before_max_ms=1000)),
        ({"attributes": 3 | 8, "max_timestamp": -1}, Rules()),
        ({"attributes": 3 | 8}, Rules(log_append_time=True)),
        ({"attributes": 3 | 8, "max_timestamp": NOW + 3_600_001}, Rules()),
    ],
)
def test_without_the_codec_the_times_of_the_header_count(fields: dict[str, int], rules: Rules) -> None:
    sent = altered(batch(b"a"), **{"attributes": 3, **fields})

    error = refused(sent, rules)

    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert error.record_errors == []


@pytest.mark.skipif(find_spec("lz4") is None, reason="lz4 is not installed")
def test_a_damaged_payload_is_not_written_anew() -> None:
    """B15a"""
    sent = altered(batch(b"a"), attributes=3)

    with pytest.raises(BadBatch) as caught:
        taken(sent, Rules(compression=0))
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert payload_of(read_header(batch(b"a")), batch(b"a")) == batch(b"a")[61:]
