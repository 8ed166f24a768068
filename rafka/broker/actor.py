"""What actors have in common: an inbox of bounded size, and a channel of one for each answer.

    drain    take what came in, or wake at a deadline
    decide   let the machines say what follows, with no await
    journal  make the facts durable, all of the round in one append
    answer   send each reply to whoever waits for it

A letter is posted in the step in which it is asked, so that what one client asks in a row stays in
a row, and all that a client has sent ahead is in the inbox before the actor looks: it shares a
round. With a full inbox whoever asks reads no further until the answer has come: so there are never
more letters beside the inbox than there are clients.

Who waits for an answer is a task, which its channel wakes, or somebody who has left a bell. All
answers of a round are in their channels before the first bell rings, so that whoever has
asked several things finds all the answers together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, Final, Generic, TypeAlias, TypeVar

import trio

from ..ops.base import Later

ROUND_SIZE: Final = 128  # letters; past this, those already decided would wait too long for their answer
TURNS: Final = 2  # of Trio's loop: in one it may be after us that somebody reads what has come
KEPT: Final = 1024  # channels for later letters: to make one takes longer than to answer a heartbeat

Channel: TypeAlias = "tuple[trio.MemorySendChannel[Any], trio.MemoryReceiveChannel[Any]]"

LetterT = TypeVar("LetterT")


class Waiter(Later[Any]):
    """Whoever waits for the answer to a letter: a memory channel of one, and perhaps a bell.

    An actor holds it to answer, and its machines as their token; whoever asks holds it to be
    answered. It is answered once, and then its channel may serve another: what is said
    to somebody who has an answer, or has gone, reaches nobody.
    """

    __slots__ = ("_channel", "_kept", "_open", "bell")

    def __init__(self, channel: Channel, kept: list[Channel]) -> None:
        self.overlaps = False
        self._channel = channel
        self._kept = kept
        self._open = True  # no answer has been put
        self.bell: Callable[[], None] | None = None

    # --- for who answers ---------------------------------------------------------------

    def put(self, reply: object) -> None:
        if self._open:
            self._open = False
            self._channel[0].send_nowait(reply)

    def tell(self) -> None:
        """After `put`: ring where there is a bell."""
        if self.bell is not None:
            self.bell()

    # --- for who asks ------------------------------------------------------------------

    def ready(self) -> bool:
        return not self._open

    async def wait(self) -> Any:
        """The reply. If it is there already, that costs no task switch."""
        if self._open:
            reply = await self._channel[1].receive()
            self._give_back()
            return reply
        return self.take()

    def ring(self, bell: Callable[[], None]) -> bool:
        self.bell = bell
        return True

    def take(self) -> Any:
        reply = self._channel[1].receive_nowait()
        self._give_back()
        return reply

    def forget(self) -> None:
        self._open = False
        self.bell = None

    def _give_back(self) -> None:
        self.bell = None
        if len(self._kept) < KEPT:
            self._kept.append(self._channel)


def answer_all(answers: Iterable[tuple[Waiter, object]]) -> None:
    """What an actor ends a round with."""
    told = []
    for waiter, reply in answers:
        waiter.put(reply)
        told.append(waiter)
    for waiter in told:
        waiter.tell()


class Inbox(Generic[LetterT]):
    """A queue that one task empties. To hand in a letter takes a fraction of what it does by a channel."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._letters: deque[LetterT] = deque()
        self._kept: list[Channel] = []
        self._reader: trio.lowlevel.Task | None = None  # sleeps until there is something
        self._poked = False
        self._crowd: deque[LetterT] = deque()  # letters for which there is no room yet

    def __len__(self) -> int:
        return len(self._letters)

    @property
    def crowd(self) -> int:
        """How many wait for their letter to have room."""
        return len(self._crowd)

    def waiter(self) -> Waiter:
        """For a letter that is to be answered."""
        kept = self._kept
        # Without a type in brackets, which would cost as much again.
        return Waiter(kept.pop() if kept else trio.open_memory_channel(1), kept)

    def post(self, letter: LetterT, waiter: Waiter, *, overlaps: bool = False) -> Later[Any]:
        """Hand in a letter. `overlaps` as in `Later`; where there is no room, nothing follows it."""
        if self.offer(letter):
            waiter.overlaps = overlaps
        else:
            self._crowd.append(letter)
        return waiter

    def offer(self, letter: LetterT) -> bool:
        """Hand in a letter. With a full inbox nothing happens."""
        if self._crowd or len(self._letters) >= self._size:
            return False
        self._letters.append(letter)
        if self._reader is not None:
            self._wake(self._reader)
        return True

    def poke(self) -> None:
        """Have the actor look up, though there be no letter."""
        self._poked = True
        if self._reader is not None:
            self._wake(self._reader)

    def _wake(self, reader: trio.lowlevel.Task) -> None:
        self._reader = None
        trio.lowlevel.reschedule(reader)

    async def drain(self, until: float = inf) -> list[LetterT]:
        """What is there, or comes first, up to the size of a round; none if nothing comes until then.

        With nothing to wait for any more, whoever has something to hand in still gets a turn.
        """
        if not self._letters and not self._poked:
            if trio.current_time() < until:
                with trio.move_on_at(until):
                    await self._sleep()
            for _ in range(TURNS):
                if self._letters or self._poked:
                    break
                await trio.lowlevel.checkpoint()
        self._poked = False
        letters = self._letters
        if len(letters) <= ROUND_SIZE:
            taken = list(letters)
            letters.clear()
        else:
            taken = [letters.popleft() for _ in range(ROUND_SIZE)]
        while self._crowd and len(letters) < self._size:
            letters.append(self._crowd.popleft())
        return taken

    async def _sleep(self) -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            self._reader = None
            return trio.lowlevel.Abort.SUCCEEDED

        self._reader = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)
