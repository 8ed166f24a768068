"""What lies on the disk, and when: names, indexes, room taken in advance, files that are no longer needed."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import attrs
import trio
from trio.testing import MockClock

from rafka.env.sim_disk import SimDisk
from rafka.storage.backend import LogName, LogSettings
from rafka.storage.embedded import EmbeddedConfig, marks

from .batches import everything_cold, put, sim_disk, sim_env
from .folders import FOLDER, ONE_SEGMENT, ROOT, SETTINGS, opened, path, the_log
from .promises import NOW_MS

T = TypeVar("T")


async def test_a_log_that_was_never_written_to_has_no_files(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        the_log(backend)
        await backend.checkpoint()
    assert not disk.exists(f"{ROOT}/topics")


async def test_the_offset_index_names_the_last_offset_and_the_position_of_a_batch(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        sizes = [len(put(log, times=[1000 + i, 1001 + i], value=bytes(30))) for i in range(9)]
    size = sizes[0]
    assert len(set(sizes)) == 1
    assert size < 150 < 2 * size  # so every second batch has an entry

    entries = list(struct.iter_unpack(">ii", disk.contents(path(0, ".index"))))
    times = list(struct.iter_unpack(">qi", disk.contents(path(0, ".timeindex"))))

    assert entries == [(2 * batch + 1, batch * size) for batch in (2, 4, 6, 8)]
    assert times == [(1001 + batch, 2 * batch + 1) for batch in (2, 4, 6, 8)]


async def test_the_time_index_has_what_is_new_only_and_ends_with_the_greatest_time(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, LogSettings(index_interval_bytes=0))
        for time in (10, 5, 30, 30, 20, -1, 40):
            put(log, times=[time])
        log.roll()
        put(log, times=[7])

    assert list(struct.iter_unpack(">qi", disk.contents(path(0, ".timeindex")))) == [
        (10, 0),
        (30, 2),
        (40, 6),
    ]
    assert not disk.exists(path(7, ".timeindex"))


async def test_indexes_are_not_written_with_every_append(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, LogSettings(index_interval_bytes=0))
        put(log)
        await log.wait_flushed(1)
        before = disk.changes

        for _ in range(100):
            put(log)

        assert disk.changes == before + 100


async def test_a_full_index_closes_the_segment(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, LogSettings(index_interval_bytes=0, index_max_bytes=32))
        for _ in range(12):
            put(log, times=[-1])
        assert [segment.next_offset for segment in log.closed_segments()] == [5, 10]


async def test_an_offset_too_far_from_the_base_closes_the_segment(autojump_clock: MockClock) -> None:
    from rafka.records.batch import placed, read_header

    from .batches import batch_of

    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        put(log)
        header = read_header(batch_of([1]))
        header.last_offset_delta = 2**31 - 2  # as compaction leaves them
        log.append([placed(header, 1, 0), batch_of([1])[61:]], header)
        put(log)
        assert [segment.next_offset for segment in log.closed_segments()] == [2**31]


async def test_room_taken_in_advance_is_given_back(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    settings = attrs.evolve(SETTINGS, preallocate=True)  # type: ignore[misc]
    async with opened(disk) as backend:
        log = the_log(backend, settings)
        batches = [put(log, value=bytes(200)) for _ in range(4)]
        assert len(disk.contents(path(3))) == 1000
        assert len(disk.contents(path(0))) == len(b"".join(batches[:3]))
    assert len(disk.contents(path(3))) == len(batches[3])

    async with opened(disk, clean=False) as backend:
        log = the_log(backend, settings)
        for _ in range(4):
            batches.append(put(log, value=bytes(200)))
        await log.wait_flushed(8)
    assert len(disk.contents(path(6))) == 1000
    async with opened(disk) as backend:
        assert await everything_cold(the_log(backend)) == b"".join(batches)
        assert len(disk.contents(path(6))) == len(b"".join(batches[6:]))


async def test_open_files_are_no_more_than_was_said(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(max_open_files=5)) as backend:
        logs = [backend.open(LogName(f"many/{i}"), SETTINGS) for i in range(30)]
        for log in logs:
            put(log)
            await log.wait_flushed(1)
            assert len(backend._shared.files._open) <= 5
        for log in logs:
            assert log.read(0, 1, 1000)
            assert len(backend._shared.files._open) <= 5
        for _ in range(3):
            put(logs[0])
            await logs[0].wait_flushed(logs[0].end_offset)


async def test_indexes_in_memory_are_no_more_than_was_said(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(max_loaded_indexes=2)) as backend:
        log = the_log(backend)
        batches = [put(log, times=[1000 + i], value=bytes(100)) for i in range(60)]
        await backend.checkpoint()
        log.roll()
        assert sum(segment.index is not None for segment in log.closed_segments()) <= 3
        for i in range(60):
            assert await log.read_cold(i, 60, 1) == batches[i]
            await log.find_time(1000 + i)
            assert sum(segment.index is not None for segment in log.closed_segments()) <= 3


# Removal


def logs_on(disk: SimDisk) -> list[str]:
    return [name for name in disk.list(FOLDER) if ".log" in name]


async def test_expired_files_wait_for_a_checkpoint_and_then_for_their_delay(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        backend._shared.want_checkpoint = lambda: None
        for _ in range(3):
            put(log)
            log.roll()
        put(log)
        await log.wait_flushed(4)

        assert log.expire(NOW_MS, -1, 0, 2) == 2
        assert [name[18:] for name in logs_on(disk)] == ["00.log", "01.log", "02.log", "03.log"]

        await backend.checkpoint()
        assert [name[18:] for name in logs_on(disk)] == [
            "00.log.deleted",
            "01.log.deleted",
            "02.log",
            "03.log",
        ]
        assert await backend.remove_deleted(NOW_MS + 999) == 0
        assert await backend.remove_deleted(NOW_MS + 1000) == 2
        assert [name[18:] for name in logs_on(disk)] == ["02.log", "03.log"]
        assert not [name for name in disk.list(FOLDER) if name.startswith("00000000000000000000.")]


async def test_replaced_files_are_removed_after_their_delay(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        batches = []
        for _ in range(3):
            batches.append(put(log))
            log.roll()
        await backend.checkpoint()
        old = log.closed_segments()[:2]
        new = log.replacement(old)
        new.write(batches[1])

        assert await log.replace_segments(old, new)

        assert [name[18:] for name in logs_on(disk)] == [
            "00.log",
            "00.log.deleted",
            "01.log.deleted",
            "02.log",
            "03.log",
        ]
        assert disk.contents(path(0)) == batches[1]
        assert old[0].read(0, 1000) == batches[0]  # whoever reads them still, reads on
        assert await backend.remove_deleted(int(backend._shared.env.now() * 1000) + 1000) == 2
        assert [name[18:] for name in logs_on(disk)] == ["00.log", "02.log", "03.log"]


async def test_an_expiry_while_a_checkpoint_flushes_leaves_it_what_it_speaks_of(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk()
    env = sim_env(disk)
    gate = Gate(env.spawn_thread)
    held = attrs.evolve(env, spawn_thread=gate)
    async with opened(disk, EmbeddedConfig(durable=False), env=held, clean=False) as backend:
        log = the_log(backend)
        backend._shared.want_checkpoint = lambda: None
        put(log, times=[1000])
        put(log, times=[1000])
        async with trio.open_nursery() as nursery:
            gate.close()
            nursery.start_soon(backend.checkpoint)
            await trio.testing.wait_all_tasks_blocked()
            put(log, times=[1000])
            assert log.expire(NOW_MS, 0, -1, 3) == 1
            gate.open()
        assert disk.exists(path(0))
        saved = marks.load(disk, ROOT)
        assert saved is not None
        mark = saved.logs[log.name]
        assert (log.start_offset, mark.start_offset, mark.recovery_point) == (3, 2, 2)
    disk.power_loss()

    async with opened(disk) as backend:
        log = the_log(backend)
        assert log.failed is None
        assert 2 <= log.start_offset <= log.end_offset


class Gate:
    """Threads that begin when they are let."""

    def __init__(self, spawn: Callable[..., Awaitable[Any]]) -> None:
        self._spawn = spawn
        self.open()

    def close(self) -> None:
        self._opened = trio.Event()

    def open(self) -> None:
        self._opened = getattr(self, "_opened", trio.Event())
        self._opened.set()

    async def __call__(
        self, fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None
    ) -> T:
        await self._opened.wait()
        result: T = await self._spawn(fn, *args, limiter=limiter)
        return result


# Deleting


async def test_a_deleted_log_takes_its_folder_and_empty_ones_above_along(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        put(backend.open(LogName("topics/aa/0"), SETTINGS))
        put(backend.open(LogName("topics/aa/1"), SETTINGS))
        await backend.delete(LogName("topics/aa/0"))
        assert disk.list(f"{ROOT}/topics/aa") == ["1"]
        await backend.delete(LogName("topics/aa/1"))
        assert not disk.exists(f"{ROOT}/topics")
    async with opened(disk) as backend:
        assert backend._logs == {}


async def test_logs_deleted_side_by_side_share_their_checkpoints(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        for i in range(50):
            put(backend.open(LogName(f"topics/aa/{i}"), SETTINGS))
        await backend.checkpoint()
        before = disk.syncs
        async with trio.open_nursery() as nursery:
            for i in range(50):
                nursery.start_soon(backend.delete, LogName(f"topics/aa/{i}"))
        assert disk.syncs - before < 50 + 15  # one of the folder for each, and few checkpoints


# Flushing


async def test_many_logs_are_flushed_in_one_round(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    env = sim_env(disk)
    gate = Gate(env.spawn_thread)
    async with opened(disk, env=attrs.evolve(env, spawn_thread=gate)) as backend:
        logs = [backend.open(LogName(f"many/{i}"), SETTINGS) for i in range(10)]
        for log in logs:
            put(log)
        gate.close()
        await trio.testing.wait_all_tasks_blocked()
        for log in logs:
            put(log)  # gathers while the round is in its thread
        gate.open()
        await logs[0].wait_flushed(1)
        assert {log.flushed_offset for log in logs} == {1}
        await logs[9].wait_flushed(2)
        assert {log.flushed_offset for log in logs} == {2}


async def test_flushes_are_told_once_they_are_done(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        told: list[int] = []
        log.on_flushed = lambda: told.append(log.flushed_offset)
        put(log)
        put(log)
        assert log.flushed_offset == 0
        assert told == []
        await log.wait_flushed(2)
        assert told == [2]


async def test_the_page_cache_mode_flushes_for_those_who_ask_only(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(durable=False, checkpoint_interval=1e6)) as backend:
        log = the_log(backend)
        put(log)
        await trio.sleep(3600)
        assert log.flushed_offset == 0
        await log.wait_flushed(1)
        assert log.flushed_offset == 1


async def test_flush_messages_and_flush_ms_ask_too(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(durable=False, checkpoint_interval=1e6)) as backend:
        log = the_log(backend, attrs.evolve(ONE_SEGMENT, flush_messages=3))  # type: ignore[misc]
        put(log)
        put(log)
        await trio.sleep(1)
        assert log.flushed_offset == 0
        put(log)
        await trio.sleep(1)
        assert log.flushed_offset == 3

        log.settings = attrs.evolve(ONE_SEGMENT, flush_ms=5000)  # type: ignore[misc]
        put(log)
        await trio.sleep(4)
        put(log)
        assert log.flushed_offset == 3
        await trio.sleep(2)
        assert log.flushed_offset == 5


async def test_rolling_flushes_in_the_background(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(durable=False, checkpoint_interval=1e6)) as backend:
        log = the_log(backend)
        put(log)
        log.roll()
        await trio.sleep(1)
        assert log.flushed_offset == 1


async def test_checkpoints_are_taken_by_bytes_and_by_time(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    config = EmbeddedConfig(checkpoint_bytes=1000, checkpoint_interval=60)
    async with opened(disk, config) as backend:
        log = the_log(backend, ONE_SEGMENT)
        log.state_source = lambda: b""
        put(log, value=bytes(2000))
        await trio.sleep(1)
        assert disk.exists(path(1, ".snapshot"))
        put(log)
        await trio.sleep(1)
        assert not disk.exists(path(2, ".snapshot"))
        await trio.sleep(60)
        assert disk.exists(path(2, ".snapshot"))
