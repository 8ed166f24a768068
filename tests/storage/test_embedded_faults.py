"""Disks that fail: what is refused, what goes on, and when the process has to end."""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rafka.env.sim_disk import SimDisk
from rafka.errors import ErrorCode, KafkaError
from rafka.storage.backend import LogName, LogSettings, StorageFailed
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig

from .batches import everything, everything_cold, put, sim_disk, sim_env
from .folders import ONE_SEGMENT, ROOT, SETTINGS, opened, path, the_log

ROOMY = EmbeddedConfig(reserve_bytes=3000, reserve_percent=100)


def refusal_of(log: Any, **what: Any) -> str:
    with pytest.raises(KafkaError) as refusal:
        put(log, **what)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    return str(refusal.value)


# Syncs


@pytest.mark.parametrize("durable", [True, False])
async def test_a_failed_sync_ends_the_flusher_and_acknowledges_nothing(
    durable: bool, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    backend = EmbeddedBackend(sim_env(disk), ROOT, EmbeddedConfig(durable=durable))
    await backend.start()
    flushed = False

    async def wait() -> None:
        nonlocal flushed
        with pytest.raises(KafkaError):
            await log.wait_flushed(3)
        flushed = log.flushed_offset >= 3

    log = the_log(backend)

    async def life() -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(backend.run)
            put(log)
            put(log)
            await log.wait_flushed(2)
            disk.p_sync_error = 1
            put(log)
            nursery.start_soon(wait)

    with pytest.raises(ExceptionGroup) as failure:
        await life()

    (error,) = failure.value.exceptions
    assert isinstance(error, StorageFailed)
    assert path(0) in str(error)
    assert f"errno {errno.EIO}" in str(error)
    assert not flushed
    assert log.flushed_offset == 2
    disk.p_sync_error = 0
    syncs = disk.syncs
    refusal_of(log)
    with pytest.raises(KafkaError):
        await log.wait_flushed(3)
    with pytest.raises(StorageFailed):
        await backend.checkpoint()
    await backend.close()
    assert disk.syncs == syncs, "a sync that failed is never tried again"

    disk.power_loss()
    async with opened(disk) as again:
        assert the_log(again).end_offset == 2


async def test_a_checkpoint_that_cannot_be_synced_ends_it_too(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    backend = EmbeddedBackend(sim_env(disk), ROOT)
    await backend.start()
    disk.p_sync_error = 1

    with pytest.raises(StorageFailed, match="checkpoint of data"):
        await backend.checkpoint()
    with pytest.raises(StorageFailed):
        await backend.run()
    await backend.close()


async def test_a_blob_that_cannot_be_saved_is_told(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        disk.p_sync_error = 1
        with pytest.raises(StorageFailed, match="blobs/x"):
            await backend.blobs.save("x", b"")
        disk.p_sync_error = 0


# Room


async def test_appends_are_refused_before_the_disk_is_full_and_all_else_goes_on(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk(capacity=20_000)
    async with opened(disk, ROOMY) as backend:
        log = the_log(backend)
        batches: list[bytes] = []
        while not backend._shared.reserve.refusing:
            with suppress(KafkaError):
                batches.append(put(log, value=bytes(200)))
            await trio.sleep(0.3)
        assert "nearly full" in refusal_of(log)
        assert 3000 - 300 < disk.free() < 3000 + 300

        assert await everything_cold(log) == b"".join(batches)
        await log.wait_flushed(log.end_offset)
        await backend.checkpoint()
        essential = backend.open(LogName("journal"), LogSettings(essential=True))
        put(essential)
        await essential.wait_flushed(1)
        refusal_of(log)

        log.expire(1 << 50, -1, 2000, log.end_offset)
        await backend.remove_deleted(1 << 60)
        await trio.sleep(1.1)
        put(log)  # without a restart


async def test_room_that_others_take_is_noticed_within_a_second(autojump_clock: MockClock) -> None:
    disk = sim_disk(capacity=1_000_000)
    async with opened(disk, ROOMY) as backend:
        log = the_log(backend)
        put(log)
        disk.capacity = 1000
        await trio.sleep(1.1)
        refusal_of(log)
        disk.capacity = 1_000_000
        refusal_of(log)  # asked a moment ago
        await trio.sleep(1.1)
        put(log)


async def test_the_reserve_is_sane_on_a_small_disk(autojump_clock: MockClock) -> None:
    disk = sim_disk(capacity=1_000_000)
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        for _ in range(90):
            put(log, value=bytes(10_000))
            await trio.sleep(1.1)
        for _ in range(10):
            with suppress(KafkaError):
                put(log, value=bytes(10_000))
            await trio.sleep(1.1)
        refusal_of(log, value=bytes(10_000))
        assert 40_000 <= disk.free() <= 60_000


async def test_a_write_that_does_not_fit_leaves_nothing_behind(autojump_clock: MockClock) -> None:
    disk = sim_disk(capacity=20_000)
    config = EmbeddedConfig(reserve_bytes=0)
    async with opened(disk, config) as backend:
        log = the_log(backend, ONE_SEGMENT)
        batches = [put(log, value=bytes(500))]
        disk.capacity = 20_000 - disk.free() + 300
        await trio.sleep(2)

        backend._shared.reserve._left = 1 << 40  # the disk has to say so itself
        backend._shared.reserve._asked_ms = backend._shared.now_ms()
        assert "No space left" in refusal_of(log, value=bytes(500))

        assert disk.contents(path(0)) == batches[0]
        assert (log.end_offset, log.size) == (1, len(batches[0]))
        assert "nearly full" in refusal_of(log, value=bytes(500))
        disk.capacity = 20_000
        await trio.sleep(2)
        batches.append(put(log, value=bytes(500)))
        assert everything(log) == b"".join(batches)


async def test_a_segment_that_cannot_be_made_refuses_the_append_only(autojump_clock: MockClock) -> None:
    disk = sim_disk(capacity=20_000)
    async with opened(disk, EmbeddedConfig(reserve_bytes=0)) as backend:
        log = the_log(backend, LogSettings(segment_bytes=1000, preallocate=True))
        batches = [put(log, value=bytes(400)) for _ in range(2)]
        disk.capacity = 20_000 - disk.free() + 500
        refusal_of(log, value=bytes(400))
        assert log.closed_segments() == []
        assert everything(log) == b"".join(batches)
        disk.capacity = 20_000
        await trio.sleep(2)
        batches.append(put(log, value=bytes(400)))
        assert await everything_cold(log) == b"".join(batches)
        assert len(log.closed_segments()) == 1


async def test_no_room_for_a_checkpoint_leaves_the_one_before(autojump_clock: MockClock) -> None:
    disk = sim_disk(capacity=20_000)
    async with opened(disk, EmbeddedConfig(reserve_bytes=0), clean=False) as backend:
        log = the_log(backend, LogSettings(index_interval_bytes=0))
        batches = [put(log) for _ in range(5)]
        await backend.checkpoint()
        log.roll()
        batches.append(put(log))
        log.expire(0, -1, 0, 5)
        disk.capacity = 20_000 - disk.free()
        await backend.checkpoint()
        assert disk.exists(path(0))
        disk.capacity = 20_000
        await backend.checkpoint()
        assert not disk.exists(path(0))
    async with opened(disk) as backend:
        assert await everything_cold(the_log(backend)) == batches[5]


# Reads


async def test_a_disk_that_cannot_be_read_fails_the_reads_of_its_log_only(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log, other = the_log(backend), backend.open(LogName("topics/other/0"), SETTINGS)
        batch = put(log)
        put(other)
        real = log._segments[0].file

        class Broken:
            def read_cached(self, size: int, at: int) -> bytes:
                raise OSError(errno.EIO, "Input/output error")

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        log._segments[0].file = Broken()
        for _ in range(2):
            with pytest.raises(KafkaError) as refusal:
                log.read(0, 1, 100)
            assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            with pytest.raises(KafkaError):
                await log.read_cold(0, 1, 100)
            assert other.read(0, 1, 1000)
            put(other)
        put(log)

        log._segments[0].file = real
        assert log.read(0, 1, 1000) == batch


@pytest.mark.parametrize("length", [0, 48, -1, 1 << 20, 0x7FFFFFFF])
async def test_lengths_that_make_no_sense_are_no_crash(length: int, autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        for _ in range(3000):
            put(log)
        size = log.size // 3000

        def change(data: bytearray) -> None:
            data[5 * size + 8 : 5 * size + 12] = (length & 0xFFFFFFFF).to_bytes(4, "big")

        disk.damage(path(0), change)
        with pytest.raises(KafkaError) as refusal:
            log.read(5, 3000, 10_000)
        assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(KafkaError):
            await log.read_cold(5, 3000, 10_000)
        with pytest.raises(KafkaError):
            list(log.headers(0))
        assert await log.read_cold(6, 3000, 1)


async def test_a_file_that_became_shorter_is_no_crash(autojump_clock: MockClock) -> None:
    disk: SimDisk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        for _ in range(10):
            put(log)

        def change(data: bytearray) -> None:
            del data[-10:]

        disk.damage(path(0), change)
        with pytest.raises(KafkaError, match="ends here"):
            log.read(5, 10, 10_000)
        assert log.read(5, 9, 10_000)
