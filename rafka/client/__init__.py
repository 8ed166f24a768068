"""A Kafka client on Trio, for any broker that speaks the protocol.

    async with connect("127.0.0.1:9092") as client:
        async with client.producer() as producer:
            await (await producer.send("orders", b"value", key=b"key"))

        async with client.consumer({TopicPartition("orders", 0): Beginning()}) as consumer:
            async for record in consumer:
                ...

        async with client.group_consumer("billing", ["orders"]) as member:
            async for record in member:
                ...

        await client.admin.create_topics([NewTopic(name="orders", partitions=3)])

Everything runs in tasks that end with their block. Whatever is cancelled leaves nothing half sent.
All errors are `ClientError`s.
"""

from .address import Address, parse_addresses
from .admin import Admin, ClusterInfo, Config, ConfigSource, NewTopic, Outcome
from .client import Client, connect
from .consumer import Chunk, ConsumedRecord, Consumer, ConsumerSettings
from .delivery import Delivery, ProducerSettings
from .errors import (
    BrokerRefused,
    BufferFull,
    ClientError,
    ConnectionLost,
    CorruptBatch,
    DeliveryTimedOut,
    NoBroker,
    NotReachable,
    OffsetOutOfRange,
    ProtocolMismatch,
    RequestTimedOut,
    UnknownGroup,
    UnknownTopic,
    UnsupportedVersion,
)
from .group_consumer import GroupConsumer
from .group_descriptions import GroupDescription, MemberDescription
from .group_listener import RebalanceListener
from .group_offsets import CommittedOffset
from .groups import GroupListing, Groups, MemberRef
from .membership import GroupSettings
from .model import Delivered, Node, PartitionInfo, TopicInfo, TopicPartition
from .offsets import AtOffset, AtTime, Beginning, End, FoundOffset, FromEnd, Start
from .producer import Producer
from .settings import Settings

__all__ = [
    "Address",
    "Admin",
    "AtOffset",
    "AtTime",
    "Beginning",
    "BrokerRefused",
    "BufferFull",
    "Chunk",
    "Client",
    "ClientError",
    "ClusterInfo",
    "CommittedOffset",
    "Config",
    "ConfigSource",
    "ConnectionLost",
    "ConsumedRecord",
    "Consumer",
    "ConsumerSettings",
    "CorruptBatch",
    "Delivered",
    "Delivery",
    "DeliveryTimedOut",
    "End",
    "FoundOffset",
    "FromEnd",
    "GroupConsumer",
    "GroupDescription",
    "GroupListing",
    "GroupSettings",
    "Groups",
    "MemberDescription",
    "MemberRef",
    "NewTopic",
    "NoBroker",
    "Node",
    "NotReachable",
    "OffsetOutOfRange",
    "Outcome",
    "PartitionInfo",
    "Producer",
    "ProducerSettings",
    "ProtocolMismatch",
    "RebalanceListener",
    "RequestTimedOut",
    "Settings",
    "Start",
    "TopicInfo",
    "TopicPartition",
    "UnknownGroup",
    "UnknownTopic",
    "UnsupportedVersion",
    "connect",
    "parse_addresses",
]
