"""Aborted transactions in files: when they are written, when they are believed, and when they go."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock

from rafka.env import Env
from rafka.env.sim_disk import SimDisk
from rafka.storage.aborted import ENTRY, AbortedRange
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig
from rafka.storage.embedded.flusher import sync
from rafka.storage.embedded.log import EmbeddedLog

from .batches import START, headers_in, inline, put, sim_disk
from .folders import FOLDER, ONE_SEGMENT, opened, path, the_log
from .promises_of_transactions import aborted, marker

T = TypeVar("T")
TXN = ".txnindex"


def known(log: EmbeddedLog) -> list[AbortedRange]:
    return log.aborted.ended_in(0, 1 << 60)


def entries(disk: SimDisk, base_offset: int = 0) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(">hqqqq", disk.contents(path(base_offset, TXN))))


async def written(disk: SimDisk) -> list[AbortedRange]:
    """A log of two segments with two aborted transactions each, and a state of its end."""
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        log.state_source = lambda: b"state"
        ranges = [aborted(log), aborted(log)]
        log.roll()
        ranges += [aborted(log), aborted(log)]
    return ranges


async def test_a_log_without_aborted_transactions_has_no_file_for_them(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        put(the_log(backend))

    assert not disk.exists(path(0, TXN))


async def test_each_segment_has_a_file_of_those_whose_markers_it_holds(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    await written(disk)

    assert entries(disk) == [(0, 7, 0, 1, 2), (0, 7, 2, 3, 4)]
    assert entries(disk, 4) == [(0, 7, 4, 5, 6), (0, 7, 6, 7, 8)]


async def test_only_what_is_new_is_written(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        aborted(log)
        await backend.checkpoint()
        disk.damage(path(0, TXN), lambda data: data.__setitem__(slice(2, 10), bytes(8)))
        aborted(log)

    assert [entry[1] for entry in entries(disk)] == [0, 7]


async def test_a_start_reads_them_again(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    ranges = await written(disk)

    async with opened(disk) as backend:
        log = the_log(backend)
        assert known(log) == ranges
        assert log.saved_state == (8, b"state")


@pytest.mark.parametrize("harm", ["changed", "shorter", "gone"])
async def test_a_damaged_file_means_that_nothing_is_known_and_no_state_will_do(
    harm: str, autojump_clock: MockClock
) -> None:
    """So whoever opens the log goes through all of it."""
    disk = sim_disk()
    await written(disk)
    if harm == "gone":
        disk.remove(path(4, TXN))
    elif harm == "shorter":
        disk.damage(path(4, TXN), lambda data: data.__delitem__(slice(ENTRY.size, None)))
    else:
        disk.damage(path(4, TXN), lambda data: data.__setitem__(40, 99))

    for _ in range(2):  # the second start knows no better
        async with opened(disk, clean=False) as backend:
            log = the_log(backend)
            assert known(log) == []
            assert log.saved_state is None


async def test_what_is_noted_again_is_written_again(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    ranges = await written(disk)
    disk.damage(path(4, TXN), lambda data: data.clear())
    async with opened(disk) as backend:
        log = the_log(backend)
        for one in ranges:
            log.note_aborted(one)

    async with opened(disk) as backend:
        assert known(the_log(backend)) == ranges
    assert len(entries(disk)) == len(entries(disk, 4)) == 2


async def test_a_marker_that_may_yet_be_lost_is_in_no_file(autojump_clock: MockClock) -> None:
    """It is written while the checkpoint flushes: power goes, and other batches may take its offsets."""
    disk = sim_disk()
    late = list[AbortedRange]()

    async def thread(fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
        result = await inline(fn, *args, limiter=limiter)
        if getattr(fn, "func", fn) is sync and log is not None and not late:
            late.append(aborted(log))
        return result

    log = None
    env = Env(lambda: START, Random(0), disk, thread)
    async with opened(disk, EmbeddedConfig(durable=False), env=env, clean=False) as backend:
        log = the_log(backend, ONE_SEGMENT)
        first = aborted(log)
        await backend.checkpoint()
        assert known(log) == [first, *late]
        assert len(late) == len(entries(disk)) == 1
    disk.power_loss()

    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        assert known(log) == [first]
        again = aborted(log)
        assert known(log) == [first, again]


async def test_it_goes_with_its_segment(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    ranges = await written(disk)
    async with opened(disk) as backend:
        log = the_log(backend)
        log.advance_start(4)
        assert log.expire(0, -1, -1, log.end_offset) == 1
        await backend.checkpoint()
        assert not disk.exists(path(0, TXN))
        assert known(log) == ranges[2:]

    async with opened(disk) as backend:
        assert known(the_log(backend)) == ranges[2:]


async def replaced(backend: EmbeddedBackend, left: list[AbortedRange]) -> None:
    """Both closed segments made one, with the first batch alone."""
    log = the_log(backend)
    log.roll()
    old = log.closed_segments()
    new = log.replacement(old)
    data = old[0].read(0, old[0].size)
    new.write(data[: headers_in(data)[0].size])
    new.aborted = left
    assert await log.replace_segments(old, new)


async def test_a_compacted_segment_has_a_file_of_what_is_left(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    ranges = await written(disk)
    async with opened(disk, clean=False) as backend:
        await replaced(backend, [ranges[0]])
        assert entries(disk) == [(0, 7, 0, 1, 2)]
        assert not disk.exists(path(4, TXN))

    async with opened(disk) as backend:
        assert known(the_log(backend)) == [ranges[0]]
        assert the_log(backend).saved_state == (8, b"state")


async def test_a_compacted_segment_without_any_has_no_file(autojump_clock: MockClock) -> None:
    disk = sim_disk()
    await written(disk)
    async with opened(disk) as backend:
        await replaced(backend, [])
    assert not disk.exists(path(0, TXN))

    async with opened(disk) as backend:
        assert known(the_log(backend)) == []
        assert the_log(backend).saved_state == (8, b"state")


async def test_without_room_the_next_checkpoint_writes_all_of_them(autojump_clock: MockClock) -> None:
    disk = sim_disk(capacity=20_000)
    async with opened(disk, EmbeddedConfig(reserve_bytes=0), clean=False) as backend:
        log = the_log(backend, ONE_SEGMENT)
        ranges = [aborted(log)]
        await backend.checkpoint()
        ranges.append(aborted(log))
        disk.capacity = 20_000 - disk.free()
        await backend.checkpoint()
        disk.capacity = 20_000
        ranges.append(aborted(log))
        await backend.checkpoint()
        assert len(entries(disk)) == 3

    async with opened(disk) as backend:
        assert known(the_log(backend)) == ranges


async def test_a_state_is_never_newer_than_the_checkpoint(autojump_clock: MockClock) -> None:
    """Wherever power goes in a checkpoint: a state that is found has all aborted transactions before it."""
    for changes in range(1, 25):
        disk = sim_disk(changes)
        try:
            async with opened(disk, clean=False) as backend:
                log = the_log(backend, ONE_SEGMENT)
                log.state_source = lambda: b"state"
                first = aborted(log)
                await backend.checkpoint()
                aborted(log)
                marker(log, committed=True)
                disk.cut_power_after(changes)
                await backend.checkpoint()
        except BaseException:  # the power went, in whichever task
            pass
        disk.kill()
        async with opened(disk) as backend:
            log = the_log(backend)
            state = log.saved_state
            assert state is not None
            assert state[0] in (2, 5)
            assert len(known(log)) >= (2 if state[0] == 5 else 1)
            assert known(log)[0] == first


async def test_a_state_from_before_what_is_left_of_the_log_is_of_no_use(autojump_clock: MockClock) -> None:
    """Markers that came after it may be gone: what they ended would stay open."""
    disk = sim_disk()
    async with opened(disk) as backend:
        log = the_log(backend, ONE_SEGMENT)
        log.state_source = lambda: b"state"
        aborted(log)
        await backend.checkpoint()
        marker(log)
        log.roll()
        put(log)
        log.advance_start(log.end_offset)
        log.expire(0, -1, -1, log.end_offset)
    states = [name for name in disk.list(FOLDER) if name.endswith(".snapshot")]
    assert len(states) == 2
    disk.remove(f"{FOLDER}/{states[-1]}")

    async with opened(disk) as backend:
        assert the_log(backend).saved_state is None
