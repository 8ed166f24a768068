"""Answers that wait for the disk: each leaves once all that was in the journal before it is kept.

An answer may rest on what others have changed, so it waits for their facts as for its own. In
the step in which the disk is through the answers that waited for it leave, so that a client is
answered without a task in between; of many only the first do, and the rest is left to a task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import trio

from ..machines.groups.model import Reply
from ..storage.journal import Journal
from .actor import Waiter

TOLD_AT_ONCE: Final = 64  # answers, before others have their turn


class Held:
    def __init__(self, journal: Journal, left_over: Callable[[], None]) -> None:
        self._journal = journal
        self._left_over = left_over  # called when there is something for `tell`
        self._held: deque[tuple[int, Waiter, object]] = deque()  # until the journal is kept up to here
        self._due: deque[Waiter] = deque()  # have their answer, and are to be told
        journal.on_kept(self._kept)

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, waiter: Waiter, answer: object) -> None:
        """Until all that is in the journal now is kept."""
        self._held.append((self._journal.end, waiter, answer))

    async def tell(self, replies: Iterable[Reply[Waiter]] = ()) -> None:
        """Give these now, and all that are left over. Others have their turn in between."""
        for reply in replies:
            reply.to.put(reply.answer)
            self._due.append(reply.to)
        while self._due:
            self._tell_some()
            if self._due:
                await trio.lowlevel.checkpoint()

    def _kept(self) -> None:
        kept, held = self._journal.kept, self._held
        while held and held[0][0] <= kept:
            _, waiter, answer = held.popleft()
            waiter.put(answer)
            self._due.append(waiter)
        self._tell_some()
        if self._due:
            self._left_over()

    def _tell_some(self) -> None:
        due = self._due
        for _ in range(min(len(due), TOLD_AT_ONCE)):
            if (bell := due.popleft().bell) is not None:
                bell()
