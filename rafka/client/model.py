"""The nouns of the client: partitions, nodes, topics, records. Data only."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from ..errors import ErrorCode
from ..types import NO_TOPIC_ID, TopicId, message
from .address import Address


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@message
class Node:
    """A broker as the cluster's metadata names it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> Address:
        return Address(self.host, self.port)


@message
class PartitionInfo:
    partition: int
    leader: int | None  # None: it has none at the moment
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@message
class TopicInfo:
    name: str
    topic_id: TopicId = NO_TOPIC_ID
    internal: bool = False
    partitions: tuple[PartitionInfo, ...] = ()
    error: ErrorCode = ErrorCode.NONE


Headers = tuple[tuple[str, bytes | None], ...]


@attrs.define
class Delivered:
    """Where a record was written. The offset is -1 where nobody can say (acks=0)."""

    topic: str
    partition: int
    offset: int
    timestamp: int  # milliseconds; the broker's where the topic keeps log append time
