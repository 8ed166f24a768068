"""Records arrive once, in order, with a result for each, whatever the broker does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rafka.client import (
    Address,
    BrokerRefused,
    BufferFull,
    Delivery,
    DeliveryTimedOut,
    Producer,
    TopicPartition,
    UnknownTopic,
    connect,
)
from rafka.client.partitioner import partition_of_key
from rafka.errors import ErrorCode
from rafka.records.batch import read_header
from rafka.records.record import iterate

from .scripted import Network, ScriptedBroker


@asynccontextmanager
async def producing(network: Network, **settings: Any) -> AsyncIterator[Producer]:
    async with connect("broker", dial=network.dial) as client, client.producer(**settings) as producer:
        yield producer


def written(broker: ScriptedBroker, partition: int = 0) -> list[bytes | None]:
    return [
        record.value for batch in broker.logs["orders", partition].batches for record in iterate(bytes(batch))
    ]


async def test_each_record_learns_its_offset(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with producing(network) as producer:
        deliveries = [await producer.send("orders", b"%d" % i, partition=1, timestamp=5) for i in range(3)]
        results = [await delivery for delivery in deliveries]

    assert [(one.partition, one.offset, one.timestamp) for one in results] == [
        (1, 0, 5),
        (1, 1, 5),
        (1, 2, 5),
    ]
    assert written(broker, 1) == [b"0", b"1", b"2"]
    assert len(broker.logs["orders", 1].batches) == 1


async def test_a_key_decides_the_partition(network: Network, autojump_clock: MockClock) -> None:
    async with producing(network) as producer:
        delivery = await producer.send("orders", b"v", key=b"abc")

        assert (await delivery).partition == partition_of_key(b"abc", 2)


async def test_leaving_the_block_sends_what_is_left(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with producing(network, linger=3600.0) as producer:
        await producer.send("orders", b"last", partition=0)

    assert written(broker) == [b"last"]
    assert trio.current_time() < 1


async def test_what_was_written_though_the_answer_was_lost_is_not_written_twice(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    answer = broker.on_Produce
    lost = iter([True])

    def lose_the_first(request: Any, version: int) -> Any:
        reply = answer(request, version)
        if next(lost, False):
            raise trio.BrokenResourceError
        return reply

    broker.answers["Produce"] = lose_the_first

    async with producing(network) as producer:
        result = await (await producer.send("orders", b"once", partition=0))

    assert written(broker) == [b"once"]
    assert broker.names().count("Produce") == 2
    assert result.offset == 0


async def test_order_survives_a_passing_error_with_batches_in_flight(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.refuse.extend([ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NONE])

    async with producing(network, batch_size=100, linger=0.0) as producer:
        deliveries = [await producer.send("orders", b"%d" % i * 40, partition=0) for i in range(8)]
        offsets = [(await delivery).offset for delivery in deliveries]

    assert offsets == list(range(8))
    assert written(broker) == [b"%d" % i * 40 for i in range(8)]
    sequences = [read_header(batch).base_sequence for batch in broker.logs["orders", 0].batches]
    assert sequences == list(range(8))
    assert broker.producer_ids == 1


async def test_a_refused_batch_takes_only_its_own_records_with_it(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.refuse.extend([ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE])

    async with producing(network, batch_size=100, linger=0.0) as producer:
        one, two, three = [await producer.send("orders", b"%d" % i * 40, partition=0) for i in range(3)]
        with pytest.raises(BrokerRefused, match="orders-0: MESSAGE_TOO_LARGE"):
            await two

        assert ((await one).offset, (await three).offset) == (0, 1)

    assert broker.producer_ids == 1


async def test_a_producer_that_the_broker_has_forgotten_takes_a_new_id(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with producing(network) as producer:
        await (await producer.send("orders", b"a", partition=0))
        broker.refuse.append(ErrorCode.UNKNOWN_PRODUCER_ID)
        await (await producer.send("orders", b"b", partition=0))

    ids = [read_header(batch).producer_id for batch in broker.logs["orders", 0].batches]
    assert ids == [1001, 1002]
    assert written(broker) == [b"a", b"b"]


async def test_what_is_not_acknowledged_in_time_is_given_up_with_a_reason(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with producing(network, delivery_timeout=8.0) as producer:
        await (await producer.send("orders", b"a", partition=0))
        broker.refuse.extend([ErrorCode.NOT_ENOUGH_REPLICAS] * 1000)
        delivery = await producer.send("orders", b"b", partition=0)
        with pytest.raises(DeliveryTimedOut, match="orders-0: not acknowledged within 8 s"):
            await delivery
        broker.refuse.clear()
        later = await (await producer.send("orders", b"c", partition=0))

    assert later.offset == 1
    assert broker.producer_ids == 2  # the number of "b" was in doubt


async def test_acks_0_asks_for_no_answer_and_no_producer_id(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with producing(network, acks=0) as producer:
        result = await (await producer.send("orders", b"a", partition=0))

    await trio.sleep(1)  # the broker needs a moment: nobody waited for it
    assert result.offset == -1
    assert written(broker) == [b"a"]
    assert broker.producer_ids == 0


async def test_many_may_wait_for_one_record(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    offsets: list[int] = []

    async def wait(delivery: Delivery) -> None:
        offsets.append((await delivery).offset)

    async with producing(network) as producer, trio.open_nursery() as nursery:
        delivery = await producer.send("orders", b"a", partition=0)
        for _ in range(3):
            nursery.start_soon(wait, delivery)
        nursery.start_soon(producer.flush)

    assert offsets == [0, 0, 0]


async def test_a_full_buffer_makes_the_sender_wait(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with producing(network, buffer_size=4000, batch_size=1000) as producer:
        for i in range(50):
            await producer.send("orders", b"%02d" % i * 250, partition=0)
        with pytest.raises(BufferFull, match="larger than the buffer"):
            await producer.send("orders", bytes(5000))

    assert written(broker) == [b"%02d" % i * 250 for i in range(50)]


async def test_a_partition_that_is_not_there_is_refused(network: Network, autojump_clock: MockClock) -> None:
    async with producing(network) as producer:
        with pytest.raises(UnknownTopic, match=r"orders-2 \(the topic has 2 partitions\)"):
            await producer.send("orders", b"a", partition=2)


async def test_a_topic_is_made_when_it_is_written_to(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    answer = broker.on_Metadata

    def create(request: Any, version: int) -> Any:
        reply = answer(request, version)
        for topic in request.topics:
            if request.allow_auto_topic_creation:
                broker.topics.setdefault(topic.name, 1)
        return reply

    broker.answers["Metadata"] = create

    async with producing(network) as producer:
        result = await (await producer.send("fresh", b"a"))

    assert (result.topic, result.offset) == ("fresh", 0)


async def test_acks_that_cannot_be_idempotent_are_refused(
    network: Network, autojump_clock: MockClock
) -> None:
    with pytest.raises(ValueError, match="needs acks=all"):
        async with producing(network, acks=1, idempotent=True):
            pass


async def test_a_leader_that_moves_gets_the_rest(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    second = ScriptedBroker(topics=broker.topics, node_id=2, address=Address("second", 9092), leader=2)
    network.brokers[second.address] = second
    broker.nodes = second.nodes = {1: broker.address, 2: second.address}

    async with connect("broker", dial=network.dial) as client, client.producer() as producer:
        await (await producer.send("orders", b"a", partition=0))
        broker.leader = 2
        second.logs["orders", 0] = broker.logs["orders", 0]
        broker.refuse.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        result = await (await producer.send("orders", b"b", partition=0))

        assert client.cluster.leader(TopicPartition("orders", 0)) == 2

    assert result.offset == 1
    assert written(second) == [b"a", b"b"]
