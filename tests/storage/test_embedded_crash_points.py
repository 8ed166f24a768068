"""One scripted life, ended before every single change that it makes to the disk."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from rafka.env.sim_disk import PowerCut
from rafka.storage.backend import LogName
from rafka.storage.embedded import EmbeddedBackend
from rafka.storage.embedded.log import EmbeddedLog

from .batches import sim_disk, sim_env
from .history import SETTINGS, History, Story, small

FIRST, SECOND = LogName("topics/aa/0"), LogName("topics/aa/1")


class Script(History):
    """Appending, rolling, checkpoints, compaction, expiry, deletion: each once, flushed in between."""

    async def play(self) -> None:
        backend = EmbeddedBackend(sim_env(self.disk, 1), "data", self.config)
        try:
            await backend.start()
            async with trio.open_nursery() as nursery:
                await nursery.start(backend.run)
                await self._script(backend)
                nursery.cancel_scope.cancel()
            await backend.close()
        except BaseExceptionGroup as group:
            if group.split(PowerCut)[1] is not None:
                raise
        except PowerCut:
            pass

    async def _script(self, backend: EmbeddedBackend) -> None:
        log, story = self._opened(backend, FIRST)
        backend._shared.want_checkpoint = lambda: None  # only those that the script takes
        for _ in range(12):
            self._append(log, story)
        log.roll()
        self._append(log, story)
        await log.wait_flushed(log.end_offset)
        await self._compact(log, story, 3)
        await backend.checkpoint()
        await self._compact(log, story, 2)
        self._append(log, story)
        await log.wait_flushed(log.end_offset)
        log.expire(0, -1, 600, log.flushed_offset)
        story.start = log.start_offset
        await backend.remove_deleted(1 << 60)
        second, second_story = self._opened(backend, SECOND)
        self._append(second, second_story)
        await second.wait_flushed(second.end_offset)
        await backend.checkpoint()
        second_story.unsure = True
        await backend.delete(SECOND)
        self.stories[SECOND] = Story()
        second, second_story = self._opened(backend, SECOND)
        self._append(second, second_story)
        await second.wait_flushed(second.end_offset)
        log.expire(0, -1, 0, log.flushed_offset)
        story.start = log.start_offset
        self._append(log, story)

    def _keeps(self, base_offset: int) -> bool:
        return base_offset % 3 > 0

    def _opened(self, backend: EmbeddedBackend, name: LogName) -> tuple[EmbeddedLog, Story]:
        log = backend.open(name, SETTINGS)
        story = self.stories.setdefault(name, Story())
        log.on_flushed = lambda: self._flushed(log, story)
        log.state_source = lambda: b"state at %d" % log.end_offset
        return log, story


async def end_before(change: int, *, kill: bool, seed: int) -> None:
    """Play up to that change, end, look; end again, and look again."""
    disk = sim_disk(seed)
    script = Script(disk, 5, small())
    disk.cut_power_after(change)
    await script.play()
    disk.kill() if kill else disk.power_loss()
    await script.check(lossless=kill)
    disk.power_loss()  # what recovery said of the logs has to be as durable as it said
    await script.check(lossless=False)


async def changes_of_the_script() -> int:
    disk = sim_disk()
    await Script(disk, 5, small()).play()
    return disk.changes


async def test_a_kill_at_every_change_loses_nothing(autojump_clock: MockClock) -> None:
    for change in range(await changes_of_the_script()):
        await end_before(change, kill=True, seed=change)


async def test_a_loss_of_power_at_every_change_loses_nothing_flushed(autojump_clock: MockClock) -> None:
    for change in range(await changes_of_the_script()):
        await end_before(change, kill=False, seed=change)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
async def test_losses_of_power_with_other_dice(seed: int, autojump_clock: MockClock) -> None:
    for change in range(await changes_of_the_script()):
        await end_before(change, kill=False, seed=1000 * (seed + 1) + change)


async def test_an_end_in_the_middle_of_recovery_is_recovered_from(autojump_clock: MockClock) -> None:
    total = await changes_of_the_script()
    for first in range(3, total, 17):
        for second in range(30):
            disk = sim_disk(first * 100 + second)
            script = Script(disk, 5, small())
            disk.cut_power_after(first)
            await script.play()
            disk.power_loss()
            disk.cut_power_after(second)
            try:
                await script.check(lossless=False)
            except PowerCut:
                disk.power_loss()
                await script.check(lossless=False)
