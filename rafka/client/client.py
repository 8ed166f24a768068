"""The way in: `connect`, and the `Client` that it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import attrs

from .address import parse_addresses
from .admin import Admin
from .cluster import Cluster
from .consumer import Consumer, ConsumerSettings
from .delivery import ProducerSettings
from .errors import NoBroker
from .group_consumer import GroupConsumer
from .group_listener import RebalanceListener
from .groups import Groups
from .membership import GroupSettings
from .model import TopicPartition
from .nursery import background
from .offsets import Start
from .producer import Producer
from .settings import Settings
from .transactions import Transactions

READER_SETTINGS: Final = {field.name for field in attrs.fields(ConsumerSettings)}


class Client:
    """Made by `connect`. All that it gives share its connections and its metadata."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster: Final = cluster
        self.admin: Final = Admin(cluster)
        self.groups: Final = Groups(cluster)
        self.transactions: Final = Transactions(cluster)

    @asynccontextmanager
    async def producer(self, **settings: Any) -> AsyncIterator[Producer]:
        """A producer; `ProducerSettings` has the keywords. Leaving the block sends what is left.

        Where the block raises, what is left is not sent.
        """
        async with background() as nursery:
            producer = Producer(self.cluster, nursery, ProducerSettings(**settings))
            nursery.start_soon(producer.expire)
            yield producer
            await producer.flush()

    @asynccontextmanager
    async def consumer(
        self, starts: Mapping[TopicPartition, Start] | None = None, **settings: Any
    ) -> AsyncIterator[Consumer]:
        """A reader of these partitions; `ConsumerSettings` has the keywords."""
        async with background() as nursery:
            consumer = Consumer(self.cluster, nursery, ConsumerSettings(**settings))
            nursery.start_soon(consumer.find_leaders)
            await consumer.assign(starts or {})
            yield consumer

    @asynccontextmanager
    async def group_consumer(
        self,
        group_id: str,
        topics: Iterable[str],
        *,
        listener: RebalanceListener | None = None,
        **settings: Any,
    ) -> AsyncIterator[GroupConsumer]:
        """A member of a group; `GroupSettings` and `ConsumerSettings` have the keywords.

        Leaving the block commits what was read, and leaves the group. Where the block raises, the
        record that was in hand is not committed.
        """
        of_reading = {name: settings.pop(name) for name in READER_SETTINGS & settings.keys()}
        of_group = GroupSettings(group_id=group_id, topics=tuple(topics), **settings)
        of_reading.setdefault("out_of_range", of_group.start)
        async with background() as nursery:
            reader = Consumer(self.cluster, nursery, ConsumerSettings(**of_reading))
            nursery.start_soon(reader.find_leaders)
            consumer = GroupConsumer(self.cluster, reader, of_group, listener)
            nursery.start_soon(consumer.run)
            finished = False
            try:
                yield consumer
                finished = True
            finally:
                await consumer.close(finished=finished)


@asynccontextmanager
async def connect(bootstrap: str | Iterable[str], **settings: Any) -> AsyncIterator[Client]:
    """A client of the cluster that these addresses lead to; `Settings` has the keywords.

    Raises NotReachable where none of them answers.
    """
    addresses = parse_addresses(bootstrap)
    async with background() as nursery:
        cluster = Cluster(nursery, addresses, Settings(**settings))
        try:
            with suppress(NoBroker):  # there may be one soon: each call has the patience to wait for it
                await cluster.refresh()
            nursery.start_soon(cluster.keep_fresh)
            yield Client(cluster)
        finally:
            cluster.close()
