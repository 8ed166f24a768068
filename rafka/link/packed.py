"""The gateway's half of a link between two processes: as `Link`, over a stream to the broker.

`ask` packs the op at once and puts it in line; what it gives is always a `Later`, or a
refusal. Ops of one connection reach the broker in the order in which they were asked,
and what the broker must not do at the same time it keeps apart itself: so all but
those that may be held for long (`refusals.PATIENT`) overlap.

A connection that goes takes its waiting along: the broker is told that nobody waits
any more, which lets go of what the waiting held and of nothing else. A member whose
JoinGroup was parked is a member still.

While there is no broker every op is refused at once, with an error that makes clients
try again; what was under way when it went is refused likewise. Consumers try again without a
pause, so a fetch is refused only after it has waited, as it would for records.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Generic

import attrs
import trio

from ..ops.base import Envelope, Later, Op, R
from ..ops.group import SyncGroup
from ..ops.log import Fetch
from ..ops.packing import Packing, converter, packing_of
from . import refusals
from .frames import Framed, Kind, LinkBroken, not_understood, packed_frame
from .hello import MAX_HANDSHAKE, Welcome, greet
from .room import Room

log = logging.getLogger(__name__)

CONNECT_S: Final = 10.0
FETCH_WAITS_S: Final = 1.0  # at most, for a broker to come back


@attrs.frozen(kw_only=True)
class Patience:
    """How long to wait before another try to connect, and before silence means that nobody is there."""

    first_s: float = 0.05
    most_s: float = 1.0
    ping_s: float = 5.0
    chance: Callable[[], float] = lambda: 0.5  # 0 to 1: so that gateways do not come all at once


class PackedLink:
    def __init__(
        self,
        connect: Callable[[], Awaitable[trio.abc.Stream]],
        *,
        to: str,
        name: str = "",
        patience: Patience | None = None,
        on_settings: Callable[[Mapping[str, str]], None] = lambda settings: None,
    ) -> None:
        self.welcome: Welcome | None = None  # the last one
        self.settings: Mapping[str, str] = {}  # that were changed on the broker while it runs
        self.to = to  # the broker's address, for people
        self.name = name  # ours, for the broker's log
        self.on_settings = on_settings
        self._connect = connect
        self._patience = patience or Patience()
        self._conversation: _Conversation | None = None
        self._back = trio.Event()  # there is a broker again

    @property
    def connected(self) -> bool:
        return self._conversation is not None and not self._conversation.leaving

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        conversation = self._conversation
        if conversation is not None and not conversation.leaving:
            return conversation.ask(envelope, op)
        if isinstance(op, Fetch) and op.max_wait_ms > 0:
            if self._back.is_set():
                self._back = trio.Event()
            return Later(self._refuse_later, op, self._back)
        return refusals.unsent(op)  # type: ignore[no-any-return]

    async def _refuse_later(self, op: Fetch, back: trio.Event) -> Any:
        with trio.move_on_after(min(op.max_wait_ms / 1000, FETCH_WAITS_S)):
            await back.wait()
        return refusals.unsent(op)

    def keep(self) -> None:
        """The other end did, before it replied."""

    async def run(self, *, task_status: trio.TaskStatus[Welcome] = trio.TASK_STATUS_IGNORED) -> None:
        """Connect, and again whenever the connection is lost. Started once a broker has answered.

        LinkMismatch where gateway and broker do not understand each other.
        """
        patience = self._patience
        delay, complained, started = patience.first_s, False, False
        while True:
            try:
                conversation = await self._begin()
            except (OSError, LinkBroken) as why:
                if not complained:
                    log.warning("no broker at %s: %s; trying again until there is one", self.to, _reason(why))
            else:
                began = trio.current_time()
                log.info(
                    "connected to the broker at %s: cluster %s", self.to, conversation.welcome.cluster_id
                )
                if not started:
                    task_status.started(conversation.welcome)
                    started = True
                await self._converse(conversation)
                if trio.current_time() - began > patience.most_s:
                    delay = patience.first_s
            complained = True
            await trio.sleep(delay * (0.5 + patience.chance()))
            delay = min(delay * 2, patience.most_s)

    async def _converse(self, conversation: _Conversation) -> None:
        try:
            why = await conversation.run(self._patience.ping_s)
        finally:
            self._conversation = None
            conversation.end()
        log.warning(
            "the broker at %s has gone: %s; clients are told to try again until it is back", self.to, why
        )

    async def _begin(self) -> _Conversation:
        stream: trio.abc.Stream | None = None
        with trio.move_on_after(CONNECT_S):
            stream = await self._connect()
        if stream is None:
            raise LinkBroken(f"it did not answer within {CONNECT_S:g} s")
        framed = Framed(stream, MAX_HANDSHAKE)
        try:
            welcome = await greet(framed, self.name)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        self.welcome = welcome
        self._take_settings(welcome.settings)
        self._conversation = _Conversation(stream, framed, welcome, self._take_settings)
        self._back.set()
        return self._conversation

    def _take_settings(self, settings: Mapping[str, str]) -> None:
        self.settings = settings
        self.on_settings(settings)


def _reason(why: OSError | LinkBroken) -> str:
    return (why.strerror if isinstance(why, OSError) else None) or str(why) or type(why).__name__


class _Asked(Generic[R]):
    """An op under way."""

    __slots__ = ("id", "lost", "op", "packing", "reply", "sender", "size", "waiter")

    def __init__(self, id: int, op: Op[R], packing: Packing, size: int, sender: _Sender) -> None:
        self.id = id
        self.op = op
        self.packing = packing
        self.sender = sender
        self.size = size  # 0 for those that are not counted
        self.reply: R | None = None
        self.lost = False  # it will not come
        self.waiter: trio.Event | None = None

    def ready(self) -> bool:
        return self.reply is not None or self.lost

    def wake(self) -> None:
        if self.waiter is not None:
            self.waiter.set()


@attrs.define(eq=False)
class _Sender:
    """One of the gateway's connections, as the broker has been told of it."""

    number: int
    gone: weakref.ref[Envelope]
    told: object = None
    parked: set[int] = attrs.field(factory=set)  # ids of ops that may be held for long


class _Conversation:
    """What is said over one stream, from the handshake until it breaks."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        framed: Framed,
        welcome: Welcome,
        on_settings: Callable[[Mapping[str, str]], None],
    ) -> None:
        self.welcome = welcome
        self.leaving = False  # the broker takes no more
        self._stream = stream
        self._framed = framed
        self._on_settings = on_settings
        self._limits = welcome.limits
        self._room = Room(welcome.limits)
        self._asked: dict[int, _Asked[Any]] = {}
        self._last_id = 0
        self._senders: dict[int, _Sender] = {}  # by id() of the envelope, which lives as long as its entry
        self._last_sender = 0
        self._envelope_fields = converter().get_unstructure_hook(Envelope)

    # --- asking -----------------------------------------------------------------------

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        code = op.code
        packing = packing_of(code)
        self._last_id = id = self._last_id + 1
        sender = self._sender(envelope)
        frame = packed_frame(Kind.ASK, id, sender.number, code, packing.op_fields(op))
        most = self._limits.group_op_bytes if code in refusals.ABOUT_GROUPS else self._limits.op_bytes
        if len(frame) > most and isinstance(op, SyncGroup):
            # A group waits for it: its coordinator has to know.
            fields = packing.op_fields(op.without_assignments())
            frame = packed_frame(Kind.ASK, id, sender.number, code, fields)
        size = len(frame)
        if size > most:
            return refusals.too_large(op, size, most)  # type: ignore[no-any-return]
        # The envelope goes along: its sender is there as long as somebody may wait for an answer.
        if code in refusals.PATIENT:
            sender.parked.add(id)
            asked = self._send(_Asked(id, op, packing, 0, sender), frame)
            return Later(self._wait, asked, envelope, overlaps=False)
        asked = _Asked(id, op, packing, size, sender)
        if self._room.take_at_once(size):
            self._send(asked, frame)
            return Later(self._wait, asked, envelope, overlaps=True, ready=asked.ready)
        return Later(self._wait_for_room, asked, frame, envelope, overlaps=False)

    def _send(self, asked: _Asked[R], frame: bytes) -> _Asked[R]:
        self._asked[asked.id] = asked
        self._framed.put_packed(frame)
        return asked

    async def _wait(self, asked: _Asked[R], envelope: Envelope) -> R:
        if not asked.ready():
            asked.waiter = trio.Event()
            try:
                await asked.waiter.wait()
            except trio.Cancelled:
                self._forget(asked)
                raise
        if asked.reply is None:
            return refusals.unknown(asked.op)  # type: ignore[no-any-return]
        return asked.reply

    async def _wait_for_room(self, asked: _Asked[R], frame: bytes, envelope: Envelope) -> R:
        """Too much is under way: this op takes its turn before it is sent."""
        await self._room.take(asked.size)
        if self._room.closed:
            return refusals.unsent(asked.op)  # type: ignore[no-any-return]
        return await self._wait(self._send(asked, frame), envelope)

    def _forget(self, asked: _Asked[Any]) -> None:
        """Nobody waits any more. What is done soon is let finish: it takes room at the broker until then."""
        if asked.id in asked.sender.parked and asked.id in self._asked:
            self._let_go(asked)
            self._framed.put(Kind.CANCEL, asked.id)

    def _let_go(self, asked: _Asked[Any]) -> None:
        del self._asked[asked.id]
        asked.sender.parked.discard(asked.id)
        if asked.size:
            self._room.give_back(asked.size)

    def _sender(self, envelope: Envelope) -> _Sender:
        """Whoever asks, as the broker knows it; the broker is told of what has changed."""
        told = self._envelope_fields(envelope)
        sender = self._senders.get(id(envelope))
        if sender is None:
            self._last_sender += 1
            gone = weakref.ref(envelope, partial(self._hung_up, id(envelope)))
            self._senders[id(envelope)] = sender = _Sender(self._last_sender, gone)
        if sender.told != told:
            sender.told = told
            self._framed.put(Kind.OPEN, sender.number, told)
        return sender

    def _hung_up(self, key: int, _: object) -> None:
        """A connection has gone: the broker lets go of what it waited for, and does not answer it."""
        sender = self._senders.pop(key, None)
        if sender is not None:
            for parked in tuple(sender.parked):
                self._let_go(self._asked[parked])
            self._framed.put(Kind.CLOSE, sender.number)

    # --- life ---------------------------------------------------------------------------

    async def run(self, ping_s: float) -> str:
        """Until the stream ends; why."""
        why = "it closed the connection"
        try:
            async with trio.open_nursery() as nursery:

                async def end_with(part: Callable[[], Awaitable[None]]) -> None:
                    nonlocal why
                    try:
                        await part()
                    except LinkBroken as broken:
                        why = str(broken)
                    nursery.cancel_scope.cancel()

                nursery.start_soon(end_with, self._framed.send_all)
                nursery.start_soon(end_with, self._read)
                nursery.start_soon(end_with, partial(self._framed.keep_awake, ping_s))
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)
        return "it was stopped" if self.leaving else why

    def end(self) -> None:
        """Nothing more comes: let everybody who waits know."""
        self._room.close()
        lost, self._asked = list(self._asked.values()), {}
        for asked in lost:
            asked.lost = True
            asked.wake()
        self._senders.clear()

    async def _read(self) -> None:
        while (frames := await self._framed.receive()) is not None:
            for _, frame in frames:
                try:
                    self._take_up(*frame)
                except (TypeError, ValueError) as wrong:
                    raise not_understood(wrong) from wrong

    def _take_up(self, kind: object, subject: Any = None, fields: Any = ()) -> None:
        """One frame."""
        if kind == Kind.REPLY:
            if (asked := self._asked.get(subject)) is not None:  # else nobody waits for it any more
                self._replied(asked, asked.packing.reply_of(fields))
        elif kind == Kind.UNKNOWN:
            if (asked := self._asked.get(subject)) is not None:
                self._replied(asked, refusals.not_served(asked.op))
        elif kind == Kind.SETTINGS:
            self._on_settings(_settings(subject))
        elif kind == Kind.BYE:
            if not self.leaving:
                self.leaving = True
                self._framed.put(Kind.BYE)
        elif kind != Kind.PING:
            raise ValueError(f"a frame of kind {kind!r}")

    def _replied(self, asked: _Asked[R], reply: R) -> None:
        self._let_go(asked)
        asked.reply = reply
        asked.wake()


def _settings(told: object) -> Mapping[str, str]:
    if not isinstance(told, dict) or not all(type(each) is str for pair in told.items() for each in pair):
        raise ValueError("settings that are no text")
    return told
