"""confluent-kafka (librdkafka)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from .vocabulary import TIMEOUT_S, Fenced, transformed

KNOWS_GENERATIONS: Final = True
_REPLACED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)


def _call(act: Callable[..., Any], *args: Any) -> Any:
    """With the tries that librdkafka leaves to its caller."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            return act(*args)
        except KafkaException as failed:
            error = failed.args[0]
            if error.code() in _REPLACED:
                raise Fenced(str(error)) from failed
            if not error.retriable() or time.monotonic() > deadline:
                raise


class _Transactional:
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "topic.metadata.propagation.max.ms": 10_000,
            }
        )
        self._bootstrap = bootstrap
        _call(self._producer.init_transactions, TIMEOUT_S)

    def begin(self) -> None:
        _call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self._producer.produce(topic, value=value, partition=partition)
        self._producer.poll(0)

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        # librdkafka makes the name of a group into what the call needs only by way of a consumer.
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        self.send_positions(
            [TopicPartition(topic, p, offset) for p, offset in offsets.items()],
            consumer.consumer_group_metadata(),
        )
        consumer.close()

    def send_positions(self, positions: list[TopicPartition], group: Any) -> None:
        _call(self._producer.send_offsets_to_transaction, positions, group, TIMEOUT_S)

    def commit(self) -> None:
        _call(self._producer.commit_transaction, TIMEOUT_S)

    def abort(self) -> None:
        _call(self._producer.abort_transaction, TIMEOUT_S)


@contextmanager
def producer(bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> Iterator[_Transactional]:
    yield _Transactional(bootstrap, transactional_id, timeout_ms)


def read_committed(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"read-{topic}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: dict[int, list[bytes]] = {p: [] for p in range(partitions)}
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    left, deadline = set(found), time.monotonic() + TIMEOUT_S
    while left:
        assert time.monotonic() < deadline, f"partitions {left} did not come to their end"
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error() is None:
            found[message.partition()].append(message.value())
        elif message.error().code() == KafkaError._PARTITION_EOF:
            left.discard(message.partition())
    consumer.close()
    return [value for values in found.values() for value in values]


def committed_offset(bootstrap: str, group: str, topic: str, partition: int) -> int | None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    [found] = consumer.committed([TopicPartition(topic, partition)], timeout=TIMEOUT_S)
    consumer.close()
    return int(found.offset) if found.offset >= 0 else None


def work(bootstrap: str, source: str, target: str, group: str, name: str) -> Iterator[int]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
        }
    )
    consumer.subscribe([source])
    with producer(bootstrap, name, timeout_ms=8000) as writer:
        while True:
            messages = [m for m in consumer.consume(200, timeout=0.2) if m.error() is None]
            if not messages:
                continue
            writer.begin()
            try:
                for message in messages:
                    writer.send(target, transformed(message.value()), message.partition())
                writer.send_positions(
                    consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
                )
                writer.commit()
            except KafkaException as failed:
                if failed.args[0].fatal():
                    raise
                writer.abort()
                _rewind(consumer)
                continue
            yield len(messages)


def _rewind(consumer: Consumer) -> None:
    for place in consumer.committed(consumer.assignment(), timeout=TIMEOUT_S):
        consumer.seek(
            TopicPartition(
                place.topic, place.partition, place.offset if place.offset >= 0 else OFFSET_BEGINNING
            )
        )
