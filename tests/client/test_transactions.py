"""Administration of transactions, against rafka in this process: list, describe, find what hangs, end it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable

import attrs
import pytest
import trio
import trio.testing

from rafka.client import Beginning, BrokerRefused, Client, NewTopic, TopicPartition, connect
from rafka.client.transactions import PartitionProducer
from rafka.config import load
from rafka.errors import ErrorCode
from rafka.server import open_broker

from ..wire_producer import WireProducer

NONE = ErrorCode.NONE
HOUR_MS = 3_600_000


@attrs.frozen
class World:
    client: Client
    dial: Callable[[], Awaitable[trio.abc.Stream]]

    async def producer(self, name: str) -> WireProducer:
        producer = WireProducer(self.dial, name)
        assert await producer.init() is NONE
        return producer

    async def hanging(self) -> WireProducer:
        """It writes in a transaction that no coordinator has heard of: this broker does not ask."""
        producer = await self.producer("nobody")
        assert await producer.write("orders", b"lost") is NONE
        return producer


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A broker that lets in transactional batches unasked, as brokers did before Kafka 3.6."""
    flags = [
        ("storage", "memory:", "a test"),
        ("transaction.partition.verification.enable", "false", "a test"),
    ]
    async with open_broker(load(flags=flags), listen=False) as broker, trio.open_nursery() as nursery:

        async def dial(*_: object) -> trio.abc.Stream:
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(broker.serve_stream, far)
            return near

        async with connect("rafka:9092", dial=dial) as client:
            [outcome] = await client.admin.create_topics([NewTopic(name="orders", partitions=2)])
            outcome.check()
            yield World(client, dial)
        nursery.cancel_scope.cancel()


async def find_hanging(world: World, *, after_ms: int = HOUR_MS) -> list[PartitionProducer]:
    """As if it were asked an hour after all that was written."""
    targets = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    now_ms = int(time.time() * 1000) + HOUR_MS + 1000
    return await world.client.transactions.hanging(targets, longer_than_ms=after_ms, now_ms=now_ms)


async def test_transactions_are_listed_by_state_producer_age_and_name(world: World) -> None:
    idle, busy = await world.producer("idle"), await world.producer("busy")
    await busy.begin("orders", 0)
    listing = world.client.transactions.list_all

    assert [one.transactional_id for one in await listing()] == ["busy", "idle"]
    assert [one.state for one in await listing()] == ["Ongoing", "Empty"]
    assert [one.transactional_id for one in await listing(states=["Ongoing"])] == ["busy"]
    assert [one.transactional_id for one in await listing(producer_ids=[idle.producer_id])] == ["idle"]
    assert [one.transactional_id for one in await listing(pattern="b.*")] == ["busy"]
    assert [one.transactional_id for one in await listing(longer_than_ms=HOUR_MS)] == ["idle"]
    with pytest.raises(ValueError, match="Bogus"):
        await listing(states=["Bogus"])


async def test_a_transaction_is_described(world: World) -> None:
    producer = await world.producer("payments")
    before = await world.client.transactions.describe("payments")
    await producer.begin("orders", 0, 1)

    seen = await world.client.transactions.describe("payments")

    assert (before.state, before.started_ms, before.partitions) == ("Empty", None, ())
    assert (seen.state, seen.producer_id, seen.producer_epoch) == ("Ongoing", producer.producer_id, 0)
    assert seen.timeout_ms == 60_000
    assert seen.started_ms == pytest.approx(time.time() * 1000, abs=20_000)
    assert seen.partitions == (TopicPartition("orders", 0), TopicPartition("orders", 1))
    with pytest.raises(BrokerRefused) as refused:
        await world.client.transactions.describe("nobody")
    assert refused.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_the_producers_of_a_partition_and_what_they_have_open(world: World) -> None:
    """TX-040."""
    producer = await world.producer("payments")
    await producer.begin("orders", 0)
    await producer.write("orders", b"a", b"b")
    target = TopicPartition("orders", 0)

    [open_one] = await world.client.transactions.producers(target)
    await producer.end(True)
    await world.client.transactions.terminate("payments")
    [done] = await world.client.transactions.producers(target)

    assert (open_one.producer_id, open_one.last_sequence, open_one.open_since) == (producer.producer_id, 1, 0)
    assert open_one.coordinator_epoch == -1
    assert (done.open_since, done.coordinator_epoch) == (None, 0)


async def test_whoever_is_terminated_is_aborted_and_fenced(world: World) -> None:
    producer = await world.producer("payments")
    await producer.begin("orders", 0)
    await producer.write("orders", b"a")

    await world.client.transactions.terminate("payments")

    assert (await world.client.transactions.describe("payments")).state == "Empty"
    assert await producer.end(True) is ErrorCode.PRODUCER_FENCED
    assert await read_committed(world) == []


async def test_what_hangs_is_found_and_ended(world: World) -> None:
    hanging = await world.hanging()
    plain = await world.producer("plain")
    assert await plain.write("orders", b"after", version=12) is NONE
    await plain.end(True)
    assert await read_committed(world) == []

    [found] = await find_hanging(world)
    assert (found.producer_id, found.open_since) == (hanging.producer_id, 0)
    await world.client.transactions.abort(found)

    assert await find_hanging(world) == []
    assert await read_committed(world) == [b"after"]


async def test_what_its_coordinator_knows_does_not_hang(world: World) -> None:
    producer = await world.producer("payments")
    await producer.begin("orders", 0)
    await producer.write("orders", b"a")

    assert await find_hanging(world) == []


async def test_what_may_yet_be_ended_is_not_taken_for_hanging(world: World) -> None:
    await world.hanging()

    assert await find_hanging(world, after_ms=2 * HOUR_MS) == []


async def test_of_two_partitions_only_the_one_that_is_not_known_hangs(world: World) -> None:
    producer = await world.producer("payments")
    await producer.begin("orders", 0)
    await producer.write("orders", b"a", partition=0)
    producer.sequence = 0
    await producer.write("orders", b"b", partition=1)

    [found] = await find_hanging(world)

    assert found.partition == TopicPartition("orders", 1)


async def read_committed(world: World) -> list[bytes | None]:
    """All that a reader of committed records is given of partition 0 by now."""
    target = TopicPartition("orders", 0)
    values: list[bytes | None] = []
    async with world.client.consumer({target: Beginning()}, read_committed=True) as consumer:
        end = (await consumer.end_offsets())[target]
        with trio.fail_after(20):
            while consumer.position(target) < end:
                values += [record.value for record in (await consumer.next_chunk()).records]
    return values
