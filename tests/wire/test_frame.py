"""Lengths and headers, byte by byte."""

from __future__ import annotations

from struct import pack

import pytest

from rafka.wire import frame
from rafka.wire.apis import APIS
from rafka.wire.errors import WireError


def test_a_frame_begins_with_what_follows_it() -> None:
    out = bytearray(b"before")
    start = frame.begin_frame(out)
    out += b"hello"
    frame.end_frame(out, start, spliced=100)
    assert out == b"before" + pack(">i", 105) + b"hello"
    assert frame.read_frame_size(out, start) == 105


@pytest.mark.parametrize("size", [-1, -(2**31), frame.FRAME_SIZE_MAX + 1, 0x47455420])
def test_a_length_that_cannot_be_is_refused(size: int) -> None:
    with pytest.raises(WireError, match="a frame of"):
        frame.read_frame_size(pack(">i", size))


def test_the_limit_may_be_lower() -> None:
    assert frame.read_frame_size(pack(">i", 512), size_max=512) == 512
    with pytest.raises(WireError):
        frame.read_frame_size(pack(">i", 513), size_max=512)


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("client_id", [None, "", "ann", "größe"])
@pytest.mark.parametrize("correlation_id", [0, -1, -(2**31)])
def test_a_request_header_is_read_as_it_was_written(
    client_id: str | None, correlation_id: int, flexible: bool
) -> None:
    out = bytearray(b"..")
    frame.write_request_header(out, 12, 4, correlation_id, client_id, flexible)
    *found, at = frame.read_request_header(memoryview(out), 2)
    assert found == [12, 4, correlation_id, client_id or ""]
    assert frame.end_of_header(out, at, flexible) == len(out)


def test_a_client_id_of_any_negative_length_is_null() -> None:
    assert frame.read_request_header(pack(">hhih", 3, 0, 1, -2)) == (3, 0, 1, "", 10)


def test_a_client_id_that_is_no_utf8_is_read_all_the_same() -> None:
    assert frame.read_request_header(pack(">hhih", 3, 0, 1, 1) + b"\xff")[3] == "\N{REPLACEMENT CHARACTER}"


def test_a_request_header_is_refused_wherever_it_is_cut() -> None:
    out = bytearray()
    frame.write_request_header(out, 12, 4, 1, "ann", flexible=True)
    for end in range(len(out) - 1):
        with pytest.raises(WireError):
            frame.read_request_header(out[:end])
    with pytest.raises(WireError):
        frame.end_of_header(out[:-1], len(out) - 1, flexible=True)


def test_tagged_fields_of_a_header_are_passed_over_up_to_the_end_of_the_frame() -> None:
    assert frame.end_of_header(b"\x02\x05\x01a\x07\x00rest", 0, flexible=True) == 6
    for tags in (b"\x01\x05\x02a", b"\x01\x05", b"\x02\x05\x00", b"\xff\xff\xff\xff\x07"):
        with pytest.raises(WireError):
            frame.end_of_header(tags, 0, flexible=True)


@pytest.mark.parametrize("flexible", [False, True])
def test_a_response_header_is_read_as_it_was_written(flexible: bool) -> None:
    out = bytearray()
    frame.write_response_header(out, -7, flexible)
    assert len(out) == 4 + flexible
    assert frame.read_response_header(out, 0, flexible) == (-7, len(out))
    with pytest.raises(WireError):
        frame.read_response_header(out[:-1], 0, flexible)


def test_the_answer_to_api_versions_has_the_oldest_header_in_every_version() -> None:
    assert not any(APIS[18].response_header_flexible(version) for version in APIS[18].versions)
    assert [APIS[12].response_header_flexible(version) for version in APIS[12].versions] == [False] * 4 + [
        True
    ]


def test_pieces_are_in_order_and_not_copied() -> None:
    out = bytearray(b"abcdef")
    first, second = b"11", memoryview(b"22")
    found = frame.pieces(out, [(0, first), (2, first), (2, second), (6, second)])
    assert b"".join(found) == b"11ab1122cdef22"
    assert found[0] is first
    assert found[3] is second
    out[0] = ord("z")
    assert found[1] == b"zb"
    assert frame.pieces(b"", []) == []
