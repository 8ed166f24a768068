"""Transactions as a partition keeps them and readers see them, without anybody who coordinates them."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode, KafkaError
from rafka.ops import log
from rafka.ops.log import AbortedTransaction
from rafka.records.batch import read_header
from rafka.records.control import read_marker

from .fetching import delete_to, one
from .kit import NOW, World, batch, fetch, found, make_env, open_world, produce, values
from .transacting import COMMITTED, PID, Doorkeeper, doorkeeper_of, end, put, read, transactional


@pytest.fixture
def door(world: World) -> Doorkeeper:
    return doorkeeper_of(world)


async def latest(world: World, isolation_level: int, timestamp: int = -1) -> int:
    asked = log.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = log.ListOffsetsTopic(name="t", partitions=[asked])
    reply = await world.ask(log.ListOffsets(topics=[topic], isolation_level=isolation_level))
    [answer] = reply.topics[0].partitions
    return int(answer.offset)


def aborted(*ranges: tuple[int, int]) -> list[AbortedTransaction]:
    return [AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in ranges]


# --- readers -----------------------------------------------------------------------------------


async def test_what_is_open_is_not_for_readers_of_committed_records(world: World, door: Doorkeeper) -> None:
    """TX-026, TX-027, TX-030."""
    await world.write(b"before")
    await put(world, b"a", b"b")

    committed, uncommitted = await read(world), await read(world, isolation_level=0)
    assert (committed.last_stable_offset, committed.high_watermark) == (1, 3)
    assert values(committed.records) == [b"before"]
    assert committed.aborted_transactions is not None
    assert list(committed.aborted_transactions) == []
    assert values(uncommitted.records) == [b"before", b"a", b"b"]
    assert uncommitted.aborted_transactions is None
    assert [await latest(world, level) for level in (0, 1)] == [3, 1]
    assert await latest(world, COMMITTED, timestamp=NOW * 1000 - 1) == 0
    assert (await read(world, 1)).records == b""

    assert end(world) == 3
    committed = await read(world)
    assert (committed.last_stable_offset, committed.high_watermark) == (4, 4)
    assert values(committed.records)[:3] == [b"before", b"a", b"b"]
    assert [await latest(world, level) for level in (0, 1)] == [4, 4]


async def test_a_time_past_the_stable_offset_is_not_found(world: World, door: Doorkeeper) -> None:
    """Section 8."""
    records = batch(
        b"a", at_ms=NOW * 1000 + 5, transactional=True, producer_id=1, producer_epoch=0, base_sequence=0
    )
    await world.write(b"before")
    await world.ask(produce(records, transactional_id="tx"))

    assert await latest(world, COMMITTED, timestamp=NOW * 1000 + 1) == -1
    assert await latest(world, 0, timestamp=NOW * 1000 + 1) == 1


async def test_readers_are_told_what_was_aborted(world: World, door: Doorkeeper) -> None:
    """TX-028, TX-031."""
    await put(world, b"a")
    await put(world, b"b", sequence=1)
    assert end(world, committed=False) == 2
    await world.write(b"c")

    assert (await read(world)).aborted_transactions == aborted((PID, 0))
    assert (await read(world, isolation_level=0)).aborted_transactions is None
    assert (await read(world, 2)).aborted_transactions == aborted((PID, 0)), "from the marker itself"
    assert list((await read(world, 3)).aborted_transactions or ()) == []
    assert list((await read(world, 4)).aborted_transactions or ()) == []


async def test_the_last_to_end_of_overlapping_transactions_lets_readers_on(
    world: World, door: Doorkeeper
) -> None:
    """TX-029."""
    await put(world, b"a", b"a", pid=1)
    await put(world, b"b", pid=2)

    end(world, pid=2)
    assert (await read(world)).last_stable_offset == 0
    end(world, committed=False, pid=1)

    after = await read(world)
    assert after.last_stable_offset == after.high_watermark == 5
    assert after.aborted_transactions == aborted((1, 0))


async def test_a_parked_reader_is_woken_by_the_marker(
    world: World, door: Doorkeeper, autojump_clock: MockClock
) -> None:
    await put(world, b"a")
    answers: list[log.PartitionFetchReply] = []

    async def wait() -> None:
        answers.append(await one(world, fetch(("t", 0, 0), isolation_level=COMMITTED, max_wait_ms=8000)))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        await world.write(b"plain, behind it")
        await wait_all_tasks_blocked()
        assert answers == []
        end(world)

    assert trio.current_time() - began < 1
    assert answers[0].last_stable_offset == 3
    assert world.no_watcher_left()


async def test_of_many_aborted_transactions_those_of_the_records_are_told(
    world: World, door: Doorkeeper
) -> None:
    for number in range(150):
        await put(world, b"a", sequence=number)
        end(world, committed=False)
    size = len(transactional(b"a")) + 1

    some = await one(world, fetch(("t", 0, 0), isolation_level=COMMITTED, partition_max_bytes=4 * size))
    most = await read(world, 2)

    last = read_header(some.records).next_offset
    assert some.aborted_transactions
    assert len(some.aborted_transactions) < 5
    assert some.aborted_transactions[0].first_offset == 0
    assert last > 0
    assert most.aborted_transactions is not None
    assert [one.first_offset for one in most.aborted_transactions] == list(range(2, 300, 2))


async def test_a_log_that_begins_inside_a_transaction(world: World, door: Doorkeeper) -> None:
    """TX-063; and what Kafka does to one that is still open when records are deleted."""
    await put(world, b"a")
    await put(world, b"b", sequence=1)
    end(world, committed=False)
    await delete_to(world, 1)
    assert (await read(world, 1)).aborted_transactions == aborted((PID, 0))

    await put(world, b"c", sequence=2)
    await world.write(b"plain")
    await delete_to(world, -1)
    assert [await latest(world, level) for level in (0, 1)] == [5, 5]
    await world.write(b"plain")
    assert [await latest(world, level) for level in (0, 1)] == [6, 5], "it is open still"
    end(world, committed=False)
    assert [await latest(world, level) for level in (0, 1)] == [7, 7]
    assert (await read(world, 5)).aborted_transactions == aborted((PID, 3))


async def test_describing_producers_shows_their_transactions(world: World, door: Doorkeeper) -> None:
    """TX-040, X-037."""
    await world.write(b"before")
    await put(world, b"a", b"b")
    op = log.DescribeProducers(topics=[log.ProducersTopic(name="t", partition_indexes=[0])])

    async def active() -> log.ActiveProducer:
        [partition] = (await world.ask(op)).topics[0].partitions
        [producer] = partition.active_producers
        assert isinstance(producer, log.ActiveProducer)
        return producer

    opened = await active()
    assert (opened.current_txn_start_offset, opened.coordinator_epoch, opened.last_sequence) == (1, -1, 1)
    end(world, epoch=1)
    ended = await active()
    assert (ended.current_txn_start_offset, ended.coordinator_epoch) == (-1, 0)
    assert (ended.producer_epoch, ended.last_sequence) == (1, -1)


# --- markers -----------------------------------------------------------------------------------


async def test_a_marker_is_a_batch_of_its_own(world: World, door: Doorkeeper) -> None:
    """6.1: and has the time that its topic gives."""
    await put(world, b"a")
    end(world, committed=False)
    await world.alter(message_timestamp_type="LogAppendTime")
    end(world)

    records = bytes((await read(world, 1)).records)
    first, second = read_header(records), read_header(records, len(records) // 2)
    assert (first.control, first.transactional, first.count, first.base_sequence) == (True, True, 1, -1)
    assert (first.producer_id, first.producer_epoch, first.max_timestamp) == (PID, 0, NOW * 1000)
    assert (first.log_append_time, second.log_append_time) == (False, True)
    said = [read_marker(records), read_marker(records[len(records) // 2 :])]
    assert [m and (m.committed, m.coordinator_epoch) for m in said] == [(False, 0), (True, 0)]


async def test_a_marker_that_comes_late_is_fenced_and_changes_nothing(world: World, door: Doorkeeper) -> None:
    """TX-041, TX-060."""
    await put(world, b"a", epoch=3)

    with pytest.raises(KafkaError) as fenced:
        end(world, epoch=2)
    assert fenced.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError):
        end(world, epoch=3, transaction_version=2)

    assert world.partition().log.end_offset == 1
    assert world.partition().has_open(PID)
    end(world, epoch=4, transaction_version=2)
    assert not world.partition().has_open(PID)


async def test_a_marker_of_nothing_is_written_and_moves_nothing(world: World) -> None:
    """TX-052."""
    assert end(world, committed=False) == 0

    after = await read(world)
    assert (after.last_stable_offset, list(after.aborted_transactions or ())) == (1, [])


# --- durability ------------------------------------------------------------------------------------


async def test_an_end_counts_once_it_cannot_be_lost(slow: World) -> None:
    """Readers of committed records see nothing of a transaction whose marker is not synced."""
    doorkeeper_of(slow)
    await put(slow, b"a")
    await slow.write(b"plain")
    slow.log().flush()
    assert slow.partition().last_stable_offset == 0

    marker = end(slow)
    await slow.write(b"after")
    slow.log().flush(upto=marker)
    assert slow.partition().last_stable_offset == 0
    slow.log().flush(upto=marker + 1)

    assert slow.partition().last_stable_offset == slow.partition().high_watermark == marker + 1


async def test_a_marker_wakes_readers_when_it_is_durable(slow: World, autojump_clock: MockClock) -> None:
    doorkeeper_of(slow)
    await put(slow, b"a")
    slow.log().flush()
    answers = []

    async def wait() -> None:
        op = fetch(("t", 0, 0), isolation_level=COMMITTED, max_wait_ms=8000)
        answers.append(found(await slow.ask(op))[0])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        appended = slow.partition().write_marker(
            PID, 0, committed=False, coordinator_epoch=0, now_ms=NOW * 1000
        )
        await wait_all_tasks_blocked()
        assert answers == []
        slow.log().flush(upto=appended.next_offset)
        await slow.partition().wait_durable(appended.next_offset)

    assert answers[0].aborted_transactions == aborted((PID, 0))


# --- housekeeping -----------------------------------------------------------------------------------


async def test_compaction_takes_what_was_aborted_and_nothing_that_is_open(autojump_clock: MockClock) -> None:
    async with open_world(env=make_env()) as world:
        await world.create(cleanup_policy="compact", min_cleanable_dirty_ratio="0")
        doorkeeper_of(world)
        await put(world, b"aborted")
        end(world, committed=False)
        world.partition().log.roll()
        await put(world, b"open", pid=8)
        world.partition().log.roll()
        await world.write(b"newest, of the same key")

        await trio.sleep(60)

        everything = await read(world, isolation_level=0)
        headers = list(world.partition().log.headers(0))
        assert [(h.base_offset, h.count) for h in headers] == [(0, 0), (1, 1), (2, 1), (3, 1)]
        assert b"aborted" not in values(everything.records)
        assert (await read(world)).last_stable_offset == 2
        assert (await read(world)).aborted_transactions == aborted((PID, 0)), "its marker is still there"


async def test_open_transactions_are_not_forgotten(world: World, door: Doorkeeper) -> None:
    await put(world, b"a")
    partition = world.partition()

    partition.producers.forget_idle(now_ms=(NOW + 1_000_000) * 1000, idle_ms=1000)

    assert partition.has_open(PID)
