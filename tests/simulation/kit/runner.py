"""Runs an async world from a seed, and the same seed runs the same world, step for step.

Trio is deterministic once its one coin is seeded; what else could differ from run to
run is replaced or forbidden here:

* order of tasks: Trio's scheduler sorts each batch and shuffles it with a seeded generator,
* time: a clock that jumps to the next deadline whenever nobody can run,
* threads: a thread is a wait in virtual time around a plain call,
* real time and entropy, read by anybody but Trio and logging: `Forbidden`,
* finalisers: the garbage collector is off while a world runs.

The schedule is hashed on the way; two runs of a seed that differ in their trace are a
finding of their own. A world that makes no progress ends by its horizon of virtual time.
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, Generic, TypeVar
from unittest import mock

import attrs
import trio
import trio._core._run as trio_run  # the scheduler's coin has no public handle
import trio.testing

T = TypeVar("T")

EPOCH: Final = 1_700_000_000.0  # what the wall clock says when a world begins
HORIZON: Final = 3600.0  # virtual seconds
THREAD_LATENCY: Final = 0.0005  # mean virtual seconds that a thread takes, twice

_MAY_READ_REALITY: Final = {"trio", "logging"}
_SOURCES_OF_TIME: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")


class Forbidden(Exception):
    """Something in a simulated world read real time or real entropy."""


class NoProgress(Exception):
    """The horizon was reached: something waits for what never comes."""


@attrs.frozen
class Outcome(Generic[T]):
    """What a run came to."""

    value: T
    trace: str  # of the schedule: equal where two runs took the same steps
    steps: int
    virtual_seconds: float


class Chance:
    """The world's dice: one stream for each name, so that a new throw here changes no throw there."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def stream(self, name: str) -> random.Random:
        return random.Random(f"{self.seed}/{name}")


def run(
    seed: int,
    world: Callable[[Chance], Awaitable[T]],
    *,
    horizon: float = HORIZON,
    keep: list[str] | None = None,
) -> Outcome[T]:
    """Run `world` from `seed`; its schedule's steps go to `keep`, if given, for people to compare."""
    trace = _Trace(keep)
    chance = Chance(seed)

    async def bounded() -> tuple[T, float]:
        with trio.move_on_after(horizon) as scope:
            value = await world(chance)
        if scope.cancelled_caught:
            raise NoProgress(f"seed {seed}: not done after {horizon:g} virtual seconds")
        return value, trio.current_time()

    with deterministic(chance):
        clock = trio.testing.MockClock(rate=0.0, autojump_threshold=0)
        begun = clock.current_time()
        try:
            value, ended = trio.run(bounded, clock=clock, instruments=[trace])
        except BaseException as died:
            died.add_note(f"seed {seed}, after {trace.steps} steps")
            raise
    return Outcome(value, trace.digest(), trace.steps, ended - begun)


def wall_clock() -> float:
    """The world's wall clock, for `Env.now`."""
    return EPOCH + trio.current_time()


@contextmanager
def deterministic(chance: Chance) -> Iterator[None]:
    """Everything that is patched, for as long as a world runs."""
    coin: random.Random = trio_run._r
    state, collecting = coin.getstate(), gc.isenabled()
    with ExitStack() as patches:

        def patch(where: Any, name: str, value: Any) -> None:
            patches.enter_context(mock.patch.object(where, name, value))

        patch(trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
        patch(trio.to_thread, "run_sync", virtual_threads(chance.stream("threads")))
        for name in _SOURCES_OF_TIME:
            patch(time, name, _forbidden(f"time.{name}", getattr(time, name)))
        patch(os, "urandom", _forbidden("os.urandom", os.urandom))
        patch(random, "_urandom", _forbidden("random.SystemRandom", os.urandom))
        coin.seed(f"{chance.seed}/schedule")
        gc.disable()
        try:
            yield
        finally:
            coin.setstate(state)
            if collecting:
                gc.enable()


def virtual_threads(dice: random.Random) -> Callable[..., Awaitable[Any]]:
    """What stands in for `trio.to_thread.run_sync`, and for `Env.spawn_thread`.

    A thread begins after a while, does its work in one moment, and is heard of after
    another while. Cancelling does not shorten either: a system call cannot be called back.
    """
    default = trio.CapacityLimiter(40)

    async def run_sync(
        fn: Callable[..., T],
        *args: Any,
        limiter: trio.CapacityLimiter | None = None,
        thread_name: str | None = None,
        abandon_on_cancel: bool = False,
    ) -> T:
        if abandon_on_cancel:
            raise Forbidden("abandon_on_cancel: an abandoned thread goes on behind everybody's back")
        async with limiter or default:
            with trio.CancelScope(shield=True):
                await trio.sleep(dice.expovariate(1 / THREAD_LATENCY))
                try:
                    result = fn(*args)
                finally:
                    await trio.sleep(dice.expovariate(1 / THREAD_LATENCY))
        return result

    return run_sync


def _forbidden(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def bomb(*args: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if caller.split(".")[0] in _MAY_READ_REALITY:
            return real(*args)
        raise Forbidden(f"{name} was read by {caller}: time and chance come through Env")

    return bomb


class _Trace(trio.abc.Instrument):
    """A hash over every step: when, which task. Tasks are counted from the run's first one."""

    def __init__(self, keep: list[str] | None) -> None:
        self._hash = hashlib.sha256()
        self._keep = keep
        self._first: int | None = None
        self.steps = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        count: int = task._counter
        if self._first is None:
            self._first = count
        line = f"{trio.current_time()!r} {count - self._first} {task.name}\n"
        self._hash.update(line.encode())
        self.steps += 1
        if self._keep is not None:
            self._keep.append(line)

    def digest(self) -> str:
        return self._hash.hexdigest()[:16]
