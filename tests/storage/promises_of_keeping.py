"""What every backend promises about what stays and what goes: retention, compaction, flushes, deletion."""

from __future__ import annotations

from itertools import count

import pytest
import trio

from rafka.errors import ErrorCode, KafkaError
from rafka.storage.backend import LogBackend, LogName

from .batches import everything_cold, put
from .promises import NAME, NOW_MS, SMALL, filled, promise

# Retention


@promise
async def old_segments_go_and_the_start_moves_to_the_next(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    for time in (1000, 2000, 3000):
        put(log, times=[time])
        log.roll()
    kept = put(log, times=[4000])

    removed = log.expire(10_000, 7500, -1, log.end_offset)

    assert removed == 2
    assert log.start_offset == 2
    assert log.epochs == [(0, 2)]
    assert await log.read_cold(0, 4, 1 << 20) == await log.read_cold(2, 4, 1 << 20)
    assert (await everything_cold(log)).endswith(kept)
    assert log.size == 2 * len(kept)


@promise
async def retention_stops_at_the_first_segment_that_is_young_enough(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    for time in (1000, 9000, 1000):
        put(log, times=[time])
        log.roll()

    assert log.expire(10_000, 5000, -1, log.end_offset) == 1
    assert log.start_offset == 1


@promise
async def the_active_segment_goes_as_well_and_offsets_go_on(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    put(log, times=[1000])
    put(log, times=[1000])

    assert log.expire(10_000, 1000, -1, log.end_offset) == 1

    assert (log.start_offset, log.end_offset, log.size) == (2, 2, 0)
    assert log.expire(10_000, 1000, -1, log.end_offset) == 0
    assert await log.read_cold(2, 2, 100) == b""
    put(log, times=[1000])
    assert (log.start_offset, log.end_offset) == (2, 3)


@promise
async def nothing_at_or_above_the_high_watermark_goes(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    for _ in range(3):
        put(log, times=[1000])
        log.roll()

    assert log.expire(10_000, 0, 0, 1) == 1
    assert log.start_offset == 1


@promise
async def at_least_the_configured_bytes_remain(backend: LogBackend) -> None:
    for keep in range(9):
        log = backend.open(LogName(f"sizes/{keep}"), SMALL)
        for _ in range(8):
            size = len(put(log))
            log.roll()

        log.expire(10_000, -1, keep * size + size // 2, log.end_offset)

        assert log.size == min(keep + 1, 8) * size


@promise
async def without_limits_nothing_goes(backend: LogBackend) -> None:
    log, batches = filled(backend)

    assert log.expire(1 << 50, -1, -1, log.end_offset) == 0
    assert await everything_cold(log) == b"".join(batches)


@promise
async def segments_below_the_start_offset_go_at_the_next_pass(backend: LogBackend) -> None:
    log, batches = filled(backend)
    second = log.closed_segments()[1]

    log.advance_start(second.base_offset + 1)
    log.advance_start(1)

    assert log.start_offset == second.base_offset + 1
    assert log.expire(NOW_MS, -1, -1, log.end_offset) == 1
    assert log.start_offset == second.base_offset + 1
    first = second.base_offset // 3
    assert await everything_cold(log) == b"".join(batches[first:])  # the batch it lies in is given whole


@promise
async def removed_files_can_be_tidied_away_at_any_time(backend: LogBackend) -> None:
    log, _ = filled(backend)
    log.expire(NOW_MS, -1, 1500, log.end_offset)

    await backend.remove_deleted(NOW_MS)
    assert await backend.remove_deleted(NOW_MS + 1001) >= 0
    assert await backend.remove_deleted(NOW_MS + 1001) == 0
    assert (await log.read_cold(log.start_offset, 60, 1 << 20)) != b""


# What compaction needs


@promise
async def segments_are_replaced_by_what_is_left_of_them(backend: LogBackend) -> None:
    log, batches = filled(backend)
    old = log.closed_segments()[:2]
    kept = [1, 4]
    assert old[-1].next_offset > 15

    new = log.replacement(old)
    for index in kept:
        new.write(batches[index])
    assert await log.replace_segments(old, new)

    first_after = old[-1].next_offset // 3
    left = [batches[index] for index in kept] + batches[first_after:]
    assert await everything_cold(log) == b"".join(left)
    assert log.size == sum(map(len, left))
    assert (await log.read_cold(0, 60, 1))[:8] == batches[1][:8]
    assert (await log.read_cold(7, 60, 1))[:8] == batches[4][:8]
    assert (await log.read_cold(16, 60, 1))[:8] == batches[first_after][:8]
    replaced = log.closed_segments()[0]
    assert (replaced.base_offset, replaced.next_offset) == (0, old[-1].next_offset)
    found = await log.find_time(1000)
    assert found is not None
    assert found.offset == 3
    assert log.start_offset == 0
    assert [header.base_offset for header in log.headers(0)][:3] == [3, 12, first_after * 3]


@promise
async def segments_may_be_replaced_by_nothing(backend: LogBackend) -> None:
    log, batches = filled(backend)
    old = log.closed_segments()[:2]

    assert await log.replace_segments(old, log.replacement(old))

    first_after = old[-1].next_offset // 3
    assert await everything_cold(log) == b"".join(batches[first_after:])
    assert log.bytes_between(0, old[-1].next_offset) <= 1


@promise
async def a_replacement_of_what_has_left_the_log_is_not_taken(backend: LogBackend) -> None:
    log, batches = filled(backend)
    old = log.closed_segments()[:2]
    new = log.replacement(old)
    new.write(batches[1])
    log.advance_start(old[0].next_offset)
    log.expire(NOW_MS, -1, -1, log.end_offset)

    assert not await log.replace_segments(old, new)

    assert await everything_cold(log) == b"".join(batches[old[0].next_offset // 3 :])


@promise
async def how_far_compaction_has_come_is_kept(backend: LogBackend) -> None:
    log, _ = filled(backend)
    assert log.compacted_to == 0

    log.compacted_to = 30

    assert log.compacted_to == 30


# Flushing, deleting, blobs


@promise
async def whoever_waits_for_the_flush_of_an_append_is_answered(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    put(log)
    with trio.fail_after(60):
        await log.wait_flushed(1)
    assert log.flushed_offset == 1

    put(log)
    put(log)
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(log.wait_flushed, 2)
            nursery.start_soon(log.wait_flushed, 3)
    assert log.flushed_offset == 3


@promise
async def many_logs_are_flushed_side_by_side(backend: LogBackend) -> None:
    logs = [backend.open(LogName(f"many/{i}"), SMALL) for i in range(20)]
    for round_ in range(5):
        for log in logs:
            put(log)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for log in logs:
                    nursery.start_soon(log.wait_flushed, round_ + 1)

    assert all(log.flushed_offset == 5 for log in logs)


@promise
async def a_deleted_log_is_gone_and_its_name_begins_anew(backend: LogBackend) -> None:
    log, _ = filled(backend)
    await backend.checkpoint()

    await backend.delete(NAME)
    await backend.delete(NAME)

    with pytest.raises(KafkaError) as refusal:
        put(log)
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        log.read(0, 60, 100)
    with pytest.raises(KafkaError):
        await log.read_cold(0, 60, 100)
    again = backend.open(NAME, SMALL)
    assert again is not log
    assert again.end_offset == 0
    batch = put(again)
    assert await everything_cold(again) == batch


@promise
async def whoever_waits_for_a_log_that_is_deleted_is_told(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    put(log)
    outcome: list[str] = []

    async def wait() -> None:
        try:
            await log.wait_flushed(log.end_offset)
            outcome.append("flushed")
        except KafkaError as error:
            outcome.append(error.code.name)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await backend.delete(NAME)
    assert outcome in (["flushed"], ["KAFKA_STORAGE_ERROR"])


@promise
async def blobs_are_kept_by_name(backend: LogBackend) -> None:
    blobs = backend.blobs
    assert blobs.names() == []
    assert blobs.load("one") is None

    await blobs.save("two", b"2")
    await blobs.save("one", b"1" * 1000)
    await blobs.save("two", b"")
    await blobs.save("three", b"3")
    await blobs.remove("three")
    await blobs.remove("three")

    assert blobs.names() == ["one", "two"]
    assert blobs.load("one") == b"1" * 1000
    assert blobs.load("two") == b""


@promise
async def checkpoints_disturb_nobody(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    log.state_source = lambda: b"state"
    numbers = count()
    written: list[bytes] = []

    async def writing() -> None:
        for number in range(50):
            written.append(put(log, value=b"%d" % next(numbers)))
            if number % 3 == 0:
                await trio.lowlevel.checkpoint()

    async def checkpoints() -> None:
        for _ in range(10):
            await backend.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(writing)
        nursery.start_soon(checkpoints)
        nursery.start_soon(checkpoints)

    assert await everything_cold(log) == b"".join(written)
