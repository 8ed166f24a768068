"""What a connection reads from and writes to.

Two ways to the same few calls: `StreamTransport` over any Trio stream, for TLS, tests
and simulations, and `SocketTransport` over a plain socket, which knows when not to
ask the kernel. The rest of the gateway cannot tell them apart.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Protocol

import trio

from ..types import Buffer
from .readiness import Readiness, Slot

IOV_MAX = 1024  # pieces that the kernel takes in one call
SENT_AT_ONCE = 256 * 1024  # to a stream: what a slow reader takes of it shows by these steps
IMPATIENCE = 16  # reads without a wait before others get their turn


class Transport(Protocol):
    sent: int  # bytes that the other side, or its kernel, has taken so far

    async def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes, put them into `buffer`, say how many; 0 is the end.

        `buffer` may be shared with other connections: it is filled and given back without
        an await in between.
        """

    async def send(self, pieces: Sequence[Buffer]) -> None:
        """Return once all pieces are with the kernel. A slow reader is felt here."""

    def close(self) -> None:
        """At once, without waiting for anything."""


class StreamTransport:
    """Any Trio stream."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.sent = 0
        self._stream = stream
        self._closed = False

    async def receive_into(self, buffer: memoryview) -> int:
        try:
            data = await self._stream.receive_some(len(buffer))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as gone:
            raise ConnectionResetError from gone
        buffer[: len(data)] = data
        return len(data)

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


class SocketTransport:
    """A plain TCP socket, non-blocking, whose readiness is watched by a shared `Readiness`."""

    __slots__ = ("_busy", "_drained", "_readiness", "_slot", "_socket", "sent")

    def __init__(self, sock: socket.socket, readiness: Readiness) -> None:
        sock.setblocking(False)
        self.sent = 0
        self._socket = sock
        self._readiness = readiness
        self._slot: Slot | None = readiness.register(sock.fileno())
        self._drained = True  # the last read took all there was: wait before asking again
        self._busy = 0

    async def receive_into(self, buffer: memoryview) -> int:
        slot = self._slot
        if slot is None:
            raise ConnectionResetError
        while True:
            if self._drained:
                self._busy = 0
                await slot.wait()
            else:
                self._busy += 1
                if self._busy >= IMPATIENCE:
                    self._busy = 0
                    await trio.lowlevel.checkpoint()
            try:
                size = self._socket.recv_into(buffer)
            except BlockingIOError:
                self._drained = True
                continue
            # Less than was asked for: the socket is empty, and the next edge will say so.
            self._drained = 0 < size < len(buffer) and not slot.gone
            return size

    async def send(self, pieces: Sequence[Buffer]) -> None:
        if len(pieces) == 1:
            await self._send_one(pieces[0])
            return
        left = [memoryview(piece) for piece in pieces if len(piece)]
        while left:
            try:
                sent = self._socket.sendmsg(left[:IOV_MAX])
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
                continue
            self.sent += sent
            done = 0
            while done < len(left) and sent >= len(left[done]):
                sent -= len(left[done])
                done += 1
            del left[:done]
            if sent:
                left[0] = left[0][sent:]

    async def _send_one(self, data: Buffer) -> None:
        view = data
        while True:
            try:
                sent = self._socket.send(view)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
                continue
            self.sent += sent
            if sent == len(view):
                return
            view = memoryview(view)[sent:]

    def close(self) -> None:
        if self._slot is not None:
            self._readiness.unregister(self._slot)
            self._slot = None
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
