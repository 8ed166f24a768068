"""What actors have in common: an inbox of bounded size, and a channel of one for each answer.

    drain    take what came in, or wake at a deadline
    decide   let the machines say what follows, with no await
    journal  make the facts durable, all of the round in one append
    answer   send each reply to whoever waits for it

A letter is posted in the step in which it is asked, so that what one client asks in a row stays in
a row, and all that a client has sent ahead is in the inbox before the actor looks: it shares a
round. With a full inbox whoever asks waits to hand in the letter, and reads no further meanwhile.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Final, Generic, TypeAlias, TypeVar

import trio

from ..ops.base import Later

ROUND_SIZE: Final = 256  # letters; past this, those already decided would wait too long for their answer

Waiter: TypeAlias = "trio.MemorySendChannel[Any]"
Answer: TypeAlias = "trio.MemoryReceiveChannel[Any]"


LetterT = TypeVar("LetterT")


class Inbox(Generic[LetterT]):
    def __init__(self, size: int) -> None:
        self._post, self._inbox = trio.open_memory_channel[LetterT | None](size)

    def __len__(self) -> int:
        return self._post.statistics().current_buffer_used

    def post(self, letter: LetterT, answer: Answer, *, overlaps: bool = False) -> Later[Any]:
        """Hand in a letter, at once if there is room. `overlaps` as in `Later`."""
        try:
            self._post.send_nowait(letter)
        except trio.WouldBlock:
            return Later(self._post_and_receive, letter, answer)
        return Later(receive, answer, overlaps=overlaps, ready=partial(_there, answer))

    async def _post_and_receive(self, letter: LetterT, answer: Answer) -> Any:
        await self._post.send(letter)
        return await receive(answer)

    def offer(self, letter: LetterT) -> bool:
        """Hand in a letter that nobody waits for. With a full inbox nothing happens."""
        try:
            self._post.send_nowait(letter)
        except trio.WouldBlock:
            return False
        return True

    def poke(self) -> None:
        """Have the actor look up. With a full inbox it does so anyhow."""
        with suppress(trio.WouldBlock):
            self._post.send_nowait(None)

    async def drain(self, until: float = inf) -> list[LetterT]:
        """What is there, or comes first; none if nothing comes until then."""
        letters: list[LetterT | None] = []
        if not self._take(letters):
            with trio.move_on_at(until):
                letters.append(await self._inbox.receive())
            self._take(letters)
        return [letter for letter in letters if letter is not None]

    def _take(self, letters: list[LetterT | None]) -> bool:
        """What is there, up to the size of a round. Whether there was anything."""
        take = self._inbox.receive_nowait
        with suppress(trio.WouldBlock):
            while len(letters) < ROUND_SIZE:
                letters.append(take())
        return bool(letters)


def channel() -> tuple[Waiter, Answer]:
    """A channel of one. Without a type in brackets, which would cost as much again."""
    return trio.open_memory_channel(1)


async def receive(answer: Answer) -> Any:
    """The reply. If it is there already, that costs no task switch."""
    try:
        return answer.receive_nowait()
    except trio.WouldBlock:
        return await answer.receive()


def _there(answer: Answer) -> bool:
    return answer.statistics().current_buffer_used > 0


def send(waiter: Waiter, reply: object) -> None:
    """Whoever hung up is not told."""
    with suppress(trio.BrokenResourceError):
        waiter.send_nowait(reply)
