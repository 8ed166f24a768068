"""What the broker tells of topics and of itself: one node, which leads every partition.

All answered from what the catalog keeper has published, without asking anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ..config import Config
from ..errors import ErrorCode, KafkaError
from ..machines.catalog import INTERNAL_TOPICS, valid_name
from ..ops.base import Envelope
from ..ops.cluster import (
    ClusterNode,
    DescribeCluster,
    DescribeClusterReply,
    DescribeLogDirs,
    DescribeLogDirsReply,
    LogDir,
    LogDirPartition,
    LogDirTopicReply,
)
from ..ops.topics import (
    OPERATIONS_NOT_ASKED_FOR,
    AlterPartitionReassignments,
    AlterPartitionReassignmentsReply,
    Cursor,
    DescribeTopicPartitions,
    DescribeTopicPartitionsReply,
    ElectionResult,
    ElectLeaders,
    ElectLeadersReply,
    ListPartitionReassignments,
    ListPartitionReassignmentsReply,
    Metadata,
    MetadataReply,
    MetadataTopic,
    Node,
    PartitionMetadata,
    PartitionResult,
    ReassignablePartition,
    ReassignedPartition,
    ReassignedTopic,
    TopicMetadata,
    TopicPartitions,
)
from ..storage.backend import LogBackend
from ..types import NO_TOPIC_ID
from .catalog_keeper import CatalogKeeper
from .topics import LiveTopic, Topics

# What may be done to a topic and to the cluster where nobody checks: Kafka's bit sets.
ALL_TOPIC_OPERATIONS: Final = 3576
ALL_CLUSTER_OPERATIONS: Final = 8096
BROKERS, CONTROLLERS = 1, 2  # endpoint types of DescribeCluster
PREFERRED, UNCLEAN = 0, 1  # elections


class Describer:
    """Answers Metadata, DescribeTopicPartitions, DescribeCluster, DescribeLogDirs, and where leaders are."""

    def __init__(self, config: Config, topics: Topics, keeper: CatalogKeeper, backend: LogBackend) -> None:
        self.topics = topics
        self._keeper = keeper
        self._backend = backend
        self._node_id = config.broker.node_id
        self._rack = config.broker.rack
        self._auto_create = config.topics.auto_create
        self._most_at_once = config.topics.described_at_once
        self._replicas = (self._node_id,)

    # --- topics -------------------------------------------------------------------------

    def metadata(self, envelope: Envelope, op: Metadata) -> MetadataReply:
        operations = (
            ALL_TOPIC_OPERATIONS if op.include_topic_authorized_operations else OPERATIONS_NOT_ASKED_FOR
        )
        if op.topics is None:
            topics = [self._topic(live, operations) for live in self.topics.of(envelope.org_id)]
        else:
            topics = self._asked(envelope, op, op.topics, operations)
        return MetadataReply(
            brokers=(Node(node_id=self._node_id, host=envelope.host, port=envelope.port, rack=self._rack),),
            cluster_id=self.topics.catalog.cluster_id,
            controller_id=self._node_id,
            topics=topics,
            cluster_authorized_operations=(
                ALL_CLUSTER_OPERATIONS
                if op.include_cluster_authorized_operations
                else OPERATIONS_NOT_ASKED_FOR
            ),
        )

    def _asked(
        self, envelope: Envelope, op: Metadata, asked: list[MetadataTopic], operations: int
    ) -> list[TopicMetadata]:
        found = []
        to_make = []
        wanted = dict.fromkeys((topic.name, topic.topic_id) for topic in asked)
        if any(topic_id != NO_TOPIC_ID for _, topic_id in wanted):  # then names do not count
            wanted = dict.fromkeys((None, topic_id) for _, topic_id in wanted if topic_id != NO_TOPIC_ID)
        for name, topic_id in wanted:
            if topic_id != NO_TOPIC_ID:
                try:
                    live = self.topics.by_id(envelope.org_id, topic_id)
                except KafkaError as unknown:
                    found.append(TopicMetadata(error_code=unknown.code, name=None, topic_id=topic_id))
                else:
                    found.append(self._topic(live, operations))
                continue
            assert name is not None  # else the gateway has refused it
            known = self.topics.find(envelope.org_id, name)
            if known is not None:
                found.append(self._topic(known, operations))
                continue
            code = _unknown(name)
            if (
                code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                and self._auto_create
                and op.allow_auto_topic_creation
            ):
                to_make.append(name)
            found.append(
                TopicMetadata(
                    error_code=code,
                    name=name,
                    is_internal=name in INTERNAL_TOPICS,
                    topic_authorized_operations=operations,
                )
            )
        if to_make:
            self._keeper.auto_create(envelope.org_id, to_make)
        return found

    def _topic(self, live: LiveTopic, operations: int) -> TopicMetadata:
        return TopicMetadata(
            name=live.name,
            topic_id=live.topic.topic_id,
            partitions=self._partitions(live, range(live.topic.partitions)),
            topic_authorized_operations=operations,
        )

    def _partitions(self, live: LiveTopic, indexes: Iterable[int]) -> list[PartitionMetadata]:
        return [
            PartitionMetadata(
                partition_index=index,
                leader_id=self._node_id,
                leader_epoch=live.leader_epoch(index),
                replica_nodes=self._replicas,
                isr_nodes=self._replicas,
            )
            for index in indexes
        ]

    def topic_partitions(
        self, envelope: Envelope, op: DescribeTopicPartitions
    ) -> DescribeTopicPartitionsReply:
        """Topics by name in order, at most so many partitions in all; the cursor says where to go on."""
        cursor = op.cursor
        names = sorted({topic.name for topic in op.topics})
        if "" in names:
            return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        if cursor is not None and (cursor.partition_index < 0 or (names and cursor.topic_name not in names)):
            return op.refusal(ErrorCode.INVALID_REQUEST)
        if not names:
            names = sorted(live.name for live in self.topics.of(envelope.org_id))
        if cursor is not None:
            names = [name for name in names if name >= cursor.topic_name]
        left = min(max(op.response_partition_limit, 1), self._most_at_once)
        topics: list[TopicMetadata] = []
        for name in names:
            if not left:
                return DescribeTopicPartitionsReply(
                    topics=topics, next_cursor=Cursor(topic_name=name, partition_index=0)
                )
            live = self.topics.find(envelope.org_id, name)
            if live is None:
                topics.append(
                    TopicMetadata(
                        error_code=_unknown(name),
                        name=name,
                        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
                    )
                )
                continue
            first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
            count = live.topic.partitions
            last = min(count, first + left)
            topics.append(
                TopicMetadata(
                    name=name,
                    topic_id=live.topic.topic_id,
                    partitions=self._partitions(live, range(first, last)),
                    topic_authorized_operations=ALL_TOPIC_OPERATIONS,
                )
            )
            left -= max(0, last - first)
            if last < count:
                return DescribeTopicPartitionsReply(
                    topics=topics, next_cursor=Cursor(topic_name=name, partition_index=last)
                )
        return DescribeTopicPartitionsReply(topics=topics)

    # --- the cluster ----------------------------------------------------------------------

    def cluster(self, envelope: Envelope, op: DescribeCluster) -> DescribeClusterReply:
        if op.endpoint_type == CONTROLLERS:
            return op.refusal(ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker, not a controller")
        if op.endpoint_type != BROKERS:
            return op.refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
        return DescribeClusterReply(
            cluster_id=self.topics.catalog.cluster_id,
            controller_id=self._node_id,
            brokers=(
                ClusterNode(broker_id=self._node_id, host=envelope.host, port=envelope.port, rack=self._rack),
            ),
            cluster_authorized_operations=(
                ALL_CLUSTER_OPERATIONS
                if op.include_cluster_authorized_operations
                else OPERATIONS_NOT_ASKED_FOR
            ),
        )

    def log_dirs(self, envelope: Envelope, op: DescribeLogDirs) -> DescribeLogDirsReply:
        wanted: list[tuple[LiveTopic, Sequence[int]]] = []
        if op.topics is None:
            wanted += [(live, range(live.topic.partitions)) for live in self.topics.of(envelope.org_id)]
        else:
            asked: dict[str, dict[int, None]] = {}  # in order, each once
            for topic in op.topics:
                asked.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
            for name, numbers in asked.items():
                live = self.topics.find(envelope.org_id, name)
                if live is not None:
                    known = [i for i in numbers if 0 <= i < live.topic.partitions]
                    wanted.append((live, known))
        room = self._backend.room()
        topics = [
            LogDirTopicReply(
                name=live.name,
                partitions=[
                    LogDirPartition(partition_index=index, partition_size=live.size(index))
                    for index in indexes
                ],
            )
            for live, indexes in wanted
            if len(indexes)
        ]
        return DescribeLogDirsReply(
            results=[
                LogDir(log_dir=room.path, topics=topics, total_bytes=room.total, usable_bytes=room.usable)
            ]
        )

    # --- where partitions live ---------------------------------------------------------------

    def elect(self, envelope: Envelope, op: ElectLeaders) -> ElectLeadersReply:
        """Every partition has the only leader that it can have."""
        if op.topic_partitions == []:
            return ElectLeadersReply(replica_election_results=[])
        if op.timeout_ms <= 0:
            return op.refusal(ErrorCode.REQUEST_TIMED_OUT)
        if op.election_type not in (PREFERRED, UNCLEAN):
            return op.refusal(ErrorCode.INVALID_REQUEST, f"no such election: {op.election_type}")
        if op.topic_partitions is None:
            return ElectLeadersReply(replica_election_results=[])
        results = [
            ElectionResult(
                topic=topic.topic,
                partition_result=[
                    PartitionResult(
                        partition_id=index,
                        error_code=code,
                        error_message=code.meaning,
                    )
                    for index in topic.partitions
                    for code in (self._election(envelope, topic, index),)
                ],
            )
            for topic in op.topic_partitions
        ]
        return ElectLeadersReply(replica_election_results=results)

    def _election(self, envelope: Envelope, topic: TopicPartitions, index: int) -> ErrorCode:
        if self._exists(envelope, topic.topic, index):
            return ErrorCode.ELECTION_NOT_NEEDED
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def reassign(
        self, envelope: Envelope, op: AlterPartitionReassignments
    ) -> AlterPartitionReassignmentsReply:
        """A partition may stay where it is; there is nowhere else for it to go."""
        if op.topics and op.timeout_ms <= 0:
            return op.refusal(ErrorCode.REQUEST_TIMED_OUT)
        return AlterPartitionReassignmentsReply(
            allow_replication_factor_change=op.allow_replication_factor_change,
            responses=[
                ReassignedTopic(
                    name=topic.name,
                    partitions=[self._reassigned(envelope, topic.name, asked) for asked in topic.partitions],
                )
                for topic in op.topics
            ],
        )

    def _reassigned(self, envelope: Envelope, name: str, asked: ReassignablePartition) -> ReassignedPartition:
        code = ErrorCode.NONE
        if not self._exists(envelope, name, asked.partition_index):
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif asked.replicas is None:
            code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        elif asked.replicas != [self._node_id]:
            code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
        return ReassignedPartition(
            partition_index=asked.partition_index,
            error_code=code,
            error_message=code.meaning if code else None,
        )

    def reassignments(
        self, envelope: Envelope, op: ListPartitionReassignments
    ) -> ListPartitionReassignmentsReply:
        return ListPartitionReassignmentsReply()

    def _exists(self, envelope: Envelope, name: str, index: int) -> bool:
        live = self.topics.find(envelope.org_id, name)
        return live is not None and 0 <= index < live.topic.partitions


def _unknown(name: str) -> ErrorCode:
    """Why there is no topic of this name."""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
