"""What a start makes of a folder: torn tails are cut, losses are told, everything else is believed."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from trio.testing import MockClock

from rafka.env.sim_disk import SimDisk
from rafka.errors import ErrorCode, KafkaError
from rafka.storage.embedded import DataDirLocked, EmbeddedBackend, UnknownFormat

from .batches import everything, everything_cold, put, sim_disk, sim_env
from .folders import NAME, ONE_SEGMENT, ROOT, SETTINGS, cut_to, opened, path, the_log, written


async def found(disk: SimDisk) -> tuple[bytes, int]:
    """All that is read after a start, and the end offset."""
    async with opened(disk, clean=False) as backend:
        log = the_log(backend, ONE_SEGMENT)
        assert log.failed is None
        assert log.flushed_offset == log.end_offset
        return everything(log), log.end_offset


# Torn tails


async def test_every_cut_within_the_last_two_batches_leaves_what_is_whole(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    caplog.set_level(logging.INFO)
    disk = sim_disk()
    batches = await written(disk)
    whole = b"".join(batches)
    ends = [len(b"".join(batches[:count])) for count in (4, 5, 6)]

    for size in range(ends[0], len(whole) + 1):
        disk = sim_disk()
        await written(disk)
        disk.damage(path(0), cut_to(size))
        caplog.clear()

        data, end_offset = await found(disk)

        left = 3 + sum(size >= end for end in ends)
        assert (data, end_offset) == (b"".join(batches[:left]), left)
        told = [record.message for record in caplog.records if record.message.startswith(path(0))]
        assert len(told) == (size not in ends)
        lost = size - len(data)
        assert not told or f"cut {lost} bytes at {len(data)}, offset {left}" in told[0]


@pytest.mark.parametrize("garbage", [b"\0" * 1, b"\0" * 5000, b"\xff" * 100, bytes(range(256)) * 250, b"x"])
async def test_garbage_after_the_end_is_cut(garbage: bytes, autojump_clock: MockClock) -> None:
    disk = sim_disk()
    batches = await written(disk)

    disk.damage(path(0), lambda data: data.extend(garbage))

    assert await found(disk) == (b"".join(batches), 6)
    assert len(disk.contents(path(0))) == len(b"".join(batches))


async def test_a_batch_of_another_place_is_no_part_of_the_log(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    batches = await written(disk)

    disk.damage(path(0), lambda data: data.extend(batches[2]))

    assert await found(disk) == (b"".join(batches), 6)


@pytest.mark.parametrize("at", [0, 3, 7, 8, 11, 16, 17, 22, 26, 40, 60, 61, 80])
async def test_a_changed_byte_in_what_no_checkpoint_knows_ends_the_log_there(
    at: int, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    batches = await written(disk)
    position = len(b"".join(batches[:4]))

    def change(data: bytearray) -> None:
        data[position + at] ^= 0x10

    disk.damage(path(0), change)

    assert await found(disk) == (b"".join(batches[:4]), 4)


async def test_appending_goes_on_after_a_cut(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    batches = await written(disk)
    disk.damage(path(0), cut_to(len(b"".join(batches)) - 1))

    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        batches[5:] = [put(log, times=[5000]), put(log, times=[5001])]
        await log.wait_flushed(7)

    assert await found(disk) == (b"".join(batches), 7)


async def test_segments_after_a_cut_go_as_well(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, clean=False) as backend:
        backend._shared.want_checkpoint = lambda: None
        log = the_log(backend)
        batches = [put(log, value=bytes(300)) for _ in range(9)]
        bases = [segment.base_offset for segment in log.closed_segments()]
    assert len(bases) > 2

    disk.damage(path(bases[1]), cut_to(-1))

    end = bases[2] - 1
    async with opened(disk) as backend:
        assert the_log(backend).end_offset == end
        assert await everything_cold(the_log(backend)) == b"".join(batches[:end])
    assert not disk.exists(path(bases[2]))


# Losses


async def refused(disk: SimDisk) -> str:
    """The log is refused, and others live; why."""
    async with opened(disk) as backend:
        log = the_log(backend)
        other = backend.open(ROOT_OTHER, SETTINGS)
        put(other)
        assert log.failed is not None
        attempts: list[Callable[[], object]] = [lambda: log.read(0, 1, 10), lambda: put(log), log.roll]
        for attempt in attempts:
            with pytest.raises(KafkaError) as refusal:
                attempt()
            assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        with pytest.raises(KafkaError):
            await log.read_cold(0, 1, 10)
        await backend.checkpoint()
        return log.failed


ROOT_OTHER = type(NAME)("topics/other/0")


@pytest.mark.parametrize("clean", [True, False])
async def test_a_log_that_lacks_flushed_bytes_is_refused_again_and_again(
    clean: bool, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    batches = await written(disk, clean=True)
    async with opened(disk, clean=clean):
        pass
    size = len(b"".join(batches))

    disk.damage(path(0), cut_to(size - 10))

    for _ in range(3):
        assert f"has {size - 10} bytes, and had {size} that were flushed: 10 are missing" in await refused(
            disk
        )


async def test_a_segment_that_is_missing_is_told(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        for _ in range(9):
            put(log, value=bytes(300))
        middle = log.closed_segments()[1].base_offset
    disk.remove(path(middle))

    for _ in range(3):
        assert "is missing" in await refused(disk)


async def test_a_refused_log_is_served_again_once_its_files_are_back(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    batches = await written(disk, clean=True)
    last = disk.contents(path(0))
    disk.damage(path(0), cut_to(100))
    await refused(disk)

    disk.damage(path(0), lambda data: data.extend(last[100:]))

    assert await found(disk) == (b"".join(batches), 6)


# Checkpoints and formats


async def test_after_a_clean_stop_nothing_is_walked(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    batches = await written(disk, clean=True)

    def change(data: bytearray) -> None:
        data[70] ^= 1

    disk.damage(path(0), change)  # a walk would have noticed
    data, end_offset = await found(disk)

    assert end_offset == 6
    assert len(data) == len(b"".join(batches))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["flip", "short", "empty", "gone"])
async def test_a_damaged_checkpoint_costs_a_walk_and_nothing_else(
    damage: str, clean: bool, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    batches = await written(disk, clean=clean)

    def change(data: bytearray) -> None:
        if damage == "flip":
            data[len(data) // 2] ^= 4
        else:
            del data[{"short": 10, "empty": 0, "gone": 0}[damage] :]

    disk.damage(f"{ROOT}/checkpoint", change)
    if damage == "gone":
        disk.remove(f"{ROOT}/checkpoint")

    assert await found(disk) == (b"".join(batches), 6)


async def test_without_a_checkpoint_a_damaged_middle_refuses_the_log_and_stays_refused(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk()
    batches = await written(disk, clean=True)

    def change(data: bytearray) -> None:
        data[len(batches[0]) + 70] ^= 1

    disk.damage(path(0), change)
    disk.remove(f"{ROOT}/checkpoint")

    for _ in range(3):
        assert "is damaged at" in await refused(disk)
    assert len(disk.contents(path(0))) == len(b"".join(batches))


async def test_without_a_checkpoint_gaps_of_compaction_are_no_damage(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        batches = [put(log, value=bytes(300)) for _ in range(12)]
        old = log.closed_segments()[:2]
        new = log.replacement(old)
        new.write(batches[1])
        assert await log.replace_segments(old, new)
        kept = [batches[1], *batches[old[-1].next_offset :]]
    disk.remove(f"{ROOT}/checkpoint")

    async with opened(disk) as backend:
        assert await everything_cold(the_log(backend)) == b"".join(kept)


async def test_the_folder_is_used_by_one_process_at_a_time(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk):
        with pytest.raises(DataDirLocked, match="data is in use by process 1"):
            await EmbeddedBackend(sim_env(disk), ROOT).start()

    async with opened(disk):
        pass


@pytest.mark.parametrize(
    ("meta", "why"),
    [(b'{"rafka": 2}', "has format 2"), (b"nonsense", "cannot be read"), (b"[]", "cannot be read")],
)
async def test_a_folder_of_an_unknown_format_is_left_alone(
    meta: bytes, why: str, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    await written(disk, clean=True)

    def change(data: bytearray) -> None:
        data[:] = meta

    disk.damage(f"{ROOT}/meta", change)
    before = disk.changes

    with pytest.raises(UnknownFormat, match=why):
        await EmbeddedBackend(sim_env(disk), ROOT).start()

    assert disk.changes <= before + 2  # the lock file
    with pytest.raises(UnknownFormat):  # and not DataDirLocked
        await EmbeddedBackend(sim_env(disk), ROOT).start()


async def test_a_folder_of_kafkas_is_refused(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    disk.make_dir(ROOT)
    disk.open(f"{ROOT}/meta.properties", create=True)

    with pytest.raises(UnknownFormat, match="Apache Kafka"):
        await EmbeddedBackend(sim_env(disk), ROOT).start()
