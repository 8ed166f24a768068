"""What every backend promises to those who append and read, by offset and by time."""

from __future__ import annotations

from random import Random

import trio

from rafka.records.batch import placed, read_header
from rafka.storage.backend import Log, LogBackend, LogSettings

from .batches import batch_of, everything_cold, headers_in, put
from .promises import NAME, NOW_MS, SMALL, filled, promise

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
