"""Compaction keeps the newest record of each key, and everything else that Kafka keeps.

A log is written batch by batch, `compact` makes its pass, and what a reader then finds is
compared with what the rules say. All tests run on a log in memory and on files.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from rafka.env import Env
from rafka.env.sim_disk import SimDisk
from rafka.errors import ErrorCode, KafkaError
from rafka.records.batch import BatchHeader, read_header, walk
from rafka.records.build import build
from rafka.records.control import build_marker
from rafka.records.record import Record, iterate
from rafka.storage.backend import FOREVER, Log, LogBackend, LogName, LogSettings
from rafka.storage.compaction import (
    AbortedRange,
    CompactionPolicy,
    CompactionResult,
    LastWrite,
    compact,
    dirty_ratio,
)
from rafka.storage.embedded import EmbeddedBackend
from rafka.storage.memory import MemoryBackend

T = TypeVar("T")
Pair: TypeAlias = tuple[str | None, str | None]

NOW = 1_700_000_000_000
DAY = 86_400_000


async def in_place(fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
    """A thread that is none; the loop gets its turn."""
    await trio.lowlevel.checkpoint()
    return fn(*args)


@attrs.define
class Bench:
    """A log, and a hand that writes to it."""

    log: Log
    env: Env
    now_ms: int = NOW

    def write(self, *pairs: Pair, **fields: Any) -> int:
        """Append one batch of these keys and values; its base offset."""
        records = [Record(0, self.now_ms, raw(key), raw(value)) for key, value in pairs]
        return self.put(build(records, base_offset=self.log.end_offset, leader_epoch=0, **fields))

    def mark(self, producer_id: int, *, committed: bool, epoch: int = 0) -> int:
        """Append the marker that ends a transaction."""
        return self.put(
            build_marker(
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=committed,
                coordinator_epoch=0,
                timestamp=self.now_ms,
                base_offset=self.log.end_offset,
                leader_epoch=0,
            )
        )

    def put(self, batch: bytes) -> int:
        header = read_header(batch)
        self.log.append([batch], header)
        return header.base_offset

    async def compact(
        self,
        policy: CompactionPolicy | None = None,
        *,
        upto: int | None = None,
        roll: bool = True,
        **known: Any,
    ) -> CompactionResult:
        if roll:
            self.log.roll()
        upto = self.log.end_offset if upto is None else upto
        return await compact(self.log, policy or eager(), self.now_ms, upto, self.env, **known)

    async def batches(self) -> list[bytes]:
        """As a reader gets them."""
        found, at = [], self.log.start_offset
        while data := await self.log.read_cold(at, self.log.end_offset, 1 << 20):
            for position, header in walk(data):
                found.append(data[position : position + header.size])
                at = header.next_offset
        return found

    async def records(self) -> list[tuple[int, str | None, str | None]]:
        return [
            (record.offset, text(record.key), text(record.value))
            for batch in await self.batches()
            if not read_header(batch).control
            for record in iterate(batch)
        ]

    async def headers(self) -> list[BatchHeader]:
        return [read_header(batch) for batch in await self.batches()]


def raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()


def eager(*, min_lag_ms: int = 0, max_map_entries: int = 1000) -> CompactionPolicy:
    """Compacts whatever is dirty."""
    return CompactionPolicy(min_dirty_ratio=-1.0, min_lag_ms=min_lag_ms, max_map_entries=max_map_entries)


async def make_bench(nursery: trio.Nursery, kind: str, segment_bytes: int = 1 << 30) -> Bench:
    dice = random.Random(1)
    env = Env(lambda: NOW / 1000, dice, SimDisk(dice), in_place)
    backend: LogBackend = MemoryBackend(env) if kind == "memory" else EmbeddedBackend(env, "/data")
    await backend.start()
    await nursery.start(backend.run)
    return Bench(backend.open(LogName("topics/t/0"), LogSettings(segment_bytes=segment_bytes)), env)


@pytest.fixture(params=["memory", "embedded"])
async def bench(request: pytest.FixtureRequest, nursery: trio.Nursery) -> Bench:
    return await make_bench(nursery, request.param)


# --- keys --------------------------------------------------------------------------


async def test_the_newest_record_of_each_key_stays_where_it_is(bench: Bench) -> None:
    bench.write(("a", "1"), ("b", "1"), ("a", "2"))
    bench.write(("b", "2"), ("c", "1"))

    result = await bench.compact()

    assert await bench.records() == [(2, "a", "2"), (3, "b", "2"), (4, "c", "1")]
    assert result == CompactionResult(
        ran=True,
        dirty_ratio=1.0,
        compacted_to=5,
        segments_before=1,
        segments_after=1,
        bytes_before=result.bytes_before,
        bytes_after=bench.log.size,
        records_before=5,
        records_after=3,
    )


async def test_a_record_without_a_key_goes(bench: Bench) -> None:
    bench.write((None, "x"), ("a", "1"), (None, "y"))

    await bench.compact()

    assert await bench.records() == [(1, "a", "1")]


async def test_an_empty_key_is_a_key(bench: Bench) -> None:
    bench.write(("", "1"))
    bench.write(("", "2"))

    await bench.compact()

    assert await bench.records() == [(1, "", "2")]


async def test_a_batch_that_loses_nothing_stays_as_it_is(bench: Bench) -> None:
    bench.write(("a", "1"), ("b", "1"), codec=1)
    before = await bench.batches()

    await bench.compact()

    assert await bench.batches() == before


async def test_a_batch_keeps_its_offsets_producer_and_codec_whatever_it_loses(bench: Bench) -> None:
    bench.write(
        ("a", "1"), ("b", "1"), ("c", "1"), producer_id=7, producer_epoch=2, base_sequence=40, codec=1
    )
    (before,) = await bench.headers()
    bench.write(("a", "2"), ("c", "2"))

    await bench.compact()

    (after, _) = await bench.headers()
    assert (after.base_offset, after.last_offset, after.count) == (0, 2, 1)
    for name in "producer_id", "producer_epoch", "base_sequence", "last_sequence", "codec", "leader_epoch":
        assert getattr(after, name) == getattr(before, name), name


async def test_a_reader_at_an_offset_that_went_gets_the_next_one(bench: Bench) -> None:
    bench.write(("a", "1"))
    bench.write(("a", "2"))
    bench.write(("b", "1"))

    await bench.compact()

    data = await bench.log.read_cold(0, bench.log.end_offset, 1 << 20)
    assert read_header(data).base_offset == 1


async def test_the_dirty_part_replaces_what_is_in_the_clean_part(bench: Bench) -> None:
    bench.write(("a", "1"), ("b", "1"))
    await bench.compact()
    bench.write(("a", "2"))

    result = await bench.compact()

    assert await bench.records() == [(1, "b", "1"), (2, "a", "2")]
    assert result.records_before == 3


keys = st.sampled_from([None, "a", "b", "c", "d"])
values = st.none() | st.text("xyz", min_size=1, max_size=3)
batches = st.lists(st.lists(st.tuples(keys, values), min_size=1, max_size=4), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["memory", "embedded"]),
    rounds=st.lists(batches, min_size=1, max_size=3),
    segment_bytes=st.sampled_from([1, 200, 100_000]),
    max_entries=st.sampled_from([1, 2, 100]),
)
def test_any_log_keeps_exactly_the_newest_of_each_key(
    kind: str, rounds: list[list[list[Pair]]], segment_bytes: int, max_entries: int
) -> None:
    async def scene() -> None:
        async with trio.open_nursery() as nursery:
            await compacted_in_rounds(await make_bench(nursery, kind, segment_bytes))
            nursery.cancel_scope.cancel()

    async def compacted_in_rounds(bench: Bench) -> None:
        written: list[tuple[int, Pair]] = []
        for round_ in rounds:
            for pairs in round_:
                base = bench.write(*pairs)
                written += enumerate(pairs, base)
            policy = eager(max_map_entries=max_entries)
            while (await bench.compact(policy)).more:
                pass

            newest = {key: offset for offset, (key, _) in written if key is not None}
            kept = [(o, key, value) for o, (key, value) in written if key is not None and newest[key] == o]
            assert await bench.records() == kept
            assert bench.log.size == sum(map(len, await bench.batches()))

    trio.run(scene)


# --- tombstones --------------------------------------------------------------------


async def test_a_tombstone_stays_for_its_time_and_then_goes(bench: Bench) -> None:
    bench.write(("a", "1"), ("b", "1"))
    bench.write(("a", None), ("c", "1"))

    await bench.compact()
    assert await bench.records() == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
    marked = (await bench.headers())[1]
    assert marked.has_delete_horizon
    assert marked.base_timestamp == NOW + DAY

    bench.now_ms += DAY - 1
    await recompact(bench)
    assert (2, "a", None) in await bench.records()

    bench.now_ms += 1
    await recompact(bench)
    assert (2, "a", None) not in await bench.records()
    assert (3, "c", "1") in await bench.records()


async def recompact(bench: Bench) -> CompactionResult:
    """Another pass needs something dirty."""
    bench.write(("last", "word"))
    return await bench.compact()


async def test_times_are_the_same_after_the_horizon_took_the_place_of_the_first(bench: Bench) -> None:
    batch = build(
        [Record(0, NOW - 500, b"a", None), Record(1, NOW + 300, b"b", b"1")], base_offset=0, leader_epoch=0
    )
    bench.put(batch)

    await bench.compact()

    (after,) = await bench.batches()
    assert [(r.key, r.timestamp) for r in iterate(after)] == [(b"a", NOW - 500), (b"b", NOW + 300)]


async def test_a_tombstone_that_was_replaced_goes_at_once(bench: Bench) -> None:
    bench.write(("a", None))
    bench.write(("a", "again"))

    await bench.compact()

    assert await bench.records() == [(1, "a", "again")]


# --- what has to stay --------------------------------------------------------------


async def test_the_last_batch_of_an_active_producer_stays_empty(bench: Bench) -> None:
    bench.write(("a", "1"), producer_id=7, producer_epoch=0, base_sequence=0)
    bench.write(("a", "2"), producer_id=7, producer_epoch=0, base_sequence=1)
    bench.write(("a", "3"), producer_id=8, producer_epoch=0, base_sequence=0)
    bench.write(("a", "4"))

    await bench.compact(producers={7: LastWrite(offset=1, epoch=0)})

    headers = await bench.headers()
    assert [(h.producer_id, h.base_offset, h.count) for h in headers] == [(7, 1, 0), (-1, 3, 1)]
    assert headers[0].last_sequence == 1

    # Once the producer is forgotten, so is its batch.
    await recompact(bench)
    assert [h.base_offset for h in await bench.headers()] == [3, 4]


async def test_the_last_batch_of_the_range_stays_empty_for_its_offset(bench: Bench) -> None:
    bench.write(("a", "1"))
    bench.write((None, "no key"))

    await bench.compact()

    assert [(h.base_offset, h.count) for h in await bench.headers()] == [(0, 1), (1, 0)]


# --- transactions ------------------------------------------------------------------

TXN = {"producer_id": 7, "producer_epoch": 0, "transactional": True}


async def test_aborted_data_goes_and_does_not_replace_anything(bench: Bench) -> None:
    bench.write(("a", "kept"))
    bench.write(("a", "aborted"), base_sequence=0, **TXN)
    marker = bench.mark(7, committed=False)
    bench.write(("z", "1"))

    await bench.compact(aborted=[AbortedRange(producer_id=7, first_offset=1, last_offset=marker)])

    assert await bench.records() == [(0, "a", "kept"), (3, "z", "1")]
    assert [h.base_offset for h in await bench.headers() if h.control] == [marker]


async def test_the_same_producers_next_transaction_counts(bench: Bench) -> None:
    bench.write(("a", "aborted"), base_sequence=0, **TXN)
    marker = bench.mark(7, committed=False)
    bench.write(("a", "committed"), base_sequence=1, **TXN)
    bench.mark(7, committed=True)

    await bench.compact(aborted=[AbortedRange(producer_id=7, first_offset=0, last_offset=marker)])

    assert await bench.records() == [(2, "a", "committed")]


@pytest.mark.parametrize("committed", [True, False])
async def test_a_marker_goes_a_while_after_the_last_of_its_transaction(bench: Bench, committed: bool) -> None:
    bench.write(("a", "1"), base_sequence=0, **TXN)
    marker = bench.mark(7, committed=committed)
    ranges = [] if committed else [AbortedRange(producer_id=7, first_offset=0, last_offset=marker)]
    bench.write(("a", "2"))

    async def marker_after(milliseconds: int) -> BatchHeader | None:
        bench.now_ms += milliseconds
        bench.write(("last", "word"))
        await bench.compact(aborted=ranges)
        return next((h for h in await bench.headers() if h.control), None)

    # In this pass there still was data; in the next there is none, and its time begins.
    first = await marker_after(0)
    assert first is not None
    assert not first.has_delete_horizon
    second = await marker_after(0)
    assert second is not None
    assert second.has_delete_horizon
    assert await marker_after(DAY - 1) is not None
    assert await marker_after(1) is None


async def test_a_marker_that_is_all_an_active_producer_wrote_stays(bench: Bench) -> None:
    bench.mark(7, committed=True, epoch=3)
    producers = {7: LastWrite(offset=None, epoch=3)}
    for _ in range(3):
        bench.write(("a", "1"))
        await bench.compact(producers=producers)
        bench.now_ms += 2 * DAY

    assert [h.producer_epoch for h in await bench.headers() if h.control] == [3]


# --- what is compacted, and when -----------------------------------------------------


async def test_the_active_segment_is_left_alone(bench: Bench) -> None:
    bench.write(("a", "1"))
    bench.log.roll()
    bench.write(("a", "2"))

    await bench.compact(roll=False)

    assert [offset for offset, *_ in await bench.records()] == [0, 1]
    assert bench.log.compacted_to == 1


async def test_nothing_is_compacted_from_the_stable_offset_on(bench: Bench) -> None:
    bench.write(("a", "1"))
    bench.log.roll()
    bench.write(("a", "2"))

    result = await bench.compact(upto=1)

    assert [offset for offset, *_ in await bench.records()] == [0, 1]
    assert result.compacted_to == 1


async def test_what_is_younger_than_the_least_lag_waits(bench: Bench) -> None:
    policy = eager(min_lag_ms=1000)
    bench.write(("a", "1"))
    bench.write(("a", "2"))
    bench.now_ms += 999
    assert not (await bench.compact(policy)).ran

    bench.now_ms += 1
    assert (await bench.compact(policy)).ran
    assert await bench.records() == [(1, "a", "2")]


async def test_a_log_that_is_hardly_dirty_is_left_alone(bench: Bench) -> None:
    policy = CompactionPolicy(min_dirty_ratio=0.5)
    for key in "abcdef":
        bench.write((key, "1"))
    await bench.compact()
    bench.write(("a", "2"))
    bench.log.roll()

    assert dirty_ratio(bench.log, policy, NOW, bench.log.end_offset) == pytest.approx(1 / 7)
    result = await bench.compact(policy)
    assert not result.ran
    assert result.dirty_ratio == pytest.approx(1 / 7)

    for key in "bcdefgh":
        bench.write((key, "2"))
    assert (await bench.compact(policy)).ran


async def test_a_log_that_has_waited_too_long_is_compacted_all_the_same(bench: Bench) -> None:
    policy = CompactionPolicy(min_dirty_ratio=0.99, max_lag_ms=10_000)
    for key in "abcdef":
        bench.write((key, "1"))
    await bench.compact()
    bench.write(("a", "2"))

    bench.now_ms += 10_000
    assert not (await bench.compact(policy, roll=False)).ran
    bench.now_ms += 1  # the active segment is closed for it
    assert (await bench.compact(policy, roll=False)).ran
    assert [offset for offset, key, _ in await bench.records() if key == "a"] == [6]


async def test_an_empty_log_has_nothing_to_compact(bench: Bench) -> None:
    for policy in eager(), CompactionPolicy(max_lag_ms=1):
        assert await bench.compact(policy) == CompactionResult()


async def test_a_compacted_log_is_not_compacted_again(bench: Bench) -> None:
    bench.write(("a", "1"))
    assert (await bench.compact()).ran
    assert not (await bench.compact()).ran


@pytest.mark.parametrize("saved", [-1, 2, 100])
async def test_a_border_that_cannot_be_right_means_all_is_dirty(bench: Bench, saved: int) -> None:
    for value in "12345":
        bench.write(("a", value))
        bench.log.roll()
    bench.log.advance_start(3)
    bench.log.compacted_to = saved

    result = await bench.compact()

    assert result.ran
    assert (4, "a", "5") in await bench.records()


# --- segments ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "embedded"])
async def test_small_neighbours_become_one_segment_and_large_ones_stay_apart(
    kind: str, nursery: trio.Nursery
) -> None:
    bench = await make_bench(nursery, kind, segment_bytes=500)
    for number in range(6):
        bench.write((f"k{number}", "x" * 150))
        bench.log.roll()

    result = await bench.compact()

    assert result.segments_before == 6
    assert result.segments_after == 3
    assert all(segment.size <= 500 for segment in bench.log.closed_segments())
    assert [key for _, key, _ in await bench.records()] == [f"k{number}" for number in range(6)]


async def test_a_full_map_compacts_a_first_piece_and_says_that_there_is_more(bench: Bench) -> None:
    policy = eager(max_map_entries=2)
    for key in "abcabc":
        bench.write((key, "x"))

    first = await bench.compact(policy)
    assert first.more
    assert first.compacted_to == 2

    while (await bench.compact(policy)).more:
        pass
    assert [offset for offset, *_ in await bench.records()] == [3, 4, 5]


async def test_one_batch_with_more_keys_than_the_map_holds_is_compacted_nevertheless(bench: Bench) -> None:
    policy = eager(max_map_entries=1)
    bench.write(("a", "1"), ("b", "1"), ("c", "1"))
    bench.write(("a", "2"), ("b", "2"), ("c", "2"))

    while (await bench.compact(policy)).more:
        pass

    assert [offset for offset, *_ in await bench.records()] == [3, 4, 5]


async def test_a_batch_larger_than_a_slice_is_read_whole(bench: Bench) -> None:
    bench.write(("a", "1"))
    bench.write(("big", "x" * 700_000))
    bench.write(("a", "2"))

    await bench.compact()

    assert [offset for offset, *_ in await bench.records()] == [1, 2]


async def test_appending_goes_on_meanwhile(bench: Bench) -> None:
    for value in "123":
        bench.write(("a", value))
    bench.log.roll()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.compact)
        for _ in range(5):
            await trio.lowlevel.checkpoint()
            bench.write(("b", "x"))

    assert [record for record in await bench.records() if record[1] == "a"] == [(2, "a", "3")]
    assert len([record for record in await bench.records() if record[1] == "b"]) == 5


async def test_retention_that_comes_in_between_ends_the_pass(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in "123":
        bench.write(("a", value))
        bench.log.roll()
    replace = type(bench.log).replace_segments

    async def expired_meanwhile(log: Log, *args: Any) -> bool:
        log.advance_start(2)
        log.expire(NOW, -1, -1, log.end_offset)
        return await replace(log, *args)

    monkeypatch.setattr(type(bench.log), "replace_segments", expired_meanwhile)
    result = await bench.compact()
    assert result.more
    assert bench.log.compacted_to == 0

    monkeypatch.undo()
    assert not (await bench.compact()).more
    assert await bench.records() == [(2, "a", "3")]


async def test_a_damaged_batch_is_not_given_a_checksum_that_is_right(bench: Bench) -> None:
    bench.write(("a", "1"))
    batch = bytearray(build([Record(0, NOW, b"a", b"damaged")], base_offset=1, leader_epoch=0))
    batch[-3] ^= 1
    bench.put(bytes(batch))
    before = await bench.batches()

    with pytest.raises(KafkaError, match="offset 1 has a wrong checksum") as failure:
        await bench.compact()

    assert failure.value.code is ErrorCode.CORRUPT_MESSAGE
    assert await bench.batches() == before


def test_by_default_only_the_ratio_counts() -> None:
    assert CompactionPolicy() == CompactionPolicy(
        min_dirty_ratio=0.5,
        min_lag_ms=0,
        max_lag_ms=FOREVER,
        delete_retention_ms=DAY,
        max_map_entries=500_000,
    )
