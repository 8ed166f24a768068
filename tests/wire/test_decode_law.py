"""Hostile bytes: refused before anything is made of them, and never with another error than WireError."""

from __future__ import annotations

import tracemalloc
from random import Random
from struct import pack

import pytest

from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.metadata import METADATA
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.apis.sasl_authenticate import SASL_AUTHENTICATE
from rafka.wire.decoding import ELEMENT_BUDGET
from rafka.wire.errors import WireError
from rafka.wire.runtime import STRING_MAX, TAGS_MAX, uvarint

from .samples import EVERY_VERSION, Message, message_id

INT32_MIN = b"\x80\x00\x00\x00"
MINUS_TWO = b"\xff\xff\xff\xfe"
MOST = b"\x7f\xff\xff\xff"
COMPACT_NEGATIVE = uvarint(2**32 - 1)


# --- cut short -----------------------------------------------------------------------


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=message_id)
def test_a_message_is_refused_wherever_it_is_cut(message: Message, version: int) -> None:
    random = Random(7)
    body = max((message.encode(message.sample(random, version), version) for _ in range(6)), key=len)
    decode = message.decoder(version)
    view = memoryview(body)
    ends = range(len(body)) if len(body) < 150 else random.sample(range(len(body)), 150)
    for end in ends:
        with pytest.raises(WireError):
            decode(view[:end], 0)


@pytest.mark.parametrize(("message", "version"), EVERY_VERSION, ids=message_id)
def test_no_damage_leads_to_another_error(message: Message, version: int) -> None:
    random = Random(version)
    body = message.encode(message.sample(random, version), version)
    decode = message.decoder(version)
    for _ in range(20):
        damaged = bytearray(body)
        for _ in range(random.randrange(1, 4)):
            if damaged:
                damaged[random.randrange(len(damaged))] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
        try:
            _, end = decode(memoryview(damaged), 0)
        except WireError:
            continue
        assert end <= len(damaged)


# --- counts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "count"),
    [
        pytest.param(1, MOST, id="classic 2^31-1"),
        pytest.param(1, pack(">i", 1_000_000), id="classic million"),
        pytest.param(12, uvarint(2**31 - 1), id="compact 2^31-2"),
        pytest.param(12, uvarint(2**31), id="compact 2^31-1"),
        pytest.param(12, uvarint(1_000_001), id="compact million"),
    ],
)
def test_a_count_beyond_the_frame_is_refused_without_making_room(version: int, count: bytes) -> None:
    decode = METADATA.request_decoder(version)
    frame = memoryview(count + bytes(36))
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match="elements"):
            decode(frame, 0)
        assert tracemalloc.get_traced_memory()[1] < 20_000
    finally:
        tracemalloc.stop()


def test_numbers_too_are_counted_before_there_is_room_for_them() -> None:
    topics = pack(">i", 0)
    forgotten = pack(">ih", 1, 1) + b"t" + MOST + bytes(40)
    body = pack(">iiiibii", -1, 0, 0, 0, 0, 0, -1) + topics + forgotten
    with pytest.raises(WireError, match="partitions of 2147483647 elements"):
        FETCH.request_decoder(7)(body, 0)


def test_elements_of_all_arrays_together_have_a_budget() -> None:
    nine = (pack(">iqi", 0, 0, -1) + b"\x01\x00") * 9

    def body(topics: int) -> bytes:
        """Each topic has nine partitions: ten elements."""
        topic = b"\x02t" + uvarint(10) + nine + b"\x00"
        return b"\x02g" + pack(">i", 1) + b"\x02m" + b"\x00" + uvarint(topics + 1) + topic * topics + b"\x00"

    decode = OFFSET_COMMIT.request_decoder(8)
    within = ELEMENT_BUDGET // 10

    request, _ = decode(body(within), 0)
    assert len(request.topics) == within
    with pytest.raises(WireError, match="elements"):
        decode(body(within + 1), 0)


def test_the_budget_may_be_given_for_one_frame() -> None:
    decode = METADATA.request_decoder(1)
    body = pack(">i", 3) + b"\x00\x01t" * 3

    assert len(decode(body, 0, 3)[0].topics) == 3
    with pytest.raises(WireError, match="elements"):
        decode(body, 0, 2)


def test_ten_thousand_topics_are_no_attack() -> None:
    body = pack(">i", 10_000) + b"\x00\x01t" * 10_000
    assert len(METADATA.request_decoder(1)(body, 0)[0].topics) == 10_000


# --- null ----------------------------------------------------------------------------


@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff", MINUS_TWO, INT32_MIN])
def test_any_negative_count_is_null_where_null_is_allowed(count: bytes) -> None:
    assert METADATA.request_decoder(1)(count, 0)[0].topics is None
    with pytest.raises(WireError, match="topics is null"):
        METADATA.request_decoder(0)(count, 0)


@pytest.mark.parametrize("count", [b"\x00", b"\x80\x00", COMPACT_NEGATIVE, uvarint(2**31 + 1)])
def test_so_is_a_compact_count_of_zero_or_less(count: bytes) -> None:
    assert METADATA.request_decoder(12)(count + bytes(10), 0)[0].topics is None
    with pytest.raises(WireError, match="topic_data is null"):
        PRODUCE.request_decoder(9)(b"\x00" + pack(">hi", 1, 1) + count + bytes(10), 0)


@pytest.mark.parametrize("length", [b"\xff\xff", b"\xff\xfe", b"\x80\x00"])
def test_a_string_may_be_null_only_where_the_version_says_so(length: bytes) -> None:
    body = b"\x00\x01g" + pack(">i", 1) + b"\x00\x01m" + length
    assert HEARTBEAT.request_decoder(3)(body, 0)[0].group_instance_id is None
    with pytest.raises(WireError, match="group_id is null"):
        HEARTBEAT.request_decoder(3)(length + bytes(30), 0)


def test_null_in_an_array_of_strings_is_refused() -> None:
    with pytest.raises(WireError, match="coordinator_keys is null"):
        FIND_COORDINATOR.request_decoder(4)(b"\x00\x02\x00\x00", 0)


def test_bytes_may_not_be_null_where_they_are_wanted() -> None:
    with pytest.raises(WireError, match="auth_bytes is null"):
        SASL_AUTHENTICATE.request_decoder(0)(b"\xff\xff\xff\xff", 0)
    body = b"\x02g" + pack(">ii", 1, 1) + b"\x01\x00\x01\x02" + b"\x02r" + b"\x00\x00\x00"
    with pytest.raises(WireError, match="metadata is null"):
        JOIN_GROUP.request_decoder(6)(body, 0)


# --- varints and strings -------------------------------------------------------------


@pytest.mark.parametrize("group", [b"\x82\x00g", b"\x82\x80\x80\x80\x00g", b"\x82\x80\x80\x80\x70g"])
def test_a_varint_may_be_longer_than_it_need_be_and_lose_what_is_over_32_bits(group: bytes) -> None:
    body = group + pack(">i", 1) + b"\x02m" + b"\x00" + b"\x00"
    assert HEARTBEAT.request_decoder(4)(body, 0)[0].group_id == "g"


def test_a_varint_of_six_bytes_is_refused() -> None:
    with pytest.raises(WireError, match="varint"):
        HEARTBEAT.request_decoder(4)(b"\x82\x80\x80\x80\x80\x00g" + bytes(20), 0)


def test_a_string_ends_at_32767_bytes_compact_or_not() -> None:
    def body(length: int) -> bytes:
        return uvarint(length + 1) + b"x" * length + pack(">i", 1) + b"\x02m" + b"\x00" + b"\x00"

    decode = HEARTBEAT.request_decoder(4)
    assert len(decode(body(STRING_MAX), 0)[0].group_id) == STRING_MAX
    with pytest.raises(WireError, match="32768 bytes"):
        decode(body(STRING_MAX + 1), 0)


@pytest.mark.parametrize("raw", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"a\xc3"])
@pytest.mark.parametrize("version", [0, 4])
def test_bad_utf8_becomes_the_replacement_character(raw: bytes, version: int) -> None:
    request, _ = HEARTBEAT.request_decoder(version)(heartbeat_of(raw, version), 0)
    assert "\N{REPLACEMENT CHARACTER}" in request.group_id


def heartbeat_of(raw: bytes, version: int) -> bytes:
    """A heartbeat whose group id is these bytes."""
    length = uvarint(len(raw) + 1) if version == 4 else pack(">h", len(raw))
    member, end = (b"\x02m", b"\x00\x00") if version == 4 else (b"\x00\x01m", b"")
    return length + raw + pack(">i", 1) + member + end


@pytest.mark.parametrize("raw", [b"\xff" * 10_923, b"a" * 32_765 + b"\xff", b"\xff" * 32_767])
@pytest.mark.parametrize("version", [0, 4])
def test_bad_utf8_that_would_grow_beyond_what_can_be_written_is_refused(raw: bytes, version: int) -> None:
    """Each byte that is none becomes three: what is kept of it could never be told to anybody."""
    with pytest.raises(WireError, match="UTF-8"):
        HEARTBEAT.request_decoder(version)(heartbeat_of(raw, version), 0)


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff" * 10_922,
        b"a" * 32_764 + b"\xff",
        b"x" * 32_767,
        "ä".encode() * 16_383,
        "€".encode() * 10_922,
        "\U0001f40c".encode() * 8191,
    ],
)
@pytest.mark.parametrize("version", [0, 4])
def test_any_text_that_is_read_can_be_written(raw: bytes, version: int) -> None:
    request, _ = HEARTBEAT.request_decoder(version)(heartbeat_of(raw, version), 0)

    HEARTBEAT.request_encoder(version)(request, bytearray())
    assert request.group_id == raw.decode(errors="replace")


def test_such_text_is_refused_wherever_it_stands() -> None:
    bad = pack(">h", 10_923) + b"\xff" * 10_923

    with pytest.raises(WireError, match="UTF-8"):  # as an element of an array
        METADATA.request_decoder(0)(pack(">i", 1) + bad, 0)
    with pytest.raises(WireError, match="UTF-8"):  # where there might be none
        HEARTBEAT.request_decoder(3)(b"\x00\x01g" + pack(">i", 1) + b"\x00\x01m" + bad, 0)


@pytest.mark.parametrize("byte", [1, 2, 0x7F, 0xFF])
def test_every_byte_but_zero_is_true(byte: int) -> None:
    request, _ = METADATA.request_decoder(4)(pack(">i", -1) + bytes([byte]), 0)
    assert request.allow_auto_topic_creation is True


# --- tagged fields -------------------------------------------------------------------


def heartbeat(tags: bytes) -> bytes:
    return b"\x02g" + pack(">i", 1) + b"\x02m" + b"\x00" + tags


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(b"\x01\x09\x02ab", id="one"),
        pytest.param(b"\x03\x09\x01a\x05\x00\x09\x01b", id="out of order and twice"),
        pytest.param(uvarint(1000) + b"\x09\x00" * 1000, id="a thousand"),
        pytest.param(uvarint(TAGS_MAX) + b"\x09\x00" * TAGS_MAX, id="as many as may be"),
        pytest.param(b"\x01\x09" + uvarint(10_000_000) + bytes(10_000_000), id="a large one"),
        pytest.param(b"\x01" + uvarint(2**32 - 1) + b"\x01a", id="the highest tag"),
        pytest.param(uvarint(2**32 - 1), id="-1 of them, which is none"),
    ],
)
def test_unknown_tagged_fields_are_passed_over(tags: bytes) -> None:
    body = heartbeat(tags)
    request, end = HEARTBEAT.request_decoder(4)(body, 0)
    assert (request.member_id, end) == ("m", len(body))


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param(uvarint(TAGS_MAX + 1) + b"\x09\x00" * (TAGS_MAX + 1), id="too many"),
        pytest.param(uvarint(2**31 - 1), id="2^31-1 of them"),
        pytest.param(b"\x02\x09\x00", id="one is missing"),
        pytest.param(b"\x01\x09\x05ab", id="larger than the frame"),
        pytest.param(b"\x01\x09" + uvarint(2**32 - 1) + b"ab", id="of size 2^32-1"),
        pytest.param(b"\x01\x09\x80\x80\x80\x80\x80\x00", id="size of six bytes"),
        pytest.param(b"\x01", id="nothing of it"),
    ],
)
def test_tagged_fields_that_cannot_be_are_refused(tags: bytes) -> None:
    with pytest.raises(WireError):
        HEARTBEAT.request_decoder(4)(heartbeat(tags), 0)


def fetch(tags: bytes) -> bytes:
    return pack(">iiibii", 0, 0, 0, 0, 0, -1) + b"\x01\x01\x01" + tags


@pytest.mark.parametrize("size", [0, 1, 3, 9])
def test_a_known_tagged_field_is_read_whatever_its_size_says(size: int) -> None:
    """Kafka reads what the type says, and passes over nothing."""
    request, end = FETCH.request_decoder(15)(fetch(b"\x01\x00" + bytes([size]) + b"\x03id" + bytes(9)), 0)
    assert request.cluster_id == "id"
    assert end == len(fetch(b"")) + 6


def test_of_a_known_tagged_field_sent_twice_the_last_one_counts() -> None:
    request, _ = FETCH.request_decoder(15)(fetch(b"\x02\x00\x03\x03ab\x00\x03\x03cd"), 0)
    assert request.cluster_id == "cd"


def test_elements_of_one_size_may_have_tagged_fields_in_their_midst() -> None:
    """From four on they are read in one go, up to the first that has tagged fields."""
    plain = pack(">iiqiqi", 1, 2, 3, 4, 5, 6) + b"\x00"
    known = pack(">iiqiqi", 7, 2, 3, 4, 5, 6) + b"\x01\x00\x10" + b"i" * 16
    unknown = pack(">iiqiqi", 8, 2, 3, 4, 5, 6) + b"\x01\x09\x01?"
    partitions = [plain, plain, known, plain, unknown, plain, plain]
    topic = bytes(16) + uvarint(len(partitions) + 1) + b"".join(partitions) + b"\x00"
    body = pack(">iiibii", 0, 0, 0, 0, 0, -1) + b"\x02" + topic + b"\x01\x01\x00"

    request, end = FETCH.request_decoder(17)(body, 0)

    found = request.topics[0].partitions
    assert [each.partition for each in found] == [1, 1, 7, 1, 8, 1, 1]
    assert [each.replica_directory_id for each in found] == [
        b"i" * 16 if each.partition == 7 else bytes(16) for each in found
    ]
    assert end == len(body)
