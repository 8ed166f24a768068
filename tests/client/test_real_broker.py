"""The client against a real broker: RAFKA_TEST_BOOTSTRAP=host:port says which.

Another client reads what ours wrote, and writes what ours reads.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator

import pytest
import trio

from rafka.client import (
    Beginning,
    BrokerRefused,
    Client,
    NewTopic,
    OffsetOutOfRange,
    TopicPartition,
    connect,
)
from rafka.client.offsets import AtOffset

BOOTSTRAP = os.environ.get("RAFKA_TEST_BOOTSTRAP", "")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not BOOTSTRAP, reason="RAFKA_TEST_BOOTSTRAP names no broker"),
]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with connect(BOOTSTRAP) as client:
        yield client


@pytest.fixture
async def topic(client: Client) -> AsyncIterator[str]:
    name = f"client-{uuid.uuid4().hex[:12]}"
    [outcome] = await client.admin.create_topics([NewTopic(name=name, partitions=2)])
    outcome.check()
    yield name
    await client.admin.delete_topics([name])


async def read_all(client: Client, topic: str, *, read_committed: bool = False) -> list[bytes | None]:
    targets = [TopicPartition(topic, partition) for partition in (0, 1)]
    values: list[bytes | None] = []
    async with client.consumer(
        dict.fromkeys(targets, Beginning()), read_committed=read_committed
    ) as consumer:
        ends = await consumer.end_offsets()
        with trio.fail_after(20):
            while any(consumer.position(target) < end for target, end in ends.items()):
                chunk = await consumer.next_chunk()
                values += [record.value for record in chunk.records]
    return values


@pytest.mark.parametrize("codec", range(5))
async def test_what_is_sent_is_read_in_every_codec(client: Client, topic: str, codec: int) -> None:
    sent = [b"%d" % i * 50 for i in range(500)]
    async with client.producer(compression=codec, batch_size=4000) as producer:
        deliveries = [await producer.send(topic, value, partition=1) for value in sent]

    assert [(await one).offset for one in deliveries] == list(range(500))
    assert await read_all(client, topic) == sent


@pytest.mark.parametrize("acks", [0, 1, -1])
async def test_all_kinds_of_acks(client: Client, topic: str, acks: int) -> None:
    async with client.producer(acks=acks) as producer:
        deliveries = [await producer.send(topic, b"%d" % i, partition=0) for i in range(10)]
        for delivery in deliveries:
            await delivery
        await trio.sleep(0.2 if acks == 0 else 0)

    assert await read_all(client, topic) == [b"%d" % i for i in range(10)]


async def test_kafka_python_puts_keys_where_we_do_and_reads_what_we_wrote(client: Client, topic: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    keys = [b"key-%d" % i for i in range(20)]
    async with client.producer() as producer:
        ours = [(await (await producer.send(topic, b"v", key=key))).partition for key in keys]

    def with_kafka_python() -> tuple[list[int], set[bytes]]:
        theirs = KafkaProducer(bootstrap_servers=BOOTSTRAP)
        futures = [theirs.send(topic, b"v", key=key) for key in keys]
        partitions = [future.get(timeout=10).partition for future in futures]
        theirs.close()
        reader = KafkaConsumer(
            topic, bootstrap_servers=BOOTSTRAP, auto_offset_reset="earliest", consumer_timeout_ms=3000
        )
        found = [record.key for record, _ in zip(reader, range(40), strict=False)]
        reader.close()
        return partitions, set(found)

    partitions, found = await trio.to_thread.run_sync(with_kafka_python)

    assert partitions == ours
    assert found == set(keys)


async def test_what_a_transaction_did_not_commit_is_hidden_from_who_wants_it_so(
    client: Client, topic: str
) -> None:
    apis = {one.api_key for one in (await client.admin.api_versions()).api_keys}
    if 26 not in apis:
        pytest.skip("the broker has no transactions")
    from confluent_kafka import Producer

    def transact() -> None:
        producer = Producer({"bootstrap.servers": BOOTSTRAP, "transactional.id": topic})
        producer.init_transactions(10)
        for value, commit in ((b"aborted", False), (b"committed", True)):
            producer.begin_transaction()
            producer.produce(topic, value, partition=0)
            producer.flush(10)
            (producer.commit_transaction if commit else producer.abort_transaction)(10)

    await trio.to_thread.run_sync(transact)

    assert await read_all(client, topic) == [b"aborted", b"committed"]
    assert await read_all(client, topic, read_committed=True) == [b"committed"]


async def test_a_record_that_is_too_large_is_refused_alone(client: Client, topic: str) -> None:
    async with client.producer(request_size=4 << 20) as producer:
        first = await producer.send(topic, b"1", partition=0)
        large = await producer.send(topic, bytes(2 << 20), partition=0)
        last = await producer.send(topic, b"2", partition=0)

        with pytest.raises(BrokerRefused, match="MESSAGE_TOO_LARGE"):
            await large
        assert ((await first).offset, (await last).offset) == (0, 1)


async def test_an_offset_beyond_the_log_is_told(client: Client, topic: str) -> None:
    async with client.consumer({TopicPartition(topic, 0): AtOffset(99)}) as consumer:
        with pytest.raises(OffsetOutOfRange, match="which goes from 0 to 0"), trio.fail_after(10):
            await consumer.next_chunk()


async def test_a_hundred_thousand_records_arrive_in_order(client: Client, topic: str) -> None:
    async with client.producer(batch_size=65536) as producer:
        for i in range(100_000):
            await producer.send(topic, b"%d" % i, partition=0)

    assert await read_all(client, topic) == [b"%d" % i for i in range(100_000)]
