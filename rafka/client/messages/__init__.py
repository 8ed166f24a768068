"""What the client says and hears: one typed class per request and per reply.

They hold only the fields that this client uses; the wire fills in the rest with Kafka's defaults
and drops what it is not asked for. A request names its reply, so `ask` is typed by its answer.
"""

from .admin import (
    AlterConfigs,
    CreatePartitions,
    CreateTopics,
    DeleteRecords,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
)
from .base import Request
from .cluster import ApiVersions, ApiVersionsReply, Metadata, MetadataReply
from .consumer_group import ConsumerGroupDescribe
from .data import Fetch, FetchReply, InitProducerId, ListOffsets, Produce, ProduceReply
from .group import (
    DeleteGroups,
    DescribeGroups,
    FindCoordinator,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    SyncGroup,
)
from .group_offsets import OffsetCommit, OffsetDelete, OffsetFetch

__all__ = [
    "AlterConfigs",
    "ApiVersions",
    "ApiVersionsReply",
    "ConsumerGroupDescribe",
    "CreatePartitions",
    "CreateTopics",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeGroups",
    "Fetch",
    "FetchReply",
    "FindCoordinator",
    "Heartbeat",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListGroups",
    "ListOffsets",
    "Metadata",
    "MetadataReply",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "Produce",
    "ProduceReply",
    "Request",
    "SyncGroup",
]
