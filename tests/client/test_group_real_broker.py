"""Groups on a real broker, shared with members that others wrote: RAFKA_TEST_BOOTSTRAP says which broker.

Whoever came first leads, so each client is tried as the leader of the other.
"""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from rafka.client import (
    Beginning,
    Client,
    GroupConsumer,
    MemberRef,
    NewTopic,
    TopicPartition,
    UnknownGroup,
    connect,
)

BOOTSTRAP = os.environ.get("RAFKA_TEST_BOOTSTRAP", "")
PARTITIONS = 5
RECORDS = 50  # of each partition, in each of two helpings

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not BOOTSTRAP, reason="RAFKA_TEST_BOOTSTRAP names no broker"),
]

Found = set[tuple[int, int]]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with connect(BOOTSTRAP) as client:
        yield client


@pytest.fixture
async def topic(client: Client) -> AsyncIterator[str]:
    name = f"group-{uuid.uuid4().hex[:12]}"
    [made] = await client.admin.create_topics([NewTopic(name=name, partitions=PARTITIONS)])
    made.check()
    await client.admin.describe_topic(name)
    yield name
    await client.admin.delete_topics([name])


async def serve_a_helping(client: Client, topic: str) -> None:
    async with client.producer() as producer:
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                await producer.send(topic, b"%d" % number, partition=partition)


# --- members that others wrote: each polls in a thread of its own until it is told to stop -------------


def kafka_python(group: str, topic: str, assignor: str, found: Found, stop: threading.Event) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    known = (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=BOOTSTRAP,
        group_id=group,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        session_timeout_ms=6000,
        partition_assignment_strategy=[one for one in known if one.name == assignor],
    )
    while not stop.is_set():
        for records in consumer.poll(200).values():
            found.update((one.partition, one.offset) for one in records)
    consumer.close()


def librdkafka(group: str, topic: str, assignor: str, found: Found, stop: threading.Event) -> None:
    from confluent_kafka import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": BOOTSTRAP,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 300,
            "session.timeout.ms": 6000,
            "partition.assignment.strategy": assignor,
        }
    )
    consumer.subscribe([topic])
    while not stop.is_set():
        record = consumer.poll(0.2)
        if record is not None and record.error() is None:
            found.add((record.partition(), record.offset()))
    consumer.close()


def aiokafka(group: str, topic: str, assignor: str, found: Found, stop: threading.Event) -> None:
    import asyncio

    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

    known = (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)

    async def consume() -> None:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=BOOTSTRAP,
            group_id=group,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            session_timeout_ms=6000,
            partition_assignment_strategy=[one for one in known if one.name == assignor],
        )
        await consumer.start()
        while not stop.is_set():
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found.update((one.partition, one.offset) for one in records)
        await consumer.stop()

    asyncio.run(consume())


Partner = Callable[[str, str, str, Found, threading.Event], None]
PARTNERS: list[tuple[Partner, str]] = [
    (kafka_python, "range"),
    (kafka_python, "roundrobin"),
    (kafka_python, "sticky"),
    (kafka_python, "cooperative-sticky"),
    (librdkafka, "range"),
    (librdkafka, "roundrobin"),
    (librdkafka, "cooperative-sticky"),
    (aiokafka, "range"),
    (aiokafka, "roundrobin"),
    (aiokafka, "sticky"),
]


@asynccontextmanager
async def partner(
    member: Partner, group: str, topic: str, assignor: str, found: Found
) -> AsyncIterator[None]:
    stop = threading.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, member, group, topic, assignor, found, stop)
        try:
            yield
        finally:
            stop.set()


@asynccontextmanager
async def ours(group: str, topic: str, assignor: str, found: Found) -> AsyncIterator[GroupConsumer]:
    async def read(consumer: GroupConsumer) -> None:
        async for record in consumer:
            found.add((record.partition, record.offset))

    settings: dict[str, Any] = {"session_timeout": 6, "heartbeat_interval": 0.3, "start": Beginning()}
    async with (
        connect(BOOTSTRAP, client_id="ours") as client,
        client.group_consumer(group, [topic], assignors=[assignor], **settings) as consumer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(read, consumer)
        yield consumer
        nursery.cancel_scope.cancel()


async def until_shared(client: Client, group: str, members: int) -> list[int]:
    """Wait for every partition to be somebody's in a group of so many; how many each has."""
    with trio.fail_after(40):
        while True:
            try:
                described = await client.groups.describe(group)
            except UnknownGroup:  # its first member is still on its way
                await trio.sleep(0.1)
                continue
            shares = [one.assignment for one in described.members]
            everything = [target for share in shares for target in share]
            if described.state == "Stable" and len(shares) == members and len(everything) == PARTITIONS:
                assert len(set(everything)) == PARTITIONS, "a partition has two owners"
                return sorted(map(len, shares))
            await trio.sleep(0.1)


async def until_read(*found: Found, helpings: int) -> None:
    everything = {(p, o) for p in range(PARTITIONS) for o in range(RECORDS * helpings)}
    with trio.fail_after(20):
        while set().union(*found) != everything:  # noqa: ASYNC110  others' threads fill it
            await trio.sleep(0.1)


@pytest.mark.parametrize(("member", "assignor"), PARTNERS)
async def test_partitions_are_shared_with_members_that_others_wrote(
    client: Client, topic: str, member: Partner, assignor: str
) -> None:
    group, mine, theirs = f"g-{topic}", set(), set()  # type: ignore[var-annotated]
    await serve_a_helping(client, topic)

    async with ours(group, topic, assignor, mine) as consumer:
        await until_shared(client, group, 1)
        async with partner(member, group, topic, assignor, theirs):
            assert await until_shared(client, group, 2) == [2, 3]
            await serve_a_helping(client, topic)
            await until_read(mine, theirs, helpings=2)
            assert theirs, "they had partitions, and read nothing of them"
            assert len(consumer.assignment) in (2, 3)
        await until_shared(client, group, 1)

    offsets = await client.groups.offsets(group)
    assert {target.partition: one.offset for target, one in offsets.items()} == dict.fromkeys(
        range(PARTITIONS), 2 * RECORDS
    )


@pytest.mark.parametrize(("member", "assignor"), PARTNERS)
async def test_members_that_others_wrote_may_lead(
    client: Client, topic: str, member: Partner, assignor: str
) -> None:
    group, mine, theirs = f"g-{topic}", set(), set()  # type: ignore[var-annotated]

    async with partner(member, group, topic, assignor, theirs):
        await until_shared(client, group, 1)
        async with ours(group, topic, assignor, mine) as consumer:
            assert await until_shared(client, group, 2) == [2, 3]
            await serve_a_helping(client, topic)
            await until_read(mine, theirs, helpings=1)
            assert consumer.assignment == {TopicPartition(topic, partition) for partition, _ in mine}
        await until_shared(client, group, 1)


async def test_a_static_member_comes_back_without_a_rebalance(client: Client, topic: str) -> None:
    group = f"g-{topic}"
    settings: dict[str, Any] = {"instance_id": "pod-1", "heartbeat_interval": 0.3, "session_timeout": 10}

    generations = []
    for _ in range(3):
        async with client.group_consumer(group, [topic], start=Beginning(), **settings) as consumer:
            with trio.fail_after(20):
                while not consumer.assignment:  # noqa: ASYNC110
                    await trio.sleep(0.05)
            generations.append(consumer.generation)

    assert generations == [1, 1, 1]
    [removed] = await client.groups.remove_members(group, [MemberRef(instance_id="pod-1")])
    removed.check()
    [deleted] = await client.groups.delete([group])
    deleted.check()


async def test_a_group_is_moved_and_forgotten_by_administrators(client: Client, topic: str) -> None:
    group, one = f"g-{topic}", TopicPartition(topic, 0)

    assert await client.groups.alter_offsets(group, {one: 7}) == {one: None}
    assert (await client.groups.offsets(group))[one].offset == 7
    assert group in [listed.group_id for listed in await client.groups.list_all(["Empty"])]
    assert (await client.groups.describe(group)).state == "Empty"
    assert await client.groups.delete_offsets(group, [one]) == {one: None}
    assert await client.groups.offsets(group) == {}
