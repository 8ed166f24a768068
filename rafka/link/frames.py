"""Frames on a stream: what two processes of rafka say to each other, and in what pieces.

A frame is a length of four bytes and a msgpack array, whose first element is its kind:

    HELLO    {version, name, release}    the gateway, first of all
    WELCOME  {what `hello.Welcome` has}  the broker's answer: go on
    REFUSED  why                         or: go away
    OPEN     sender, envelope            one of the gateway's connections, or a change in what it says
    CLOSE    sender                      it has gone: nobody waits for its answers
    ASK      id, sender, code, fields    an op, as `ops.packing` has it
    CANCEL   id                          its answer is not waited for any more
    REPLY    id, fields                  answers come in whatever order they are ready
    UNKNOWN  id                          the broker is older than the gateway and has no such op
    SETTINGS {key: value}                settings that were changed while the broker runs
    PING                                 I am here: now and then, from both ends
    BYE                                  I ask no more; I take no more, and answer what I have

Any number may be under way. `Framed` packs and splits; it never waits to take a frame in
hand, and one task sends what lies there, so that whoever asks is never cancelled midway.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from struct import Struct
from typing import Any, Final

import msgpack
import trio

LENGTH: Final = Struct(">I")
READ_SIZE: Final = 256 * 1024
SILENCES: Final = 3  # pings that do not come before the other end is given up
SHOWN_MOST: Final = 200  # characters of what nobody understands
JOIN_BELOW: Final = 32 * 1024  # pieces of less than this are joined into one


class Kind(IntEnum):
    HELLO = 0
    WELCOME = 1
    REFUSED = 2
    OPEN = 3
    CLOSE = 4
    ASK = 5
    CANCEL = 6
    REPLY = 7
    UNKNOWN = 8
    SETTINGS = 9
    PING = 10
    BYE = 11


class LinkBroken(Exception):
    """The other end has gone, or says what nobody understands. The message says which."""


def not_understood(wrong: object) -> LinkBroken:
    """What is wrong may be as large as a frame; a line in the log is not."""
    said = repr(wrong)
    shown = said if len(said) <= SHOWN_MOST else f"{said[:SHOWN_MOST]}..."
    return LinkBroken(f"what it says is not understood: {shown}")


class Framed:
    def __init__(self, stream: trio.abc.Stream, max_frame: int) -> None:
        self.max_frame = max_frame  # larger ones are not read
        self.unsent = 0  # bytes in hand that the stream has not taken
        self._listening_since: float | None = None
        self._stream = stream
        self._unread = bytearray()
        self._missing = 0  # bytes of the frame that has begun to arrive
        self._kept: list[tuple[int, Any]] = []  # frames that came with the first
        self._pieces: list[bytes] = []
        self._something = trio.Event()
        self._sent = trio.Event()

    # --- out --------------------------------------------------------------------------

    def put(self, *frame: object) -> int:
        """Take a frame to be sent; its size."""
        packed = packed_frame(*frame)
        self.put_packed(packed)
        return len(packed)

    def put_packed(self, packed: bytes) -> None:
        self._pieces += (LENGTH.pack(len(packed)), packed)
        self.unsent += len(packed)
        self._something.set()

    async def send_all(self) -> None:
        """Send what is taken, forever. LinkBroken where the other end does not take it."""
        while True:
            if not self._pieces:
                self._something = trio.Event()
                await self._something.wait()
            await self.flush()

    async def flush(self) -> None:
        """Send what is taken so far. Only one task may, and it must not be cancelled if it is to go on."""
        pieces, self._pieces = self._pieces, []
        try:
            for piece in _joined(pieces):
                await self._stream.send_all(piece)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as gone:
            raise LinkBroken("the connection broke") from gone
        self.unsent -= sum(map(len, pieces[1::2]))
        self._sent.set()
        self._sent = trio.Event()

    async def room(self, most: int) -> None:
        """Wait until no more than `most` bytes are in hand."""
        while self.unsent > most:
            await self._sent.wait()

    # --- in ---------------------------------------------------------------------------

    async def receive(self) -> list[tuple[int, Any]] | None:
        """The next frames, at least one, each with its size; None at the end. LinkBroken for nonsense."""
        if frames := self._kept:
            self._kept = []
            return frames
        while True:
            self._listening_since = trio.current_time()
            try:
                data = await self._stream.receive_some(READ_SIZE)
            except (trio.BrokenResourceError, trio.ClosedResourceError) as gone:
                raise LinkBroken("the connection broke") from gone
            self._listening_since = None
            if not data:
                if self._unread:
                    raise LinkBroken("the connection ended within a frame")
                return None
            if frames := self._split(data):
                return frames

    async def keep_awake(self, ping_s: float) -> None:
        """Tell the other end that this one is there, until it has not been heard for too long."""
        while True:
            await trio.sleep(ping_s)
            if self.silent_s() > ping_s * SILENCES:
                raise LinkBroken(f"nothing was heard of it for {ping_s * SILENCES:g} s")
            self.put(Kind.PING)

    def silent_s(self) -> float:
        """How long the other end has said nothing though it was listened to."""
        since = self._listening_since  # None: it may well have spoken, and nobody has listened
        return 0.0 if since is None else trio.current_time() - since

    async def receive_one(self) -> Any:
        """The next frame alone; None at the end."""
        frames = await self.receive()
        if frames is None:
            return None
        self._kept = frames[1:]
        return frames[0][1]

    def _split(self, data: bytes | bytearray) -> list[tuple[int, Any]]:
        """The frames that are whole now. What is left of `data` is kept for the next time."""
        if self._unread:
            self._unread += data
            if len(data) < self._missing:
                self._missing -= len(data)
                return []
            data = self._unread
        self._missing = 0
        frames = []
        at, end = 0, len(data)
        with memoryview(data) as view:
            while end - at >= LENGTH.size:
                (size,) = LENGTH.unpack_from(view, at)
                if size > self.max_frame:
                    raise LinkBroken(f"a frame of {size} bytes came, and {self.max_frame} are the most")
                after = at + LENGTH.size + size
                if after > end:
                    self._missing = after - end
                    break
                frames.append((size, _unpacked(view[at + LENGTH.size : after])))
                at = after
        if data is self._unread:
            del self._unread[:at]
        else:
            self._unread += data[at:]
        return frames


def packed_frame(*frame: object) -> bytes:
    packed: bytes = msgpack.packb(frame, unicode_errors="surrogatepass")
    return packed


def _unpacked(view: memoryview) -> Any:
    try:
        with view:
            frame = msgpack.unpackb(view, use_list=False, unicode_errors="surrogatepass")
    except (ValueError, msgpack.UnpackException) as wrong:
        raise LinkBroken(f"a frame is not msgpack: {wrong}") from wrong
    if not isinstance(frame, tuple) or not frame:
        raise LinkBroken("a frame is no array")
    return frame


def _joined(pieces: Sequence[bytes]) -> list[bytes]:
    """Neighbours that are small as one, so that they are sent at once; large ones as they are."""
    joined = []
    small: list[bytes] = []
    for piece in pieces:
        small.append(piece)
        if len(piece) >= JOIN_BELOW:
            small.pop()
            if small:
                joined.append(b"".join(small))
                small = []
            joined.append(piece)
    if small:
        joined.append(b"".join(small))
    return joined
