"""One client, one task: take its requests in, ask the broker, answer in order.

All frames that one read brought are worked on together and their replies go out
together. What the broker answers at once costs no task switch. While a write waits to
become durable the next requests are taken up, so that pipelined writes share a sync;
while anything else waits (a parked fetch), what follows it waits too, as in Kafka.

The shared buffer holds somebody else's bytes after the next await: whatever is left
to parse is copied before this task waits for anything but the socket.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from ..errors import ErrorCode, KafkaError
from ..ops.base import Envelope, Later, Op
from ..types import Buffer
from ..wire.errors import UnwritableError, WireError
from ..wire.frame import end_of_header
from .incoming import Incoming
from .quirks import Unanswered
from .routes import Bound, bound_route
from .transport import Transport

if TYPE_CHECKING:
    from .server import Gateway

log = logging.getLogger(__name__)

SEND_AT: Final = 256 * 1024  # replies gathered so far go out before more are made
JOIN_BELOW: Final = 32 * 1024  # pieces of less than this are joined into one
CLIENT_ID_SHOWN: Final = 256
_HEADER: Final = Struct(">hhi")
_LENGTH: Final = Struct(">h")
_REPLY: Final = Struct(">ii")
_SIZE: Final = Struct(">i")


class Hangup(Exception):
    """The connection has to be closed; the message says why."""


@attrs.define
class Waiting:
    """A reply in the making, or one that is ready behind it in the line."""

    route: Bound
    correlation_id: int
    op: Op[Any] | None = None  # None: the gateway's own answer
    later: Later[Any] | None = None
    reply: Any = None


class Connection:
    """Kept small: there may be ten thousand of them, most of them idle."""

    __slots__ = (
        "_ask",
        "_client_id",
        "_elements",
        "_gateway",
        "_gathered",
        "_incoming",
        "_line",
        "_out",
        "_pieces",
        "_seen_sent",
        "_transport",
        "began",
        "envelope",
        "greeted",
        "idle",
        "last_active",
        "scope",
        "unsent",
        "writing_since",
    )

    def __init__(
        self, gateway: Gateway, incoming: Incoming, transport: Transport, envelope: Envelope
    ) -> None:
        self.envelope = envelope
        self.last_active = gateway.clock
        self.began: float | None = None  # when the request that is still arriving began
        self.writing_since: float | None = None
        self.unsent = 0
        self.idle = False
        self.greeted = False  # a whole request has come
        self.scope = trio.CancelScope()
        self._gateway = gateway
        self._ask = gateway.link.ask
        self._elements = gateway.elements
        self._incoming = incoming
        self._transport = transport
        self._seen_sent = 0
        self._line: list[Waiting] = []  # replies to come, in order
        self._out = bytearray()
        self._pieces: list[Buffer] = []
        self._gathered = 0
        self._client_id = b""

    @property
    def missing(self) -> int:
        return self._incoming.missing

    def moved(self) -> bool:
        """Whether the client has taken anything since this was last asked."""
        before, self._seen_sent = self._seen_sent, self._transport.sent
        return before != self._seen_sent

    async def serve(self) -> None:
        """Until the client goes, misbehaves, or the gateway closes."""
        try:
            await self._until_hangup()
        except OSError:
            pass  # the client has gone
        except Exception:  # a mistake of ours
            log.exception("the connection from %s is closed", self.envelope.client_host)
        finally:
            self._incoming.release()

    async def _until_hangup(self) -> None:
        try:
            try:
                await self._converse()
            except WireError as wrong:
                await self._drain()  # what was asked before is answered still
                raise Hangup(str(wrong)) from None
        except Hangup as why:
            self._gateway.note(self, f"closed: {why}")
            await self._flush()

    async def _converse(self) -> None:
        incoming, gateway = self._incoming, self._gateway
        while not gateway.closing:
            self.idle = True
            data = await incoming.receive()
            self.idle = False
            if data is None:
                return
            self.last_active = gateway.clock
            await self._work(data)
            incoming.release()
            if not incoming.midway:
                self.began = None
            elif self.began is None:
                self.began = gateway.clock

    # --- requests --------------------------------------------------------------------

    async def _work(self, data: memoryview) -> None:
        """Answer every whole request in `data`."""
        at = 0
        end = self._incoming.frame_end(data, at)
        while end > 0:
            overlaps = self._take_up(data, at + 4, end)
            at = end
            if not overlaps or len(self._line) >= self._gateway.in_flight:
                data, at = memoryview(bytes(data[at:])), 0
                await self._drain()
            elif self._gathered + len(self._out) >= SEND_AT:
                data, at = memoryview(bytes(data[at:])), 0
                await self._flush()
            end = self._incoming.frame_end(data, at)
        if self._line:
            await self._drain()
        await self._flush()

    def _take_up(self, data: memoryview, at: int, end: int) -> bool:
        """One request: answered into the outgoing bytes, or put in line. Whether the next may be taken up."""
        self.greeted = True
        self.began = None
        frame = data[:end]
        if end - at < 10:
            raise WireError("a request too short for its header")
        key, version, correlation_id = _HEADER.unpack_from(frame, at)
        route = bound_route(key, version)
        at = self._skip_client_id(frame, at + 8)
        if route.flexible:
            at = at + 1 if at < end and not frame[at] else end_of_header(frame, at, True)
        if route.local is not None:
            reply = route.local(self._gateway, frame, at, version)
            if self._line:
                self._line.append(Waiting(route, correlation_id, reply=reply))
            else:
                self._put(route, correlation_id, reply)
            return True
        op, _ = route.decode(frame, at, self._elements)
        try:
            if route.prepare is not None:
                route.prepare(op, version)
            answer = self._ask(self.envelope, op)
        except KafkaError as refused:
            answer = op.refusal(refused.code, refused.message)
        except Exception:  # a mistake of ours: the client is told so, and others go on
            answer = self._our_fault(op)
        if isinstance(answer, Later):
            self._line.append(Waiting(route, correlation_id, op, later=answer))
            return answer.overlaps
        if self._line:
            self._line.append(Waiting(route, correlation_id, op, reply=answer))
        else:
            self._answer(route, correlation_id, op, answer)
        return True

    def _skip_client_id(self, frame: memoryview, at: int) -> int:
        """Take up the client id if it is another than before. A negative length is null."""
        size: int = _LENGTH.unpack_from(frame, at)[0]
        at += 2
        end = at + max(size, 0)
        if end > len(frame):
            raise WireError("the client id is longer than its request")
        raw = bytes(frame[at:end])
        if raw != self._client_id:
            self._client_id = raw
            self.envelope.client_id = raw.decode(errors="replace")[:CLIENT_ID_SHOWN]
        return end

    def _our_fault(self, op: Op[Any]) -> Any:
        log.exception("%s failed for %s", type(op).__name__, self.envelope.client_host)
        return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    # --- replies ---------------------------------------------------------------------

    async def _drain(self) -> None:
        """Wait for all replies in the line, in order."""
        while self._line:
            waiting = self._line[0]
            if waiting.later is not None:
                if not waiting.later.overlaps:
                    await self._flush()  # what is ready need not wait for this one
                try:
                    waiting.reply = await waiting.later.wait()
                except KafkaError as refused:
                    assert waiting.op is not None
                    waiting.reply = waiting.op.refusal(refused.code, refused.message)
                except Exception:
                    assert waiting.op is not None
                    waiting.reply = self._our_fault(waiting.op)
            del self._line[0]
            self._answer(waiting.route, waiting.correlation_id, waiting.op, waiting.reply)

    def _answer(self, route: Bound, correlation_id: int, op: Op[Any] | None, reply: Any) -> None:
        if route.settle is not None:
            try:
                reply = route.settle(op, reply, route.version)
            except Unanswered as silence:
                if silence.failed:
                    raise Hangup("a write with acks=0 failed, which only this can tell") from None
                return
        start = len(self._out)
        try:
            self._put(route, correlation_id, reply)
        except UnwritableError:
            if op is None:
                raise
            del self._out[start:]
            self._put(route, correlation_id, self._our_fault(op))

    def _put(self, route: Bound, correlation_id: int, reply: Any) -> None:
        """Encode a reply behind those already gathered."""
        out = self._out
        start = len(out)
        out += _REPLY.pack(0, correlation_id)
        if route.flexible_reply:
            out.append(0)  # no tagged fields in the header
        if route.splices:
            splices: list[tuple[int, Buffer]] = []
            route.encode(reply, out, splices)
            if splices:
                self._splice(start, splices)
                return
        else:
            route.encode(reply, out)
        _SIZE.pack_into(out, start, len(out) - start - 4)

    def _splice(self, start: int, splices: list[tuple[int, Buffer]]) -> None:
        """Put record batches where they belong without copying them."""
        out = self._out
        size = len(out) - start - 4 + sum(len(buffer) for _, buffer in splices)
        _SIZE.pack_into(out, start, size)
        done = 0
        view = memoryview(out)
        for at, buffer in splices:
            if at > done:
                self._pieces.append(view[done:at])
            self._pieces.append(buffer)
            done = at
        if done < len(out):
            self._pieces.append(view[done:])
        self._gathered += size
        self._out = bytearray()

    async def _flush(self) -> None:
        """Send what was gathered. A slow reader is felt here, and is not read from meanwhile."""
        pieces, out = self._pieces, self._out
        if not pieces:
            if not out:
                return
            pieces = [out]
        elif out:
            pieces.append(out)
        if len(pieces) > 1 and self._gathered + len(out) < JOIN_BELOW:
            pieces = [b"".join(pieces)]
        self.unsent = self._gathered + len(out)
        self._pieces, self._out, self._gathered = [], bytearray(), 0
        self.writing_since = self._gateway.clock
        await self._transport.send(pieces)
        self.writing_since = None
        self.unsent = 0
