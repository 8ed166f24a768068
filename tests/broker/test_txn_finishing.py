"""What was decided is finished: by the next start, and by logs that refused, once they do not."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode
from rafka.storage import journal as journals
from rafka.storage.backend import LogSettings
from rafka.storage.journal import JOURNAL

from .kit import World, open_world
from .producing import Home, Refusing, a_producer, committed_values, group_offset, markers

NONE = ErrorCode.NONE
BUSY = ErrorCode.CONCURRENT_TRANSACTIONS


# --- crashes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
async def test_what_was_decided_before_a_crash_is_finished_by_the_next_start(
    home: Home, refusing: Refusing, committed: bool
) -> None:
    """TX-036. One partition has its marker from before: it is given no second one."""
    async with open_world(backend=home.backend, env=home.env) as world:
        await world.create(partitions=2)
        producer = await a_producer(world)
        await producer.begin(0, 1)
        await producer.add_group()
        await producer.write(b"a", index=0)
        await producer.write(b"b", index=1)
        await producer.send_offset(5)
        refusing.places.add(("t", 1))
        assert await producer.end(committed) is NONE
        await wait_all_tasks_blocked()
        assert (await producer.state()).startswith("Prepare")
        assert await group_offset(world) == -1
    refusing.places.clear()

    async with open_world(backend=home.backend, env=home.env) as world:
        producer.world = world

        assert await producer.state() == ("CompleteCommit" if committed else "CompleteAbort")
        assert await markers(world, index=0) == [(0, committed)]
        assert await markers(world, index=1) == [(0, committed)]
        assert await committed_values(world, index=1) == ([b"b"] if committed else [])
        assert await group_offset(world, stable=True) == (5 if committed else -1)


async def test_a_start_writes_no_marker_for_what_is_complete(home: Home) -> None:
    async with open_world(backend=home.backend, env=home.env) as world:
        await world.create()
        producer = await a_producer(world)
        await producer.begin(0)
        await producer.write(b"a")
        await producer.end(True)
        await producer.complete()
        end = world.partition().log.end_offset

    for _ in range(3):
        async with open_world(backend=home.backend, env=home.env) as world:
            assert world.partition().log.end_offset == end


async def test_a_snapshot_holds_transactions_as_of_one_moment(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_FACTS", 10)
    async with open_world(backend=home.backend, env=home.env) as world:
        await world.create()
        done = await a_producer(world, "done", bumps=True)
        for _ in range(20):
            await done.write(b"a")
            await done.end(True)
        half = await a_producer(world, "half", bumps=True)
        await half.write(b"b")
        await wait_all_tasks_blocked()
        seen = await done.seen(), await half.seen()
        assert world.backend.open(JOURNAL, LogSettings()).start_offset > 0, (
            "what a snapshot covers was cut off"
        )

    async with open_world(backend=home.backend, env=home.env) as world:
        done.world = half.world = world
        assert (await done.seen(), await half.seen()) == seen
        assert await done.write(b"c") is NONE
        assert await half.end(True) is NONE


# --- logs that refuse ------------------------------------------------------------------------------


async def test_a_log_that_takes_no_marker_is_asked_until_it_does(
    world: World, refusing: Refusing, autojump_clock: MockClock
) -> None:
    await world.create("u")
    producer = await a_producer(world)
    await producer.begin(0)
    await producer.begin(0, topic="u")
    await producer.write(b"a")
    await producer.write(b"b", topic="u")
    refusing.places.add(("t", 0))

    assert await producer.end(True) is NONE, "the outcome is durable: it will be so"
    await trio.sleep(10)
    waiting = await producer.state(), await committed_values(world), await committed_values(world, "u")
    assert await producer.begin(0) is BUSY
    refusing.places.clear()

    assert waiting == ("PrepareCommit", [], [b"b"])
    assert refusing.asked < 30
    assert await producer.complete() == "CompleteCommit"
    assert await committed_values(world) == [b"a"]
    assert await markers(world, "u") == [(0, True)], "the other one is not asked again"


async def test_a_transaction_that_cannot_be_finished_is_in_nobody_s_way(
    world: World, refusing: Refusing, autojump_clock: MockClock
) -> None:
    await world.create("u")
    stuck = await a_producer(world, "stuck")
    await stuck.begin(0)
    await stuck.write(b"a")
    refusing.places.add(("t", 0))
    await stuck.end(True)

    other = await a_producer(world, "other", bumps=True)
    for _ in range(5):
        assert await other.write(b"b", topic="u") is NONE
        assert await other.end(True) is NONE

    assert await committed_values(world, "u") == [b"b"] * 5
    assert await stuck.state() == "PrepareCommit"


async def test_a_write_waits_a_moment_for_the_end_of_the_transaction_before(
    world: World, refusing: Refusing, autojump_clock: MockClock
) -> None:
    """U6: the broker asks itself again; after that the client has to."""
    producer = await a_producer(world, bumps=True)
    await producer.write(b"a")
    refusing.places.add(("t", 0))
    await producer.end(True)

    began = trio.current_time()
    refused = await producer.write(b"b")

    assert refused is ErrorCode.NOT_ENOUGH_REPLICAS
    assert trio.current_time() - began == pytest.approx(0.1, abs=0.03)
