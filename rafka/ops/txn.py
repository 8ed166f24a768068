"""What may be asked of the transaction coordinator, and what is answered.

A transaction belongs to a transactional id; the producer that may write for it now is
named by its producer id and epoch. TxnOffsetCommit stands in `ops.offsets`, and
InitProducerId, which also serves producers without transactions, in `ops.log`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..errors import ErrorCode
from ..types import message
from .base import KafkaOp, Op

# --- what takes part ---------------------------------------------------------------


@message
class TxnTopic:
    name: str
    partitions: list[int]


@message
class TxnPartitionResult:
    partition_index: int
    partition_error_code: ErrorCode = ErrorCode.NONE


@message
class TxnTopicResult:
    name: str
    results_by_partition: Sequence[TxnPartitionResult]


@message
class TxnAddition:
    """The partitions that one transaction is asked to take in, or only to know."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool = False
    topics: list[TxnTopic]


@message
class TxnAdditionResult:
    transactional_id: str
    topic_results: Sequence[TxnTopicResult]


@message
class AddPartitionsToTxnReply:
    error_code: ErrorCode = ErrorCode.NONE
    results_by_transaction: Sequence[TxnAdditionResult] = ()
    results_by_topic_v3_and_below: Sequence[TxnTopicResult] = ()


@message
class AddPartitionsToTxn(Op[AddPartitionsToTxnReply]):
    """Before version 4 a client asks for one transaction; the gateway makes it a list of one."""

    code: ClassVar = KafkaOp.ADD_PARTITIONS_TO_TXN

    transactions: list[TxnAddition]
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = -1
    v3_and_below_producer_epoch: int = -1
    v3_and_below_topics: Sequence[TxnTopic] = ()
    by_client: bool = False  # asked for by a producer itself, which has no business in internal topics

    def refusal(self, code: ErrorCode, message: str | None = None) -> AddPartitionsToTxnReply:
        return AddPartitionsToTxnReply(
            error_code=code,
            results_by_transaction=[
                TxnAdditionResult(
                    transactional_id=asked.transactional_id,
                    topic_results=refused_partitions(asked.topics, code),
                )
                for asked in self.transactions
            ],
        )


def refused_partitions(topics: Sequence[TxnTopic], code: ErrorCode) -> list[TxnTopicResult]:
    """The same answer for every partition."""
    return [
        TxnTopicResult(
            name=topic.name,
            results_by_partition=[
                TxnPartitionResult(partition_index=index, partition_error_code=code)
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


@message
class AddOffsetsToTxnReply:
    error_code: ErrorCode = ErrorCode.NONE


@message
class AddOffsetsToTxn(Op[AddOffsetsToTxnReply]):
    code: ClassVar = KafkaOp.ADD_OFFSETS_TO_TXN

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str

    def refusal(self, code: ErrorCode, message: str | None = None) -> AddOffsetsToTxnReply:
        return AddOffsetsToTxnReply(error_code=code)


# --- the end -----------------------------------------------------------------------


@message
class EndTxnReply:
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = -1


@message
class EndTxn(Op[EndTxnReply]):
    code: ClassVar = KafkaOp.END_TXN

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    bumps_epoch: bool = True  # from version 5 on the transaction ends with a new epoch (KIP-890)

    def refusal(self, code: ErrorCode, message: str | None = None) -> EndTxnReply:
        return EndTxnReply(error_code=code)


@message
class MarkerTopic:
    name: str
    partition_indexes: list[int]


@message
class Marker:
    producer_id: int
    producer_epoch: int
    transaction_result: bool  # committed
    topics: list[MarkerTopic]
    coordinator_epoch: int
    transaction_version: int = 0


@message
class MarkerPartitionResult:
    partition_index: int
    error_code: ErrorCode = ErrorCode.NONE


@message
class MarkerTopicResult:
    name: str
    partitions: Sequence[MarkerPartitionResult]


@message
class MarkerResult:
    producer_id: int
    topics: Sequence[MarkerTopicResult]


@message
class WriteTxnMarkersReply:
    markers: Sequence[MarkerResult]


@message
class WriteTxnMarkers(Op[WriteTxnMarkersReply]):
    code: ClassVar = KafkaOp.WRITE_TXN_MARKERS

    markers: list[Marker]

    def refusal(self, code: ErrorCode, message: str | None = None) -> WriteTxnMarkersReply:
        return WriteTxnMarkersReply(
            markers=[
                MarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        MarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                MarkerPartitionResult(partition_index=index, error_code=code)
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in self.markers
            ]
        )


# --- looking -------------------------------------------------------------------------


@message
class DescribedTxnTopic:
    topic: str
    partitions: Sequence[int]


@message
class DescribedTransaction:
    error_code: ErrorCode = ErrorCode.NONE
    transactional_id: str
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: Sequence[DescribedTxnTopic] = ()


@message
class DescribeTransactionsReply:
    transaction_states: Sequence[DescribedTransaction]


@message
class DescribeTransactions(Op[DescribeTransactionsReply]):
    code: ClassVar = KafkaOp.DESCRIBE_TRANSACTIONS

    transactional_ids: list[str]

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeTransactionsReply:
        return DescribeTransactionsReply(
            transaction_states=[
                DescribedTransaction(error_code=code, transactional_id=name)
                for name in self.transactional_ids
            ]
        )


@message
class ListedTransaction:
    transactional_id: str
    producer_id: int
    transaction_state: str


@message
class ListTransactionsReply:
    error_code: ErrorCode = ErrorCode.NONE
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[ListedTransaction] = ()


@message
class ListTransactions(Op[ListTransactionsReply]):
    code: ClassVar = KafkaOp.LIST_TRANSACTIONS

    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int = -1
    transactional_id_pattern: str | None = None

    def refusal(self, code: ErrorCode, message: str | None = None) -> ListTransactionsReply:
        return ListTransactionsReply(error_code=code)


# --- features ------------------------------------------------------------------------


@message
class FeatureUpdate:
    feature: str
    max_version_level: int
    allow_downgrade: bool = False  # all that version 0 says of the kind of change
    upgrade_type: int = 1


@message
class FeatureResult:
    feature: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


@message
class UpdateFeaturesReply:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    results: Sequence[FeatureResult] = ()


@message
class UpdateFeatures(Op[UpdateFeaturesReply]):
    code: ClassVar = KafkaOp.UPDATE_FEATURES

    feature_updates: list[FeatureUpdate]
    validate_only: bool = False
    results_told: bool = False  # versions 0 and 1 answer for each feature

    def refusal(self, code: ErrorCode, message: str | None = None) -> UpdateFeaturesReply:
        return UpdateFeaturesReply(error_code=code, error_message=message)
