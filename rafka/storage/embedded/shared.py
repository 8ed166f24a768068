"""What all logs of one data directory share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import trio

from ...env import Env
from .config import EmbeddedConfig
from .flusher import Flusher
from .look import Blocking, Hot, LoadedIndexes, OpenFiles
from .reserve import Reserve

T = TypeVar("T")


@attrs.define
class Shared:
    root: str  # the data directory
    env: Env
    config: EmbeddedConfig
    files: OpenFiles
    indexes: LoadedIndexes
    hot: Hot
    blocking: Blocking
    flusher: Flusher
    reserve: Reserve
    checkpoint: Callable[[], Awaitable[None]]
    want_checkpoint: Callable[[], None]  # soon, by the backend's own task
    limiter: trio.CapacityLimiter  # threads that read

    async def in_thread(self, fn: Callable[..., T], *args: Any) -> T:
        return await self.env.spawn_thread(fn, *args, limiter=self.limiter)

    def now_ms(self) -> int:
        return int(self.env.now() * 1000)
