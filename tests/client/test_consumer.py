"""Partitions are read from where one likes, in order, and errors say where to go on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rafka.client import (
    AtOffset,
    AtTime,
    Beginning,
    Consumer,
    CorruptBatch,
    End,
    FromEnd,
    OffsetOutOfRange,
    Start,
    TopicPartition,
    UnknownTopic,
    UnsupportedVersion,
    connect,
)
from rafka.errors import ErrorCode
from rafka.records.build import build
from rafka.records.record import Record
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.list_offsets import LIST_OFFSETS

from .scripted import Network, ScriptedBroker

ONE = TopicPartition("orders", 0)
TWO = TopicPartition("orders", 1)


@asynccontextmanager
async def reading(
    network: Network, starts: dict[TopicPartition, Start], **settings: Any
) -> AsyncIterator[Consumer]:
    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer(starts, **settings) as consumer,
    ):
        yield consumer


def fill(broker: ScriptedBroker, count: int, partition: int = 0, per_batch: int = 2) -> None:
    for first in range(0, count, per_batch):
        numbers = range(first, min(first + per_batch, count))
        broker.logs["orders", partition].append(build([Record(0, i, None, b"%d" % i) for i in numbers]))


async def read(consumer: Consumer, count: int) -> list[int]:
    found: list[int] = []
    async for record in consumer:
        found.append(record.offset)
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize(
    ("start", "offsets"),
    [(Beginning(), [0, 1, 2]), (AtOffset(3), [3, 4, 5]), (FromEnd(2), [4, 5]), (FromEnd(100), [0, 1])],
)
async def test_reading_begins_where_it_is_told(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker, start: Start, offsets: list[int]
) -> None:
    fill(broker, 6)

    async with reading(network, {ONE: start}) as consumer:
        assert await read(consumer, len(offsets)) == offsets
        assert consumer.position(ONE) == offsets[-1] + 1


async def test_a_time_that_is_in_the_future_is_the_end(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 6)

    async with reading(network, {ONE: AtTime(10**15), TWO: End()}) as consumer:
        assert (consumer.position(ONE), consumer.position(TWO)) == (6, 0)


async def test_the_beginning_of_an_empty_partition_is_waited_at(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: Beginning()}) as consumer,
    ):
        with trio.move_on_after(5) as waited:
            await consumer.next_chunk()
        fill(broker, 2)

        assert waited.cancelled_caught
        assert await read(consumer, 2) == [0, 1]


async def test_what_was_fetched_before_a_seek_is_not_seen_after_it(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 6)

    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: Beginning()}) as consumer,
    ):
        assert await read(consumer, 1) == [0]
        await trio.sleep(1)  # the rest has come by now
        consumer.seek(ONE, 4)
        assert await read(consumer, 2) == [4, 5]


async def test_an_offset_that_is_not_in_the_log_is_told_with_what_is(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 6)
    broker.logs["orders", 0].start = 2

    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: AtOffset(0)}) as consumer,
    ):
        with pytest.raises(OffsetOutOfRange, match="offset 0 is not in the log, which goes from 2 to 6"):
            await consumer.next_chunk()
        consumer.seek(ONE, 2)
        assert await read(consumer, 1) == [2]


async def test_or_reading_goes_on_where_the_settings_say(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 6)

    async with reading(network, {ONE: AtOffset(99)}, out_of_range=Beginning()) as consumer:
        assert await read(consumer, 2) == [0, 1]


async def test_a_damaged_batch_is_told_and_can_be_passed(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 6)
    broker.logs["orders", 0].batches[1][-1] ^= 1

    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: AtOffset(2)}) as consumer,
    ):
        with pytest.raises(CorruptBatch, match="go on behind it from offset 4"):
            await consumer.next_chunk()
        consumer.seek(ONE, 4)
        assert await read(consumer, 2) == [4, 5]


async def test_a_leader_that_steps_down_is_asked_again_after_a_while(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 2)
    refusals = iter([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE])

    def refuse(request: Any, version: int) -> Any:
        code = next(refusals, None)
        if code is None:
            return broker.on_Fetch(request, version)
        response: Any = FETCH.Response
        entry = response.Responses.Partitions(partition_index=0, error_code=int(code), records=b"")
        return response(responses=[response.Responses(topic="orders", partitions=[entry])])

    broker.answers["Fetch"] = refuse

    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: Beginning()}) as consumer,
    ):
        assert await read(consumer, 2) == [0, 1]


async def test_reading_goes_on_when_somebody_else_learns_of_the_leader(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 2)
    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: Beginning()}) as consumer,
    ):
        assert await read(consumer, 2) == [0, 1]
        broker.leader = -1
        await client.cluster.refresh()
        await trio.sleep(0.7)  # the fetch under way has ended, and the consumer has not yet asked by itself

        broker.leader = 1
        await client.cluster.refresh()

        fill(broker, 2)
        with trio.fail_after(0.1):
            assert await read(consumer, 2) == [2, 3]


async def test_a_broker_that_hangs_up_is_dialled_again(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 4)
    broker.close_on.append("Fetch")

    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: Beginning()}) as consumer,
    ):
        assert await read(consumer, 4) == [0, 1, 2, 3]


async def test_a_partition_that_is_not_there_is_told(network: Network, autojump_clock: MockClock) -> None:
    async with connect("broker", dial=network.dial) as client:
        with pytest.raises(UnknownTopic, match="orders-5"):
            async with client.consumer({TopicPartition("orders", 5): Beginning()}):
                pass


async def test_a_slow_reader_slows_the_fetching(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 100)
    log = broker.logs["orders", 0]

    def one_batch_at_a_time(request: Any, version: int) -> Any:
        reply = broker.on_Fetch(request, version)
        offset = request.topics[0].partitions[0].fetch_offset
        reply.responses[0].partitions[0].records = bytes(log.batches[offset // 2]) if offset < 100 else b""
        return reply

    broker.answers["Fetch"] = one_batch_at_a_time

    async with (
        connect("broker", dial=network.dial) as client,
        client.consumer({ONE: Beginning()}) as consumer,
    ):
        await trio.sleep(60)
        fetched = broker.names().count("Fetch")
        assert await read(consumer, 100) == list(range(100))

    assert fetched < 12


async def test_two_partitions_are_read_side_by_side_each_in_order(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    fill(broker, 10, 0)
    fill(broker, 10, 1)

    async with reading(network, {ONE: Beginning(), TWO: Beginning()}) as consumer:
        found: dict[int, list[int]] = {0: [], 1: []}
        async for record in consumer:
            found[record.partition].append(record.offset)
            if sum(map(len, found.values())) == 20:
                break

    assert found == {0: list(range(10)), 1: list(range(10))}


async def test_special_times_need_a_broker_that_knows_them(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.versions[LIST_OFFSETS.key] = (1, 6)

    async with connect("broker", dial=network.dial) as client:
        with pytest.raises(UnsupportedVersion, match="ListOffsets, and 7 to 11 are needed"):
            await client.admin.list_offsets({ONE: -3})
