"""What administrators ask: topics, partitions, configs, records to delete, the cluster."""

from __future__ import annotations

from typing import ClassVar

import attrs

from ...types import message
from ...wire.api import Api
from ...wire.apis.create_partitions import CREATE_PARTITIONS
from ...wire.apis.create_topics import CREATE_TOPICS
from ...wire.apis.delete_records import DELETE_RECORDS
from ...wire.apis.delete_topics import DELETE_TOPICS
from ...wire.apis.describe_cluster import DESCRIBE_CLUSTER
from ...wire.apis.describe_configs import DESCRIBE_CONFIGS
from ...wire.apis.incremental_alter_configs import INCREMENTAL_ALTER_CONFIGS
from .base import Request

# --- CreateTopics ----------------------------------------------------------------


@message
class CreatedTopic:
    name: str
    error_code: int
    error_message: str | None
    topic_id: bytes
    num_partitions: int = -1
    replication_factor: int = -1


@message
class CreateTopicsReply:
    topics: list[CreatedTopic]


@message
class TopicConfig:
    name: str
    value: str | None


@message
class TopicToCreate:
    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[TopicConfig] = attrs.field(factory=list)


@message
class CreateTopics(Request[CreateTopicsReply]):
    api: ClassVar[Api] = CREATE_TOPICS
    reply = CreateTopicsReply

    topics: list[TopicToCreate]
    timeout_ms: int
    validate_only: bool = False


# --- DeleteTopics ----------------------------------------------------------------


@message
class DeletedTopic:
    name: str | None
    error_code: int
    error_message: str | None = None


@message
class DeleteTopicsReply:
    responses: list[DeletedTopic]


@message
class TopicToDelete:
    name: str | None


@message
class DeleteTopics(Request[DeleteTopicsReply]):
    """Names go into `topics` from version 6 on and into `topic_names` before: fill both."""

    api: ClassVar[Api] = DELETE_TOPICS
    reply = DeleteTopicsReply

    topics: list[TopicToDelete]
    topic_names: list[str]
    timeout_ms: int


# --- CreatePartitions ------------------------------------------------------------


@message
class CreatedPartitions:
    name: str
    error_code: int
    error_message: str | None = None


@message
class CreatePartitionsReply:
    results: list[CreatedPartitions]


@message
class NewAssignment:
    broker_ids: list[int]


@message
class TopicToGrow:
    name: str
    count: int
    assignments: list[NewAssignment] | None = None  # null: the broker chooses; an empty list would be too few


@message
class CreatePartitions(Request[CreatePartitionsReply]):
    api: ClassVar[Api] = CREATE_PARTITIONS
    reply = CreatePartitionsReply

    topics: list[TopicToGrow]
    timeout_ms: int
    validate_only: bool = False


# --- DescribeConfigs -------------------------------------------------------------


@message
class ConfigEntry:
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    config_type: int = 0


@message
class DescribedConfigs:
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: list[ConfigEntry]


@message
class DescribeConfigsReply:
    results: list[DescribedConfigs]


@message
class ResourceToDescribe:
    resource_type: int
    resource_name: str
    configuration_keys: list[str] | None = None


@message
class DescribeConfigs(Request[DescribeConfigsReply]):
    api: ClassVar[Api] = DESCRIBE_CONFIGS
    reply = DescribeConfigsReply

    resources: list[ResourceToDescribe]


# --- IncrementalAlterConfigs -----------------------------------------------------


@message
class AlteredConfigs:
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


@message
class AlterConfigsReply:
    responses: list[AlteredConfigs]


@message
class ConfigChange:
    name: str
    config_operation: int  # 0 set, 1 delete, 2 append, 3 subtract
    value: str | None = None


@message
class ResourceToAlter:
    resource_type: int
    resource_name: str
    configs: list[ConfigChange]


@message
class AlterConfigs(Request[AlterConfigsReply]):
    api: ClassVar[Api] = INCREMENTAL_ALTER_CONFIGS
    reply = AlterConfigsReply

    resources: list[ResourceToAlter]
    validate_only: bool = False


# --- DeleteRecords ---------------------------------------------------------------


@message
class TrimmedPartition:
    partition_index: int
    low_watermark: int
    error_code: int


@message
class TrimmedTopic:
    name: str
    partitions: list[TrimmedPartition]


@message
class DeleteRecordsReply:
    topics: list[TrimmedTopic]


@message
class PartitionToTrim:
    partition_index: int
    offset: int


@message
class TopicToTrim:
    name: str
    partitions: list[PartitionToTrim]


@message
class DeleteRecords(Request[DeleteRecordsReply]):
    api: ClassVar[Api] = DELETE_RECORDS
    reply = DeleteRecordsReply

    topics: list[TopicToTrim]
    timeout_ms: int


# --- DescribeCluster -------------------------------------------------------------


@message
class ClusterBroker:
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool = False


@message
class DescribeClusterReply:
    error_code: int
    error_message: str | None
    cluster_id: str
    controller_id: int
    brokers: list[ClusterBroker]


@message
class DescribeCluster(Request[DescribeClusterReply]):
    api: ClassVar[Api] = DESCRIBE_CLUSTER
    reply = DescribeClusterReply

    endpoint_type: int = 1
