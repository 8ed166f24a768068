"""What may be asked about the cluster itself: its brokers, its disks, its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ErrorCode
from ..types import message
from .base import KafkaOp, Op
from .topics import OPERATIONS_NOT_ASKED_FOR


@message
class ClusterNode:
    broker_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@message
class DescribeClusterReply:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: Sequence[ClusterNode] = ()
    cluster_authorized_operations: int = OPERATIONS_NOT_ASKED_FOR


@message
class DescribeCluster(Op[DescribeClusterReply]):
    code: ClassVar = KafkaOp.DESCRIBE_CLUSTER

    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeClusterReply:
        return DescribeClusterReply(error_code=code, error_message=message or code.meaning)


# --- log directories -----------------------------------------------------------------


@message
class LogDirTopic:
    topic: str
    partitions: list[int]


@message
class LogDirPartition:
    partition_index: int
    partition_size: int
    offset_lag: int = 0
    is_future_key: bool = False


@message
class LogDirTopicReply:
    name: str
    partitions: list[LogDirPartition]


@message
class LogDir:
    error_code: ErrorCode = ErrorCode.NONE
    log_dir: str
    topics: Sequence[LogDirTopicReply] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@message
class DescribeLogDirsReply:
    error_code: ErrorCode = ErrorCode.NONE
    results: Sequence[LogDir] = ()


@message
class DescribeLogDirs(Op[DescribeLogDirsReply]):
    code: ClassVar = KafkaOp.DESCRIBE_LOG_DIRS

    topics: list[LogDirTopic] | None  # None: all of them

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeLogDirsReply:
        return DescribeLogDirsReply(error_code=code)


# --- configuration -------------------------------------------------------------------


@message
class ConfigResource:
    resource_type: int
    resource_name: str
    configuration_keys: list[str] | None = None  # None: all of them


@message
class ConfigSynonym:
    name: str
    value: str | None
    source: int


@message
class ConfigEntry:
    name: str
    value: str | None
    read_only: bool = False
    config_source: int
    is_sensitive: bool = False
    synonyms: Sequence[ConfigSynonym] = ()
    config_type: int = 0
    documentation: str | None = None


@message
class DescribedResource:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resource_type: int
    resource_name: str
    configs: Sequence[ConfigEntry] = ()


@message
class DescribeConfigsReply:
    results: list[DescribedResource]


@message
class DescribeConfigs(Op[DescribeConfigsReply]):
    code: ClassVar = KafkaOp.DESCRIBE_CONFIGS

    resources: list[ConfigResource]
    include_synonyms: bool = False
    include_documentation: bool = False

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeConfigsReply:
        return DescribeConfigsReply(
            results=[
                DescribedResource(
                    error_code=code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in self.resources
            ]
        )


@message
class ConfigValue:
    name: str
    value: str | None


@message
class ConfigChange:
    name: str
    config_operation: int
    value: str | None


@message
class ReplacedResource:
    resource_type: int
    resource_name: str
    configs: list[ConfigValue]


@message
class ChangedResource:
    resource_type: int
    resource_name: str
    configs: list[ConfigChange]


@message
class AlteredResource:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    resource_type: int
    resource_name: str


@message
class AlterConfigsReply:
    responses: list[AlteredResource]


def _refused(
    resources: Sequence[ReplacedResource] | Sequence[ChangedResource], code: ErrorCode, message: str | None
) -> AlterConfigsReply:
    return AlterConfigsReply(
        responses=[
            AlteredResource(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in resources
        ]
    )


@message
class AlterConfigs(Op[AlterConfigsReply]):
    code: ClassVar = KafkaOp.ALTER_CONFIGS

    resources: list[ReplacedResource]
    validate_only: bool

    def refusal(self, code: ErrorCode, message: str | None = None) -> AlterConfigsReply:
        return _refused(self.resources, code, message)


@message
class IncrementalAlterConfigs(Op[AlterConfigsReply]):
    code: ClassVar = KafkaOp.INCREMENTAL_ALTER_CONFIGS

    resources: list[ChangedResource]
    validate_only: bool

    def refusal(self, code: ErrorCode, message: str | None = None) -> AlterConfigsReply:
        return _refused(self.resources, code, message)


@message
class NamedResource:
    resource_name: str
    resource_type: int


@message
class ListConfigResourcesReply:
    error_code: ErrorCode = ErrorCode.NONE
    config_resources: Sequence[NamedResource] = ()


@message
class ListConfigResources(Op[ListConfigResourcesReply]):
    code: ClassVar = KafkaOp.LIST_CONFIG_RESOURCES

    # None: version 0, which knew client metrics only. Empty: every type.
    resource_types: Sequence[int] | None = None

    def refusal(self, code: ErrorCode, message: str | None = None) -> ListConfigResourcesReply:
        return ListConfigResourcesReply(error_code=code)
