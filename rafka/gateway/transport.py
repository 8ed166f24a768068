"""What a connection reads from and writes to.

Reading and writing are plain calls that take or give what they can at once; only for a
slow reader is there something to wait for. Two ways to the same few calls:
`SocketTransport` over a plain socket, which a shared `Readiness` watches, and
`StreamTransport` over any Trio stream, for TLS, tests, simulations, and systems
without epoll. The rest of the gateway cannot tell them apart.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import trio

from ..types import Buffer
from .readiness import Readiness

IOV_MAX: Final = 1024  # pieces that the kernel takes in one call
FED_AT_ONCE: Final = 256 * 1024  # from a stream
SENT_AT_ONCE: Final = 256 * 1024  # to a stream: what a slow reader takes of it shows by these steps
NOTHING: Final = -1  # has come since


class Transport(Protocol):
    sent: int  # bytes that the other side, or its kernel, has taken so far
    more: bool  # whether there may be something to read; where not, `on_readable` is called when there is

    def watch(self, on_readable: Callable[[], None]) -> None:
        """From now on call this whenever something has come. It must not raise."""

    def receive_into(self, buffer: memoryview) -> int:
        """Put what has come into `buffer`, say how much: 0 is the end, `NOTHING` is nothing now."""

    def again(self) -> None:
        """Call `on_readable` once more, if there is more."""

    def send_now(self, pieces: Sequence[Buffer]) -> list[Buffer]:
        """Send what can be sent without waiting; what is left is returned."""

    async def send(self, pieces: Sequence[Buffer]) -> None:
        """Return once all pieces are with the kernel. A slow reader is felt here."""

    def close(self) -> None:
        """At once, without waiting for anything."""


class StreamTransport:
    """Any Trio stream. `feed` has to be running for anything to come."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.sent = 0
        self.more = False
        self._stream = stream
        self._on_readable: Callable[[], None] = _nobody
        self._unread = memoryview(b"")
        self._ended = False
        self._broken = False
        self._closed = False
        self._go_on = trio.Event()

    async def feed(self) -> None:
        """Read the stream; read on when what was read has been taken."""
        while not self._ended:
            try:
                data = await self._stream.receive_some(FED_AT_ONCE)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data, self._broken = b"", True
            self._ended = not data
            self._unread = memoryview(data)
            self.more = True
            while self.more:
                self._go_on = trio.Event()
                self._on_readable()
                if self.more:
                    await self._go_on.wait()

    def watch(self, on_readable: Callable[[], None]) -> None:
        self._on_readable = on_readable

    def receive_into(self, buffer: memoryview) -> int:
        if self._broken:
            raise ConnectionResetError
        if not self.more:
            return NOTHING
        size = min(len(self._unread), len(buffer))
        buffer[:size] = self._unread[:size]
        self._unread = self._unread[size:]
        if not self._unread:
            self.more = False
            self._go_on.set()
        return size

    def again(self) -> None:
        self._go_on.set()

    def send_now(self, pieces: Sequence[Buffer]) -> list[Buffer]:
        return list(pieces)

    async def send(self, pieces: Sequence[Buffer]) -> None:
        data = memoryview(b"".join(pieces))
        try:
            for at in range(0, len(data), SENT_AT_ONCE):
                part = data[at : at + SENT_AT_ONCE]
                await self._stream.send_all(part)
                self.sent += len(part)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as gone:
            raise ConnectionResetError from gone

    async def aclose(self) -> None:
        self._closed = True
        await trio.aclose_forcefully(self._stream)

    def close(self) -> None:
        close = getattr(self._stream, "close", None)
        if close is not None and not self._closed:
            close()
        self._closed = True


def _nobody() -> None:
    """Who is called before anybody watches."""


class SocketTransport:
    """A plain TCP socket, non-blocking."""

    __slots__ = ("_fd", "_gone", "_on_readable", "_readiness", "_socket", "more", "sent")

    def __init__(self, sock: socket.socket, readiness: Readiness) -> None:
        sock.setblocking(False)
        self.sent = 0
        self.more = False
        self._socket = sock
        self._fd = sock.fileno()
        self._readiness = readiness
        self._on_readable: Callable[[], None] = _nobody
        self._gone = False

    def watch(self, on_readable: Callable[[], None]) -> None:
        self._on_readable = on_readable
        self._readiness.register(self._fd, self._edge)

    def _edge(self, gone: bool) -> None:
        self.more = True
        if gone:
            self._gone = True
        self._on_readable()

    def receive_into(self, buffer: memoryview) -> int:
        try:
            size = self._socket.recv_into(buffer)
        except BlockingIOError:
            self.more = False
            return NOTHING
        # Less than was asked for: the socket is empty, and the next edge will say when it is not.
        # But the end makes no edge of its own where it came together with the last bytes.
        self.more = size == len(buffer) or self._gone
        return size

    def again(self) -> None:
        self._readiness.again(self._fd)

    def send_now(self, pieces: Sequence[Buffer]) -> list[Buffer]:
        if len(pieces) == 1:
            piece = pieces[0]
            try:
                sent = self._socket.send(piece)
            except BlockingIOError:
                return [piece]
            self.sent += sent
            return [] if sent == len(piece) else [memoryview(piece)[sent:]]
        left: list[Buffer] = [memoryview(piece) for piece in pieces if len(piece)]
        while left:
            try:
                sent = self._socket.sendmsg(left[:IOV_MAX])
            except BlockingIOError:
                break
            self.sent += sent
            done = 0
            while done < len(left) and sent >= len(left[done]):
                sent -= len(left[done])
                done += 1
            del left[:done]
            if sent:
                left[0] = left[0][sent:]
        return left

    async def send(self, pieces: Sequence[Buffer]) -> None:
        left = self.send_now(pieces)
        while left:
            await trio.lowlevel.wait_writable(self._socket)
            left = self.send_now(left)

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._readiness.unregister(self._fd)
            self._on_readable = _nobody  # who watched is let go of at once, not when garbage is collected
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
