"""What every backend promises about the aborted transactions of a log."""

from __future__ import annotations

from rafka.records.control import build_marker, read_marker
from rafka.storage.aborted import AbortedRange
from rafka.storage.backend import Log, LogBackend

from .batches import headers_in, put
from .promises import NAME, SMALL, promise


def marker(log: Log, *, committed: bool = False) -> int:
    """Append the marker of a transaction; its offset."""
    offset = log.end_offset
    batch = build_marker(
        producer_id=7, producer_epoch=0, committed=committed, coordinator_epoch=3, timestamp=1000
    )
    put(log, batch)
    return offset


def aborted(log: Log, records: int = 1) -> AbortedRange:
    """Append a transaction that is aborted, and have it noted."""
    first = log.end_offset
    put(log, times=[1000] * records)
    last = marker(log)
    range_ = AbortedRange(producer_id=7, first_offset=first, last_offset=last, last_stable_offset=last + 1)
    log.note_aborted(range_)
    return range_


@promise
async def what_was_aborted_is_found_where_it_overlaps(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    first = aborted(log)
    put(log)
    second = aborted(log, 3)

    assert log.aborted.collect(0, log.end_offset) == [first, second]
    assert log.aborted.collect(2, 3) == []
    log.note_aborted(first)
    assert len(log.aborted) == 2


@promise
async def what_was_aborted_goes_with_the_segment_of_its_marker(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    put(log)
    aborted(log)
    log.roll()
    first = log.end_offset
    put(log, times=[1000])
    log.roll()
    last = marker(log)
    spanning = AbortedRange(producer_id=7, first_offset=first, last_offset=last, last_stable_offset=last + 1)
    log.note_aborted(spanning)
    log.advance_start(first + 1)

    assert log.expire(10_000, -1, -1, log.end_offset) == 2

    assert log.aborted.collect(0, log.end_offset) == [spanning]


@promise
async def a_replacement_says_what_is_left_of_what_was_aborted(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    ranges = []
    for _ in range(3):
        ranges += [aborted(log), aborted(log)]
        log.roll()
    put(log)
    await log.wait_flushed(log.end_offset)
    old = log.closed_segments()[:2]
    new = log.replacement(old)
    kept = old[0].read(0, old[0].size)
    new.write(kept[: headers_in(kept)[0].size])
    new.aborted = [ranges[2]]

    assert await log.replace_segments(old, new)

    assert log.aborted.collect(0, log.end_offset) == [ranges[2], *ranges[4:]]


@promise
async def the_history_has_the_control_batches(backend: LogBackend) -> None:
    log = backend.open(NAME, SMALL)
    for committed in (True, False):
        for _ in range(10):
            put(log, value=bytes(50))
        marker(log, committed=committed)
    await log.wait_flushed(log.end_offset)

    for since in (0, 10, 11, 21):
        told = list(log.history(since))
        assert [header for header, _ in told] == list(log.headers(since))
        markers = {header.base_offset: read_marker(batch) for header, batch in told if batch}
        assert [m and (m.committed, m.coordinator_epoch) for m in markers.values()] == [
            (offset == 10, 3) for offset in (10, 21) if offset >= since
        ]
        assert all(header.control == bool(batch) for header, batch in told)
