"""After kill -9 with a gigabyte in the log, the broker is back within two seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.brokers import RafkaProcess

from .asking import offset_of, wait_for_offset
from .load import confluent_kafka, create_topic

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

GIGABYTE = 1 << 30


def fill(bootstrap: str, topic: str, size: int) -> int:
    """Write so many bytes, as fast as it goes; the number of records."""
    settings = {"bootstrap.servers": bootstrap, "batch.size": 1_000_000, "linger.ms": 20, "acks": "1"}
    producer = confluent_kafka.Producer(settings)
    value = bytes(range(256)) * 40
    count = size // len(value)
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    return count


def test_a_gigabyte_is_recovered_in_two_seconds(tmp_path: Path) -> None:
    with RafkaProcess(tmp_path, durability="page-cache") as broker:
        create_topic(broker.bootstrap, "large", 1)
        count = fill(broker.bootstrap, "large", GIGABYTE)
        wait_for_offset(broker.port, "large", 0, count)

        broker.kill()
        began = time.monotonic()
        broker.launch()
        wait_for_offset(broker.port, "large", 0, 0)
        took = time.monotonic() - began

        assert offset_of(broker.port, "large", 0) == count
        assert took <= 2.0, f"{took:.2f} s"
