"""A bound on the memory that requests in transit take, all connections together.

Only bytes of requests too large for the shared buffer are counted, as they arrive: a
length that is merely claimed costs nothing. Above the bound nobody reads on until
somebody is done, but for one request at a time, which is let through to its end: so the
bound can be less than the largest request, and requests that have all come in part
cannot wait for each other.
"""

from __future__ import annotations

from math import inf

import trio


class ByteBudget:
    def __init__(self, limit: int) -> None:
        self.limit: float = limit if limit >= 0 else inf
        self.used = 0
        self._let_through: object = None
        self._freed = trio.Event()

    async def take(self, size: int, taker: object) -> None:
        """Wait until `size` more bytes fit, then count them. `taker` gives back all of its bytes at once."""
        while not self.try_take(size, taker):
            await self._freed.wait()

    def try_take(self, size: int, taker: object) -> bool:
        """As `take`, where they fit now."""
        if self.used + size > self.limit and self._let_through is not taker:
            if self._let_through is not None:
                return False
            self._let_through = taker
        self.used += size
        return True

    def give_back(self, size: int, taker: object) -> None:
        if size:
            self.used -= size
            if self._let_through is taker:
                self._let_through = None
            self._freed.set()
            self._freed = trio.Event()
