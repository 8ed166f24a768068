"""What administrators ask about transactions, and about who produces to a partition."""

from __future__ import annotations

from typing import ClassVar

import attrs

from ...types import message
from ...wire.api import Api
from ...wire.apis.describe_producers import DESCRIBE_PRODUCERS
from ...wire.apis.describe_transactions import DESCRIBE_TRANSACTIONS
from ...wire.apis.list_transactions import LIST_TRANSACTIONS
from ...wire.apis.write_txn_markers import WRITE_TXN_MARKERS
from .base import Request

# --- ListTransactions --------------------------------------------------------------


@message
class TransactionEntry:
    transactional_id: str
    producer_id: int
    transaction_state: str


@message
class ListTransactionsReply:
    error_code: int
    unknown_state_filters: list[str] = attrs.field(factory=list)
    transaction_states: list[TransactionEntry]


@message
class ListTransactions(Request[ListTransactionsReply]):
    api: ClassVar[Api] = LIST_TRANSACTIONS
    reply = ListTransactionsReply

    state_filters: list[str] = attrs.field(factory=list)
    producer_id_filters: list[int] = attrs.field(factory=list)
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


# --- DescribeTransactions -------------------------------------------------------------


@message
class TransactionTopic:
    topic: str
    partitions: list[int]


@message
class TransactionDetails:
    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: list[TransactionTopic]


@message
class DescribeTransactionsReply:
    transaction_states: list[TransactionDetails]


@message
class DescribeTransactions(Request[DescribeTransactionsReply]):
    api: ClassVar[Api] = DESCRIBE_TRANSACTIONS
    reply = DescribeTransactionsReply

    transactional_ids: list[str]


# --- DescribeProducers -----------------------------------------------------------------


@message
class ProducersOf:
    name: str
    partition_indexes: list[int]


@message
class ProducerState:
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int


@message
class PartitionProducers:
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: list[ProducerState]


@message
class TopicProducers:
    name: str
    partitions: list[PartitionProducers]


@message
class DescribeProducersReply:
    topics: list[TopicProducers]


@message
class DescribeProducers(Request[DescribeProducersReply]):
    api: ClassVar[Api] = DESCRIBE_PRODUCERS
    reply = DescribeProducersReply

    topics: list[ProducersOf]


# --- WriteTxnMarkers ---------------------------------------------------------------------


@message
class MarkerTopic:
    name: str
    partition_indexes: list[int]


@message
class MarkerToWrite:
    producer_id: int
    producer_epoch: int
    transaction_result: bool = False  # an abort
    topics: list[MarkerTopic]
    coordinator_epoch: int


@message
class MarkerPartition:
    partition_index: int
    error_code: int


@message
class MarkedTopic:
    name: str
    partitions: list[MarkerPartition]


@message
class WrittenMarker:
    producer_id: int
    topics: list[MarkedTopic]


@message
class WriteTxnMarkersReply:
    markers: list[WrittenMarker]


@message
class WriteTxnMarkers(Request[WriteTxnMarkersReply]):
    api: ClassVar[Api] = WRITE_TXN_MARKERS
    reply = WriteTxnMarkersReply

    markers: list[MarkerToWrite]
