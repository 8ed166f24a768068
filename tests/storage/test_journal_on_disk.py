"""The journal on files: at whatever change the power goes, what was appended is there afterwards.

The disk is simulated, the storage is the real one. A scene is played once for each
change that it makes to the disk, and the power goes at that change.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio

from rafka.env import Env
from rafka.env.sim_disk import SimDisk
from rafka.machines.facts import FactRegistry, fact
from rafka.storage import journal as journals
from rafka.storage.backend import LogSettings, StorageFailed
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig
from rafka.storage.journal import JOURNAL, Journal, JournalDamaged, open_journal

from ..simulation.kit.machine import Machine
from ..simulation.kit.runner import Chance, run
from .batches import sim_disk, sim_env
from .folders import opened


@fact("counted")
class Counted:
    number: int


CODEC = FactRegistry([Counted])
Scene = Callable[[EmbeddedBackend, Journal, list[int]], Awaitable[None]]


async def live(machine: Machine, scene: Scene, *, durable: bool = True) -> BaseException | None:
    """One life of a process that opens the journal, with the numbers that it replays, and plays the scene."""

    async def process(env: Env) -> None:
        config = EmbeddedConfig(durable=durable, reserve_bytes=0, reserve_percent=0.0)
        backend = EmbeddedBackend(env, "/data", config)
        await backend.start()
        async with trio.open_nursery() as nursery:
            await nursery.start(backend.run)
            journal = await open_journal(backend, CODEC, env)
            await scene(backend, journal, [kept.number for kept in journal.replay()])
            nursery.cancel_scope.cancel()

    return await machine.live(process)


@pytest.mark.parametrize("segment_bytes", [1, 16 << 20])
def test_no_loss_of_power_takes_what_was_acknowledged(
    segment_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SEGMENT_BYTES", segment_bytes)
    change = 0
    while run(change, partial(cut_at, change=change)).value:
        change += 1

    assert change > 20


async def cut_at(chance: Chance, change: int) -> bool:
    """Append and write snapshots; the power goes at this change. Whether there were so many."""
    machine = Machine(chance)
    acknowledged: list[int] = []
    done = False

    async def work(backend: EmbeddedBackend, journal: Journal, before: list[int]) -> None:
        nonlocal done
        machine.cut_power_at_change(change)
        for number in range(9):
            await journal.append([Counted(number)])
            acknowledged.append(number)
            if number % 3 == 2:
                await journal.snapshot([Counted(earlier) for earlier in range(number + 1)])
            if number == 4:
                await backend.checkpoint()
        done = True

    async def look(backend: EmbeddedBackend, journal: Journal, found: list[int]) -> None:
        assert found == list(range(len(found)))
        assert len(found) >= len(acknowledged)
        await journal.append([Counted(len(found))])

    assert await live(machine, work) is None
    for _ in range(2):  # what was found once has to be found again
        machine.disk.power_loss()
        if cause := await live(machine, look):
            raise cause
    return not done


def test_damage_in_the_middle_refuses_the_start() -> None:
    async def world(chance: Chance) -> BaseException | None:
        machine = Machine(chance)

        async def work(backend: EmbeddedBackend, journal: Journal, before: list[int]) -> None:
            for number in range(20):
                await journal.append([Counted(number)])
            await backend.checkpoint()

        async def look(backend: EmbeddedBackend, journal: Journal, found: list[int]) -> None:
            raise AssertionError(f"it started, with {found}")

        await live(machine, work)
        machine.disk.damage("/data/journal/00000000000000000000.log", flip_in_the_middle)
        return await live(machine, look)

    cause = run(1, world).value

    assert isinstance(cause, JournalDamaged)
    assert "damaged at offset 10, and ends at 20" in str(cause)


def flip_in_the_middle(data: bytearray) -> None:
    data[len(data) // 2 + 30] ^= 1


def test_a_damaged_snapshot_costs_a_longer_replay_only() -> None:
    async def world(chance: Chance) -> list[int]:
        machine = Machine(chance)
        replayed: list[int] = []

        async def work(backend: EmbeddedBackend, journal: Journal, before: list[int]) -> None:
            for number in range(6):
                await journal.append([Counted(number)])
                if number in (2, 4):
                    await journal.snapshot([Counted(100 + number)])

        async def look(backend: EmbeddedBackend, journal: Journal, found: list[int]) -> None:
            replayed.extend(found)

        await live(machine, work)
        folder, name = newest_snapshot(machine)
        machine.disk.damage(f"{folder}/{name}", flip_in_the_middle)
        await live(machine, look)
        return replayed

    assert run(1, world).value == [102, 3, 4, 5]


def newest_snapshot(machine: Machine) -> tuple[str, str]:
    """Wherever the backend keeps its blobs."""
    for folder in "/data", *(f"/data/{name}" for name in machine.disk.list("/data")):
        try:
            names = [name for name in machine.disk.list(folder) if "journal-" in name]
        except NotADirectoryError:
            continue
        if names:
            return folder, names[-1]
    raise AssertionError("no snapshot was written")


def test_in_page_cache_mode_a_kill_takes_nothing() -> None:
    async def world(chance: Chance) -> list[int]:
        machine = Machine(chance)
        replayed: list[int] = []

        async def work(backend: EmbeddedBackend, journal: Journal, before: list[int]) -> None:
            for number in range(6):
                await journal.append([Counted(number)])
                if number == 2:
                    await journal.snapshot([Counted(102)])
            machine.kill()
            await trio.lowlevel.checkpoint()

        async def look(backend: EmbeddedBackend, journal: Journal, found: list[int]) -> None:
            replayed.extend(found)

        await live(machine, work, durable=False)
        await live(machine, look, durable=False)
        return replayed

    assert run(1, world).value == [102, 3, 4, 5]


@asynccontextmanager
async def opened_journal(disk: SimDisk) -> AsyncIterator[tuple[EmbeddedBackend, Journal]]:
    """On a disk that is durable, until it is killed."""
    env = sim_env(disk)
    async with opened(disk, EmbeddedConfig(durable=True), env=env, clean=False) as backend:
        yield backend, await open_journal(backend, CODEC, env)


async def replayed(disk: SimDisk) -> list[int]:
    """What is there after a loss of power."""
    disk.power_loss()
    async with opened_journal(disk) as (_, journal):
        return [kept.number for kept in journal.replay()]


async def test_what_is_put_while_the_disk_works_is_one_batch_of_the_next_sync() -> None:
    disk = sim_disk()
    async with opened_journal(disk) as (backend, journal):
        log = backend.open(JOURNAL, LogSettings())
        kept: list[int] = []
        journal.on_kept(lambda: kept.append(journal.kept))

        for number in range(20):
            journal.put([Counted(number)])
        assert (journal.end, journal.kept, log.end_offset) == (20, 0, 0), "nothing is written yet"
        assert not journal.rests
        await journal.settled()

        assert journal.rests
        assert kept == [20]
        assert [header.count for header in log.headers(0)] == [20]

    assert await replayed(disk) == list(range(20))


async def test_nobody_has_to_wait_for_what_is_put_to_be_written() -> None:
    disk = sim_disk()
    async with opened_journal(disk) as (_, journal):
        kept = trio.Event()
        journal.on_kept(kept.set)

        journal.put([Counted(1)])
        journal.put([Counted(2)])
        await kept.wait()

        assert (journal.kept, journal.end) == (2, 2)

    assert await replayed(disk) == [1, 2]


async def test_a_snapshot_covers_what_was_put_and_is_not_written() -> None:
    disk = sim_disk()
    async with opened_journal(disk) as (_, journal):
        journal.put([Counted(1), Counted(2)])
        await journal.snapshot([Counted(1), Counted(2)])

    assert await replayed(disk) == [1, 2]


async def test_a_journal_that_cannot_be_written_ends_the_storage() -> None:
    """What was put counts already for whoever put it, and cannot be taken back."""
    disk = sim_disk()
    wrong = pytest.RaisesExc(StorageFailed, match="journal could not be written")
    with pytest.RaisesGroup(wrong, flatten_subgroups=True):
        async with opened_journal(disk) as (_, journal):
            await journal.append([Counted(1)])
            disk.capacity = 1
            journal.put([Counted(2)])
            await trio.sleep_forever()
