"""The broker's half of a link between two processes: gateways attach, their ops are asked of a `Link`.

Ops of one of a gateway's connections are asked in the order in which they came. While
an answer holds up what follows (a parked JoinGroup, a topic in the making) the ops of
that connection wait, and those of others go on; answers leave as they become ready.

What may be parked for long (`refusals.PATIENT`) is waited for until the gateway says that
nobody wants the answer; all else is answered in any case.

Nothing is read while too much is under way or too many answers lie unsent: a gateway
feels that on its stream. Answers that may take long are not counted, as each
connection waits for one at most.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

import attrs
import trio

from ..errors import ErrorCode, KafkaError
from ..ops.base import Envelope, Later, Op
from ..ops.packing import Packing, UnknownOp, envelope_of, packing_of
from . import Link, LinkMismatch
from .frames import Framed, Kind, LinkBroken, not_understood
from .hello import MAX_HANDSHAKE, Welcome, receive_gateway
from .plain import PlainListener
from .refusals import PATIENT

log = logging.getLogger(__name__)

UNSENT_MOST: Final = 16 * 1024 * 1024  # answers that lie unsent before no more is read
PING_S: Final = 5.0
FAREWELL_S: Final = 1.0  # a gateway that hears of our end answers at once


class LinkServer:
    """Serves gateways, as many as come."""

    def __init__(
        self,
        link: Link,
        welcome: Callable[[], Welcome],
        listeners: Sequence[PlainListener] = (),
        ping_s: float = PING_S,
    ) -> None:
        self.link = link
        self.ping_s = ping_s
        self._welcome = welcome
        self._listeners = list(listeners)
        self._peers: set[_Peer] = set()
        self._handshakes: set[trio.CancelScope] = set()
        self._closing = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Until `close` has been called and every gateway that is there has its answers."""
        async with trio.open_nursery() as attached, trio.open_nursery() as listening:
            if self._listeners:
                listening.start_soon(
                    partial(
                        trio.serve_listeners, self.serve_stream, self._listeners, handler_nursery=attached
                    )
                )
            task_status.started()
            await self._closing.wait()
            listening.cancel_scope.cancel()

    async def serve_stream(self, stream: trio.abc.Stream) -> None:
        """Serve one gateway, until it goes."""
        framed = Framed(stream, MAX_HANDSHAKE)
        name = "whoever came to the link"
        try:
            if self._closing.is_set():
                return
            welcome = self._welcome()
            with self._handshake():
                name = f"gateway {await receive_gateway(framed, welcome)}"
            if self._closing.is_set():
                return
            peer = _Peer(self.link, framed, welcome)
            self._peers.add(peer)
            log.info("%s is attached", name)
            try:
                why = await peer.serve(self.ping_s)
            finally:
                self._peers.discard(peer)
            log.info("%s has gone: %s", name, why)
        except (LinkBroken, LinkMismatch) as wrong:
            log.warning("%s is given up: %s", name, wrong)
        finally:
            await trio.aclose_forcefully(stream)

    @contextmanager
    def _handshake(self) -> Iterator[None]:
        """Left at once when the broker stops."""
        with trio.CancelScope() as scope:
            self._handshakes.add(scope)
            try:
                yield
            finally:
                self._handshakes.discard(scope)

    def tell(self, settings: Mapping[str, str]) -> None:
        """What was changed on the broker, to all gateways."""
        for peer in self._peers:
            peer.framed.put(Kind.SETTINGS, dict(settings))

    def close(self) -> None:
        """Take no more ops. `run` ends when those that were taken are answered."""
        self._closing.set()
        for handshake in self._handshakes:
            handshake.cancel()
        for peer in self._peers:
            peer.say_bye()


class _Asked(NamedTuple):
    """An op that came."""

    id: int
    envelope: Envelope
    packing: Packing
    op: Op[Any]


@attrs.define(eq=False)
class _Sender:
    """One of the gateway's connections."""

    envelope: Envelope
    held: deque[tuple[_Asked, int]] = attrs.field(factory=deque)  # ops that wait for another, and their sizes
    waiting: trio.CancelScope | None = None  # for the answer that holds up the others
    parked: bool = False  # it may be held for long, and is waited for as long as somebody wants it


class _Peer:
    """A gateway that is attached."""

    def __init__(self, link: Link, framed: Framed, welcome: Welcome) -> None:
        self.framed = framed
        self._ask_link = link.ask
        self._keep = link.keep
        self._limits = welcome.limits
        self._senders: dict[int, _Sender] = {}
        self._holding: dict[int, _Sender] = {}  # by the id of the op that holds up the others
        self._held: set[int] = set()  # the ids of those that wait for it
        self._ops = 0  # under way and counted
        self._bytes = 0
        self._eased = trio.Event()
        self._said_bye = trio.Event()

    def say_bye(self) -> None:
        self.framed.put(Kind.BYE)
        self._said_bye.set()

    async def serve(self, ping_s: float) -> str:
        """Until the gateway goes, or has heard our BYE and has its answers: which. LinkBroken if neither."""
        broken: LinkBroken | None = None
        async with trio.open_nursery() as everything:

            async def end_with(part: Callable[[], Awaitable[None]]) -> None:
                nonlocal broken
                try:
                    await part()
                except LinkBroken as why:
                    broken = why
                everything.cancel_scope.cancel()

            everything.start_soon(end_with, self.framed.send_all)
            everything.start_soon(end_with, partial(self.framed.keep_awake, ping_s))
            everything.start_soon(end_with, self._expect_bye)
            async with trio.open_nursery() as self._work:
                try:
                    still_listens = await self._read()
                except LinkBroken as why:
                    broken, still_listens = why, False
                if not still_listens:
                    self._work.cancel_scope.cancel()  # nobody is there to take the answers
            if still_listens:
                await self.framed.room(0)
            everything.cancel_scope.cancel()
        if broken is not None:
            raise broken
        return "it was told that the broker stops" if still_listens else "it closed the connection"

    async def _expect_bye(self) -> None:
        """LinkBroken where our BYE is not answered, nor anything else said. After it nobody listens."""
        await self._said_bye.wait()
        while True:
            await trio.sleep(FAREWELL_S)
            if self.framed.silent_s() >= FAREWELL_S:
                raise LinkBroken("it did not hear that the broker stops")

    # --- what comes -----------------------------------------------------------------------

    async def _read(self) -> bool:
        """Take up what comes, until the gateway asks no more. Whether it still listens."""
        while (frames := await self.framed.receive()) is not None:
            for size, frame in frames:
                if not self._take_up(frame, size):
                    return True
            await self.framed.room(UNSENT_MOST)
            while self._ops >= self._limits.ops or self._bytes > self._limits.bytes:
                await self._eased.wait()
        return False

    def _take_up(self, frame: tuple[Any, ...], size: int) -> bool:
        """One frame. False: it is the last."""
        try:
            kind = frame[0]
            if kind == Kind.ASK:
                _, id, number, code, fields = frame
                self._check(id)
                sender = self._senders[number]
                packing = packing_of(code)
                asked = _Asked(id, sender.envelope, packing, packing.op_of(fields))
            elif kind == Kind.OPEN:
                self._open(frame[1], envelope_of(frame[2]))
            elif kind == Kind.CANCEL:
                self._cancel(self._holding.get(frame[1]))
            elif kind == Kind.CLOSE:
                self._cancel(self._senders.pop(frame[1]))
            elif kind not in (Kind.PING, Kind.BYE):
                raise ValueError(f"a frame of kind {kind!r}")
        except UnknownOp:
            self.framed.put(Kind.UNKNOWN, id)
        except (ValueError, TypeError, KeyError, IndexError) as wrong:
            raise not_understood(wrong) from wrong
        else:
            if kind == Kind.ASK:
                self._take_in_turn(sender, asked, size)
        return bool(kind != Kind.BYE)

    def _check(self, id: object) -> None:
        """Ops that wait are known by their numbers."""
        if type(id) is not int:
            raise ValueError(f"the number of an op is {id!r}")
        if id in self._holding or id in self._held:
            raise ValueError(f"the number {id} is of an op that waits")

    def _open(self, number: int, told: Envelope) -> None:
        """A new connection, or a known one that says something else of itself."""
        sender = self._senders.get(number)
        if sender is not None:
            told.batches = sender.envelope.batches
            sender.envelope = told
        else:
            told.batches = 0
            self._senders[number] = _Sender(told)

    def _cancel(self, sender: _Sender | None) -> None:
        """Nobody waits for its answer any more: what it parked is let go of. What the op did stays done."""
        if sender is not None and sender.waiting is not None and sender.parked:
            sender.waiting.cancel()

    # --- what is asked --------------------------------------------------------------------

    def _take_in_turn(self, sender: _Sender, asked: _Asked, size: int) -> None:
        if sender.waiting is None:
            self._ask(sender, asked, size)
        else:
            sender.held.append((asked, size))
            self._held.add(asked.id)
            self._begun(size)

    def _ask(self, sender: _Sender, asked: _Asked, size: int) -> None:
        answer = self._ask_link(asked.envelope, asked.op)
        if not isinstance(answer, Later):
            self._reply(asked, answer)
        elif answer.overlaps:
            self._begun(size)
            self._work.start_soon(self._finish, asked, answer, size)
        else:
            sender.waiting = trio.CancelScope()
            sender.parked = asked.op.code in PATIENT
            self._holding[asked.id] = sender
            self._work.start_soon(self._hold_up, sender, sender.waiting, asked, answer)

    async def _finish(self, asked: _Asked, later: Later[Any], size: int) -> None:
        """Wait for one answer, while others of the same connection are waited for."""
        reply = await self._outcome(asked.op, later)
        self._done(size)
        self._reply(asked, reply)

    async def _hold_up(
        self, sender: _Sender, waiting: trio.CancelScope, asked: _Asked, later: Later[Any]
    ) -> None:
        """Wait for an answer that comes before anything else of its connection is begun."""
        with waiting:
            reply = await self._outcome(asked.op, later)
            await self.framed.room(UNSENT_MOST)
            self._reply(asked, reply)
        del self._holding[asked.id]
        sender.waiting = None
        while sender.held and sender.waiting is None:
            held, size = sender.held.popleft()
            self._held.remove(held.id)
            self._done(size)
            self._ask(sender, held, size)

    async def _outcome(self, op: Op[Any], later: Later[Any]) -> Any:
        try:
            return await later.wait()
        except KafkaError as refused:
            return op.refusal(refused.code, refused.message)
        except Exception:  # a mistake of ours: the client is told so, and others go on
            return self._our_fault(op)

    def _our_fault(self, op: Op[Any]) -> Any:
        log.exception("%s failed", type(op).__name__)
        return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _reply(self, asked: _Asked, reply: Any) -> None:
        self._keep()
        to_fields = asked.packing.reply_fields
        try:
            self.framed.put(Kind.REPLY, asked.id, to_fields(reply))
        except Exception:
            self.framed.put(Kind.REPLY, asked.id, to_fields(self._our_fault(asked.op)))

    # --- bounds ---------------------------------------------------------------------------

    def _begun(self, size: int) -> None:
        self._ops += 1
        self._bytes += size

    def _done(self, size: int) -> None:
        self._ops -= 1
        self._bytes -= size
        self._eased.set()
        self._eased = trio.Event()
