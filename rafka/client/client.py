"""The way in: `connect`, and the `Client` that it gives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from .address import parse_addresses
from .admin import Admin
from .cluster import Cluster
from .consumer import Consumer, ConsumerSettings
from .delivery import ProducerSettings
from .groups import Groups
from .model import TopicPartition
from .nursery import background
from .offsets import Start
from .producer import Producer
from .settings import Settings
from .transactions import Transactions


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
async def connect(bootstrap: str | Iterable[str], **settings: Any) -> AsyncIterator[Client]:
    """A client of the cluster that these addresses lead to; `Settings` has the keywords.

    Raises NotReachable where none of them answers.
    """
    addresses = parse_addresses(bootstrap)
    async with background() as nursery:
        cluster = Cluster(nursery, addresses, Settings(**settings))
        await cluster.refresh()
        nursery.start_soon(cluster.keep_fresh)
        yield Client(cluster)
