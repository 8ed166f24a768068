"""The header of a batch."""

from __future__ import annotations

import struct

import pytest

from rafka.records.batch import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    OVERHEAD,
    TRANSACTIONAL_BIT,
    crc_of,
    end_of,
    place,
    placed,
    read_header,
    walk,
    write_header,
)

from .kit import altered, batch


def test_a_header_is_read_field_by_field() -> None:
    raw = struct.pack(">qiibIhiqqqhii", 7, 100, 3, 2, 0xDEADBEEF, 0x12, 4, 1000, 2000, 77, 5, 9, 5)

    header = read_header(b"before" + raw, 6)

    assert (header.base_offset, header.length, header.leader_epoch, header.magic) == (7, 100, 3, 2)
    assert (header.crc, header.attributes, header.last_offset_delta) == (0xDEADBEEF, 0x12, 4)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 2000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.count) == (77, 5, 9, 5)
    assert (header.size, header.last_offset, header.next_offset, header.codec) == (112, 11, 12, 2)
    assert header.transactional
    assert write_header(header) == raw


@pytest.mark.parametrize(
    ("bit", "name"),
    [
        (LOG_APPEND_TIME_BIT, "log_append_time"),
        (TRANSACTIONAL_BIT, "transactional"),
        (CONTROL_BIT, "control"),
        (DELETE_HORIZON_BIT, "has_delete_horizon"),
    ],
)
def test_each_attribute_is_one_bit(bit: int, name: str) -> None:
    header = read_header(altered(batch(), attributes=bit))

    names = ["log_append_time", "transactional", "control", "has_delete_horizon"]
    assert [each for each in names if getattr(header, each)] == [name]


def test_sequence_numbers_go_round_at_two_to_the_31() -> None:
    three = batch(b"a", b"b", b"c")

    assert read_header(altered(three, base_sequence=5)).last_sequence == 7
    assert read_header(altered(three, base_sequence=2**31 - 2)).last_sequence == 0
    assert read_header(altered(three, base_sequence=-1)).last_sequence == -1


def test_a_place_in_the_log_leaves_the_checksum_right() -> None:
    sent = batch(b"a", b"b")
    header = read_header(sent)

    front = placed(header, base_offset=1234, leader_epoch=8)

    at_rest = bytes(front) + sent[OVERHEAD:]
    again = read_header(at_rest)
    assert (again.base_offset, again.leader_epoch, again.last_offset) == (1234, 8, 1235)
    assert again == header
    assert crc_of(at_rest, 0, len(at_rest)) == again.crc


def test_a_place_can_be_written_into_the_batch_itself() -> None:
    sent = bytearray(batch(b"a"))

    place(sent, base_offset=99, leader_epoch=4)

    header = read_header(sent)
    assert (header.base_offset, header.leader_epoch, header.size) == (99, 4, len(sent))
    assert header.crc == crc_of(sent, 0, len(sent))


def test_a_walk_gives_whole_batches_and_no_piece_of_one() -> None:
    first, second = batch(b"a"), altered(batch(b"b", b"c"), base_offset=1)
    log = b"xyz" + first + second

    assert [(at, h.base_offset, h.count) for at, h in walk(log, 3)] == [(3, 0, 1), (3 + len(first), 1, 2)]
    assert [at for at, _ in walk(log[:-1], 3)] == [3]
    assert [at for at, _ in walk(log[: 3 + len(first) + 60], 3)] == [3]
    assert list(walk(b"")) == []


def test_the_end_is_that_of_the_last_whole_batch() -> None:
    first, second = batch(b"a", base_offset=10), batch(b"b", b"c", base_offset=11)

    assert end_of(first + second) == 13
    assert end_of(first + second[:-1]) == end_of(first + second[:60]) == end_of(first + bytes(200)) == 11
    assert end_of(first[:-1]) == end_of(b"") == -1


def test_a_walk_ends_at_what_is_no_batch() -> None:
    assert [at for at, _ in walk(batch(b"a") + bytes(200))] == [0]
