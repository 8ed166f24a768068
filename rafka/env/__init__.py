"""Everything that is not deterministic comes through here: time, chance, the disk, threads.

A broker is given one `Env`. The real one is made by `real_env`; a simulation gives
its own, and then the same seed replays the same run to the byte.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import attrs
import trio

from .disk import Disk, File

__all__ = ["Disk", "Env", "File", "Rng", "ThreadRunner", "real_env"]

T = TypeVar("T")


class Rng(Protocol):
    """The part of `random.Random` that the broker uses."""

    def getrandbits(self, k: int, /) -> int: ...
    def randbytes(self, n: int, /) -> bytes: ...
    def uniform(self, a: float, b: float) -> float: ...


class ThreadRunner(Protocol):
    """Runs `fn(*args)` where blocking harms nobody. Never abandoned: cancelling waits for its end."""

    def __call__(
        self, fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None
    ) -> Awaitable[T]: ...


@attrs.frozen
class Env:
    now: Callable[[], float]  # wall clock, seconds since 1970; for what people and clients read
    rng: Rng
    disk: Disk
    spawn_thread: ThreadRunner
    # Durations, sessions and deadlines use trio.current_time(), which a MockClock can stand in for.


def real_env() -> Env:
    """The machine itself."""
    import random
    import time

    from .real_disk import RealDisk

    async def spawn_thread(
        fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None
    ) -> T:
        return await trio.to_thread.run_sync(fn, *args, limiter=limiter)

    return Env(time.time, random.SystemRandom(), RealDisk(), spawn_thread)
