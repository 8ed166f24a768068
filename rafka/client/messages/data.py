"""Records in and out: Produce, InitProducerId, Fetch, ListOffsets.

Topics go by name, so Produce and Fetch stop at version 12: from 13 on they go by topic id.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from ...types import Buffer, message
from ...wire.api import Api
from ...wire.apis.fetch import FETCH
from ...wire.apis.init_producer_id import INIT_PRODUCER_ID
from ...wire.apis.list_offsets import LIST_OFFSETS
from ...wire.apis.produce import PRODUCE
from .base import Request

# --- Produce ---------------------------------------------------------------------


@message
class RecordError:
    batch_index: int
    batch_index_error_message: str | None


@message
class ProducedPartition:
    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: list[RecordError] = attrs.field(factory=list)
    error_message: str | None = None


@message
class ProducedTopic:
    name: str
    partition_responses: list[ProducedPartition]


@message
class ProduceReply:
    responses: list[ProducedTopic]


@message
class PartitionRecords:
    index: int
    records: Buffer


@message
class TopicRecords:
    name: str
    partition_data: list[PartitionRecords]


@message
class Produce(Request[ProduceReply]):
    api: ClassVar[Api] = PRODUCE
    reply = ProduceReply
    newest = 12

    acks: int
    timeout_ms: int
    topic_data: list[TopicRecords]
    transactional_id: str | None = None


# --- InitProducerId --------------------------------------------------------------


@message
class InitProducerIdReply:
    error_code: int
    producer_id: int
    producer_epoch: int


@message
class InitProducerId(Request[InitProducerIdReply]):
    api: ClassVar[Api] = INIT_PRODUCER_ID
    reply = InitProducerIdReply

    transactional_id: str | None = None
    transaction_timeout_ms: int = 0x7FFFFFFF


# --- Fetch -----------------------------------------------------------------------


@message
class AbortedTransaction:
    producer_id: int
    first_offset: int


@message
class FetchedPartition:
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: list[AbortedTransaction] | None
    records: Buffer | None


@message
class FetchedTopic:
    topic: str
    partitions: list[FetchedPartition]


@message
class FetchReply:
    error_code: int
    responses: list[FetchedTopic]


@message
class PartitionToFetch:
    partition: int
    fetch_offset: int
    partition_max_bytes: int
    current_leader_epoch: int = -1


@message
class TopicToFetch:
    topic: str
    partitions: list[PartitionToFetch]


@message
class Fetch(Request[FetchReply]):
    """A fetch without a session: every request names all its partitions."""

    api: ClassVar[Api] = FETCH
    reply = FetchReply
    newest = 12

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    topics: list[TopicToFetch]
    replica_id: int = -1
    session_id: int = 0
    session_epoch: int = -1
    rack_id: str = ""


# --- ListOffsets -----------------------------------------------------------------


@message
class ListedPartition:
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int = -1


@message
class ListedTopic:
    name: str
    partitions: list[ListedPartition]


@message
class ListOffsetsReply:
    topics: list[ListedTopic]


@message
class PartitionToList:
    partition_index: int
    timestamp: int
    current_leader_epoch: int = -1


@message
class TopicToList:
    name: str
    partitions: list[PartitionToList]


@message
class ListOffsets(Request[ListOffsetsReply]):
    api: ClassVar[Api] = LIST_OFFSETS
    reply = ListOffsetsReply

    topics: list[TopicToList]
    isolation_level: int = 0
    timeout_ms: int = 30_000
    replica_id: int = -1
