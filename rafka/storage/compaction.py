"""Compaction: a log that keeps the newest record of each key (cleanup.policy=compact).

A log has a clean part, which a pass has been over, and a dirty part behind it; the
border is `log.compacted_to`. A pass reads the keys of the dirty part and rewrites all
closed segments up to its end without the records that newer ones have replaced.
Neighbours that became small are put together. Offsets never change.

What may be compacted ends before the active segment, before `upto` (the last stable
offset) and before records younger than `min_lag_ms`. It is worth a pass when the
dirty part is large enough (`min_dirty_ratio`) or has waited too long (`max_lag_ms`).

The keys of a pass are held in memory, at most `max_map_entries` of them (about 200
bytes each): if the dirty part has more, a first piece of it is compacted, and the
result says that there is more to do.

Reading and rewriting run in threads, a slice at a time, so that the event loop lives. A log is
compacted by one task at a time; retention and appending may go on meanwhile. What
dies in the middle leaves the log as it was, or with some segments compacted: both
are right, and the next pass begins at the same border.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from ..env import Env
from ..errors import ErrorCode, KafkaError
from ..records.batch import OVERHEAD, read_header, walk
from ..types import message
from .aborted import AbortedRange
from .backend import FOREVER, Log, Replacement, Segment
from .cleaning import Cleaner, KeyMap, LastWrite
from .policy import MAX_RELATIVE_OFFSET, OFFSET_ENTRY

__all__ = ["AbortedRange", "CompactionPolicy", "CompactionResult", "LastWrite", "compact", "dirty_ratio"]

_SLICE: Final = 256 << 10  # bytes of batches that a thread works on in one go: some 5 ms
_NO_PRODUCERS: Final[Mapping[int, LastWrite]] = {}


@message
class CompactionPolicy:
    """Kafka's topic configs that concern compaction, and a bound on memory."""

    min_dirty_ratio: float = 0.5  # min.cleanable.dirty.ratio
    min_lag_ms: int = 0  # min.compaction.lag.ms
    max_lag_ms: int = FOREVER  # max.compaction.lag.ms
    delete_retention_ms: int = 86_400_000
    max_map_entries: int = 500_000


@message
class CompactionResult:
    """What a pass did. Where it did nothing, the counts are 0."""

    ran: bool = False
    more: bool = False  # the map was full, or retention came in between: another pass is worth it at once
    dirty_ratio: float = 0.0  # before the pass
    compacted_to: int = 0
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    records_before: int = 0
    records_after: int = 0


async def compact(
    log: Log,
    policy: CompactionPolicy,
    now_ms: int,
    upto: int,
    env: Env,
    *,
    aborted: Sequence[AbortedRange] = (),
    producers: Mapping[int, LastWrite] = _NO_PRODUCERS,
) -> CompactionResult:
    """Make one pass over `log`, if it is worth it.

    `aborted` are the aborted transactions that end below `upto`; `producers`, by id, the
    active ones. KafkaError where a batch is damaged or the disk fails: what had been
    replaced until then stays so.
    """
    if policy.max_lag_ms < FOREVER:
        await _roll_if_overdue(log, policy, now_ms)
    segments = _compactable(log, policy, now_ms, upto)
    since = _first_dirty(log)
    dirty = [segment for segment in segments if segment.next_offset > since]
    ratio = _ratio(segments, since)
    idle = CompactionResult(dirty_ratio=ratio, compacted_to=log.compacted_to)
    if not dirty or not (
        ratio > policy.min_dirty_ratio or await _waited_too_long(dirty, policy, now_ms, env)
    ):
        return idle

    keys = KeyMap(aborted, policy.max_map_entries)
    for segment in dirty:
        await _in_slices(segment, lambda batches: keys.add(batches, since), env)
        if keys.full:
            break
    if keys.upto < 0:  # segments without a batch: nothing to know of them
        log.compacted_to = dirty[-1].next_offset
        return idle
    cleaner = Cleaner(keys, aborted, producers, now_ms, policy.delete_retention_ms)
    old = [segment for segment in segments if segment.base_offset < keys.upto]
    sizes: list[int] = []
    for group in _groups(old, log):
        new = log.replacement(group)
        for segment in group:
            await _in_slices(segment, partial(_clean_into, new, cleaner), env)
        since, end = group[0].base_offset, group[-1].next_offset
        ended = (range_ for range_ in aborted if since <= range_.last_offset < end)
        new.aborted = [range_ for range_ in ended if cleaner.still_aborted(range_)]
        if not await log.replace_segments(group, new):
            return _result(idle, old, sizes, cleaner, log.compacted_to, more=True)
        sizes.append(new.size)
    # Segments without a batch may follow the last one that was read.
    log.compacted_to = keys.upto if keys.full else max(keys.upto, dirty[-1].next_offset)
    return _result(idle, old, sizes, cleaner, log.compacted_to, more=keys.full)


def dirty_ratio(log: Log, policy: CompactionPolicy, now_ms: int, upto: int) -> float:
    """Which part of what may be compacted is dirty: to choose, among many logs, the dirtiest."""
    return _ratio(_compactable(log, policy, now_ms, upto), _first_dirty(log))


# --- what, and whether ---------------------------------------------------------------


def _compactable(log: Log, policy: CompactionPolicy, now_ms: int, upto: int) -> list[Segment]:
    """The closed segments before the first that must not be touched yet."""
    since = _first_dirty(log)
    found: list[Segment] = []
    for segment in log.closed_segments():
        young = policy.min_lag_ms > 0 and segment.largest_timestamp > now_ms - policy.min_lag_ms
        if segment.next_offset > upto or (young and segment.next_offset > since):
            break
        found.append(segment)
    return found


def _first_dirty(log: Log) -> int:
    """Where the clean part ends: as saved, unless the log has been cut to something else since."""
    if log.start_offset <= log.compacted_to <= log.end_offset:
        return log.compacted_to
    return log.start_offset


def _ratio(segments: Iterable[Segment], since: int) -> float:
    clean = dirty = 0
    for segment in segments:
        if segment.next_offset > since:
            dirty += segment.size
        else:
            clean += segment.size
    return dirty / (clean + dirty) if dirty else 0.0


async def _waited_too_long(dirty: Sequence[Segment], policy: CompactionPolicy, now_ms: int, env: Env) -> bool:
    if policy.max_lag_ms >= FOREVER:
        return False
    times = [time for time in await env.spawn_thread(_first_times, dirty) if time > 0]
    return bool(times) and min(times) < now_ms - policy.max_lag_ms


def _first_times(segments: Sequence[Segment]) -> list[int]:
    """When each of them began, as Kafka takes it: the greatest time in the first batch."""
    return [read_header(segment.read(0, OVERHEAD)).max_timestamp for segment in segments if segment.size]


async def _roll_if_overdue(log: Log, policy: CompactionPolicy, now_ms: int) -> None:
    """Close the active segment if its first record has waited too long: only closed ones are compacted."""
    closed = log.closed_segments()
    base = closed[-1].next_offset if closed else log.start_offset
    first = await log.read_cold(base, log.end_offset, 0)
    if first and 0 < read_header(first).max_timestamp < now_ms - policy.max_lag_ms:
        log.roll()


def _groups(segments: Sequence[Segment], log: Log) -> list[list[Segment]]:
    """Neighbours that fit into one segment, even if nothing of them can go."""
    settings = log.settings
    room = min(
        settings.segment_bytes, settings.index_max_bytes // OFFSET_ENTRY * settings.index_interval_bytes
    )
    groups: list[list[Segment]] = []
    size = 0
    for segment in segments:
        if (
            not groups
            or size + segment.size > room
            or segment.next_offset - groups[-1][0].base_offset > MAX_RELATIVE_OFFSET
        ):
            groups.append([])
            size = 0
        groups[-1].append(segment)
        size += segment.size
    return groups


# --- work ----------------------------------------------------------------------------


async def _in_slices(segment: Segment, work: Callable[[bytes], None], env: Env) -> None:
    """Let `work` see all batches of the segment, some at a time, in threads."""

    def step(at: int) -> int:
        batches = _read_whole_batches(segment, at)
        work(batches)
        return at + len(batches)

    at = 0
    while at < segment.size:
        at = await env.spawn_thread(step, at)


def _read_whole_batches(segment: Segment, at: int) -> bytes:
    """At least one batch, whatever its size."""
    data = segment.read(at, _SLICE)
    end = _end_of_whole(data)
    if not end and len(data) >= OVERHEAD:
        data = segment.read(at, max(0, read_header(data).size))
        end = _end_of_whole(data)
    if not end:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"no batch at position {at} of the segment of offset {segment.base_offset}",
        )
    return data[:end]


def _end_of_whole(data: bytes) -> int:
    end = 0
    for at, header in walk(data):
        end = at + header.size
    return end


def _clean_into(new: Replacement, cleaner: Cleaner, batches: bytes) -> None:
    for left in cleaner.clean(batches):
        new.write(left)


def _result(
    idle: CompactionResult,
    old: Sequence[Segment],
    sizes: Sequence[int],
    cleaner: Cleaner,
    compacted_to: int,
    *,
    more: bool,
) -> CompactionResult:
    return CompactionResult(
        ran=True,
        more=more,
        dirty_ratio=idle.dirty_ratio,
        compacted_to=compacted_to,
        segments_before=len(old),
        segments_after=len(sizes),
        bytes_before=sum(segment.size for segment in old),
        bytes_after=sum(sizes),
        records_before=cleaner.records_read,
        records_after=cleaner.records_kept,
    )
