"""Compaction keeps the newest record of each key, and everything else that Kafka keeps.

A log is written batch by batch, `compact` makes its pass, and what a reader then finds is
compared with what the rules say. All tests run on a log in memory and on files.
"""

from __future__ import annotations

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from rafka.records.batch import BatchHeader, read_header
from rafka.records.build import build
from rafka.records.record import Record, iterate
from rafka.storage.compaction import (
    AbortedRange,
    CompactionResult,
    LastWrite,
)

from .compaction_kit import DAY, NOW, Bench, Pair, eager, make_bench


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
