"""confluent-kafka (librdkafka) in the words of vocabulary.py."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)

from .vocabulary import READ_TIMEOUT, Acks, Rec, Refused, Start

name = "confluent-kafka"
COMMON: Final = {"topic.metadata.propagation.max.ms": 10_000}


def check_codec(codec: str) -> None:
    """librdkafka brings all codecs with it."""


def produce(
    bootstrap: str,
    topic: str,
    records: Sequence[Rec],
    *,
    partition: int = 0,
    codec: str = "none",
    acks: Acks = "all",
    idempotent: bool = False,
) -> list[int]:
    producer = Producer(
        COMMON
        | {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            "message.max.bytes": 16 << 20,
            "linger.ms": 5,
            "message.timeout.ms": int(READ_TIMEOUT * 1000),
        }
    )
    told: dict[int, Any] = {}
    for i, record in enumerate(records):

        def on_delivery(error: Any, message: Any, i: int = i) -> None:
            told[i] = error or message.offset()

        extra = {} if record.timestamp is None else {"timestamp": record.timestamp}
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            partition=partition,
            on_delivery=on_delivery,
            **extra,
        )
        producer.poll(0)
    producer.flush(READ_TIMEOUT)
    if failed := [answer for answer in told.values() if not isinstance(answer, int | None)]:
        raise Refused(failed[0].code(), failed[0])
    assert len(told) == len(records), "not every record was told of in time"
    return [-1 if told[i] is None or acks == "0" else told[i] for i in range(len(records))]


class ConsumerReader:
    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer

    def read(self, count: int, timeout: float = READ_TIMEOUT) -> list[Rec]:
        found: list[Rec] = []
        deadline = time.monotonic() + timeout
        while len(found) < count and time.monotonic() < deadline:
            for message in self.consumer.consume(count - len(found), timeout=0.2):
                if message.error() is not None:
                    raise Refused(message.error().code(), message.error())
                found.append(as_rec(message))
        return found


def as_rec(message: Any) -> Rec:
    return Rec(
        key=message.key(),
        value=message.value(),
        headers=tuple((key, value) for key, value in message.headers() or ()),
        timestamp=message.timestamp()[1],
        offset=message.offset(),
    )


@contextmanager
def consumer(bootstrap: str) -> Iterator[Any]:
    """A group id because the library insists on one; nothing is committed, nothing is joined."""
    made = Consumer(
        COMMON
        | {
            "bootstrap.servers": bootstrap,
            "group.id": f"unused-{uuid.uuid4().hex[:8]}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            "fetch.message.max.bytes": 16 << 20,
            "receive.message.max.bytes": 128 << 20,
        }
    )
    try:
        yield made
    finally:
        made.close()


@contextmanager
def reader(
    bootstrap: str, topic: str, *, partition: int = 0, start: Start = "beginning"
) -> Iterator[ConsumerReader]:
    with consumer(bootstrap) as made:
        at: int = OFFSET_BEGINNING
        if start == "end":
            at = made.get_watermark_offsets(TopicPartition(topic, partition), READ_TIMEOUT)[1]
        elif isinstance(start, int):
            at = start
        made.assign([TopicPartition(topic, partition, at)])
        yield ConsumerReader(made)


def offset_at(bootstrap: str, topic: str, timestamp: int, *, partition: int = 0) -> int | None:
    with consumer(bootstrap) as made:
        (found,) = made.offsets_for_times([TopicPartition(topic, partition, timestamp)], READ_TIMEOUT)
        return None if found.offset < 0 else int(found.offset)


@contextmanager
def admin(bootstrap: str) -> Iterator[ConfluentAdmin]:
    yield ConfluentAdmin(AdminClient(COMMON | {"bootstrap.servers": bootstrap}), bootstrap)


class ConfluentAdmin:
    def __init__(self, client: Any, bootstrap: str) -> None:
        self.client = client
        self.bootstrap = bootstrap

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(name, partitions, replication_factor=1, config=dict(config or {}))
        answer_of(self.client.create_topics([wanted]))

    def delete_topic(self, name: str) -> None:
        answer_of(self.client.delete_topics([name]))

    def topics(self) -> set[str]:
        return set(self.client.list_topics(timeout=READ_TIMEOUT).topics)

    def create_partitions(self, name: str, total: int) -> None:
        answer_of(self.client.create_partitions([NewPartitions(name, total)]))

    def partitions(self, name: str) -> int:
        return len(self.client.list_topics(name, timeout=READ_TIMEOUT).topics[name].partitions)

    def config(self, name: str) -> dict[str, str]:
        entries = answer_of(self.client.describe_configs([ConfigResource("topic", name)]))
        return {key: entry.value for key, entry in entries.items()}

    def alter_config(self, name: str, config: Mapping[str, str]) -> None:
        changes = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
            for key, value in config.items()
        ]
        resource = ConfigResource("topic", name, incremental_configs=changes)
        answer_of(self.client.incremental_alter_configs([resource]))

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        answer_of(self.client.delete_records([TopicPartition(name, partition, before)]))

    def offsets(self, name: str, partition: int = 0) -> tuple[int, int]:
        with consumer(self.bootstrap) as made:
            low, high = made.get_watermark_offsets(TopicPartition(name, partition), READ_TIMEOUT)
            return low, high

    def cluster(self) -> list[tuple[str, int]]:
        nodes = self.client.describe_cluster().result(READ_TIMEOUT).nodes
        return [(node.host, node.port) for node in nodes]


def answer_of(futures: Mapping[Any, Any]) -> Any:
    (future,) = futures.values()
    try:
        return future.result(READ_TIMEOUT)
    except KafkaException as error:
        raise Refused(error.args[0].code(), error) from error
