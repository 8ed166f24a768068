"""Speaks Kafka's protocol over any trio stream, in real bytes, and knows nothing else of clients.

Requests may be sent ahead of their answers; a broker answers in order. Whatever goes
wrong - no connection, no answer in time, bytes that make no sense - is one of `GONE`
to the caller, who cannot know whether the request was done, and begins again with a
new connection.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from rafka.wire.api import Api
from rafka.wire.errors import WireError
from rafka.wire.frame import begin_frame, end_frame, pieces, read_response_header, write_request_header

Connect = Callable[[], Awaitable[trio.abc.Stream]]

TIMEOUT: Final = 5.0  # virtual seconds, for each answer
GONE: Final = (
    OSError,
    WireError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    trio.TooSlowError,
)


class WireClient:
    """One connection at a time."""

    def __init__(self, connect: Connect, client_id: str, timeout: float = TIMEOUT) -> None:
        self._connect = connect
        self._client_id = client_id
        self._timeout = timeout
        self._stream: trio.abc.Stream | None = None
        self._unread = bytearray()
        self._asked: deque[tuple[Api, int, int]] = deque()  # what is not answered yet: API, version, id
        self._correlation_id = 0

    async def ask(self, api: Api, version: int, request: Any) -> Any:
        """Send, and wait for the answer."""
        await self.send(api, version, request)
        return await self.answer()

    async def send(self, api: Api, version: int, request: Any) -> None:
        """Send ahead; `answer` has to be called once for each."""
        self._correlation_id += 1
        frame = bytearray()
        begin_frame(frame)
        write_request_header(
            frame, api.key, version, self._correlation_id, self._client_id, api.is_flexible(version)
        )
        splices: list[tuple[int, bytes]] = []
        encode = api.request_encoder(version)
        if api.request_splices:
            encode(request, frame, splices)
        else:
            encode(request, frame)
        end_frame(frame, 0, sum(len(buffer) for _, buffer in splices))
        with trio.fail_after(self._timeout):
            if self._stream is None:
                self._stream = await self._connect()
            self._asked.append((api, version, self._correlation_id))
            await self._stream.send_all(b"".join(pieces(frame, splices)))

    async def answer(self) -> Any:
        """The answer to the oldest request that was sent and not yet answered."""
        api, version, expected = self._asked.popleft()
        with trio.fail_after(self._timeout):
            frame = memoryview(await self._frame())
        correlation_id, at = read_response_header(frame, 0, api.response_header_flexible(version))
        if correlation_id != expected:
            raise WireError(f"the answer to request {correlation_id}, where {expected} is next")
        response, end = api.response_decoder(version)(frame, at)
        if end != len(frame):
            raise WireError(f"{len(frame) - end} bytes after a {api.name} response")
        return response

    async def hang_up(self) -> None:
        """Forget the connection, and what was asked on it."""
        stream, self._stream = self._stream, None
        self._unread.clear()
        self._asked.clear()
        if stream is not None:
            await trio.aclose_forcefully(stream)

    async def _frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self._exactly(4))
        return await self._exactly(size)

    async def _exactly(self, size: int) -> bytes:
        if self._stream is None:
            raise ConnectionError("not connected")
        while len(self._unread) < size:
            data = await self._stream.receive_some(65_536)
            if not data:
                raise ConnectionError("the broker hung up")
            self._unread += data
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken
