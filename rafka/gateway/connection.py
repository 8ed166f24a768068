"""One client, one task: take its requests in, ask the broker, answer in order.

What can be answered at once is answered in `on_readable`, a plain call from whoever
sees the bytes come: it costs no task switch. All frames that one read brought are worked on
together and their replies go out together. A reply that takes time may ring when it has come
(`ops.base.Later.ring`), and goes out in the step of whoever answers, by `on_reply`. The task is
woken only for what has to be waited for: a reply that cannot ring, a slow reader, the end.

While the task waits for a write to become durable the next requests are taken up, so
that writes share a sync; while it waits for anything else (a parked fetch, a reader
that takes nothing), what follows is not even read, as in Kafka.

The shared buffer holds somebody else's bytes after the next read: whatever is left
to parse when reading has to stop is copied.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import trio
from trio.lowlevel import Abort, Task, current_task, reschedule, wait_task_rescheduled

from ..errors import KafkaError
from ..ops.base import Envelope, Later, Op
from ..types import Buffer
from ..wire.errors import UnwritableError, WireError
from ..wire.frame import end_of_header
from .incoming import SIZE_FIELD, Incoming
from .line import Waiting, our_fault
from .quirks import Unanswered
from .routes import Bound, bound_route, bound_routes
from .transport import Transport

if TYPE_CHECKING:
    from .server import Gateway

log = logging.getLogger(__name__)

SEND_AT: Final = 256 * 1024  # replies gathered so far go out before more are made
PATIENCE: Final = 8  # reads in a row before others get their turn
JOIN_BELOW: Final = 32 * 1024  # pieces of less than this are joined into one
CLIENT_ID_SHOWN: Final = 256
_LENGTH: Final = Struct(">h")
_LENGTH_AT: Final = 8  # in a request's header: behind key, version and correlation id
_REPLY: Final = Struct(">ii")
_SIZE: Final = Struct(">i")


@lru_cache(256)
def _header_of(client_id_size: int) -> Struct:
    """A request's header: key, version, correlation id, length of the client id, client id."""
    return Struct(f">hhih{client_id_size}s")


class Hangup(Exception):
    """The connection has to be closed; the message says why."""


class Connection:
    """Kept small: there may be ten thousand of them, most of them idle."""

    __slots__ = (
        "_ask",
        "_asleep",
        "_client_id",
        "_client_id_length",
        "_elements",
        "_gateway",
        "_gathered",
        "_header",
        "_incoming",
        "_keep",
        "_line",
        "_out",
        "_pieces",
        "_rest",
        "_seen_sent",
        "_task",
        "_transport",
        "_trouble",
        "_unsent",
        "began",
        "envelope",
        "greeted",
        "idle",
        "last_active",
        "scope",
        "writing_since",
    )

    def __init__(
        self, gateway: Gateway, incoming: Incoming, transport: Transport, envelope: Envelope
    ) -> None:
        self.envelope = envelope
        self.last_active = gateway.clock
        self.began: float | None = None  # when the request that is still arriving began
        self.writing_since: float | None = None
        self.idle = False  # the task sleeps, and no reply is awaited
        self.greeted = False  # a whole request has come
        self.scope = trio.CancelScope()
        self._gateway = gateway
        self._ask = gateway.link.ask
        self._keep = gateway.link.keep
        self._elements = gateway.elements
        self._incoming = incoming
        self._transport = transport
        self._seen_sent = 0
        self._task: Task | None = None
        self._asleep = False  # the task is
        self._trouble: Exception | None = None  # ends the connection, once what came before is answered
        self._rest: memoryview | None = None  # frames that have come and are not taken up
        self._line: list[Waiting] = []  # replies to come, in order
        self._out = bytearray()
        self._pieces: list[Buffer] = []
        self._gathered = 0
        self._unsent: list[Buffer] = []  # what the reader has not taken
        self._client_id = b""  # as it came last, and the length that was given for it: -1 is null
        self._client_id_length = -1
        self._header = _header_of(0)

    @property
    def missing(self) -> int:
        return self._incoming.missing

    @property
    def unsent(self) -> int:
        return sum(map(len, self._unsent))

    def moved(self) -> bool:
        """Whether the client has taken anything since this was last asked."""
        before, self._seen_sent = self._seen_sent, self._transport.sent
        return before != self._seen_sent

    # --- the task: for what has to be waited for ------------------------------------------

    async def serve(self) -> None:
        """Until the client goes, misbehaves, or the gateway closes."""
        try:
            await self._until_hangup()
        except OSError:
            pass  # the client has gone
        except Exception:  # a mistake of ours
            log.exception("the connection from %s is closed", self.envelope.client_host)
        finally:
            self._leave_line()
            self._incoming.release()

    async def _until_hangup(self) -> None:
        try:
            try:
                await self._converse()
            except WireError as wrong:
                raise Hangup(str(wrong)) from None
        except Hangup as why:
            self._gateway.note(self, f"closed: {why}")
            await self._flush()

    async def _converse(self) -> None:
        incoming, gateway = self._incoming, self._gateway
        self._transport.watch(self.on_readable)
        while True:
            if self._line:
                await self._answer_first()
            if not self._line or self._gathered + len(self._out) >= SEND_AT:
                await self._flush()
            self._go_on()
            if self._line or self._unsent:
                continue
            if self._trouble is not None:
                raise self._trouble
            if incoming.ended or gateway.closing:
                return
            if incoming.starved:
                await incoming.wait_for_memory()
            else:
                await self._sleep()

    async def _sleep(self) -> None:
        """Until there is something that only the task can do: see `_needed`."""
        self._rest_at_ease()
        self._task = current_task()
        self._asleep = True
        await wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> Abort:
        self.idle = self._asleep = False
        return Abort.SUCCEEDED

    def _look_up(self) -> None:
        """After anything was done while the task sleeps: wake it where that takes a task."""
        if not self._asleep:
            return
        later = self._line[0].later if self._line and self._line[0].rings else None
        if later is not None and not later.ready() and not self._unsent:
            self.idle = False  # it rings when there is something to do
        elif self._needed():
            assert self._task is not None
            self.idle = self._asleep = False
            reschedule(self._task)
        elif self.idle is bool(self._line):
            self._rest_at_ease()

    def _needed(self) -> bool:
        if self._unsent:
            return True
        if self._line:
            first = self._line[0]
            return not first.rings or first.ready
        incoming = self._incoming
        return (
            self._rest is not None
            or self._trouble is not None
            or incoming.ended
            or incoming.starved
            or self._gateway.closing
        )

    def _rest_at_ease(self) -> None:
        self.idle = not self._line
        if self.idle:
            self.last_active = self._gateway.clock
            # The rest of a request that came in part may have been kept waiting by us.
            self.began = self._gateway.clock if self._incoming.midway else None

    # --- requests --------------------------------------------------------------------

    def on_readable(self) -> None:
        """Something has come: take it up, if this is the time."""
        if self._held() or self._gateway.closing:
            return
        try:
            self._read()
        except Exception as error:
            self._trouble = error
        incoming = self._incoming
        if self._line or self._unsent or self._trouble is not None or incoming.ended or incoming.starved:
            self._look_up()  # else all is answered, and nothing has changed

    def _held(self) -> bool:
        """Whether nothing more may be taken up for now."""
        line, incoming = self._line, self._incoming
        if line and (line[-1].last or len(line) >= self._gateway.in_flight):
            return True
        return bool(
            self._unsent
            or self._rest is not None
            or self._trouble is not None
            or incoming.ended
            or incoming.starved
        )

    def _read(self) -> None:
        incoming, gateway = self._incoming, self._gateway
        for _ in range(PATIENCE):
            data = incoming.receive()
            if data is not None:
                self.last_active = gateway.clock
                self._work(data)
                if incoming.apart:
                    incoming.release()
                    if not incoming.midway:
                        self.began = None
                    elif self.began is None:
                        self.began = gateway.clock
            if not self._transport.more or self._held():
                return
        self._transport.again()

    def _go_on(self) -> None:
        """Take up what was left lying, and then what has come meanwhile."""
        data, self._rest = self._rest, None
        if data is not None:
            if self._held():
                self._rest = data
                return
            try:
                self._work(data, private=True)
            except Exception as error:
                self._trouble = error
        if self._transport.more:
            self.on_readable()

    def _work(self, data: memoryview, private: bool = False) -> None:
        """Take up the whole requests in `data`, as long as nothing has to be waited for.

        Bytes that are not private to this connection are copied before they are kept.
        """
        incoming = self._incoming
        at, come = 0, len(data)
        while at < come:
            end = at + SIZE_FIELD + (_SIZE.unpack_from(data, at)[0] if come - at >= SIZE_FIELD else 0)
            if not at + SIZE_FIELD < end <= come or end - at > incoming.longest:
                end = incoming.frame_end(data, at)  # it has not come whole, or is wrong
                if end < 0:
                    break
            self._take_up(data, at + SIZE_FIELD, end)
            at = end
            if self._gathered + len(self._out) >= SEND_AT:
                self._flush_now()
            if at < come and (self._line or self._unsent) and self._held():
                self._rest = data[at:] if private else memoryview(bytes(data[at:]))
                break
        # Where the first in line does not ring the task sees to it, before it waits.
        if (self._out or self._pieces) and (not self._line or self._line[0].rings):
            self._flush_now()

    def _take_up(self, data: memoryview, at: int, end: int) -> None:
        """One request: answered into the outgoing bytes, or put in line."""
        self.greeted = True
        self.began = None
        frame = data[at:end]
        if len(frame) < self._header.size:
            self._meet(frame)
        key, version, correlation_id, length, client_id = self._header.unpack_from(frame)
        if client_id != self._client_id or length != self._client_id_length:
            self._meet(frame)
        route = bound_routes.get(key << 16 | version & 0xFFFF) or bound_route(key, version)
        at = self._header.size
        if route.flexible:
            at = at + 1 if at < len(frame) and not frame[at] else end_of_header(frame, at, True)
        if route.local is not None:
            reply = route.local(self._gateway, self.envelope, frame, at, version)
            if self._line:
                self._line.append(Waiting(route, correlation_id, reply=reply))
            else:
                self._answer(route, correlation_id, None, reply)
            return
        op, _ = route.decode(frame, at, self._elements)
        try:
            if route.prepare is not None:
                route.prepare(op, version)
            answer = self._ask(self.envelope, op)
        except KafkaError as refused:
            answer = op.refusal(refused.code, refused.message)
        except Exception:  # a mistake of ours: the client is told so, and others go on
            answer = our_fault(op, self.envelope.client_host)
        if isinstance(answer, Later):
            rings = answer.ring(self.on_reply)
            self._line.append(Waiting(route, correlation_id, op, answer, rings, last=not answer.overlaps))
        elif self._line:  # a reply with records may be large: not many of those are kept lying
            self._line.append(Waiting(route, correlation_id, op, reply=answer, last=route.splices))
        else:
            self._answer(route, correlation_id, op, answer)

    def _meet(self, frame: memoryview) -> None:
        """The client calls itself otherwise than before. A negative length is null."""
        if len(frame) < _LENGTH_AT + _LENGTH.size:
            raise WireError("a request too short for its header")
        (length,) = _LENGTH.unpack_from(frame, _LENGTH_AT)
        header = _header_of(max(length, 0))
        if header.size > len(frame):
            raise WireError("the client id is longer than its request")
        raw: bytes = header.unpack_from(frame)[-1]
        self._header, self._client_id, self._client_id_length = header, raw, length
        self.envelope.client_id = raw.decode(errors="replace")[:CLIENT_ID_SHOWN]

    # --- replies ---------------------------------------------------------------------

    async def _answer_first(self) -> None:
        """Wait for the first reply in the line, and gather it; or until something else has to be done."""
        waiting = self._line[0]
        if not waiting.ready:
            await self._flush()  # what is ready need not wait for this one
            if waiting.rings:
                if not waiting.ready:
                    await self._sleep()
                return
        if waiting.rings:
            waiting.take(self.envelope.client_host)
        elif waiting.later is not None:
            await waiting.wait(self.envelope.client_host)
        del self._line[0]
        self._answer(waiting.route, waiting.correlation_id, waiting.op, waiting.reply)

    def on_reply(self) -> None:
        """A reply has come. Where the task sleeps it goes out now, with what is ready behind it."""
        if not self._asleep:
            return
        try:
            self._answer_ready()
            self._flush_now()
            if not self._unsent and (self._transport.more or self._rest is not None):
                self._go_on()
        except Exception as error:
            self._trouble = error
            self._leave_line()
        self._look_up()

    def _answer_ready(self) -> None:
        line = self._line
        while line:
            waiting = line[0]
            if waiting.later is not None:
                if not waiting.rings or not waiting.later.ready():
                    return
                waiting.take(self.envelope.client_host)
            del line[0]
            self._answer(waiting.route, waiting.correlation_id, waiting.op, waiting.reply)
            if self._gathered + len(self._out) >= SEND_AT:
                self._flush_now()
                if self._unsent:
                    return

    def _leave_line(self) -> None:
        """Nobody gets an answer any more."""
        for waiting in self._line:
            waiting.forget()
        self._line.clear()

    def _answer(self, route: Bound, correlation_id: int, op: Op[Any] | None, reply: Any) -> None:
        """Encode a reply behind those already gathered. `op` is None for an answer of our own."""
        if route.settle is not None and op is not None:
            try:
                reply = route.settle(op, reply, route.version)
            except Unanswered as silence:
                if silence.failed:
                    raise Hangup("a write with acks=0 failed, which only this can tell") from None
                return
        out = self._out
        start = len(out)
        out += _REPLY.pack(0, correlation_id)
        if route.flexible_reply:
            out.append(0)  # no tagged fields in the header
        try:
            if route.splices:
                splices: list[tuple[int, Buffer]] = []
                route.encode(reply, out, splices)
                if splices:
                    self._splice(start, splices)
                    return
            else:
                route.encode(reply, out)
        except UnwritableError:
            del out[start:]
            if op is None:
                raise
            refusal = our_fault(op, self.envelope.client_host)
            if route.settle is not None:
                refusal = route.settle(op, refusal, route.version)
            self._answer(route, correlation_id, None, refusal)
        else:
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

    def _flush_now(self) -> None:
        """Send what was gathered, as far as it is taken at once."""
        if self._unsent:
            return
        pieces, out = self._pieces, self._out
        if not pieces:
            if not out:
                return
            pieces = [out]
        elif out:
            pieces.append(out)
        if len(pieces) > 1 and self._gathered + len(out) < JOIN_BELOW:
            pieces = [b"".join(pieces)]
        self._pieces, self._out, self._gathered = [], bytearray(), 0
        self._keep()
        self._unsent = self._transport.send_now(pieces)
        if self._unsent:
            self.writing_since = self._gateway.clock

    async def _flush(self) -> None:
        """Send all that was gathered. A slow reader is felt here, and is not read from meanwhile."""
        self._flush_now()
        while self._unsent:
            await self._transport.send(self._unsent)
            self._unsent = []
            self.writing_since = None
            self._flush_now()
