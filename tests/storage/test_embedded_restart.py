"""What outlives a restart beside the batches: epochs, offsets, states, indexes, blobs."""

from __future__ import annotations

import logging

import pytest
from trio.testing import MockClock

from rafka.records.checksum import checksum
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig

from .batches import put, sim_disk, sim_env
from .folders import FOLDER, NAME, ONE_SEGMENT, ROOT, SETTINGS, cut_to, opened, path, the_log, written


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
