"""The bound on what a gateway has under way at its broker: so many ops, so many bytes."""

from __future__ import annotations

from collections import deque

import trio

from .hello import Limits


class Room:
    """How much may be under way at a time. Whoever finds it full waits: first come, first served."""

    def __init__(self, limits: Limits) -> None:
        self.closed = False
        self._limits = limits
        self._ops = 0
        self._bytes = 0
        self._waiting: deque[tuple[int, trio.Event]] = deque()

    def take_at_once(self, size: int) -> bool:
        if self._waiting or not self._fits(size):
            return False
        self._ops += 1
        self._bytes += size
        return True

    async def take(self, size: int) -> None:
        """Wait for a turn. Where the room is closed it is everybody's turn."""
        if self.closed or self.take_at_once(size):
            return
        turn = (size, trio.Event())
        self._waiting.append(turn)
        try:
            await turn[1].wait()
        except trio.Cancelled:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self.give_back(size)
            self._call()
            raise

    def give_back(self, size: int) -> None:
        self._ops -= 1
        self._bytes -= size
        self._call()

    def close(self) -> None:
        self.closed = True
        while self._waiting:
            self._waiting.popleft()[1].set()

    def _fits(self, size: int) -> bool:
        """An op that is larger than all the room is let through alone."""
        return not self._ops or (self._ops < self._limits.ops and self._bytes + size <= self._limits.bytes)

    def _call(self) -> None:
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            self._ops += 1
            self._bytes += size
            turn.set()
