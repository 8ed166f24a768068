"""What the header of a batch decides. The ids are those of Kafka's rules as we number them (B3 ... B23)."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.records.batch import OVERHEAD, read_header
from rafka.records.check import Rules, check

from .kit import DEEP, NOW, altered, batch, both_ways, code_of, every_codec, raw_batch, refused, taken

INVALID_RECORD = ErrorCode.INVALID_RECORD
CORRUPT_MESSAGE = ErrorCode.CORRUPT_MESSAGE


@both_ways
@every_codec
def test_a_good_batch_is_stored_as_it_was_sent(codec: int, rules: Rules) -> None:
    sent = batch(b"a", b"b", codec=codec)

    accepted = check(sent, rules, NOW)

    assert taken(sent, rules) == sent
    assert accepted.header == read_header(sent)
    assert [bytes(piece) for piece in accepted.pieces] == [sent[OVERHEAD:]]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do_and_none_is_copied(kind: type) -> None:
    sent = kind(batch(b"a"))

    accepted = check(sent, Rules(), NOW)

    piece = accepted.pieces[0]
    assert isinstance(piece, memoryview)
    assert piece.obj is (sent.obj if isinstance(sent, memoryview) else sent)


@both_ways
@pytest.mark.parametrize("size", [0, 1, 11, 12, 17, 60, 61, -1])
def test_an_incomplete_batch_is_refused(size: int, rules: Rules) -> None:
    """B3"""
    error = refused(batch(b"some value")[:size], rules)

    assert error.code is INVALID_RECORD
    assert not error.appending


def test_no_records_at_all_are_refused() -> None:
    """B3: where Kafka lets the client wait for ever"""
    assert code_of(None) is INVALID_RECORD


def test_a_length_beyond_the_bytes_is_an_incomplete_batch() -> None:
    """B3, B5: also the greatest, at which Kafka's own sum overflows"""
    sent = batch(b"value")

    assert code_of(altered(sent, length=len(sent) - 12 + 1)) is INVALID_RECORD
    assert code_of(altered(sent, length=2**31 - 1)) is INVALID_RECORD


@pytest.mark.parametrize("magic", [0, 1])
def test_formats_of_old_are_refused(magic: int) -> None:
    """B3"""
    error = refused(altered(batch(), magic=magic))

    assert error.code is INVALID_RECORD
    assert not error.appending


def test_two_batches_are_one_too_many() -> None:
    """B3"""
    error = refused(batch(b"a") + batch(b"b"))

    assert error.code is INVALID_RECORD
    assert not error.appending


@both_ways
@pytest.mark.parametrize("more", [b"\0", batch(b"b")[:30], batch(b"b")[:-1]])
def test_a_piece_of_a_second_batch_is_dropped(more: bytes, rules: Rules) -> None:
    """B3"""
    good = batch(b"a")

    assert taken(good + more, rules) == good


@pytest.mark.parametrize("more", [bytes(12), altered(batch(), magic=3)])
def test_a_second_batch_that_is_damaged_is_not_passed_over(more: bytes) -> None:
    """B5: found by whoever looks whether there is a second one; without a word of why"""
    error = refused(batch(b"a") + more)

    assert error.code is CORRUPT_MESSAGE
    assert error.message is None


def test_zstd_needs_produce_v7() -> None:
    """B4"""
    zstd = altered(batch(), attributes=4)

    error = refused(zstd, Rules(zstd_allowed=False))

    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert not error.appending
    assert taken(zstd, Rules()) == zstd
    assert taken(batch(), Rules(zstd_allowed=False)) == batch()


def test_zstd_before_v7_is_told_before_a_second_batch() -> None:
    """B4 comes before the rest of B3"""
    zstd = altered(batch(), attributes=4)

    assert code_of(zstd + batch(), Rules(zstd_allowed=False)) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_an_unknown_codec_before_v7_is_told_before_the_append() -> None:
    """B4, B15a"""
    error = refused(altered(batch(), attributes=5), Rules(zstd_allowed=False))

    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert not error.appending


@both_ways
@pytest.mark.parametrize("length", [13, 0, -1, -(2**31)])
def test_a_length_that_no_batch_can_have_is_damage(length: int, rules: Rules) -> None:
    """B5: and the client is told"""
    error = refused(altered(batch(), length=length), rules)

    assert error.code is CORRUPT_MESSAGE
    assert error.message is not None
    assert not error.appending


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_a_format_that_nobody_knows_is_damage(magic: int) -> None:
    """B5: before it is asked whether the batch is whole"""
    sent = altered(batch(), magic=magic)

    assert code_of(sent) is CORRUPT_MESSAGE
    assert code_of(sent[:30]) is CORRUPT_MESSAGE


@both_ways
@pytest.mark.parametrize("base", [5, -1, 1 << 40])
def test_a_base_offset_is_not_for_clients_to_choose(base: int, rules: Rules) -> None:
    """B9: before the size and the checksum are looked at"""
    error = refused(altered(batch(), base_offset=base, crc=1), rules)

    assert error.code is INVALID_RECORD
    assert error.appending


def test_a_leader_epoch_of_the_client_does_not_matter() -> None:
    sent = altered(batch(), leader_epoch=77)

    assert read_header(taken(sent)).leader_epoch == 77  # until the broker writes its own


def test_the_size_limit_is_kept_to_the_byte() -> None:
    """B10: before the checksum is looked at"""
    sent = batch(b"x" * 100)

    error = refused(altered(sent, crc=1), Rules(max_bytes=len(sent) - 1))

    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert not error.appending
    assert taken(sent, Rules(max_bytes=len(sent))) == sent


@pytest.mark.parametrize("rules", [Rules(max_bytes=200), Rules(max_bytes=200, deep=True)])
def test_what_a_batch_unpacks_to_may_be_larger_than_the_limit(rules: Rules) -> None:
    """B10"""
    sent = batch(b"x" * 10_000, codec=1)

    assert taken(sent, rules) == sent


@both_ways
def test_a_wrong_checksum_is_damage(rules: Rules) -> None:
    """B11"""
    sent = bytearray(batch(b"bad"))
    sent[-2] ^= 0xFF

    error = refused(bytes(sent), rules)

    assert error.code is CORRUPT_MESSAGE
    assert error.message is None
    assert not error.appending
    assert code_of(altered(batch(), crc=0), rules) is CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [14, 20, 48])
def test_a_batch_shorter_than_a_header_is_damage(length: int) -> None:
    """B11; what follows it is too short for another batch"""
    sent = altered(batch(), length=length)[: 12 + length]

    assert code_of(sent) is CORRUPT_MESSAGE
    assert code_of(b"\1" + sent[1:]) is INVALID_RECORD  # B9 first, here as everywhere


@both_ways
@pytest.mark.parametrize("last", [0, 2, -1, 2**31 - 1, -(2**31)])
def test_the_last_offset_delta_must_fit_the_count(last: int, rules: Rules) -> None:
    """B12"""
    error = refused(altered(batch(b"a", b"b"), last_offset_delta=last), rules)

    assert error.code is INVALID_RECORD
    assert error.appending


@both_ways
@pytest.mark.parametrize("count", [0, -1, -(2**31)])
def test_a_batch_of_no_records_is_refused(count: int, rules: Rules) -> None:
    """B12: also where the last offset delta says the same"""
    last = max(count - 1, -(2**31))

    assert code_of(altered(batch(), count=count), rules) is INVALID_RECORD
    assert code_of(altered(batch(), count=count, last_offset_delta=last), rules) is INVALID_RECORD


@both_ways
def test_control_batches_are_the_brokers(rules: Rules) -> None:
    """B13"""
    error = refused(batch(control=True), rules)

    assert error.code is INVALID_RECORD
    assert error.appending


@both_ways
@pytest.mark.parametrize("sequence", [-1, -2, -(2**31)])
def test_a_producer_id_needs_a_sequence_number(sequence: int, rules: Rules) -> None:
    """B14"""
    error = refused(altered(batch(), producer_id=0, base_sequence=sequence), rules)

    assert error.code is INVALID_RECORD
    assert error.appending


@pytest.mark.parametrize("producer_id", [-1, -2])
def test_a_negative_producer_id_is_none(producer_id: int) -> None:
    """B14, Q13"""
    sent = altered(batch(), producer_id=producer_id, producer_epoch=0, base_sequence=-1)

    assert taken(sent) == sent


@both_ways
@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist(codec: int, rules: Rules) -> None:
    """B15a: before the counts are looked at"""
    error = refused(altered(batch(), attributes=codec, count=9), rules)

    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert error.appending


def test_a_batch_must_fit_a_segment() -> None:
    """B21"""
    sent = batch(b"x" * 100)

    error = refused(sent, Rules(segment_bytes=len(sent) - 1))

    assert error.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert not error.appending
    assert taken(sent, Rules(segment_bytes=len(sent))) == sent


@both_ways
@pytest.mark.parametrize("bit", [0x40, 0x80, 0x4000])
def test_bits_without_meaning_are_kept(bit: int, rules: Rules) -> None:
    """B23"""
    sent = altered(batch(), attributes=bit)

    assert taken(sent, rules) == sent


def test_bits_without_meaning_are_gone_once_kafka_writes_the_header() -> None:
    """B23: all but the delete horizon's, which has a meaning for compaction"""
    sent = altered(batch(), attributes=0x40C0)

    assert read_header(taken(sent, Rules(log_append_time=True))).attributes == 0x48


def test_the_error_tells_the_log_more_than_the_client() -> None:
    error = refused(altered(batch(), crc=0), DEEP)

    assert str(error) == "CORRUPT_MESSAGE: the checksum is wrong"
    assert error.message is None
    assert error.record_errors == []


def test_a_header_that_ends_behind_its_records_is_no_header() -> None:
    """B11: 49 says that the batch is a bare header, whose checksum covers no records"""
    assert code_of(altered(raw_batch(b""), length=49, crc=0)) is CORRUPT_MESSAGE
