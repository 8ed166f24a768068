"""Damage of any kind: it is noticed, or it is harmless, and nothing else is ever raised."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from rafka.records.batch import CHECKED_FROM, read_header
from rafka.records.check import BadBatch, Rules, check
from rafka.records.compact import candidates
from rafka.records.compress import NAMES, decompress
from rafka.records.control import read_marker
from rafka.records.record import find_time, iterate, latest_time

from .kit import DEEP, NOW, altered, batch, contents, every_codec, every_compression, raw_batch, taken

PLAIN = batch(b"first", None, b"third" * 20)


@every_codec
@given(st.data(), st.booleans())
def test_a_bit_that_turns_is_noticed_or_harmless(codec: int, data: st.DataObject, deep: bool) -> None:
    sent = bytearray(batch(b"first", None, b"third" * 20, codec=codec))
    bit = data.draw(st.integers(0, len(sent) * 8 - 1))
    sent[bit // 8] ^= 1 << bit % 8

    try:
        kept = taken(bytes(sent), Rules(deep=deep))
    except BadBatch:
        return

    assert 12 <= bit // 8 < 16  # the leader epoch, which the broker writes anew
    assert contents(kept) == contents(batch(b"first", None, b"third" * 20, codec=codec))


def test_no_bit_may_turn_that_the_checksum_covers() -> None:
    for bit in range(CHECKED_FROM * 8, len(PLAIN) * 8):
        sent = bytearray(PLAIN)
        sent[bit // 8] ^= 1 << bit % 8
        with suppress(BadBatch):
            check(bytes(sent), Rules(), NOW)
            raise AssertionError(f"bit {bit} turned and nobody saw it")


@given(st.binary(max_size=200))
def test_any_bytes_at_all(junk: bytes) -> None:
    with suppress(BadBatch):
        check(junk, DEEP, NOW)


@given(st.binary(max_size=80), st.integers(0, 5), st.sampled_from([0, 1]))
def test_any_bytes_as_records(junk: bytes, count: int, codec: int) -> None:
    """What is taken can be read, and what can be read is taken"""
    sent = raw_batch(junk, count, codec=codec)
    anything_goes = Rules(deep=True, after_max_ms=2**63 - 1)

    try:
        kept = taken(sent, anything_goes, 0)
    except BadBatch:
        return

    assert len(contents(kept)) == count
    find_time(kept, NOW)
    latest_time(kept)
    list(candidates(kept))


@given(st.data())
def test_a_turned_bit_inside_records_with_a_right_checksum(data: st.DataObject) -> None:
    """Both walkers, the fast and the plain one, agree on what is a record"""
    body = bytearray(PLAIN[61:])
    bit = data.draw(st.integers(0, len(body) * 8 - 1))
    body[bit // 8] ^= 1 << bit % 8
    sent = altered(PLAIN[:61] + bytes(body))

    try:
        read = contents(sent)
    except BadBatch:
        read = None
    try:
        kept = taken(sent, Rules(deep=True, after_max_ms=2**63 - 1))
    except BadBatch:
        kept = None

    assert (read is None) == (kept is None)
    if read and kept:
        assert contents(kept) == read
        assert read_header(kept).max_timestamp == max(-1, *(time for _, time, _, _ in read))


@every_compression
@given(st.binary(max_size=200))
def test_any_bytes_as_a_payload(codec: int, junk: bytes) -> None:
    with suppress(BadBatch):
        decompress(codec, junk, 1 << 20)


@every_compression
@given(st.data())
def test_a_turned_bit_in_a_payload(codec: int, data: st.DataObject) -> None:
    sent = bytearray(batch(b"first" * 40, None, b"third" * 20, codec=codec))
    bit = data.draw(st.integers(61 * 8, len(sent) * 8 - 1))
    sent[bit // 8] ^= 1 << bit % 8

    with suppress(BadBatch):
        check(altered(bytes(sent)), DEEP, NOW)
    with suppress(BadBatch):
        list(iterate(bytes(sent)))


@given(st.binary(max_size=40))
def test_any_bytes_as_a_marker(junk: bytes) -> None:
    with suppress(BadBatch):
        read_marker(raw_batch(junk, attributes=0x20))


def test_the_names_of_the_codecs_are_kafkas() -> None:
    assert NAMES == ("none", "gzip", "snappy", "lz4", "zstd")
