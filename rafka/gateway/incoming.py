"""Frames out of bytes, without copying what comes whole.

Most requests arrive whole and are read where they lie, in a buffer that all
connections share. Only of a frame that came in part does a connection own memory:
as much as has come, doubling, and never more than the frame.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ..wire.errors import WireError
from .budget import ByteBudget
from .buffers import Buffers
from .transport import Transport

FIRST_ROOM: Final = 16 * 1024  # a frame of which little has come is given this much room, then twice that
TRUST: Final = 8  # times what has come is room that a sender may be given in advance
SIZE_FIELD: Final = 4
_SIZE: Final = Struct(">i")
UNCOUNTED: Final = 64 * 1024  # frames up to this size are not worth the budget's while


class Incoming:
    """The bytes of one connection on their way to frames."""

    __slots__ = (
        "_body",
        "_budget",
        "_buffers",
        "_counted",
        "_filled",
        "_head",
        "_shared",
        "_size",
        "_transport",
        "_whole",
        "apart",
        "ended",
        "longest",
        "starved",
    )

    def __init__(
        self,
        transport: Transport,
        shared: memoryview,
        buffers: Buffers,
        budget: ByteBudget,
        frame_max: int,
    ) -> None:
        self.apart = False  # some bytes lie apart from the shared buffer: `release` after each piece of work
        self.ended = False  # nothing more will come
        self.starved = False  # there is no memory for more of the frame: wait for it
        self._transport = transport
        self._shared = shared
        self._buffers = buffers
        self._budget = budget
        self.longest = SIZE_FIELD + frame_max
        self._head = b""  # less than a frame's size field
        self._body: bytearray | None = None  # of a frame that has come in part
        self._whole: bytearray | None = None  # the one that was last given out
        self._size = 0
        self._filled = 0
        self._counted = 0

    @property
    def midway(self) -> bool:
        """Whether a request has begun and not ended."""
        return self._body is not None or bool(self._head)

    @property
    def missing(self) -> int:
        """The size of the frame that has come in part, 0 where there is none."""
        return self._size if self._body is not None else 0

    def receive(self) -> memoryview | None:
        """Take in what has come, by one read. What is returned begins with a frame.

        It is good until anybody's next read. None: there is nothing to work on yet.
        """
        if self._body is not None:
            return self._fill(self._body)
        size = self._transport.receive_into(self._shared)
        if size <= 0:
            self.ended = size == 0
            return None
        if self._head:
            joined = memoryview(self._head + self._shared[:size])
            self._head = b""
            return joined
        return self._shared[:size]

    def frame_end(self, data: memoryview, at: int) -> int:
        """Where the frame that begins at `at` ends; -1 where it has not come whole, and then it is kept."""
        left = len(data) - at
        if left < SIZE_FIELD:
            self._head, self.apart = bytes(data[at:]), True
            return -1
        (size,) = _SIZE.unpack_from(data, at)
        if not 0 < size <= self.longest - SIZE_FIELD:
            raise WireError(_what_it_may_be(size, data, at))
        end: int = at + SIZE_FIELD + size
        if end > len(data):
            self._begin(SIZE_FIELD + size, data[at:])
            return -1
        return end

    async def wait_for_memory(self) -> None:
        """Where it was starved."""
        await self._budget.take(self._filled - self._counted, self)
        self._counted = self._filled
        self.starved = False

    def release(self) -> None:
        """The large frame last received is done with."""
        if self._counted:
            self._budget.give_back(self._counted, self)
            self._counted = 0
        if self._whole is not None:
            self._buffers.give_back(self._whole)
            self._whole = None
        self.apart = self.midway

    def _begin(self, size: int, first: memoryview) -> None:
        self.apart = True
        self._size = size
        self._filled = len(first)
        self._body = self._room(first)

    def _room(self, came: memoryview | bytearray) -> bytearray:
        """A buffer that begins with what has come: for the whole frame if that is a good part of it."""
        size = self._size
        body = self._buffers.take(size) if size > UNCOUNTED and TRUST * len(came) >= size else None
        if body is None:
            body = bytearray(min(size, max(FIRST_ROOM, 2 * len(came))))
        body[: len(came)] = came
        return body

    def _fill(self, body: bytearray) -> memoryview | None:
        """Receive more of the frame that came in part; the frame, once it is whole."""
        size = self._size
        fresh = self._filled - self._counted
        if size > UNCOUNTED and fresh:
            if not self._budget.try_take(fresh, self):
                self.starved = True
                return None
            self._counted = self._filled
        with memoryview(body) as view:
            came = self._transport.receive_into(view[self._filled : size])
        if came <= 0:
            self.ended = came == 0
            return None
        self._filled += came
        if self._filled < size:
            if self._filled == len(body):
                self._body = self._room(body)
            return None
        self._body = None
        self._whole = body
        return memoryview(body)[:size]


def _what_it_may_be(size: int, data: memoryview, at: int) -> str:
    """A size that cannot be is most often the beginning of another protocol."""
    start = bytes(data[at : at + SIZE_FIELD])
    if start in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE"):
        return "an HTTP request came to a Kafka listener"
    if start[:2] == b"\x16\x03":
        return "a TLS greeting came to a listener that speaks plain text"
    return f"a request of {size} bytes"
