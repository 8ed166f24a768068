"""One connection to one broker: frames out, frames in, answers matched to questions.

A reader task and a writer task share the stream with whoever asks. Asking is putting a whole frame
into the writer's list, which cannot be cut short: a caller who is cancelled gives up the answer
and nothing else, and the stream stays in step. Requests are pipelined; a broker answers them in
order, and the correlation id is checked all the same.

A connection fails once and for good: everybody who waits gets the reason, and so does everybody
who asks later. Whoever keeps connections opens another.
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Final, Generic, TypeVar

import trio

from .. import __version__
from ..errors import ErrorCode
from ..types import Buffer
from ..wire.errors import UnwritableError, WireError
from .errors import ClientError, ConnectionLost, NotWritable, ProtocolMismatch, RequestTimedOut, refused
from .framing import Frames, framed, reply_body
from .messages import ApiVersions, Request
from .versions import FIRST_ASKED, Versions, after_refusal

ReplyT = TypeVar("ReplyT")

RECEIVE_SIZE: Final = 64 * 1024
RECEIVE_SIZE_MAX: Final = 1024 * 1024  # for the rest of a large frame
JOIN_BELOW: Final = 64 * 1024  # frames that are smaller are sent together
IN_FLIGHT_MAX: Final = 64  # questions asked through `ask` and not answered; more of them wait

_INT16: Final = struct.Struct(">h")


class Pending(Generic[ReplyT]):
    """A question that was put to a broker. `reply` waits for the answer."""

    __slots__ = ("_connection", "_event", "_frame", "_request", "_version", "error")

    def __init__(self, connection: Connection, request: type[Request[ReplyT]], version: int) -> None:
        self._connection = connection
        self._request = request
        self._version = version
        self._event = trio.Event()
        self._frame: memoryview | None = None
        self.error: ClientError | None = None

    async def reply(self) -> ReplyT:
        frame = await self.frame()
        try:
            decode = self._request.api.response_decoder(self._version, self._request.reply)
            reply, _ = decode(frame, reply_body(self._request.api, self._version, frame))
        except WireError as error:
            self._connection.close(
                ProtocolMismatch(
                    f"{self._connection.broker} sent an answer to {self._request.api.name} version "
                    f"{self._version} that cannot be read: {error}"
                )
            )
            assert self._connection.error is not None
            raise self._connection.error from error
        return reply  # type: ignore[no-any-return]  # built by the decoder as the class it was given

    async def frame(self) -> memoryview:
        """The whole answer as it came, header and all."""
        await self._event.wait()
        if self.error is not None:
            raise self.error
        assert self._frame is not None
        return self._frame

    async def sent(self) -> None:
        """For a question that is never answered: return once it has gone out."""
        await self._event.wait()
        if self.error is not None:
            raise self.error

    def settle(self, frame: memoryview | None, error: ClientError | None = None) -> None:
        self._frame = frame
        self.error = error
        self._event.set()


class Connection:
    """Made by `open_connection`. `error` tells why it is closed, and is None while it is open."""

    def __init__(self, stream: trio.abc.Stream, broker: str, client_id: str) -> None:
        self.broker: Final = broker
        self.versions: Versions | None = None
        self.error: ClientError | None = None
        self._stream = stream
        self._client_id = client_id
        self._next_id = 0
        self._pending: dict[int, Pending[Any]] = {}
        self._unanswered: list[Pending[Any]] = []  # never answered; done once written
        self._outgoing: list[Buffer] = []
        self._something_to_write = trio.Event()
        self._room = trio.Semaphore(IN_FLIGHT_MAX)
        # Shielded: while a block is cancelled there is still a goodbye to be said, and heard.
        self._scope = trio.CancelScope(shield=True)

    # --- asking ------------------------------------------------------------------

    async def ask(self, request: Request[ReplyT], *, within: float, at_least: int = 0) -> ReplyT:
        """The broker's answer. Where none comes in time the connection is given up, as it is stuck.

        `at_least` is the first version of the request that can say what is asked.
        """
        async with self._room:
            pending = self.post(request, at_least=at_least)
            with trio.move_on_after(within):
                return await pending.reply()
        raise self.timed_out(type(request), within)

    def post(self, request: Request[ReplyT], *, at_least: int = 0, answered: bool = True) -> Pending[ReplyT]:
        """Put a question without waiting. Questions go out in the order of their posting."""
        if self.error is not None:
            raise self.error
        assert self.versions is not None, "asked before the handshake"
        return self._post(request, self.versions.choose(type(request), at_least), answered)

    def timed_out(self, request: type[Request[Any]], within: float) -> ClientError:
        """Close, because an answer did not come. The error says so."""
        error = RequestTimedOut(f"{self.broker} did not answer {request.api.name} within {within:g} s")
        self.close(error)
        return error

    def _post(self, request: Request[ReplyT], version: int, answered: bool = True) -> Pending[ReplyT]:
        self._next_id = (self._next_id + 1) & 0x7FFFFFFF
        pending = Pending(self, type(request), version)
        try:
            self._outgoing += framed(request, version, self._next_id, self._client_id)
        except UnwritableError as error:
            raise NotWritable(f"what cannot be asked: {error}") from error
        if answered:
            self._pending[self._next_id] = pending
        else:
            self._unanswered.append(pending)
        self._something_to_write.set()
        return pending

    # --- the handshake -----------------------------------------------------------

    async def negotiate(self, within: float) -> None:
        """Learn which versions the broker speaks. Comes before all other questions."""
        with trio.move_on_after(within):
            self.versions = Versions(await self._ask_versions(FIRST_ASKED), self.broker)
        if self.versions is None:
            raise self.timed_out(ApiVersions, within)

    async def _ask_versions(self, version: int) -> Any:
        question = ApiVersions(client_software_version=__version__)
        pending = self._post(question, version)
        frame = await pending.frame()
        body = memoryview(frame)[4:]  # its header has never been flexible
        code = _INT16.unpack_from(body)[0] if len(body) >= 2 else 0
        if code == ErrorCode.UNSUPPORTED_VERSION:  # said in version 0, whatever was asked (KIP-511)
            refusal, _ = ApiVersions.api.response_decoder(0, ApiVersions.reply)(body, 0)
            if version > 0:
                return await self._ask_versions(min(after_refusal(refusal), version - 1))
        reply = await pending.reply()
        if reply.error_code:
            raise refused(reply.error_code, f"{self.broker}: ApiVersions")
        return reply

    # --- the two tasks -----------------------------------------------------------

    async def run(self) -> None:
        """Serve the stream until it ends or `close` is called, by whoever keeps this connection."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read)
                    nursery.start_soon(self._write)
        finally:
            self.close(ConnectionLost(f"the connection to {self.broker} was closed by this client"))
            await trio.aclose_forcefully(self._stream)

    def close(self, error: ClientError) -> None:
        """Fail all that wait, with the first reason that was given."""
        if self.error is not None:
            return
        self.error = error
        for pending in (*self._pending.values(), *self._unanswered):
            pending.settle(None, error)
        self._pending.clear()
        self._unanswered.clear()
        self._outgoing.clear()
        self._scope.cancel()

    async def _read(self) -> None:
        frames = Frames()
        try:
            while data := await self._stream.receive_some(
                max(RECEIVE_SIZE, min(frames.missing, RECEIVE_SIZE_MAX))
            ):
                for frame in frames.feed(data):
                    self._take(frame)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.close(ConnectionLost(f"the connection to {self.broker} broke: {_reason(error)}"))
        except WireError as error:
            self.close(ProtocolMismatch(f"{self.broker} does not seem to speak Kafka's protocol: {error}"))
        self.close(ConnectionLost(f"{self.broker} closed the connection"))

    def _take(self, frame: memoryview) -> None:
        if len(frame) < 4:
            raise WireError(f"a frame of {len(frame)} bytes")
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        pending = self._pending.pop(correlation_id, None)
        if pending is None:
            raise WireError(f"an answer to a question that was not asked ({correlation_id})")
        pending.settle(frame)

    async def _write(self) -> None:
        try:
            while True:
                await self._something_to_write.wait()
                self._something_to_write = trio.Event()
                pieces, self._outgoing = self._outgoing, []
                silent, self._unanswered = self._unanswered, []
                try:
                    await self._send(pieces)
                finally:
                    for pending in silent:
                        pending.settle(None, self.error)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.close(ConnectionLost(f"the connection to {self.broker} broke: {_reason(error)}"))

    async def _send(self, pieces: list[Buffer]) -> None:
        """Small neighbours in one packet, large pieces as they are."""
        small: list[Buffer] = []
        for piece in pieces:
            if len(piece) < JOIN_BELOW:
                small.append(piece)
                continue
            if small:
                await self._stream.send_all(b"".join(small))
                small = []
            await self._stream.send_all(memoryview(piece))
        if small:
            await self._stream.send_all(b"".join(small))


async def open_connection(
    nursery: trio.Nursery, stream: trio.abc.Stream, broker: str, *, client_id: str, within: float
) -> Connection:
    """A connection that has shaken hands, served by a task of the nursery."""
    _keep_alive(stream)
    connection = Connection(stream, broker, client_id)
    nursery.start_soon(connection.run)
    try:
        await connection.negotiate(within)
    except BaseException:
        connection.close(ConnectionLost(f"the handshake with {broker} was given up"))
        raise
    return connection


def _keep_alive(stream: trio.abc.Stream) -> None:
    """Have the system notice a broker that is gone without a word."""
    if isinstance(stream, trio.SocketStream):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _reason(error: Exception) -> str:
    return str(error.__cause__ or error) or type(error).__name__
