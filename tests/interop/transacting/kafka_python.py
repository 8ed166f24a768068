"""kafka-python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from .vocabulary import TIMEOUT_S, Fenced, transformed

KNOWS_GENERATIONS: Final = int(kafka.__version__.split(".")[0]) >= 3


def _call(act: Callable[..., Any], *args: Any) -> Any:
    try:
        return act(*args)
    except KafkaError as failed:
        told = f"{type(failed).__name__} {failed}"
        if "Fenced" in told or "InvalidProducerEpoch" in told:
            raise Fenced(told) from failed
        raise


class _Transactional:
    def __init__(self, producer: KafkaProducer) -> None:
        self._producer = producer

    def begin(self) -> None:
        _call(self._producer.begin_transaction)

    def send(self, topic: str, value: bytes, partition: int) -> None:
        _call(lambda: self._producer.send(topic, value=value, partition=partition))

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        self.send_positions({TopicPartition(topic, p): offset for p, offset in offsets.items()}, group)

    def send_positions(self, positions: Mapping[TopicPartition, int], group: Any) -> None:
        told = {place: OffsetAndMetadata(offset, "", -1) for place, offset in positions.items()}
        _call(self._producer.send_offsets_to_transaction, told, group)

    def commit(self) -> None:
        _call(self._producer.commit_transaction)

    def abort(self) -> None:
        _call(self._producer.abort_transaction)


@contextmanager
def producer(bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> Iterator[_Transactional]:
    made = KafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        request_timeout_ms=20_000,
    )
    try:
        _call(made.init_transactions)
        yield _Transactional(made)
    finally:
        made.close(timeout=2)


def read_committed(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
    places = [TopicPartition(topic, p) for p in range(partitions)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    ends = consumer.end_offsets(places)
    found: dict[TopicPartition, list[bytes]] = {place: [] for place in places}
    deadline = time.monotonic() + TIMEOUT_S
    while any(consumer.position(place) < ends[place] for place in places):
        assert time.monotonic() < deadline, "the partitions did not come to their end"
        for place, records in consumer.poll(200).items():
            found[place] += [record.value for record in records]
    consumer.close()
    return [value for values in found.values() for value in values]


def committed_offset(bootstrap: str, group: str, topic: str, partition: int) -> int | None:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    offset: int | None = consumer.committed(TopicPartition(topic, partition))
    consumer.close()
    return offset


def work(bootstrap: str, source: str, target: str, group: str, name: str) -> Iterator[int]:
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        max_poll_records=200,
    )
    with producer(bootstrap, name, timeout_ms=8000) as writer:
        while True:
            polled = consumer.poll(200)
            if not polled:
                continue
            writer.begin()
            for records in polled.values():
                for record in records:
                    writer.send(target, transformed(record.value), record.partition)
            after = {place: records[-1].offset + 1 for place, records in polled.items()}
            writer.send_positions(after, consumer.group_metadata() if KNOWS_GENERATIONS else group)
            writer.commit()
            yield sum(map(len, polled.values()))
