"""A machine on which a process lives, dies and lives again, with the disk it dies on.

One life at a time: `Machine.live` runs a process in a scope that `kill()` and
`power_loss()` end at once. Whatever of it still runs then - a `finally`, a thread that
cannot be called back - finds that every call to the disk raises `PowerCut`: the dead
write nothing. `cut_power_at_change(n)` plans the end of all power for the n-th change
from now on, which may lie in the middle of a rename or between a write and its sync.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

import trio

from rafka.env import Disk, Env
from rafka.env.sim_disk import PowerCut, SimDisk

from .runner import Chance, virtual_threads, wall_clock


class Machine:
    def __init__(self, chance: Chance) -> None:
        self.disk = SimDisk(chance.stream("disk"), now=wall_clock)
        self._threads = virtual_threads(chance.stream("env threads"))
        self._rng = chance.stream("env rng")
        self._dice = chance.stream("machine")
        self._scope: trio.CancelScope | None = None
        self.alive = False

    async def live(self, process: Callable[[Env], Awaitable[None]]) -> BaseException | None:
        """One life, until it ends or is ended. What it died of, if it was not killed and did not just end."""
        env = Env(wall_clock, self._rng, _one_life(self.disk), self._threads)
        causes: list[BaseException] = []
        self.alive = True
        with trio.CancelScope() as self._scope:
            try:
                await process(env)
            except* (Exception, PowerCut) as died:
                causes = _leaves(died)
        if not self.alive:
            return None  # what the dying say is of no interest
        self.alive = False
        if any(isinstance(cause, PowerCut) for cause in causes):
            self.disk.power_loss()
            return None
        self.disk.kill()  # with a process end its handles and its locks, however it ends
        return causes[0] if causes else None

    def kill(self) -> None:
        """kill -9: what the process wrote stays written."""
        self._end(self.disk.kill)

    def power_loss(self) -> None:
        """The plug is pulled: what was not synced may be gone."""
        self._end(self.disk.power_loss)

    def cut_power_at_change(self, number: int) -> None:
        if self.alive:
            self.disk.cut_power_after(number)

    def _end(self, how: Callable[[], None]) -> None:
        if not self.alive:
            return
        self.alive = False
        how()
        if self._scope is not None:
            self._scope.cancel()

    @property
    def dice(self) -> random.Random:
        return self._dice


def _leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group, and in the groups in it."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]


def _one_life(disk: SimDisk) -> Disk:
    """The disk as the process of this life sees it: dead once the process is."""
    life = disk.lives

    class OneLife:
        def __getattr__(self, name: str) -> Any:
            if disk.lives != life:
                raise PowerCut
            return getattr(disk, name)

    return cast(Disk, OneLife())
