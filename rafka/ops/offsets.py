"""What may be asked about how far a group has read: commit, fetch and delete its offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ErrorCode
from ..types import NO_TOPIC_ID, TopicId, message
from .base import KafkaOp, Op

# --- commit ----------------------------------------------------------------------


@message
class CommitPartition:
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


@message
class CommitTopic:
    name: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: list[CommitPartition]


@message
class CommittedPartition:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


@message
class CommittedTopic:
    name: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: Sequence[CommittedPartition]


@message
class OffsetCommitReply:
    topics: Sequence[CommittedTopic]


@message
class OffsetCommit(Op[OffsetCommitReply]):
    code: ClassVar = KafkaOp.OFFSET_COMMIT

    group_id: str
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    retention_time_ms: int = -1
    topics: list[CommitTopic]
    by_id: bool = False
    epochs_known: bool = True  # before version 9 a client knows neither member epochs nor their errors

    def refusal(self, code: ErrorCode, message: str | None = None) -> OffsetCommitReply:
        return OffsetCommitReply(topics=refused_topics(self.topics, code))


@message
class TxnOffsetCommit(Op[OffsetCommitReply]):
    code: ClassVar = KafkaOp.TXN_OFFSET_COMMIT

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[CommitTopic]
    adds_group: bool = False  # from version 5 on the group becomes part of the transaction by this
    abortable_known: bool = True  # before version 4 a client does not know TRANSACTION_ABORTABLE

    def refusal(self, code: ErrorCode, message: str | None = None) -> OffsetCommitReply:
        return OffsetCommitReply(topics=refused_topics(self.topics, code))


def refused_topics(topics: Sequence[CommitTopic], code: ErrorCode) -> list[CommittedTopic]:
    """The same answer for every partition. A topic without any is left out, as Kafka does."""
    return [
        CommittedTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                CommittedPartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ],
        )
        for topic in topics
        if topic.partitions
    ]


# --- fetch -----------------------------------------------------------------------


@message
class FetchOffsetsTopic:
    name: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partition_indexes: list[int]


@message
class FetchOffsetsGroup:
    group_id: str
    member_id: str | None = None
    member_epoch: int = -1
    topics: list[FetchOffsetsTopic] | None = None  # None: all that the group has committed


@message
class FetchedPartition:
    partition_index: int
    committed_offset: int = -1
    committed_leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


@message
class FetchedTopic:
    name: str = ""
    topic_id: TopicId = NO_TOPIC_ID
    partitions: Sequence[FetchedPartition]


@message
class FetchedGroup:
    group_id: str
    topics: Sequence[FetchedTopic] = ()
    error_code: ErrorCode = ErrorCode.NONE


@message
class OffsetFetchReply:
    """`topics` and `error_code` are for versions that ask for one group; the gateway fills them in."""

    groups: Sequence[FetchedGroup]
    topics: Sequence[FetchedTopic] = ()
    error_code: ErrorCode = ErrorCode.NONE


@message
class OffsetFetch(Op[OffsetFetchReply]):
    """Before version 8 the request names one group and its topics; the gateway makes it a list of one."""

    code: ClassVar = KafkaOp.OFFSET_FETCH

    group_id: str = ""
    topics: list[FetchOffsetsTopic] | None = None
    groups: list[FetchOffsetsGroup]
    require_stable: bool = False
    by_id: bool = False

    def refusal(self, code: ErrorCode, message: str | None = None) -> OffsetFetchReply:
        return OffsetFetchReply(
            groups=[FetchedGroup(group_id=group.group_id, error_code=code) for group in self.groups]
        )


# --- delete ----------------------------------------------------------------------


@message
class DeleteOffsetsPartition:
    partition_index: int


@message
class DeleteOffsetsTopic:
    name: str
    topic_id: TopicId = NO_TOPIC_ID  # not on the wire: the broker looks it up
    partitions: list[DeleteOffsetsPartition]


@message
class OffsetDeleteReply:
    error_code: ErrorCode = ErrorCode.NONE
    topics: Sequence[CommittedTopic] = ()


@message
class OffsetDelete(Op[OffsetDeleteReply]):
    code: ClassVar = KafkaOp.OFFSET_DELETE

    group_id: str
    topics: list[DeleteOffsetsTopic]

    def refusal(self, code: ErrorCode, message: str | None = None) -> OffsetDeleteReply:
        return OffsetDeleteReply(error_code=code)
