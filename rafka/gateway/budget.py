"""A bound on the memory that requests in transit take, all connections together.

Only bytes of requests too large for the shared buffer are counted, as they arrive: a
length that is merely claimed costs nothing. Above the bound nobody reads on until
somebody is done. One request is always let through, so that the bound can be less
than the largest request and nothing stands still.
"""

from __future__ import annotations

from math import inf

import trio


class ByteBudget:
    def __init__(self, limit: int) -> None:
        self.limit: float = limit if limit >= 0 else inf
        self.used = 0
        self._freed = trio.Event()

    async def take(self, size: int) -> None:
        """Wait until `size` more bytes fit, then count them."""
        while self.used and self.used + size > self.limit:
            await self._freed.wait()
        self.used += size

    def give_back(self, size: int) -> None:
        if size:
            self.used -= size
            self._freed.set()
            self._freed = trio.Event()
