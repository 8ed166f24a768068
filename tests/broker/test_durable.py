"""acks=all where durability means fsync: the log's flushed offset is the high watermark, and replies wait."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode
from rafka.ops.base import Envelope, Later

from .kit import World, batch, fetch, found, produce, produce_many, told, values

ALL = -1


async def test_acks_all_waits_for_the_flush_and_lets_others_on_meanwhile(
    slow: World, autojump_clock: MockClock
) -> None:
    answer = slow.answer(produce(batch(b"a"), acks=ALL))

    assert isinstance(answer, Later)
    assert answer.overlaps, "the write is done: the connection may take up the next request"
    with trio.move_on_after(1):
        await answer.wait()
        raise AssertionError("answered before it was durable")
    slow.log().flush()
    [reply] = told(await answer.wait())
    assert (reply.error_code, reply.base_offset) == (0, 0)


async def test_acks_1_and_0_do_not_wait(slow: World) -> None:
    for acks in (1, 0):
        answer = slow.answer(produce(batch(b"a"), acks=acks))
        assert not isinstance(answer, Later)
    assert slow.log().end_offset == 2
    assert slow.log().flushed_offset == 0


async def test_acks_all_of_refused_batches_only_is_answered_at_once(slow: World) -> None:
    answer = slow.answer(produce(b"junk", acks=ALL))

    assert not isinstance(answer, Later)
    assert told(answer)[0].error_code == ErrorCode.INVALID_RECORD


async def test_one_flush_answers_all_that_wait_for_it_in_their_order(slow: World) -> None:
    answers = [slow.answer(produce(batch(b"x"), acks=ALL)) for _ in range(4)]
    done = []

    async def wait(n: int) -> None:
        [reply] = told(await answers[n].wait())
        done.append((n, reply.base_offset))

    async with trio.open_nursery() as nursery:
        for n in range(4):
            nursery.start_soon(wait, n)
        await wait_all_tasks_blocked()
        assert done == []
        slow.log().flush(upto=2)
        await wait_all_tasks_blocked()
        assert sorted(done) == [(0, 0), (1, 1)], "only those that the flush has reached"
        slow.log().flush()

    assert sorted(done) == [(n, n) for n in range(4)]


async def test_every_partition_of_a_request_has_to_be_durable(slow: World, autojump_clock: MockClock) -> None:
    slow.backend.at_once = True  # type: ignore[attr-defined]
    await slow.create("u", partitions=2)
    slow.backend.at_once = False  # type: ignore[attr-defined]
    wanted = [("t", 0, batch(b"a")), ("u", 0, batch(b"b")), ("u", 1, b"junk"), ("u", 7, batch(b"c"))]
    answer = slow.answer(produce_many(*wanted, acks=ALL))

    slow.log("t").flush()
    with trio.move_on_after(1):
        await answer.wait()
        raise AssertionError("one of them is not durable")
    slow.log("u", 0).flush()

    codes = [(p.error_code, p.base_offset) for p in told(await answer.wait())]
    assert codes == [(0, 0), (0, 0), (87, -1), (3, -1)]


@pytest.mark.parametrize(("timeout_ms", "waits"), [(0, 5), (-1, 5), (7000, 7), (2**31 - 1, 60)])
async def test_a_flush_that_does_not_come_times_out_though_the_write_is_there(
    slow: World, timeout_ms: int, waits: float, autojump_clock: MockClock
) -> None:
    """B25, bad input 62: never told late before five seconds, nor waited for longer than a minute."""
    began = trio.current_time()

    [reply] = told(await slow.ask(produce(batch(b"a"), acks=ALL, timeout_ms=timeout_ms)))

    assert trio.current_time() - began == pytest.approx(waits)
    assert (reply.error_code, reply.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert slow.log().end_offset == 1


async def test_only_what_is_late_is_told_to_be_late(slow: World, autojump_clock: MockClock) -> None:
    slow.backend.at_once = True  # type: ignore[attr-defined]
    await slow.create("u")
    slow.backend.at_once = False  # type: ignore[attr-defined]
    answer = slow.answer(produce_many(("t", 0, batch(b"a")), ("u", 0, batch(b"b")), acks=ALL))
    slow.log("u").flush()

    codes = [(p.error_code, p.base_offset) for p in told(await answer.wait())]

    assert codes == [(ErrorCode.REQUEST_TIMED_OUT, -1), (0, 0)]


async def test_a_duplicate_waits_for_what_it_repeats(slow: World) -> None:
    """Q1: the first was written, and perhaps not yet durable."""
    resent = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    slow.answer(produce(resent, acks=ALL))

    again = slow.answer(produce(resent, acks=ALL))

    assert isinstance(again, Later)
    slow.log().flush()
    [reply] = told(await again.wait())
    assert (reply.error_code, reply.base_offset) == (0, 0)
    assert slow.log().end_offset == 1
    assert not isinstance(slow.answer(produce(resent, acks=ALL)), Later), "durable by now: at once"


async def test_nobody_reads_what_a_loss_of_power_could_take_back(
    slow: World, autojump_clock: MockClock
) -> None:
    await slow.write(b"a")
    slow.log().flush()
    await slow.write(b"b")
    got = []

    async def read() -> None:
        got.extend(found(await slow.ask(fetch(("t", 0, 0), max_wait_ms=10_000, min_bytes=10_000))))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        slow.log().flush()

    assert values(got[0].records) == [b"a", b"b"]
    assert slow.partition().high_watermark == 2


async def test_the_high_watermark_is_the_flushed_offset(slow: World) -> None:
    await slow.write(b"a")
    slow.log().flush()
    slow.answer(produce(batch(b"b"), acks=ALL))

    stranger: Any = slow.broker.ask(Envelope(), fetch(("t", 0, 0)))
    [partition] = found(stranger)

    assert (partition.high_watermark, partition.last_stable_offset) == (1, 1)
    assert values(partition.records) == [b"a"]


async def test_a_flush_wakes_a_fetch_that_waits(slow: World, autojump_clock: MockClock) -> None:
    answer = slow.answer(fetch(("t", 0, 0), max_wait_ms=30_000))
    began = trio.current_time()
    got = []

    async def read() -> None:
        got.extend(found(await answer.wait()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        await slow.write(b"a")
        await trio.sleep(2)
        assert not got, "it is written, and not to be read yet"
        slow.log().flush()

    assert values(got[0].records) == [b"a"]
    assert trio.current_time() - began == pytest.approx(2)
    assert slow.no_watcher_left()


async def test_a_client_finds_what_was_acknowledged_to_it(slow: World) -> None:
    """Answered from the page cache by acks=1, then read at once: the reader waits for the sync."""
    await slow.write(b"a", acks=1)
    answer = slow.answer(fetch(("t", 0, 0)))

    assert isinstance(answer, Later)
    slow.log().flush()
    assert values(found(await answer.wait())[0].records) == [b"a"]


async def test_what_a_writer_was_told_of_everybody_finds(slow: World) -> None:
    """A write that was answered before it is durable: whoever reads then waits for the sync."""
    await slow.write(b"a")
    slow.log().flush()
    await slow.write(b"b", acks=1)

    own = slow.answer(fetch(("t", 0, 0)))
    stranger: Any = slow.broker.ask(Envelope(), fetch(("t", 0, 0)))

    assert isinstance(own, Later)
    assert isinstance(stranger, Later)
    slow.log().flush()
    for answer in (own, stranger):
        assert values(found(await answer.wait())[0].records) == [b"a", b"b"]


@pytest.mark.parametrize("how", ["topic deleted", "log failed"])
async def test_whoever_waits_for_what_will_never_be_durable_is_told(
    slow: World, how: str, autojump_clock: MockClock
) -> None:
    """A writer, and a reader of what was just written: neither waits for ever, or for its timeout."""
    writer = slow.answer(produce(batch(b"a"), acks=ALL))
    await slow.write(b"b", acks=1)
    reader = slow.answer(fetch(("t", 0, 0)))
    assert isinstance(reader, Later)
    began = trio.current_time()
    codes = {}

    async def wait_to_write() -> None:
        codes["writer"] = told(await writer.wait())[0].error_code

    async def wait_to_read() -> None:
        codes["reader"] = found(await reader.wait())[0].error_code

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_to_write)
        nursery.start_soon(wait_to_read)
        await wait_all_tasks_blocked()
        if how == "topic deleted":
            slow.backend.at_once = True  # type: ignore[attr-defined]
            await slow.delete()
        else:
            slow.log().fail("the disk is gone")

    assert trio.current_time() - began < 1
    assert codes["writer"] == ErrorCode.KAFKA_STORAGE_ERROR
    assert codes["reader"] in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_a_writer_that_hangs_up_takes_nothing_back(slow: World, autojump_clock: MockClock) -> None:
    answer = slow.answer(produce(batch(b"a"), acks=ALL))

    with trio.move_on_after(1):
        await answer.wait()
    slow.log().flush()

    assert values(found(slow.answer(fetch(("t", 0, 0))))[0].records) == [b"a"]
