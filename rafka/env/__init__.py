"""Everything that is not deterministic comes through here: time, chance, the disk, threads.

A broker is given one `Env`. The real one is made by `real_env`; a simulation gives
its own, and then the same seed replays the same run to the byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import attrs
import trio

from .disk import Disk, File
from .threads import HAS_EVENTFD, LentThread, OneThread, OwnThread, ThreadRunner

__all__ = ["Disk", "Env", "File", "OneThread", "Rng", "ThreadRunner", "real_env"]

T = TypeVar("T")


class Rng(Protocol):
    """The part of `random.Random` that the broker uses."""

    def getrandbits(self, k: int, /) -> int: ...
    def randbytes(self, n: int, /) -> bytes: ...
    def uniform(self, a: float, b: float) -> float: ...


@attrs.frozen
class Env:
    now: Callable[[], float]  # wall clock, seconds since 1970; for what people and clients read
    rng: Rng
    disk: Disk
    spawn_thread: ThreadRunner
    new_thread: Callable[[str], OneThread] | None = None  # by its name; None: calls go to `spawn_thread`
    # Durations, sessions and deadlines use trio.current_time(), which a MockClock can stand in for.

    def thread_for(self, name: str) -> OneThread:
        """A thread for one purpose."""
        return LentThread(self.spawn_thread) if self.new_thread is None else self.new_thread(name)


def real_env() -> Env:
    """The machine itself."""
    import random
    import time

    from .real_disk import RealDisk

    async def spawn_thread(
        fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None
    ) -> T:
        return await trio.to_thread.run_sync(fn, *args, limiter=limiter)

    new_thread = OwnThread if HAS_EVENTFD else None
    return Env(time.time, random.SystemRandom(), RealDisk(), spawn_thread, new_thread)
