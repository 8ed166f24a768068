"""What the tests of members share: a topic with records, a member to read it, and a diary for listeners."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import trio

from rafka.client import Beginning, GroupConsumer, RebalanceListener, TopicPartition, connect
from rafka.records.build import build
from rafka.records.record import Record

from .group_broker import GroupBroker
from .scripted import Network

ONE = TopicPartition("orders", 0)
TWO = TopicPartition("orders", 1)
COOPERATIVE = {"assignors": ["cooperative-sticky"]}


def fill(broker: GroupBroker, partition: int, count: int = 3) -> None:
    """Records in a batch each, so that each is a chunk of its own."""
    for number in range(count):
        broker.logs["orders", partition].append(build([Record(0, number, None, b"%d" % number)]))


class Diary(RebalanceListener):
    """Writes down what it is told, and when."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def _note(self, what: str, targets: Iterable[TopicPartition]) -> None:
        self.entries.append((what, sorted(partition for _, partition in targets)))

    async def on_assigned(self, targets: frozenset[TopicPartition]) -> None:
        self._note("+", targets)

    async def on_revoked(self, targets: frozenset[TopicPartition]) -> None:
        self._note("-", targets)

    async def on_lost(self, targets: frozenset[TopicPartition]) -> None:
        self._note("lost", targets)


@asynccontextmanager
async def member(network: Network, **settings: Any) -> AsyncIterator[GroupConsumer]:
    defaults: dict[str, Any] = {"start": Beginning(), "heartbeat_interval": 1.0}
    topics = settings.pop("topics", ["orders"])
    async with (
        connect("broker", dial=network.dial) as client,
        client.group_consumer("billing", topics, **(defaults | settings)) as consumer,
    ):
        yield consumer


async def read(consumer: GroupConsumer, count: int) -> list[tuple[int, int]]:
    found = []
    async for record in consumer:
        found.append((record.partition, record.offset))
        if len(found) == count:
            break
    return found


async def read_on(consumer: GroupConsumer, found: list[tuple[int, int]]) -> None:
    async for record in consumer:
        found.append((record.partition, record.offset))


async def until(condition: Callable[[], object]) -> None:
    """Wait for it, in the clock's own steps."""
    with trio.fail_after(60):
        while not condition():  # noqa: ASYNC110  nobody tells when it comes true
            await trio.sleep(0.05)


def broker_with_records() -> GroupBroker:
    """Three records in each of two partitions."""
    broker = GroupBroker(topics={"orders": 2})
    for partition in (0, 1):
        fill(broker, partition)
    return broker
