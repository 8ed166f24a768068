"""Fetch: who waits, for what, and what ends it."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.base import Later

from .fetching import assert_error, delete_to, one
from .kit import World, batch, fetch, found, values


@pytest.mark.parametrize(
    "options", [{"max_wait_ms": 0}, {"max_wait_ms": -1}, {"min_bytes": 0}, {"min_bytes": -5}]
)
async def test_who_does_not_want_to_wait_does_not(world: World, options: dict[str, int]) -> None:
    """LF-031."""
    op = fetch(("t", 0, 0), **{"max_wait_ms": 500, **options})  # type: ignore[arg-type]

    assert not isinstance(world.answer(op), Later)


async def test_an_empty_partition_is_waited_for(world: World, autojump_clock: MockClock) -> None:
    """LF-030."""
    began = trio.current_time()

    partition = await one(world, fetch(("t", 0, 0), max_wait_ms=500))

    assert trio.current_time() - began == pytest.approx(0.5)
    assert partition.records == b""
    assert world.no_watcher_left()


async def test_what_is_written_meanwhile_ends_the_waiting(world: World, autojump_clock: MockClock) -> None:
    """LF-030."""
    began = trio.current_time()
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(2)
        await world.write(b"a")

    assert values(got[0].records) == [b"a"]
    assert trio.current_time() - began == pytest.approx(2)
    assert world.no_watcher_left()


async def test_too_little_goes_on_waiting(world: World, autojump_clock: MockClock) -> None:
    unit = len(batch(b"a"))
    began = trio.current_time()
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000, min_bytes=3 * unit)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for value in (b"a", b"b", b"c"):
            await trio.sleep(1)
            await world.write(value)

    assert values(got[0].records) == [b"a", b"b", b"c"]
    assert trio.current_time() - began == pytest.approx(3)


async def test_bytes_of_all_partitions_count_together(world: World, autojump_clock: MockClock) -> None:
    await world.create("u", partitions=2)
    unit = len(batch(b"a"))
    got = []

    async def read() -> None:
        got.extend(
            found(await world.ask(fetch(("u", 0, 0), ("u", 1, 0), max_wait_ms=30_000, min_bytes=2 * unit)))
        )

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        await world.write(b"a", topic="u", index=0)
        await trio.sleep(1)
        await world.write(b"b", topic="u", index=1)

    assert [values(p.records) for p in got] == [[b"a"], [b"b"]]
    assert trio.current_time() - began == pytest.approx(2)


async def test_the_end_of_a_segment_is_not_waited_at(world: World, autojump_clock: MockClock) -> None:
    """A reading ends with its segment: what is left of an older one is given, however little it is."""
    await world.write(b"a")
    world.partition().log.roll()
    await world.write(b"b")

    async def read(offset: int) -> list[bytes | None]:
        op = fetch(("t", 0, offset), max_wait_ms=500, min_bytes=10_000)
        return values((await one(world, op)).records)

    began = trio.current_time()
    assert await read(0) == [b"a"]
    assert trio.current_time() == began
    assert await read(1) == [b"b"]
    assert trio.current_time() - began == pytest.approx(0.5)


async def test_a_partitions_limit_caps_what_it_counts_for(world: World, autojump_clock: MockClock) -> None:
    """Accumulated bytes are each capped by PartitionMaxBytes."""
    began = trio.current_time()
    await world.write(b"x" * 1000)

    await world.ask(fetch(("t", 0, 0), max_wait_ms=700, min_bytes=500, partition_max_bytes=100))
    # The first batch came whole and was enough; from the second on there is only what the limit lets count.

    assert trio.current_time() == began


@pytest.mark.parametrize("what", ["unknown", "out of range", "fenced"])
async def test_errors_found_while_reading_are_told_at_once_and_others_are_not(
    world: World, what: str, autojump_clock: MockClock
) -> None:
    """LF-036."""
    await world.create("u")
    bad = {"unknown": ("nobody", 0, 0), "out of range": ("u", 0, 99), "fenced": ("u", 0, 0)}[what]
    op = fetch(("t", 0, 0), bad, max_wait_ms=500, min_bytes=1_000_000)
    if what == "fenced":
        op.topics[1].partitions[0].current_leader_epoch = 9  # type: ignore[misc]
    began = trio.current_time()

    idle, wrong = found(await world.ask(op))

    assert trio.current_time() - began == pytest.approx(0.5 if what == "unknown" else 0)
    assert (idle.error_code, wrong.error_code) == (0, {"unknown": 3, "out of range": 1, "fenced": 75}[what])


async def test_with_no_valid_partition_there_is_nothing_to_wait_for(world: World) -> None:
    for op in (fetch(("nobody", 0, 0), max_wait_ms=30_000), fetch(max_wait_ms=30_000)):
        assert not isinstance(world.answer(op), Later)


async def test_all_who_wait_are_woken(world: World, autojump_clock: MockClock) -> None:
    got = []

    async def read() -> None:
        got.append(values((await one(world, fetch(("t", 0, 0), max_wait_ms=30_000))).records))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(read)
        await wait_all_tasks_blocked()
        await world.write(b"a")

    assert got == [[b"a"]] * 10
    assert world.no_watcher_left()


async def test_a_topic_that_goes_ends_the_waiting(world: World, autojump_clock: MockClock) -> None:
    """D4."""
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000)))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        await world.delete("t")

    assert trio.current_time() - began < 2
    assert_error(got[0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_a_start_that_passes_the_reader_ends_its_waiting(
    world: World, autojump_clock: MockClock
) -> None:
    await world.write(b"a", b"b")
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000, min_bytes=10_000)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        await delete_to(world, 2)

    assert trio.current_time() == began
    assert_error(got[0], ErrorCode.OFFSET_OUT_OF_RANGE)


async def test_nobody_waits_for_longer_than_a_minute(world: World, autojump_clock: MockClock) -> None:
    """Bad input 69."""
    began = trio.current_time()

    await world.ask(fetch(("t", 0, 0), max_wait_ms=2**31 - 1))

    assert trio.current_time() - began == pytest.approx(60)


async def test_a_broker_that_closes_answers_those_who_wait(world: World, autojump_clock: MockClock) -> None:
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000)))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        world.broker.fetcher.close()

    assert got[0].error_code == 0
    assert trio.current_time() == began
    assert not isinstance(world.answer(fetch(("t", 0, 0), max_wait_ms=30_000)), Later), (
        "nor is it begun again"
    )


async def test_a_waiting_fetch_that_is_cancelled_at_any_step_leaves_nobody_behind(
    world: World, autojump_clock: MockClock
) -> None:
    """Reliability 6.1, rule 7: cancelled before its k-th step, for every k."""
    for steps in range(6):
        op = fetch(("t", 0, 0), max_wait_ms=1000, min_bytes=10**6)
        answer = world.answer(op)
        scope = trio.CancelScope()

        async def read(answer: Later[log.FetchReply] = answer, scope: trio.CancelScope = scope) -> None:
            with scope:
                await answer.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
                world.partition().wake()
            scope.cancel()

        assert world.no_watcher_left()


async def test_a_reply_that_was_never_waited_for_leaves_nobody_behind(world: World) -> None:
    world.answer(fetch(("t", 0, 0), max_wait_ms=1000))

    assert world.no_watcher_left()


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_topic_that_goes_while_it_is_waited_for_is_missed_by_its_name(
    world: World, autojump_clock: MockClock, by_id: bool
) -> None:
    """An error found while reading: no list of aborted transactions, and code 3 for an id as well."""
    ids = [await world.create("u")] if by_id else []
    got = []

    async def read() -> None:
        got.append(
            await one(world, fetch(("t" if not by_id else "u", 0, 0), topic_ids=ids, max_wait_ms=9000))
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        await world.delete("u" if by_id else "t")

    assert_error(got[0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert got[0].aborted_transactions is None
