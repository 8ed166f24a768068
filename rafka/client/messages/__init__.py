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
from .data import Fetch, FetchReply, InitProducerId, ListOffsets, Produce, ProduceReply

__all__ = [
    "AlterConfigs",
    "ApiVersions",
    "ApiVersionsReply",
    "CreatePartitions",
    "CreateTopics",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeCluster",
    "DescribeConfigs",
    "Fetch",
    "FetchReply",
    "InitProducerId",
    "ListOffsets",
    "Metadata",
    "MetadataReply",
    "Produce",
    "ProduceReply",
    "Request",
]
