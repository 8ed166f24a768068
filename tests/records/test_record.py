"""Records read from a batch, and found in it by their time."""

from __future__ import annotations

import pytest

from rafka.records.batch import read_header
from rafka.records.build import build
from rafka.records.check import BadBatch
from rafka.records.record import Record, find_time, iterate, latest_time, payload_of, wrapped
from rafka.records.varint import varint

from .kit import NOW, altered, batch, every_codec, raw_batch, raw_record, record


@every_codec
def test_records_have_the_offsets_and_times_of_the_log(codec: int) -> None:
    sent = build(
        [Record(0, NOW, b"k", b"v", [("h", b"x"), ("null", None)]), Record(0, NOW + 9, None, None)],
        codec=codec,
    )

    read = list(iterate(altered(sent, base_offset=100)))

    assert read == [
        Record(100, NOW, b"k", b"v", [("h", b"x"), ("null", None)]),
        Record(101, NOW + 9, None, None, ()),
    ]


def test_with_log_append_time_all_have_the_time_of_the_append() -> None:
    sent = build([record(at=1), record(at=2)], log_append_time=NOW)

    assert [r.timestamp for r in iterate(sent)] == [NOW, NOW]


def test_only_the_first_batch_is_read() -> None:
    assert [r.value for r in iterate(batch(b"a") + batch(b"b"))] == [b"a"]


def test_a_header_key_that_is_not_text_is_shown_as_well_as_may_be() -> None:
    sent = raw_batch(raw_record(headers=varint(1) + varint(2) + b"\xffk" + varint(0)))

    assert next(iterate(sent)).headers == [("\ufffdk", b"")]


@pytest.mark.parametrize(
    "broken",
    [
        raw_batch(raw_record(size=varint(3))),
        raw_batch(raw_record(size=varint(40))),
        raw_batch(raw_record(more=b"z")),
        raw_batch(raw_record(number=b"\xff" * 6)),
        raw_batch(raw_record(), count=2),
        raw_batch(b""),
        altered(raw_batch(b"", codec=1, packed=b"plain")),
        altered(batch(), attributes=7),
        batch()[:-1],
        altered(batch(), length=20),
    ],
    ids=["short", "long", "left over", "varint", "count", "none", "gzip", "codec", "cut", "length"],
)
def test_damage_is_a_bad_batch(broken: bytes) -> None:
    with pytest.raises(BadBatch):
        list(iterate(broken))


def test_what_lies_behind_the_last_record_is_not_read() -> None:
    """A producer's batch cannot have it, and a reader need not mind"""
    assert len(list(iterate(raw_batch(raw_record() + b"zz")))) == 1


@every_codec
def test_the_first_record_from_a_time_on(codec: int) -> None:
    times = [NOW + 5, NOW, NOW + 9, NOW + 9, NOW + 7]
    log = altered(build([record(at=time) for time in times], codec=codec), base_offset=50)

    assert find_time(log, NOW) == (50, NOW + 5)
    assert find_time(log, NOW + 6) == (52, NOW + 9)
    assert find_time(log, NOW + 10) is None
    assert latest_time(log) == (52, NOW + 9)


def test_times_where_the_broker_gave_them() -> None:
    log = altered(build([record(at=1), record(at=2)], log_append_time=NOW), base_offset=7)

    assert find_time(log, 0) == (7, NOW)
    assert find_time(log, NOW + 1) is None
    assert latest_time(log) == (7, NOW)


def test_times_of_numbers_with_gaps() -> None:
    log = raw_batch(raw_record() + raw_record(number=varint(4), time=varint(3)), 2, base_offset=10)

    assert find_time(log, NOW + 1) == (14, NOW + 3)


def test_the_payload_is_that_of_this_batch_alone() -> None:
    sent = batch(b"a", codec=1)

    assert payload_of(read_header(sent), sent + b"more") == batch(b"a")[61:]


@pytest.mark.parametrize(
    ("number", "held"),
    [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (-(2**63) - 1, 2**63 - 1), (2**64 + 5, 5)],
)
def test_a_sum_wraps_as_64_bits_do(number: int, held: int) -> None:
    assert wrapped(number) == held
