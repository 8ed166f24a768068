"""What every log backend promises, as tests. One suite, run by `test_memory` and `test_embedded`.

Use it as

    @check_log_backend
    async def test_my_backend_keeps_its_promises(promise: Promise) -> None:
        async with running(MyBackend(...)) as backend:
            await promise(backend)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from random import Random
from typing import TypeAlias

import pytest
import trio

from rafka.errors import ErrorCode, KafkaError
from rafka.records.batch import BatchHeader
from rafka.storage.backend import Log, LogBackend, LogName, LogSettings

from .batches import START, batch_of, everything_cold, headers_in, put

Promise: TypeAlias = Callable[[LogBackend], Awaitable[None]]

NAME = LogName("topics/0123456789abcdef0123456789abcdef/0")
SMALL = LogSettings(segment_bytes=1000, index_interval_bytes=150, file_delete_delay_ms=1000)
NOW_MS = int(START * 1000)

_promises: list[Promise] = []


def promise(check: Promise) -> Promise:
    _promises.append(check)
    return check


@asynccontextmanager
async def running(backend: LogBackend) -> AsyncIterator[LogBackend]:
    """Started, with its flusher at work."""
    await backend.start()
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run)
        yield backend
        nursery.cancel_scope.cancel()
    await backend.close()


def filled(backend: LogBackend, batches: int = 20, settings: LogSettings = SMALL) -> tuple[Log, list[bytes]]:
    """A log of small batches of three records each, in several segments; and the batches."""
    log = backend.open(NAME, settings)
    return log, [
        put(log, times=[1000 + 10 * i, 1001 + 10 * i, 1002 + 10 * i], value=bytes([i]) * (20 + i))
        for i in range(batches)
    ]


# Appending and reading


@promise
async def a_new_log_is_empty(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)

    assert (log.start_offset, log.end_offset, log.flushed_offset, log.size) == (0, 0, 0, 0)
    assert log.read(0, 0, 1000) == b""
    assert log.epochs == []
    assert log.bytes_between(0, 0) == 0
    assert await log.find_time(0) is None
    assert await log.latest_time() is None
    assert list(log.headers(0)) == []
    assert log.expire(NOW_MS, 0, 0, 0) == 0


@promise
async def what_was_appended_is_read_back_to_the_byte(backend: LogBackend) -> None:
    log, batches = filled(backend)

    assert log.end_offset == 60
    assert log.size == sum(map(len, batches))
    assert await everything_cold(log) == b"".join(batches)


@promise
async def the_same_log_is_opened_twice(backend: LogBackend) -> None:
    log, _ = filled(backend)

    assert backend.open(NAME, SMALL) is log


@promise
async def pieces_may_be_reused_after_the_call(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    batch = bytearray(batch_of([1, 2, 3]))
    expected = put(log, bytes(batch))
    buffer = bytearray(expected)
    from rafka.records.batch import placed, read_header

    header = read_header(buffer)
    head = placed(header, 3, 0)
    buffer[:61] = head
    log.append([memoryview(buffer)], header)
    buffer[:] = bytes(len(buffer))

    assert await log.read_cold(3, 6, 1 << 20) == bytes(head) + expected[61:]


@promise
async def reading_begins_with_the_batch_that_holds_the_offset(backend: LogBackend) -> None:
    log, batches = filled(backend, 5, LogSettings(segment_bytes=1 << 20))

    for offset in range(15):
        data = await log.read_cold(offset, 15, 1 << 20)
        assert data == b"".join(batches[offset // 3 :])


@promise
async def reading_ends_below_the_upper_bound_and_never_within_a_batch_of_it(backend: LogBackend) -> None:
    log, batches = filled(backend, 5, LogSettings(segment_bytes=1 << 20))

    for upto in range(16):
        assert await log.read_cold(0, upto, 1 << 20) == b"".join(batches[: upto // 3])
    assert await log.read_cold(7, 7, 1 << 20) == b""
    assert await log.read_cold(15, 15, 1 << 20) == b""


@promise
async def the_last_batch_is_cut_where_the_limit_hits(backend: LogBackend) -> None:
    log, batches = filled(backend, 5, LogSettings(segment_bytes=1 << 20))
    whole = b"".join(batches)

    for limit in range(len(batches[0]), len(whole) + 10):
        assert await log.read_cold(0, 15, limit) == whole[:limit]


@promise
async def a_first_batch_above_the_limit_comes_whole_or_not_at_all(backend: LogBackend) -> None:
    log, batches = filled(backend, 5, LogSettings(segment_bytes=1 << 20))

    for limit in (0, 1, 11, 12, 60, 61, 62, len(batches[1]) - 1):
        assert await log.read_cold(4, 15, limit) == batches[1]
        assert await log.read_cold(4, 15, limit, whole_first=False) == b""
    assert await log.read_cold(4, 15, len(batches[1]), whole_first=False) == batches[1]
    assert await log.read_cold(4, 15, -1) == b""


@promise
async def a_read_stays_within_one_segment(backend: LogBackend) -> None:
    log, batches = filled(backend)
    bases = [*(segment.base_offset for segment in log.closed_segments()), 1 << 60]

    for offset in range(60):
        headers = headers_in(await log.read_cold(offset, 60, 1 << 20))
        assert headers[0].base_offset == offset // 3 * 3
        end = next(base for base in bases[1:] if base > offset)
        assert headers[-1].next_offset == min(end, 60) or offset >= bases[-2]
    assert len(bases) > 3
    assert sum(map(len, batches)) == log.size


@promise
async def readers_that_go_on_where_they_stopped_see_every_batch_once(backend: LogBackend) -> None:
    log, batches = filled(backend, 60)
    rng = Random(1)

    for _ in range(20):
        offset, seen = 0, b""
        while offset < log.end_offset:
            data = await log.read_cold(offset, log.end_offset, rng.randrange(1, 600))
            headers = headers_in(data)
            seen += data[: sum(header.size for header in headers)]
            offset = headers[-1].next_offset
        assert seen == b"".join(batches)


@promise
async def the_bytes_before_a_reader_are_exact_at_the_end_and_never_too_many(backend: LogBackend) -> None:
    log, batches = filled(backend)

    for first in range(21):
        exact = sum(map(len, batches[first:]))
        there = log.bytes_between(first * 3, 60)
        assert there <= exact
        assert (there > 0) == (exact > 0)
    active = log.closed_segments()[-1].next_offset // 3
    for first in range(active, 21):
        assert log.bytes_between(first * 3, 60) == sum(map(len, batches[first:]))
    assert log.bytes_between(60, 60) == 0
    assert log.bytes_between(60, 30) == 0


@promise
async def headers_are_those_of_all_batches_from_an_offset_on(backend: LogBackend) -> None:
    log, batches = filled(backend)
    expected = headers_in(b"".join(batches))

    for since in (0, 1, 3, 29, 59):
        assert list(log.headers(since)) == expected[since // 3 :]
    assert list(log.headers(60)) == []


@promise
async def settings_count_from_the_next_append_on(backend: LogBackend) -> None:
    log = backend.open(NAME, LogSettings(segment_bytes=1 << 20))
    put(log)
    put(log)
    assert not log.closed_segments()

    log.settings = LogSettings(segment_bytes=100)
    put(log)

    assert [segment.next_offset for segment in log.closed_segments()] == [2]


# Rolling


@promise
async def a_segment_is_closed_before_it_would_be_too_large(backend: LogBackend) -> None:
    size = len(batch_of([1000], value=b"value"))
    log = backend.open(NAME, LogSettings(segment_bytes=3 * size))

    for _ in range(10):
        put(log, value=b"value")

    assert [segment.size for segment in log.closed_segments()] == [3 * size] * 3
    assert [segment.base_offset for segment in log.closed_segments()] == [0, 3, 6]


@promise
async def a_segment_is_closed_when_its_first_batch_is_too_old_for_the_next(backend: LogBackend) -> None:
    log = backend.open(NAME, LogSettings(segment_ms=100))

    for time in (1000, 1100, 1101, 900, 1202):
        put(log, times=[time])

    assert [segment.base_offset for segment in log.closed_segments()] == [0, 2]


@promise
async def without_timestamps_the_wall_clock_closes_a_segment(backend: LogBackend) -> None:
    log = backend.open(NAME, LogSettings(segment_ms=5000))

    put(log, times=[-1])
    await trio.sleep(5)
    put(log, times=[-1])
    await trio.sleep(1)
    put(log, times=[-1])

    assert [segment.next_offset for segment in log.closed_segments()] == [2]


@promise
async def rolling_an_empty_segment_does_nothing(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    log.roll()
    put(log)
    log.roll()
    log.roll()

    assert [(segment.base_offset, segment.next_offset) for segment in log.closed_segments()] == [(0, 1)]
    put(log)
    assert log.end_offset == 2


@promise
async def a_segment_tells_its_bytes_and_its_greatest_time(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    first, second = put(log, times=[5, 9, 2]), put(log, times=[7])
    log.roll()
    put(log, times=[-1])
    await trio.sleep(3)
    put(log, times=[-1])
    log.roll()

    timed, untimed = log.closed_segments()
    assert timed.largest_timestamp == 9
    assert untimed.largest_timestamp == NOW_MS + 3000
    assert timed.read(0, 1 << 20) == first + second
    assert timed.read(len(first), 10) == second[:10]
    assert timed.read(3, 5) == first[3:8]
    assert timed.read(timed.size, 5) == b""


# Epochs


@promise
async def epochs_are_noted_as_they_come(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)

    for epoch in (0, 0, 2, 2, 5):
        put(log, epoch=epoch)

    assert log.epochs == [(0, 0), (2, 2), (5, 4)]
    assert [log.epoch_of(offset) for offset in range(-1, 6)] == [-1, 0, 0, 2, 2, 5, 5]


@promise
async def epochs_below_the_start_are_forgotten(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    for epoch in (0, 0, 2, 2, 5):
        put(log, epoch=epoch)

    log.advance_start(3)

    assert log.epochs == [(2, 3), (5, 4)]
    assert log.epoch_of(2) == -1


# Times


@promise
async def a_time_finds_the_first_record_at_or_after_it(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    times = [100, 300, 200, 250, 400, 50, 400, 350, 500]
    for time in times:
        put(log, times=[time])

    for target in range(0, 510, 10):
        expected = next((i for i, time in enumerate(times) if time >= target), None)
        found = await log.find_time(target)
        assert (found.offset if found else None) == expected
        assert found is None or (found.timestamp, found.epoch) == (times[found.offset], 0)


@promise
async def times_are_found_in_every_batch_of_every_codec(backend: LogBackend) -> None:
    rng = Random(7)
    log = backend.open(NAME, SMALL)
    times: list[int] = []
    for i in range(80):
        batch = [rng.randrange(1000) + 10 * i for _ in range(rng.randint(1, 5))]
        put(log, times=batch, codec=rng.choice([0, 1]), epoch=i // 30)
        times += batch

    for target in range(0, 2000, 37):
        expected = next((i for i, time in enumerate(times) if time >= target), None)
        found = await log.find_time(target)
        assert (found.offset if found else None) == expected
        assert found is None or found.epoch == log.epoch_of(found.offset)


@promise
async def records_below_the_start_are_not_found_by_time(backend: LogBackend) -> None:
    log = backend.open(NAME, LogSettings())
    put(log, times=[500, 100, 400])
    put(log, times=[300, 200])

    log.advance_start(1)

    assert (await _time(log, 0)) == (1, 100)
    assert (await _time(log, 300)) == (2, 400)
    assert (await _time(log, 450)) is None
    assert (await _latest(log)) == (2, 400)
    log.advance_start(4)
    assert (await _time(log, 0)) == (4, 200)
    assert (await _latest(log)) == (4, 200)


@promise
async def the_greatest_time_is_that_of_its_first_record(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    for times in ([100], [300, 700, 700], [700], [200]):
        put(log, times=times, value=bytes(300))

    assert await _latest(log) == (2, 700)


@promise
async def records_without_a_time_have_no_greatest(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    put(log, times=[-1, -1])

    assert await log.latest_time() is None
    assert await log.find_time(0) is None


async def _time(log: Log, timestamp: int) -> tuple[int, int] | None:
    found = await log.find_time(timestamp)
    return (found.offset, found.timestamp) if found else None


async def _latest(log: Log) -> tuple[int, int] | None:
    found = await log.latest_time()
    return (found.offset, found.timestamp) if found else None


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


check_log_backend: pytest.MarkDecorator = pytest.mark.parametrize(
    "promise", _promises, ids=lambda check: check.__name__
)
__all__ = ["BatchHeader", "Promise", "check_log_backend", "running"]
