"""What may be asked about topics: which there are, making, changing and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ErrorCode
from ..types import NO_TOPIC_ID, TopicId, message
from .base import KafkaOp, Op

OPERATIONS_NOT_ASKED_FOR = -(2**31)


# --- metadata --------------------------------------------------------------------


@message
class MetadataTopic:
    topic_id: TopicId = NO_TOPIC_ID
    name: str | None = None


@message
class Node:
    node_id: int
    host: str
    port: int
    rack: str | None = None


@message
class PartitionMetadata:
    error_code: ErrorCode = ErrorCode.NONE
    partition_index: int
    leader_id: int = -1
    leader_epoch: int = -1
    replica_nodes: Sequence[int] = ()
    isr_nodes: Sequence[int] = ()
    offline_replicas: Sequence[int] = ()
    eligible_leader_replicas: Sequence[int] = ()
    last_known_elr: Sequence[int] = ()


@message
class TopicMetadata:
    error_code: ErrorCode = ErrorCode.NONE
    name: str | None
    topic_id: TopicId = NO_TOPIC_ID
    is_internal: bool = False
    partitions: Sequence[PartitionMetadata] = ()
    topic_authorized_operations: int = OPERATIONS_NOT_ASKED_FOR


@message
class MetadataReply:
    brokers: Sequence[Node] = ()
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[TopicMetadata]
    cluster_authorized_operations: int = OPERATIONS_NOT_ASKED_FOR
    error_code: ErrorCode = ErrorCode.NONE


@message
class Metadata(Op[MetadataReply]):
    code: ClassVar = KafkaOp.METADATA

    topics: list[MetadataTopic] | None  # None: all of them
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False

    def refusal(self, code: ErrorCode, message: str | None = None) -> MetadataReply:
        return MetadataReply(
            topics=[
                TopicMetadata(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
                for topic in self.topics or ()
            ],
            error_code=code,
        )


@message
class TopicName:
    name: str


@message
class Cursor:
    topic_name: str
    partition_index: int


@message
class DescribeTopicPartitionsReply:
    topics: list[TopicMetadata]
    next_cursor: Cursor | None = None


@message
class DescribeTopicPartitions(Op[DescribeTopicPartitionsReply]):
    code: ClassVar = KafkaOp.DESCRIBE_TOPIC_PARTITIONS

    topics: list[TopicName]
    response_partition_limit: int = 2000
    cursor: Cursor | None = None

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeTopicPartitionsReply:
        return DescribeTopicPartitionsReply(
            topics=[TopicMetadata(error_code=code, name=topic.name) for topic in self.topics]
        )


# --- making and deleting -----------------------------------------------------------


@message
class ReplicaAssignment:
    partition_index: int
    broker_ids: list[int]


@message
class NewTopicConfig:
    name: str
    value: str | None


@message
class NewTopic:
    name: str
    num_partitions: int
    replication_factor: int
    assignments: Sequence[ReplicaAssignment] = ()
    configs: Sequence[NewTopicConfig] = ()


@message
class CreatedConfig:
    name: str
    value: str | None
    read_only: bool = False
    config_source: int
    is_sensitive: bool = False


@message
class CreatedTopic:
    name: str
    topic_id: TopicId = NO_TOPIC_ID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Sequence[CreatedConfig] = ()


@message
class CreateTopicsReply:
    topics: list[CreatedTopic]


@message
class CreateTopics(Op[CreateTopicsReply]):
    code: ClassVar = KafkaOp.CREATE_TOPICS

    topics: list[NewTopic]
    timeout_ms: int = 60000
    validate_only: bool = False

    def refusal(self, code: ErrorCode, message: str | None = None) -> CreateTopicsReply:
        names = dict.fromkeys(topic.name for topic in self.topics)
        return CreateTopicsReply(
            topics=[CreatedTopic(name=name, error_code=code, error_message=message) for name in names]
        )


@message
class DoomedTopic:
    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@message
class DeletedTopic:
    name: str | None
    topic_id: TopicId = NO_TOPIC_ID
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class DeleteTopicsReply:
    responses: list[DeletedTopic]


@message
class DeleteTopics(Op[DeleteTopicsReply]):
    code: ClassVar = KafkaOp.DELETE_TOPICS

    topics: Sequence[DoomedTopic] = ()
    topic_names: Sequence[str] = ()  # versions before 6
    timeout_ms: int = 60000

    def doomed(self) -> list[DoomedTopic]:
        """Those to be deleted, in whichever way the version names them."""
        return [*self.topics, *(DoomedTopic(name=name) for name in self.topic_names)]

    def refusal(self, code: ErrorCode, message: str | None = None) -> DeleteTopicsReply:
        return DeleteTopicsReply(
            responses=[
                DeletedTopic(name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message)
                for topic in self.doomed()
            ]
        )


@message
class PartitionAssignment:
    broker_ids: list[int]


@message
class GrownTopic:
    name: str
    count: int
    assignments: Sequence[PartitionAssignment] | None = None


@message
class GrownTopicReply:
    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class CreatePartitionsReply:
    results: list[GrownTopicReply]


@message
class CreatePartitions(Op[CreatePartitionsReply]):
    code: ClassVar = KafkaOp.CREATE_PARTITIONS

    topics: list[GrownTopic]
    timeout_ms: int
    validate_only: bool

    def refusal(self, code: ErrorCode, message: str | None = None) -> CreatePartitionsReply:
        names = dict.fromkeys(topic.name for topic in self.topics)
        return CreatePartitionsReply(
            results=[GrownTopicReply(name=name, error_code=code, error_message=message) for name in names]
        )


# --- where partitions live -----------------------------------------------------------


@message
class TopicPartitions:
    topic: str
    partitions: list[int]


@message
class PartitionResult:
    partition_id: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class ElectionResult:
    topic: str
    partition_result: list[PartitionResult]


@message
class ElectLeadersReply:
    error_code: ErrorCode = ErrorCode.NONE
    replica_election_results: list[ElectionResult]


@message
class ElectLeaders(Op[ElectLeadersReply]):
    code: ClassVar = KafkaOp.ELECT_LEADERS

    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None  # None: all of them
    timeout_ms: int = 60000

    def refusal(self, code: ErrorCode, message: str | None = None) -> ElectLeadersReply:
        return ElectLeadersReply(
            error_code=code,  # which version 0 cannot say: so it is said of each partition as well
            replica_election_results=[
                ElectionResult(
                    topic=topic.topic,
                    partition_result=[
                        PartitionResult(partition_id=index, error_code=code, error_message=message)
                        for index in topic.partitions
                    ],
                )
                for topic in self.topic_partitions or ()
            ],
        )


@message
class ReassignablePartition:
    partition_index: int
    replicas: list[int] | None = None  # None: stop moving


@message
class ReassignableTopic:
    name: str
    partitions: list[ReassignablePartition]


@message
class ReassignedPartition:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class ReassignedTopic:
    name: str
    partitions: list[ReassignedPartition]


@message
class AlterPartitionReassignmentsReply:
    allow_replication_factor_change: bool = True
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    responses: list[ReassignedTopic]


@message
class AlterPartitionReassignments(Op[AlterPartitionReassignmentsReply]):
    code: ClassVar = KafkaOp.ALTER_PARTITION_REASSIGNMENTS

    timeout_ms: int = 60000
    allow_replication_factor_change: bool = True
    topics: list[ReassignableTopic]

    def refusal(self, code: ErrorCode, message: str | None = None) -> AlterPartitionReassignmentsReply:
        return AlterPartitionReassignmentsReply(
            error_code=code,
            error_message=message,
            responses=[
                ReassignedTopic(
                    name=topic.name,
                    partitions=[
                        ReassignedPartition(
                            partition_index=p.partition_index, error_code=code, error_message=message
                        )
                        for p in topic.partitions
                    ],
                )
                for topic in self.topics
            ],
        )


@message
class OngoingPartition:
    partition_index: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


@message
class OngoingTopic:
    name: str
    partitions: list[OngoingPartition]


@message
class ListPartitionReassignmentsReply:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topics: Sequence[OngoingTopic] = ()


@message
class AskedTopic:
    name: str
    partition_indexes: list[int]


@message
class ListPartitionReassignments(Op[ListPartitionReassignmentsReply]):
    code: ClassVar = KafkaOp.LIST_PARTITION_REASSIGNMENTS

    timeout_ms: int = 60000
    topics: list[AskedTopic] | None = None  # None: all of them

    def refusal(self, code: ErrorCode, message: str | None = None) -> ListPartitionReassignmentsReply:
        return ListPartitionReassignmentsReply(error_code=code, error_message=message)
