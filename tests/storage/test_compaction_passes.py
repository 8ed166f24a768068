"""What compaction takes up, when, and how it goes about segments. On a log in memory and on files."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from rafka.errors import ErrorCode, KafkaError
from rafka.records.build import build
from rafka.records.record import Record
from rafka.storage.backend import FOREVER, Log
from rafka.storage.compaction import (
    CompactionPolicy,
    CompactionResult,
    dirty_ratio,
)

from .compaction_kit import DAY, NOW, Bench, eager, make_bench


@pytest.fixture(params=["memory", "embedded"])
async def bench(request: pytest.FixtureRequest, nursery: trio.Nursery) -> Bench:
    return await make_bench(nursery, request.param)


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
