"""What the records of a batch decide, and the times in its header."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.records.batch import read_header
from rafka.records.build import build
from rafka.records.check import Rules
from rafka.records.deep import MAX_RECORD_ERRORS
from rafka.records.record import Record
from rafka.records.varint import varint

from .kit import (
    DEEP,
    HOUR,
    NOW,
    altered,
    batch,
    both_ways,
    code_of,
    contents,
    every_codec,
    intact,
    raw_batch,
    raw_record,
    record,
    refused,
    taken,
)

INVALID_RECORD = ErrorCode.INVALID_RECORD
INVALID_TIMESTAMP = ErrorCode.INVALID_TIMESTAMP
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR

LOG_APPEND_TIME = Rules(log_append_time=True)
TOO_LONG = b"\xff" * 10 + b"\x01"

unreadable_records = {
    "a length too great": raw_record(size=varint(50)),
    "a length too small": raw_record(size=varint(3)),
    "a length of nothing": raw_record(size=varint(0)),
    "a negative length": raw_record(size=varint(-1)),
    "a timestamp of eleven bytes": raw_record(time=TOO_LONG),
    "a number of six bytes": raw_record(number=b"\xff" * 5 + b"\x01"),
    "a key longer than the record": raw_record(key=varint(90) + b"k"),
    "a value longer than the record": raw_record(value=varint(90) + b"v"),
    "a value that eats the headers": raw_record(value=varint(2) + b"v"),
    "headers, -1 of them": raw_record(headers=varint(-1)),
    "headers, 2147483647 of them": raw_record(headers=varint(2**31 - 1)),
    "headers, three of which one is there": raw_record(headers=varint(3) + varint(1) + b"k" + varint(-1)),
    "a header without a key": raw_record(headers=varint(1) + varint(-1) + varint(0)),
    "bytes after the headers": raw_record(more=b"zz"),
    "bytes after the record": raw_record() + b"zz",
    "no record": b"",
    "half a record": raw_record()[:4],
    "all but a byte": raw_record()[:-1],
}


@pytest.mark.parametrize("records", unreadable_records.values(), ids=unreadable_records.keys())
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_records_that_cannot_be_read(records: bytes, codec: int) -> None:
    """B15"""
    error = refused(raw_batch(records, codec=codec), DEEP)

    assert error.code is INVALID_RECORD
    assert error.appending
    assert error.message is None
    assert error.record_errors == []


def test_a_record_length_that_is_too_long_a_number() -> None:
    """B15: plain and compressed batches have readers of their own in Kafka"""
    records = TOO_LONG + raw_record()[1:]

    assert code_of(raw_batch(records), DEEP) is UNKNOWN
    assert code_of(raw_batch(records, codec=1), DEEP) is INVALID_RECORD


odd_but_good = {
    "a key length of -2": raw_record(key=varint(-2)),
    "a value length of -2": raw_record(value=varint(-2)),
    "a header value length of -2": raw_record(headers=varint(1) + varint(1) + b"k" + varint(-2)),
    "a header key that is not text": raw_record(headers=varint(1) + varint(1) + b"\xff" + varint(0)),
    "a number in more bytes than it needs": raw_record(number=b"\x80\x80\x00"),
    "attributes": raw_record(attributes=b"\x55"),
}


@pytest.mark.parametrize("records", odd_but_good.values(), ids=odd_but_good.keys())
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_records_that_are_odd_but_good(records: bytes, codec: int) -> None:
    """B15, B19"""
    sent = raw_batch(records, codec=codec)

    assert taken(sent, DEEP) == sent


@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
@pytest.mark.parametrize("said", [1, 3])
def test_there_must_be_as_many_records_as_the_header_says(said: int, codec: int) -> None:
    """B15"""
    two = batch(b"a", b"b", codec=codec)

    error = refused(altered(two, count=said, last_offset_delta=said - 1), DEEP)

    assert error.code is INVALID_RECORD
    assert error.appending


def test_a_count_of_two_billion_is_not_believed() -> None:
    """B15"""
    lie = altered(batch(), count=2**31 - 1, last_offset_delta=2**31 - 2)

    assert code_of(lie, DEEP) is INVALID_RECORD


@pytest.mark.parametrize("sizes", [[63, 64, 8191, 8192, 100_000], [0, 1, 127, 128, 129]])
@every_codec
def test_records_of_all_sizes_are_walked(sizes: list[int], codec: int) -> None:
    sent = build(
        [Record(0, NOW + 70 * i, b"k" * n, b"v" * n, [("h" * n, b"x" * n)]) for i, n in enumerate(sizes)]
    )

    assert taken(sent, DEEP) == sent
    assert contents(taken(sent, Rules(compression=codec)))[-1][3] == b"v" * sizes[-1]


def test_ten_thousand_records_are_walked() -> None:
    sent = build([Record(0, NOW - i * 1000, None, b"") for i in range(10_000)])

    assert taken(sent, DEEP) == sent


@every_codec
def test_other_numbers_than_0_1_2(codec: int) -> None:
    """2.2: a plain batch is stored as it is; a compressed one makes Kafka stumble"""
    records = raw_record() + raw_record(number=varint(2)) + raw_record(number=varint(4))
    sent = raw_batch(records, 3, codec=codec)

    if codec == 0:
        assert taken(sent, DEEP) == sent
    else:
        assert code_of(sent, DEEP) is UNKNOWN


# B16


@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_a_compacted_topic_wants_keys(codec: int) -> None:
    """B16: asked even where records are not looked at otherwise"""
    sent = build([record(key=b"k"), record(key=None), record(key=b""), record(key=None)], codec=codec)

    error = refused(sent, Rules(compacted=True))

    assert error.code is INVALID_RECORD
    assert error.appending
    assert error.message == "One or more records have been rejected due to 2 record errors"
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert error.record_errors[0][1] == "A compacted topic cannot take a record without a key."


def test_only_a_compacted_topic_wants_keys() -> None:
    """B16"""
    sent = build([record(key=None)])

    assert taken(sent, DEEP) == sent


def test_all_records_of_a_compacted_topic_are_asked_for_their_key() -> None:
    """B16: whatever the limit of the walk"""
    sent = build([record(), record(), record(key=None)])

    assert code_of(sent, Rules(compacted=True, deep=True, deep_limit=1)) is INVALID_RECORD


def test_a_missing_key_counts_before_a_wrong_number() -> None:
    """B16 before 2.2, record by record"""
    sent = raw_batch(raw_record(key=varint(-1), number=varint(3)), codec=1)

    assert code_of(sent, Rules(compacted=True)) is INVALID_RECORD


def test_a_wrong_time_among_missing_keys_gives_the_code() -> None:
    """B16, B17: both are listed"""
    sent = build([record(key=None), record(at=NOW + 2 * HOUR)])

    error = refused(sent, Rules(compacted=True))

    assert error.code is INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]


# B17


@both_ways
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_a_record_of_the_future_is_named(codec: int, rules: Rules) -> None:
    """B17: the header gives it away, and the records are asked"""
    sent = build(
        [record(), record(at=NOW + HOUR + 1), record(at=NOW + HOUR), record(at=NOW + HOUR + 2)], codec=codec
    )

    error = refused(sent, rules)

    assert error.code is INVALID_TIMESTAMP
    assert error.appending
    assert error.message == "One or more records have been rejected due to invalid timestamps"
    assert [index for index, _ in error.record_errors] == [1, 3]
    assert str(NOW + HOUR + 1) in (error.record_errors[0][1] or "")


def test_records_too_old_are_named_where_records_are_looked_at() -> None:
    """B17"""
    sent = build([record(), record(at=NOW - HOUR), record(), record(at=NOW - 2 * HOUR)])

    error = refused(sent, Rules(deep=True, before_max_ms=60_000))

    assert error.code is INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [1, 3]


@both_ways
def test_a_base_time_too_old_is_seen_in_the_header(rules: Rules) -> None:
    """B17"""
    old = batch(b"v")

    error = refused(old, Rules(before_max_ms=60_000, deep=rules.deep), NOW + 60_001)

    assert error.code is INVALID_TIMESTAMP
    assert taken(old, Rules(before_max_ms=60_000, deep=rules.deep), NOW + 60_000) == old


@both_ways
def test_no_time_is_no_wrong_time(rules: Rules) -> None:
    """B17"""
    sent = build([record(at=-1)])

    assert taken(sent, Rules(before_max_ms=0, after_max_ms=0, deep=rules.deep)) == sent


@both_ways
def test_times_before_1970(rules: Rules) -> None:
    """B17: -2 is taken and its greatest time put right; -2**63 is so long ago that it overflows"""
    two_before, dawn = build([record(at=-2)]), build([record(at=-(2**63))])

    assert contents(taken(two_before, rules)) == [(0, -2, b"k", b"v")]
    assert read_header(taken(two_before, rules)).max_timestamp == -1
    assert code_of(dawn, rules) is INVALID_TIMESTAMP


def test_a_time_that_overflows_comes_out_as_it_does_in_java() -> None:
    """B17"""
    sent = raw_batch(raw_record(time=varint(2**63 - 1)))

    error = refused(sent, DEEP)

    assert error.code is INVALID_TIMESTAMP
    assert str(NOW + 2**63 - 1 - 2**64) in (error.record_errors[0][1] or "")


def test_times_do_not_matter_where_the_broker_gives_them() -> None:
    """B17"""
    sent = build([record(at=NOW + 99 * HOUR)])

    assert read_header(taken(sent, Rules(log_append_time=True, deep=True))).max_timestamp == NOW


def test_an_answer_does_not_name_a_million_records() -> None:
    """B17: Kafka would"""
    sent = build([record(at=NOW + 2 * HOUR)] * (MAX_RECORD_ERRORS + 5))

    assert len(refused(sent).record_errors) == MAX_RECORD_ERRORS


# B18


@both_ways
def test_the_type_of_time_is_not_the_clients_to_set(rules: Rules) -> None:
    """B18: each record is named"""
    sent = altered(batch(b"a", b"b"), attributes=8)

    error = refused(sent, Rules(log_append_time=True, deep=rules.deep))

    assert error.code is INVALID_TIMESTAMP
    assert [index for index, _ in error.record_errors] == [0, 1]
    assert error.message is not None


@both_ways
def test_the_type_of_time_without_a_time(rules: Rules) -> None:
    """B18: refused on a CreateTime topic too"""
    sent = altered(batch(b"a"), attributes=8, max_timestamp=-1)

    assert code_of(sent, rules) is INVALID_TIMESTAMP


@both_ways
def test_a_create_time_topic_clears_the_type_of_time(rules: Rules) -> None:
    """B18: the records have their own times again, the greatest time stays"""
    sent = altered(batch(b"a", b"b"), attributes=8, max_timestamp=NOW + 500)

    kept = taken(sent, rules)

    assert read_header(kept).attributes == 0
    assert read_header(kept).max_timestamp == NOW + 500
    assert [time for _, time, _, _ in contents(kept)] == [NOW, NOW + 1]
    assert intact(kept)


@both_ways
def test_with_the_type_of_time_the_greatest_time_counts_for_all(rules: Rules) -> None:
    """B17, B18"""
    sent = altered(batch(b"a", b"b"), attributes=8, max_timestamp=NOW + 2 * HOUR)

    assert [index for index, _ in refused(sent, rules).record_errors] == [0, 1]


# 2.2: what is put right


@pytest.mark.parametrize("said", [NOW + 999, NOW - 999, -1, -5])
@pytest.mark.parametrize("codec", [0, 1], ids=["plain", "gzip"])
def test_a_wrong_greatest_time_is_put_right(said: int, codec: int) -> None:
    """2.2"""
    sent = batch(b"a", b"b", codec=codec)

    assert taken(altered(sent, max_timestamp=said), DEEP) == sent


def test_a_greatest_time_below_the_first_gives_itself_away() -> None:
    """2.2: records are then asked without having been wanted"""
    sent = batch(b"a", b"b")

    assert taken(altered(sent, max_timestamp=NOW - 1), Rules()) == sent


@both_ways
@every_codec
def test_the_time_of_the_append(codec: int, rules: Rules) -> None:
    """2.2: the header has it, the records stay as they are"""
    sent = batch(b"a", b"b", codec=codec)

    kept = taken(sent, Rules(log_append_time=True, deep=rules.deep), NOW + 77)

    assert kept[61:] == sent[61:]
    assert read_header(kept).attributes == codec | 8
    assert [time for _, time, _, _ in contents(kept)] == [NOW + 77, NOW + 77]
    assert intact(kept)


# the limit of the walk


def test_a_walk_may_have_a_limit() -> None:
    """Beyond it records are believed, and so is the header"""
    sent = raw_batch(raw_record() + raw_record(number=varint(1), size=varint(3)), 2, max_timestamp=NOW + 5)

    assert taken(sent, Rules(deep=True, deep_limit=1)) == sent
    assert code_of(sent, Rules(deep=True, deep_limit=2)) is INVALID_RECORD
    assert code_of(sent, DEEP) is INVALID_RECORD


def test_within_the_limit_a_greater_time_counts() -> None:
    sent = altered(batch(b"a", b"b", b"c"), max_timestamp=NOW)

    assert read_header(taken(sent, Rules(deep=True, deep_limit=2))).max_timestamp == NOW + 1
