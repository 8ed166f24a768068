"""Producers in transactions, by confluent-kafka.

    python bench_transactions.py ADDRESS TOPIC PRODUCERS SECONDS

Each transaction has ten records over three partitions, and offsets of a group. It prints how many
were committed in a second, by all producers together. A process of its own, so that the client
of one round is the same as that of the next.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid
from typing import Any, Final

RECORDS: Final = 10
PARTITIONS: Final = 3
PAYLOAD: Final = b"x" * 100
WARM_UP: Final = 20  # transactions of each producer


class Writer:
    def __init__(self, address: str, topic: str) -> None:
        from confluent_kafka import Consumer, Producer, TopicPartition

        name = uuid.uuid4().hex
        self.topic = topic
        self.producer = Producer({"bootstrap.servers": address, "transactional.id": name, "linger.ms": 0})
        consumer: Any = Consumer({"bootstrap.servers": address, "group.id": f"g-{name}"})
        self.group = consumer.consumer_group_metadata()
        self.position = TopicPartition(topic, 0, 0)
        self.producer.init_transactions(30)

    def transaction(self) -> None:
        producer = self.producer
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce(self.topic, value=PAYLOAD, partition=number % PARTITIONS)
        self.position.offset += RECORDS
        producer.send_offsets_to_transaction([self.position], self.group, 30)
        producer.commit_transaction(30)


def rate(address: str, topic: str, producers: int, seconds: float) -> float:
    """Transactions a second."""
    writers = [Writer(address, topic) for _ in range(producers)]
    counts = [0] * producers
    at_once = threading.Barrier(producers + 1)

    def work(number: int) -> None:
        writer = writers[number]
        for _ in range(WARM_UP):
            writer.transaction()
        at_once.wait()
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            writer.transaction()
            counts[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(producers)]
    for thread in threads:
        thread.start()
    at_once.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def fill(address: str, topic: str, records: int) -> None:
    """Transactions of a thousand records each, over the partitions."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    for _ in range(records // 1000):
        producer.begin_transaction()
        for number in range(1000):
            producer.produce(topic, value=PAYLOAD * 10, partition=number % PARTITIONS)
        producer.commit_transaction(30)


if __name__ == "__main__":
    print(rate(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
