"""Requests as frames to send, and what comes back cut into frames. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..types import Buffer
from ..wire.api import Api
from ..wire.errors import WireError
from ..wire.frame import (
    begin_frame,
    end_frame,
    pieces,
    read_frame_size,
    read_response_header,
    write_request_header,
)
from .messages import Request

# A broker may send a batch of any size whatever was asked for, but "HTTP" read as a length is more than this.
ANSWER_SIZE_MAX: Final = 1 << 30
TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")  # an alert, a handshake


def framed(request: Request[Any], version: int, correlation_id: int, client_id: str) -> list[Buffer]:
    """The pieces of a whole frame, in order. Record batches are pieces of their own, uncopied."""
    api = request.api
    out = bytearray()
    start = begin_frame(out)
    write_request_header(out, api.key, version, correlation_id, client_id, api.is_flexible(version))
    encode = api.request_encoder(version, type(request))
    if not api.request_splices:
        encode(request, out)
        end_frame(out, start)
        return [out]
    splices: list[tuple[int, Buffer]] = []
    encode(request, out, splices)
    end_frame(out, start, sum(len(piece) for _, piece in splices))
    return pieces(out, splices)


def reply_body(api: Api, version: int, frame: memoryview) -> int:
    """Where the message begins in an answer."""
    _, at = read_response_header(frame, 0, api.response_header_flexible(version))
    return at


class Frames:
    """Feed bytes in, take whole frames out, without their length."""

    def __init__(self) -> None:
        self._parts: list[Buffer] = []
        self._begun = False  # something that looks like a frame has come
        self._have = 0
        self._need = 4  # of the frame that is being gathered, its length included

    @property
    def missing(self) -> int:
        """How many bytes the next frame still lacks, as far as is known."""
        return self._need - self._have

    def feed(self, data: Buffer) -> Iterator[memoryview]:
        """The frames that are whole now. WireError where the length cannot be true."""
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        view = memoryview(data if len(self._parts) == 1 else b"".join(self._parts))
        at = 0
        while len(view) - at >= 4:
            if bytes(view[at : at + 2]) in TLS_RECORDS and not self._begun:
                raise WireError("it speaks TLS: connect with TLS, or to another port")
            self._begun = True
            self._need = 4 + read_frame_size(view, at, ANSWER_SIZE_MAX)
            if len(view) - at < self._need:
                break
            yield view[at + 4 : at + self._need]
            at += self._need
        else:
            self._need = 4
        rest = view[at:]
        self._parts = [rest] if rest else []
        self._have = len(rest)
