"""What may be asked of the logs: write, read, find offsets, cut, and who produces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ..errors import ErrorCode
from ..types import NO_TOPIC_ID, Buffer, TopicId, message
from .base import KafkaOp, Op

NOTHING: Final = b""
ORDINARY_READER: Final = -1  # the replica id of whoever is no replica


# --- produce -------------------------------------------------------------------


@message
class PartitionData:
    index: int
    records: Buffer | None


@message
class TopicData:
    name: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partition_data: list[PartitionData]


@message
class RecordError:
    batch_index: int
    batch_index_error_message: str | None


@message
class PartitionProduceReply:
    index: int
    error_code: ErrorCode = ErrorCode.NONE
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None


@message
class TopicProduceReply:
    name: str
    topic_id: TopicId
    partition_responses: list[PartitionProduceReply]


@message
class ProduceReply:
    responses: list[TopicProduceReply]


@message
class Produce(Op[ProduceReply]):
    code: ClassVar = KafkaOp.PRODUCE

    transactional_id: str | None = None
    acks: int
    timeout_ms: int
    topic_data: list[TopicData]
    by_id: bool = False  # topics are named by id
    zstd_allowed: bool = True  # clients of old versions cannot know that codec
    adds_partitions: bool = False  # to write to a partition makes it part of the transaction (KIP-890)
    abortable_told: bool = True  # TRANSACTION_ABORTABLE, which clients of old versions cannot know

    def refusal(self, code: ErrorCode, message: str | None = None) -> ProduceReply:
        return ProduceReply(
            responses=[
                TopicProduceReply(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceReply(index=p.index, error_code=code, error_message=message)
                        for p in topic.partition_data
                    ],
                )
                for topic in self.topic_data
            ]
        )


# --- fetch ---------------------------------------------------------------------


@message
class FetchPartition:
    partition: int
    current_leader_epoch: int = -1
    fetch_offset: int
    last_fetched_epoch: int = -1
    partition_max_bytes: int


@message
class FetchTopic:
    topic: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[FetchPartition]


@message
class ForgottenTopic:
    topic: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[int]


@message
class EpochEnd:
    epoch: int = -1
    end_offset: int = -1


@message
class LeaderEpoch:
    leader_id: int = -1
    leader_epoch: int = -1


@message
class AbortedTransaction:
    producer_id: int
    first_offset: int


@message
class PartitionFetchReply:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: EpochEnd | None = None
    current_leader: LeaderEpoch | None = None
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    records: Buffer = NOTHING


@message
class TopicFetchReply:
    topic: str
    topic_id: TopicId
    partitions: list[PartitionFetchReply]


@message
class NodeEndpoint:
    node_id: int
    host: str
    port: int
    rack: str | None = None


@message
class FetchReply:
    error_code: ErrorCode = ErrorCode.NONE
    session_id: int = 0
    responses: list[TopicFetchReply]
    node_endpoints: Sequence[NodeEndpoint] = ()


@message
class ReplicaState:
    """How a request says from version 15 on that a replica sends it."""

    replica_id: int = ORDINARY_READER
    replica_epoch: int = -1


@message
class Fetch(Op[FetchReply]):
    code: ClassVar = KafkaOp.FETCH

    replica_id: int = ORDINARY_READER
    replica_state: ReplicaState | None = None
    max_wait_ms: int
    min_bytes: int
    max_bytes: int = 0x7FFFFFFF
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic]
    forgotten_topics_data: Sequence[ForgottenTopic] = ()
    by_id: bool = False
    leader_told: bool = True  # where another broker leads; clients of old versions cannot be told

    def refusal(self, code: ErrorCode, message: str | None = None) -> FetchReply:
        if self.by_id:  # since then the error of the whole request is enough
            return FetchReply(error_code=code, session_id=self.session_id, responses=[])
        responses = [
            TopicFetchReply(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    PartitionFetchReply(partition_index=p.partition, error_code=code, aborted_transactions=())
                    for p in topic.partitions
                ],
            )
            for topic in self.topics
        ]
        return FetchReply(error_code=code, session_id=self.session_id, responses=responses)


# --- list offsets, epochs --------------------------------------------------------


@message
class ListOffsetsPartition:
    partition_index: int
    current_leader_epoch: int = -1
    timestamp: int


@message
class ListOffsetsTopic:
    name: str
    partitions: list[ListOffsetsPartition]


@message
class PartitionOffset:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


@message
class TopicOffsets:
    name: str
    partitions: list[PartitionOffset]


@message
class ListOffsetsReply:
    topics: list[TopicOffsets]


@message
class ListOffsets(Op[ListOffsetsReply]):
    code: ClassVar = KafkaOp.LIST_OFFSETS

    replica_id: int = -1
    isolation_level: int = 0
    topics: list[ListOffsetsTopic]
    lowest_timestamp: int = -6  # the special timestamps -3 to -6 came with later versions

    def refusal(self, code: ErrorCode, message: str | None = None) -> ListOffsetsReply:
        return ListOffsetsReply(
            topics=[
                TopicOffsets(
                    name=topic.name,
                    partitions=[
                        PartitionOffset(partition_index=p.partition_index, error_code=code)
                        for p in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )


@message
class EpochPartition:
    partition: int
    current_leader_epoch: int = -1
    leader_epoch: int


@message
class EpochTopic:
    topic: str
    partitions: list[EpochPartition]


@message
class PartitionEpochEnd:
    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    leader_epoch: int = -1
    end_offset: int = -1


@message
class TopicEpochEnds:
    topic: str
    partitions: list[PartitionEpochEnd]


@message
class OffsetForLeaderEpochReply:
    topics: list[TopicEpochEnds]


@message
class OffsetForLeaderEpoch(Op[OffsetForLeaderEpochReply]):
    code: ClassVar = KafkaOp.OFFSET_FOR_LEADER_EPOCH

    topics: list[EpochTopic]

    def refusal(self, code: ErrorCode, message: str | None = None) -> OffsetForLeaderEpochReply:
        return OffsetForLeaderEpochReply(
            topics=[
                TopicEpochEnds(
                    topic=topic.topic,
                    partitions=[
                        PartitionEpochEnd(partition=p.partition, error_code=code) for p in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )


# --- delete records --------------------------------------------------------------


@message
class DeleteRecordsPartition:
    partition_index: int
    offset: int


@message
class DeleteRecordsTopic:
    name: str
    partitions: list[DeleteRecordsPartition]


@message
class PartitionDeleted:
    partition_index: int
    low_watermark: int = -1
    error_code: ErrorCode = ErrorCode.NONE


@message
class TopicDeleted:
    name: str
    partitions: list[PartitionDeleted]


@message
class DeleteRecordsReply:
    topics: list[TopicDeleted]


@message
class DeleteRecords(Op[DeleteRecordsReply]):
    code: ClassVar = KafkaOp.DELETE_RECORDS

    topics: list[DeleteRecordsTopic]
    timeout_ms: int

    def refusal(self, code: ErrorCode, message: str | None = None) -> DeleteRecordsReply:
        return DeleteRecordsReply(
            topics=[
                TopicDeleted(
                    name=topic.name,
                    partitions=[
                        PartitionDeleted(partition_index=p.partition_index, error_code=code)
                        for p in topic.partitions
                    ],
                )
                for topic in self.topics
            ]
        )


# --- producers -------------------------------------------------------------------


@message
class InitProducerIdReply:
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = -1


@message
class InitProducerId(Op[InitProducerIdReply]):
    code: ClassVar = KafkaOp.INIT_PRODUCER_ID

    transactional_id: str | None = None
    transaction_timeout_ms: int
    producer_id: int = -1
    producer_epoch: int = -1

    def refusal(self, code: ErrorCode, message: str | None = None) -> InitProducerIdReply:
        return InitProducerIdReply(error_code=code)


@message
class ProducersTopic:
    name: str
    partition_indexes: list[int]


@message
class ActiveProducer:
    producer_id: int
    producer_epoch: int
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    current_txn_start_offset: int = -1


@message
class PartitionProducers:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    active_producers: Sequence[ActiveProducer] = ()


@message
class TopicProducers:
    name: str
    partitions: list[PartitionProducers]


@message
class DescribeProducersReply:
    topics: list[TopicProducers]


@message
class DescribeProducers(Op[DescribeProducersReply]):
    code: ClassVar = KafkaOp.DESCRIBE_PRODUCERS

    topics: list[ProducersTopic]

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeProducersReply:
        return DescribeProducersReply(
            topics=[
                TopicProducers(
                    name=topic.name,
                    partitions=[
                        PartitionProducers(partition_index=i, error_code=code, error_message=message)
                        for i in topic.partition_indexes
                    ],
                )
                for topic in self.topics
            ]
        )
