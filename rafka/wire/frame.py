"""Frames and headers: what stands around every message.

A frame is four bytes of length, then a header, then the message. A request's header
names API and version, and so decides how all the rest is read; whoever serves looks
the API up before reading on (`end_of_header`, which may have to pass over tagged fields).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct as Packer
from typing import Final

from ..types import Buffer
from .errors import WireError
from .runtime import skip_tags

FRAME_SIZE_MAX: Final = 100 * 1024 * 1024  # Kafka's socket.request.max.bytes

_INT32: Final = Packer(">i")
_REQUEST: Final = Packer(">hhih")  # key, version, correlation id, length of the client id

# --- frames --------------------------------------------------------------------------


def read_frame_size(data: Buffer, at: int = 0, size_max: int = FRAME_SIZE_MAX) -> int:
    """The length that four bytes at `at` announce. Believe it only after this."""
    size: int = _INT32.unpack_from(data, at)[0]
    if not 0 <= size <= size_max:
        raise WireError(f"a frame of {size} bytes")
    return size


def begin_frame(out: bytearray) -> int:
    """Leave room for the length; `end_frame` wants to know where."""
    start = len(out)
    out += bytes(4)
    return start


def end_frame(out: bytearray, start: int, spliced: int = 0) -> None:
    """Fill in the length. `spliced` is the size of what will be sent from between, uncopied."""
    _INT32.pack_into(out, start, len(out) - start - 4 + spliced)


def pieces(out: Buffer, splices: Iterable[tuple[int, Buffer]]) -> list[Buffer]:
    """What to send, in order: `out`, cut open where a splice belongs. Copies nothing."""
    view = memoryview(out)
    found: list[Buffer] = []
    before = 0
    for at, buffer in splices:
        if at > before:
            found.append(view[before:at])
            before = at
        found.append(buffer)
    if before < len(view):
        found.append(view[before:])
    return found


# --- headers -------------------------------------------------------------------------


def read_request_header(data: Buffer, at: int = 0) -> tuple[int, int, int, str, int]:
    """API key, version, correlation id, client id, and where that ended. Go on with `end_of_header`."""
    if len(data) - at < 10:
        raise WireError("a header cut short")
    key, version, correlation_id, length = _REQUEST.unpack_from(data, at)
    at += 10
    if length <= 0:  # null or worse is "", as in Kafka
        return key, version, correlation_id, "", at
    if length > len(data) - at:
        raise WireError("a header cut short")
    end = at + length
    return key, version, correlation_id, str(data[at:end], "utf-8", "replace"), end


def end_of_header(data: Buffer, at: int, flexible: bool) -> int:
    """Where the message begins: a flexible header ends in tagged fields."""
    if not flexible:
        return at
    try:
        at = skip_tags(data, at)
    except IndexError:
        at = len(data) + 1
    if at > len(data):
        raise WireError("a header cut short")
    return at


def write_request_header(
    out: bytearray, key: int, version: int, correlation_id: int, client_id: str | None, flexible: bool
) -> None:
    """The client id is never compact."""
    raw = b"" if client_id is None else client_id.encode()
    out += _REQUEST.pack(key, version, correlation_id, -1 if client_id is None else len(raw))
    out += raw
    if flexible:
        out.append(0)


def read_response_header(data: Buffer, at: int = 0, flexible: bool = False) -> tuple[int, int]:
    """Correlation id, and where the header ended. `Api.response_header_flexible` knows which it is."""
    if len(data) - at < 4:
        raise WireError("a header cut short")
    correlation_id: int = _INT32.unpack_from(data, at)[0]
    at += 4
    return correlation_id, end_of_header(data, at, flexible)


def write_response_header(out: bytearray, correlation_id: int, flexible: bool) -> None:
    out += _INT32.pack(correlation_id)
    if flexible:
        out.append(0)
