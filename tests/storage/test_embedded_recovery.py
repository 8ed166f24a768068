"""What a start makes of a folder: torn tails are cut, losses are told, everything else is believed."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from trio.testing import MockClock

from rafka.env.sim_disk import SimDisk
from rafka.errors import ErrorCode, KafkaError
from rafka.records.batch import checksum
from rafka.storage.embedded import DataDirLocked, EmbeddedBackend, EmbeddedConfig, UnknownFormat

from .batches import everything, everything_cold, put, sim_disk, sim_env
from .folders import FOLDER, NAME, ONE_SEGMENT, ROOT, SETTINGS, opened, path, the_log


async def written(disk: SimDisk, batches: int = 6, *, clean: bool = False) -> list[bytes]:
    """A log of one segment whose end no checkpoint knows, unless the stop is clean."""
    async with opened(disk, clean=clean) as backend:
        log = the_log(backend, ONE_SEGMENT)
        data = [put(log, times=[1000 + i], value=b"%d" % i * 20) for i in range(batches)]
        await log.wait_flushed(log.end_offset)
        return data


async def found(disk: SimDisk) -> tuple[bytes, int]:
    """All that is read after a start, and the end offset."""
    async with opened(disk, clean=False) as backend:
        log = the_log(backend, ONE_SEGMENT)
        assert log.failed is None
        assert log.flushed_offset == log.end_offset
        return everything(log), log.end_offset


def cut_to(size: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        del data[size:]

    return change


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


# Epochs, states, indexes


@pytest.mark.parametrize(
    ("durable", "clean", "epochs"),
    [
        (True, True, [(3, 0)]),
        (True, False, [(3, 0)]),
        (False, True, [(3, 0)]),
        (False, False, [(3, 0), (4, 2)]),
    ],
)
async def test_the_epoch_is_bumped_where_readers_may_have_seen_what_is_lost(
    durable: bool, clean: bool, epochs: list[tuple[int, int]], autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(durable=durable), clean=clean) as backend:
        log = the_log(backend)
        put(log, epoch=3)
        put(log, epoch=3)

    async with opened(disk, clean=False) as backend:
        assert the_log(backend).epochs == epochs
        put(the_log(backend), epoch=epochs[-1][0])
        await the_log(backend).wait_flushed(3)
    async with opened(disk) as backend:
        assert the_log(backend).epochs == epochs


async def test_an_epoch_that_was_bumped_is_not_given_out_again_without_a_checkpoint(
    autojump_clock: MockClock,
) -> None:
    disk = sim_disk()
    async with opened(disk, EmbeddedConfig(durable=False), clean=False) as backend:
        put(the_log(backend))
        await the_log(backend).wait_flushed(1)
    async with opened(disk) as backend:
        assert the_log(backend).epochs == [(0, 0), (1, 1)]
        await backend.checkpoint()
    disk.remove(f"{ROOT}/checkpoint")

    async with opened(disk) as backend:
        assert the_log(backend).epochs == [(0, 0), (2, 1)]


async def test_start_epochs_and_compaction_are_as_of_the_last_checkpoint(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk, clean=False) as backend:
        log = the_log(backend)
        for epoch in (0, 1, 1, 4, 4):
            put(log, epoch=epoch)
        log.advance_start(2)
        log.compacted_to = 1
        await backend.checkpoint()
        log.advance_start(3)
        log.compacted_to = 2
        put(log, epoch=9)

    async with opened(disk, clean=False) as backend:
        log = the_log(backend)
        assert (log.start_offset, log.compacted_to, log.end_offset) == (2, 1, 6)
        assert log.epochs == [(1, 2), (4, 3), (9, 5)]
    assert disk.contents(f"{FOLDER}/leader-epoch-checkpoint") == b"0\n3\n1 2\n4 3\n9 5\n"


async def test_the_newest_whole_state_is_found(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    states = iter([b"one", b"two", b"three"])
    async with opened(disk, clean=False) as backend:
        log = the_log(backend)
        log.state_source = lambda: next(states)
        for _ in range(3):
            put(log)
            await backend.checkpoint()
            await backend.checkpoint()  # nothing has changed: nobody is asked

    assert [name for name in disk.list(FOLDER) if "snapshot" in name] == [
        "00000000000000000002.snapshot",
        "00000000000000000003.snapshot",
    ]
    async with opened(disk, clean=False) as backend:
        assert the_log(backend).saved_state == (3, b"three")

    disk.damage(path(3, ".snapshot"), lambda data: data.reverse())
    async with opened(disk, clean=False) as backend:
        assert the_log(backend).saved_state == (2, b"two")

    disk.damage(path(2, ".snapshot"), cut_to(3))
    async with opened(disk, clean=False) as backend:
        assert the_log(backend).saved_state is None


async def test_the_state_is_saved_at_a_roll_and_at_the_end(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend)
        log.state_source = lambda: b"at %d" % log.end_offset
        put(log)
        log.roll()
        await log.wait_flushed(1)
        await backend._shared.env.spawn_thread(lambda: None)
        put(log)
    assert {"00000000000000000001.snapshot", "00000000000000000002.snapshot"} <= set(disk.list(FOLDER))


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["flip", "short", "long", "gone", "zeros"])
@pytest.mark.parametrize("clean", [True, False])
async def test_a_damaged_index_is_made_anew(
    suffix: str, damage: str, clean: bool, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    async with opened(disk, clean=clean) as backend:
        log = the_log(backend, ONE_SEGMENT)
        batches = [put(log, times=[1000 + i], value=bytes(50)) for i in range(30)]
        log.roll()
        batches += [put(log, times=[2000 + i], value=bytes(50)) for i in range(30)]
        await backend.checkpoint()

    def change(data: bytearray) -> None:
        match damage:
            case "flip":
                data[len(data) // 2] ^= 64
            case "short":
                del data[-5:]
            case "long":
                data.extend(data[-8:])
            case "zeros":
                data[8:] = bytes(len(data) - 8)

    sound = {}
    for base in (0, 30):
        sound[base] = disk.contents(path(base, suffix))
        assert len(sound[base]) > 40
        disk.damage(path(base, suffix), change)
        if damage == "gone":
            disk.remove(path(base, suffix))

    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        for offset in range(60):
            assert (await log.read_cold(offset, 60, 1)) == batches[offset]
        for i in range(30):
            for base, time in ((0, 1000 + i), (30, 2000 + i)):
                found = await log.find_time(time)
                assert found is not None
                assert (found.offset, found.timestamp) == (base + i, time)
        put(log, times=[3000])
    if damage != "long":  # what is longer than it was proven to be is read as far as it was proven
        assert disk.contents(path(0, suffix)) == sound[0]


async def test_what_was_going_away_is_gone_after_a_start(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    await written(disk)
    for name in ("00000000000000000009.log.deleted", "00000000000000000000.log.cleaned", "x.tmp"):
        disk.open(f"{FOLDER}/{name}", create=True)
    disk.make_dir(f"{ROOT}/topics/zz/0.deleted")
    disk.open(f"{ROOT}/topics/zz/0.deleted/00000000000000000000.log", create=True)

    async with opened(disk) as backend:
        assert list(backend._logs) == [NAME]
        assert not any(name.endswith(("deleted", "cleaned", "tmp")) for name in disk.list(FOLDER))
        assert disk.list(f"{ROOT}/topics/zz") == []


async def test_many_logs_of_many_depths_are_found(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    names = [type(NAME)(name) for name in ("journal", "topics/a/0", "topics/a/1", "topics/b/0", "x/y/z/0")]
    async with opened(disk) as backend:
        for name in names:
            put(backend.open(name, SETTINGS))
        backend.open(type(NAME)("never/written"), SETTINGS)

    backend = EmbeddedBackend(sim_env(disk), ROOT)
    assert await backend.start() == sorted(names)
    assert not disk.exists(f"{ROOT}/never")
    await backend.close()


async def test_a_blob_that_is_damaged_is_not_given_out(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        await backend.blobs.save("id", b"0123456789")
        assert int.from_bytes(disk.contents(f"{ROOT}/blobs/id")[:4], "big") == checksum(b"0123456789")
    disk.power_loss()
    async with opened(disk) as backend:
        assert backend.blobs.load("id") == b"0123456789"
        disk.damage(f"{ROOT}/blobs/id", cut_to(-1))
        with caplog.at_level(logging.WARNING):
            assert backend.blobs.load("id") is None
    assert "data/blobs/id is damaged" in caplog.text
