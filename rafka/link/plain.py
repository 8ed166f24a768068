"""A socket as a Trio stream that waits only where there is something to wait for.

Trio's own gives way to other tasks at every call, which costs a turn of the loop and a system
call each, and a link between two processes makes four such calls for a request that comes
alone. This one asks the socket first when there is reason to think that it will do,
and gives way when it has not for a while. It is to be used by one reader and one writer.
"""

from __future__ import annotations

import socket
from typing import Final

import trio

from ..types import Buffer

IMPATIENCE: Final = 16  # calls without a wait before others get their turn
READ_SIZE: Final = 64 * 1024


class PlainStream(trio.abc.Stream):
    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._drained = True  # the last read took all there was: wait before asking again
        self._reads = self._writes = 0

    async def send_all(self, data: Buffer) -> None:
        left = memoryview(data)
        self._writes += 1
        if self._writes >= IMPATIENCE:
            self._writes = 0
            await trio.lowlevel.checkpoint()
        while left:
            try:
                left = left[self._open().send(left) :]
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._socket)
            except OSError as broken:
                raise trio.BrokenResourceError(str(broken)) from broken

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.wait_writable(self._open())

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        most = READ_SIZE if max_bytes is None else max_bytes
        self._reads += 1
        if self._reads >= IMPATIENCE and not self._drained:
            self._reads = 0
            await trio.lowlevel.checkpoint()
        while True:
            if self._drained:
                self._reads = 0
                await trio.lowlevel.wait_readable(self._open())
            try:
                data = self._open().recv(most)
            except BlockingIOError:
                self._drained = True
                continue
            except OSError as broken:
                raise trio.BrokenResourceError(str(broken)) from broken
            self._drained = 0 < len(data) < most
            return data

    async def aclose(self) -> None:
        if self._socket.fileno() >= 0:
            trio.lowlevel.notify_closing(self._socket)
            self._socket.close()
        await trio.lowlevel.checkpoint()

    def _open(self) -> socket.socket:
        if self._socket.fileno() < 0:
            raise trio.ClosedResourceError("this stream is closed")
        return self._socket


class PlainListener(trio.abc.Listener[PlainStream]):
    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._inner = trio.SocketListener(trio.socket.from_stdlib_socket(sock))

    async def accept(self) -> PlainStream:
        return plain(await self._inner.accept())

    async def aclose(self) -> None:
        await self._inner.aclose()


def plain(stream: trio.SocketStream) -> PlainStream:
    """The same connection; the stream that it was is closed by that."""
    return PlainStream(socket.socket(fileno=stream.socket.detach()))
