"""The task that decides how transactions go: transactions one by one, deadlines, crowds."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.broker import txn_coordinator
from rafka.config import Config, load
from rafka.errors import ErrorCode
from rafka.machines.transactions.directory import Transactions
from rafka.ops import log, txn
from rafka.ops.base import Later
from rafka.storage.backend import LogSettings
from rafka.storage.journal import JOURNAL

from .kit import SlowBackend, World, make_env, open_world
from .producing import Home, Producer, a_producer, committed_values, group_offset, markers

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS


def disk(world: World) -> SlowBackend:
    assert isinstance(world.backend, SlowBackend)
    return world.backend


def settings(**named: str) -> Config:
    return load(flags=[(key.replace("_", "."), value, "a test") for key, value in named.items()])


# --- one transaction ---------------------------------------------------------------------------


@pytest.mark.parametrize("bumps", [False, True])
@pytest.mark.parametrize("committed", [False, True])
async def test_a_transaction_is_seen_whole_or_not_at_all(world: World, committed: bool, bumps: bool) -> None:
    """TX-026 to TX-028."""
    producer = await a_producer(world, bumps=bumps)
    if not bumps:
        assert await producer.begin(0) is NONE
        assert await producer.add_group() is NONE
    assert await producer.write(b"a", b"b") is NONE
    assert await producer.send_offset(5) is NONE
    assert await committed_values(world) == []
    assert await group_offset(world) == -1
    assert await group_offset(world, stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT

    assert await producer.end(committed) is NONE
    state = await producer.complete()

    assert state == ("CompleteCommit" if committed else "CompleteAbort")
    assert await committed_values(world) == ([b"a", b"b"] if committed else [])
    assert await group_offset(world, stable=True) == (5 if committed else -1)


async def test_where_one_partition_is_not_there_nothing_is_attempted_for_the_others(world: World) -> None:
    """TX-009."""
    producer = await a_producer(world)

    [result] = (await world.ask(producer.addition(0, 7))).results_by_transaction

    [topic] = result.topic_results
    assert [p.partition_error_code for p in topic.results_by_partition] == [
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert await producer.state() == "Empty"


async def test_the_partition_of_a_group_takes_part(world: World) -> None:
    """TX-011."""
    producer = await a_producer(world)

    assert await producer.add_group("group-7") is NONE

    [topic] = (await producer.seen()).topics
    assert topic.topic == "__consumer_offsets"


async def test_partitions_to_which_nothing_was_written_are_given_a_marker_alone(world: World) -> None:
    """TX-052."""
    producer = await a_producer(world)
    await producer.begin(0)

    await producer.end(True)
    await producer.complete()

    assert await markers(world) == [(0, True)]
    assert world.partition().log.end_offset == 1


async def test_the_next_transaction_may_begin_at_once(world: World) -> None:
    """TX-056: what ended with a bumped epoch is completed before the next write is decided."""
    producer = await a_producer(world, bumps=True)
    for value in (b"a", b"b", b"c"):
        assert await producer.write(value) is NONE
        assert await producer.end(True) is NONE

    assert await committed_values(world) == [b"a", b"b", b"c"]
    assert await markers(world) == [(1, True), (2, True), (3, True)]


async def test_a_topic_may_be_deleted_from_under_a_transaction(world: World) -> None:
    """TX-042."""
    await world.create("doomed")
    producer = await a_producer(world)
    await producer.begin(0)
    await producer.begin(0, topic="doomed")
    await producer.write(b"a")
    await world.delete("doomed")

    assert await producer.end(True) is NONE

    assert await producer.complete() == "CompleteCommit"
    assert await committed_values(world) == [b"a"]


async def test_whoever_is_replaced_writes_no_more(world: World) -> None:
    """TX-049, T6."""
    old = await a_producer(world)
    await old.begin(0)
    await old.write(b"old")

    new = Producer(world)
    first = await new.init()
    await new.complete()
    assert (first, await new.init()) == (BUSY, NONE)

    assert await old.write(b"zombie") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await old.begin(0) is ErrorCode.PRODUCER_FENCED
    assert await old.end(True) is ErrorCode.PRODUCER_FENCED
    assert await new.begin(0) is NONE
    assert await new.write(b"new") is NONE
    assert await new.end(True) is NONE
    await new.complete()
    assert await committed_values(world) == [b"new"]


# --- time ------------------------------------------------------------------------------------


async def test_a_transaction_is_aborted_when_its_time_is_up_and_not_before(
    world: World, autojump_clock: MockClock
) -> None:
    """TX-035: by its deadline, to the millisecond, and not at the next look around."""
    producer = await a_producer(world, timeout_ms=1_000)
    await producer.begin(0)
    await producer.write(b"a")

    await trio.sleep(0.99)
    before = await producer.state(), world.partition().last_stable_offset
    await trio.sleep(0.02)

    assert before == ("Ongoing", 0)
    assert await producer.state() == "CompleteAbort"
    assert world.partition().last_stable_offset == 2
    assert await producer.end(True) is ErrorCode.PRODUCER_FENCED
    assert await producer.write(b"b") is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await committed_values(world) == []


async def test_each_transaction_has_a_deadline_of_its_own(world: World, autojump_clock: MockClock) -> None:
    timeouts = {f"x{n}": 1_000 * (n + 1) for n in range(5)}
    producers = [await a_producer(world, name, timeout_ms=ms) for name, ms in timeouts.items()]
    for producer in producers:
        await producer.begin(0)
    await trio.sleep(2.5)

    states = [await producer.state() for producer in producers]

    assert states == ["CompleteAbort"] * 2 + ["Ongoing"] * 3


async def test_an_open_transaction_keeps_its_deadline_through_a_restart(
    home: Home, autojump_clock: MockClock
) -> None:
    """TX-037."""
    async with open_world(backend=home.backend, env=home.env) as world:
        await world.create()
        producer = await a_producer(world, timeout_ms=10_000)
        await producer.begin(0)
        await producer.write(b"a")
    await trio.sleep(6)

    async with open_world(backend=home.backend, env=home.env) as world:
        producer.world = world
        await trio.sleep(3.9)
        before = await producer.state()
        await trio.sleep(0.2)

        assert before == "Ongoing"
        assert await producer.state() == "CompleteAbort"


async def test_an_open_transaction_can_be_committed_after_a_restart(home: Home) -> None:
    """TX-037."""
    async with open_world(backend=home.backend, env=home.env) as world:
        await world.create()
        producer = await a_producer(world)
        await producer.begin(0)
        await producer.add_group()
        await producer.write(b"a")
        await producer.send_offset(5)

    async with open_world(backend=home.backend, env=home.env) as world:
        producer.world = world
        assert await producer.write(b"b") is NONE
        assert await producer.end(True) is NONE
        await producer.complete()

        assert await committed_values(world) == [b"a", b"b"]
        assert await group_offset(world) == 5


async def test_ids_that_nobody_uses_are_forgotten(autojump_clock: MockClock) -> None:
    config = settings(
        transactional_id_expiration_ms="60000",
        **{"transaction.remove.expired.transaction.cleanup.interval.ms": "1000"},
    )
    async with open_world(config) as world:
        await world.create()
        idle = await a_producer(world, "idle")
        busy = await a_producer(world, "busy", timeout_ms=900_000)
        await busy.begin(0)
        await trio.sleep(59)
        before = await idle.state()
        await trio.sleep(3)

        assert before == "Empty"
        assert (await idle.seen()).error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert await idle.begin(0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert await busy.state() == "Ongoing"


# --- crowds -----------------------------------------------------------------------------------------


async def test_nobody_is_answered_before_it_is_durable(slow: World) -> None:
    disk(slow).at_once = True
    producer = await a_producer(slow)
    disk(slow).at_once = False

    answer = slow.answer(producer.addition(0))
    assert isinstance(answer, Later)
    done: list[object] = []

    async def wait() -> None:
        done.append(await answer.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert done == []
        disk(slow).journal.flush()
    assert len(done) == 1


async def test_no_marker_is_written_before_the_outcome_is_durable(slow: World) -> None:
    disk(slow).at_once = True
    producer = await a_producer(slow)
    await producer.begin(0)
    await producer.write(b"a")
    disk(slow).at_once = False

    answer = slow.answer(producer.ending())
    await wait_all_tasks_blocked()
    before = await markers(slow)
    disk(slow).journal.flush()
    await wait_all_tasks_blocked()

    assert before == []
    assert await markers(slow) == [(0, True)]
    assert (await answer.wait()).error_code is NONE
    assert slow.partition().last_stable_offset == 0, "the marker is not durable yet: a power loss may take it"
    disk(slow).flush_all()
    await wait_all_tasks_blocked()
    assert slow.partition().last_stable_offset == 2


async def test_transactions_that_are_ended_together_share_their_syncs(slow: World) -> None:
    backend = disk(slow)
    backend.at_once = True
    producers = [await a_producer(slow, f"x{n}") for n in range(50)]
    for producer in producers:
        await producer.begin(0)
        await producer.write(b"a")
    backend.at_once = False
    appends = backend.journal.appends

    answers = [slow.answer(producer.ending()) for producer in producers]
    await wait_all_tasks_blocked()
    decided = backend.journal.appends - appends
    backend.journal.flush()
    await wait_all_tasks_blocked()
    written = await markers(slow)
    slow.log().flush()
    await wait_all_tasks_blocked()
    backend.flush_all()

    assert decided == 1
    assert written == [(0, True)] * 50, "all markers wait for one sync"
    for answer in answers:
        assert (await answer.wait()).error_code is NONE
    backend.at_once = True
    assert {await producer.complete() for producer in producers} == {"CompleteCommit"}


async def test_who_hangs_up_while_waiting_harms_nobody(slow: World) -> None:
    backend = disk(slow)
    backend.at_once = True
    producer, other = await a_producer(slow), await a_producer(slow, "other")
    await producer.begin(0)
    backend.at_once = False

    with trio.move_on_after(0):
        await slow.ask(producer.ending())
    answer = slow.answer(other.addition(0))
    backend.at_once = True
    backend.flush_all()

    assert (await answer.wait()).error_code is NONE
    assert await producer.complete() == "CompleteCommit", "what was asked is done all the same"


async def test_with_a_full_inbox_callers_wait_their_turn(
    slow: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = disk(slow)
    backend.at_once = True
    count = txn_coordinator.INBOX_SIZE + 50
    backend.at_once = False
    asked = [
        slow.answer(log.InitProducerId(transactional_id=f"x{n}", transaction_timeout_ms=1_000))
        for n in range(count)
    ]
    told: list[ErrorCode] = []

    async def wait(answer: Later[log.InitProducerIdReply]) -> None:
        told.append((await answer.wait()).error_code)

    async with trio.open_nursery() as nursery:
        for answer in asked:
            assert isinstance(answer, Later)
            nursery.start_soon(wait, answer)
        await wait_all_tasks_blocked()
        assert told == []
        backend.at_once = True
        backend.flush_all()

    assert told == [NONE] * count


async def test_a_mistake_of_ours_is_told_and_does_not_end_the_task(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    producer = await a_producer(world)
    with monkeypatch.context() as patch:
        patch.setattr(Transactions, "describe", broken)
        reply = await world.ask(txn.DescribeTransactions(transactional_ids=["x"]))

    assert [one.error_code for one in reply.transaction_states] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert "DescribeTransactions failed" in caplog.text
    assert await producer.begin(0) is NONE


async def test_a_journal_that_fails_ends_the_broker() -> None:
    """Memory is ahead of what is kept: only a restart tells what is true."""
    env = make_env()
    backend = SlowBackend(env, at_once=True)
    with pytest.RaisesGroup(pytest.RaisesExc(Exception, match="the disk is gone"), flatten_subgroups=True):
        async with open_world(backend=backend, env=env) as world:
            await world.create()
            backend.journal.fail("the disk is gone")
            await a_producer(world)


async def test_what_only_adds_is_answered_at_once_where_the_page_cache_will_do(world: World) -> None:
    producer = await a_producer(world, bumps=True)
    await wait_all_tasks_blocked()

    answers = [world.answer(producer.addition(0)), world.answer(producer.batch(b"a"))]

    assert not any(isinstance(answer, Later) for answer in answers)


async def test_what_comes_behind_an_end_waits_its_turn(world: World) -> None:
    producer = await a_producer(world)
    await producer.begin(0)
    await wait_all_tasks_blocked()

    ending, adding = world.answer(producer.ending()), world.answer(producer.addition(0))

    assert isinstance(adding, Later)
    assert (await ending.wait()).error_code is NONE
    [result] = (await adding.wait()).results_by_transaction
    assert result.topic_results[0].results_by_partition[0].partition_error_code is BUSY, "it was ended before"


async def test_a_short_transaction_that_opens_beside_long_ones_has_its_deadline(
    world: World, autojump_clock: MockClock
) -> None:
    """The task sleeps until the long one's deadline, and is woken to set itself an earlier one."""
    long, short = await a_producer(world, "long"), await a_producer(world, "short", timeout_ms=500)
    await long.begin(0)
    await wait_all_tasks_blocked()
    await short.begin(0)

    await trio.sleep(0.51)

    assert (await short.state(), await long.state()) == ("CompleteAbort", "Ongoing")


async def test_a_journal_that_fails_for_what_is_decided_at_once_ends_the_broker_too(home: Home) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(Exception, match="the disk is gone"), flatten_subgroups=True):
        async with open_world(backend=home.backend, env=home.env) as world:
            await world.create()
            producer = await a_producer(world)
            await wait_all_tasks_blocked()
            home.backend.open(JOURNAL, LogSettings()).failed = "the disk is gone"
            answer = world.answer(producer.addition(0))
            assert not isinstance(answer, Later)
            assert answer.results_by_transaction[0].topic_results[0].results_by_partition[0] != NONE
            await trio.sleep_forever()
