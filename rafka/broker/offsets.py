"""What can be said of offsets: by time, by leader epoch, and where a log begins."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, TypeVar

from ..config import Config
from ..errors import ErrorCode, KafkaError
from ..machines.catalog import INTERNAL_TOPICS, valid_name
from ..machines.room import EACH, Room
from ..ops.base import Envelope, Later
from ..ops.log import (
    ORDINARY_READER,
    ActiveProducer,
    DeleteRecords,
    DeleteRecordsPartition,
    DeleteRecordsReply,
    DescribeProducers,
    DescribeProducersReply,
    ListOffsets,
    ListOffsetsPartition,
    ListOffsetsReply,
    OffsetForLeaderEpoch,
    OffsetForLeaderEpochReply,
    PartitionDeleted,
    PartitionEpochEnd,
    PartitionOffset,
    PartitionProducers,
    TopicDeleted,
    TopicEpochEnds,
    TopicOffsets,
    TopicProducers,
)
from ..storage.backend import LogBackend
from ..types import OrgId
from .partition import Partition
from .topics import Topics

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
NO_EPOCH: Final = -1
P = TypeVar("P", ListOffsetsPartition, DeleteRecordsPartition)
NOTHING_TWICE: Final = frozenset[tuple[str, int]]()


class Offsets:
    """Answers ListOffsets, OffsetForLeaderEpoch, DeleteRecords and DescribeProducers."""

    def __init__(self, config: Config, topics: Topics, backend: LogBackend) -> None:
        self.topics = topics
        self._backend = backend
        self._most_bytes = config.broker.max_reply_bytes

    # --- list offsets -------------------------------------------------------------------

    def list_offsets(self, envelope: Envelope, op: ListOffsets) -> ListOffsetsReply | Later[ListOffsetsReply]:
        if op.isolation_level not in (0, 1):
            return op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
        if len(op.topics) == 1 and len(op.topics[0].partitions) == 1:  # nearly always
            named = {op.topics[0].name: op.topics[0].partitions}
            twice: Collection[tuple[str, int]] = NOTHING_TWICE
        else:
            named = _merged((topic.name, topic.partitions) for topic in op.topics)
            twice = _named_twice(op)
        topics = []
        for name, partitions in named.items():
            found = []
            for asked in partitions:
                answer = self._by_position(envelope, op, name, asked, twice, settled=True)
                if answer is None:
                    return Later(self._list_slowly, envelope, op)
                found.append(answer)
            topics.append(TopicOffsets(name=name, partitions=found))
        return ListOffsetsReply(topics=topics)

    async def _list_slowly(self, envelope: Envelope, op: ListOffsets) -> ListOffsetsReply:
        """Where a log has to be looked into, or what was written before is not yet to be read."""
        for topic in op.topics:
            await self._settle(envelope, topic.name, [p.partition_index for p in topic.partitions])
        twice = _named_twice(op)
        topics = []
        for name, partitions in _merged((topic.name, topic.partitions) for topic in op.topics).items():
            found = []
            for asked in partitions:
                answer = self._by_position(envelope, op, name, asked, twice, settled=False)
                assert answer is not None
                by_time = asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP
                if by_time and answer.error_code is ErrorCode.NONE:
                    answer = await self._by_time(envelope, op, name, asked)
                found.append(answer)
            topics.append(TopicOffsets(name=name, partitions=found))
        return ListOffsetsReply(topics=topics)

    def _by_position(
        self,
        envelope: Envelope,
        op: ListOffsets,
        name: str,
        asked: ListOffsetsPartition,
        twice: Collection[tuple[str, int]],
        *,
        settled: bool,
    ) -> PartitionOffset | None:
        """All that can be told without looking into the log: every refusal, and the ends of it.

        With `settled`, None where the log has to be looked into, or has records that may not be read yet.
        """
        index, timestamp = asked.partition_index, asked.timestamp
        try:
            if twice and (name, index) in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            if timestamp < op.lowest_timestamp:
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
            partition = self.topics.by_name(envelope.org_id, name).partition(index)
            if asked.current_leader_epoch != NO_EPOCH:
                partition.check_epoch(asked.current_leader_epoch)
            if partition.log.failed is not None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        except KafkaError as refused:
            return PartitionOffset(partition_index=index, error_code=refused.code)
        log = partition.log
        if settled and (timestamp >= 0 or timestamp == MAX_TIMESTAMP or not partition.settled):
            return None
        if timestamp == LATEST:
            ordinary = op.replica_id == ORDINARY_READER
            offset = partition.ceiling(op.isolation_level) if ordinary else log.end_offset
            return PartitionOffset(partition_index=index, offset=offset, leader_epoch=partition.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            epoch = max(0, log.epoch_of(log.start_offset))
            return PartitionOffset(partition_index=index, offset=log.start_offset, leader_epoch=epoch)
        return PartitionOffset(partition_index=index)

    async def _by_time(
        self, envelope: Envelope, op: ListOffsets, name: str, asked: ListOffsetsPartition
    ) -> PartitionOffset:
        partition = self.topics.by_name(envelope.org_id, name).partition(asked.partition_index)
        try:
            if asked.timestamp == MAX_TIMESTAMP:
                found = await partition.log.latest_time()
            else:
                found = await partition.log.find_time(asked.timestamp)
        except KafkaError as broken:
            return PartitionOffset(partition_index=asked.partition_index, error_code=broken.code)
        ceiling, start = partition.ceiling(op.isolation_level), partition.log.start_offset
        if found is None and asked.timestamp == MAX_TIMESTAMP and start < ceiling:
            # No record has a time: they are equals, and the first of them is told.
            epoch = max(0, partition.log.epoch_of(start))
            return PartitionOffset(partition_index=asked.partition_index, offset=start, leader_epoch=epoch)
        if found is None or found.offset >= ceiling:
            return PartitionOffset(partition_index=asked.partition_index)
        return PartitionOffset(
            partition_index=asked.partition_index,
            timestamp=found.timestamp,
            offset=found.offset,
            leader_epoch=found.epoch,
        )

    # --- leader epochs --------------------------------------------------------------------

    def epoch_ends(self, envelope: Envelope, op: OffsetForLeaderEpoch) -> OffsetForLeaderEpochReply:
        topics = []
        for topic in op.topics:
            ends = []
            for asked in topic.partitions:
                try:
                    partition = self.topics.by_name(envelope.org_id, topic.topic).partition(asked.partition)
                    if asked.current_leader_epoch != NO_EPOCH:
                        partition.check_epoch(asked.current_leader_epoch)
                    epoch, end = partition.epoch_end(asked.leader_epoch)
                except KafkaError as refused:
                    ends.append(PartitionEpochEnd(partition=asked.partition, error_code=refused.code))
                else:
                    ends.append(
                        PartitionEpochEnd(partition=asked.partition, leader_epoch=epoch, end_offset=end)
                    )
            topics.append(TopicEpochEnds(topic=topic.topic, partitions=ends))
        return OffsetForLeaderEpochReply(topics=topics)

    # --- deleting records -------------------------------------------------------------------

    async def _settle(self, envelope: Envelope, name: str, indexes: list[int]) -> None:
        live = self.topics.find(envelope.org_id, name)
        for index in indexes:
            if live is not None and not live.settled(index):
                await live.partition(index).settle()

    def delete_records(self, envelope: Envelope, op: DeleteRecords) -> Later[DeleteRecordsReply]:
        return Later(self._delete_records, envelope, op)

    async def _delete_records(self, envelope: Envelope, op: DeleteRecords) -> DeleteRecordsReply:
        for topic in op.topics:
            await self._settle(envelope, topic.name, [p.partition_index for p in topic.partitions])
        reply = self._deleted(envelope, op)
        await self._backend.checkpoint()  # what was deleted must not come back after a crash
        return reply

    def _deleted(self, envelope: Envelope, op: DeleteRecords) -> DeleteRecordsReply:
        topics = []
        for name, partitions in _merged((topic.name, topic.partitions) for topic in op.topics).items():
            deleted = []
            for asked in partitions:
                try:
                    low = self._delete(envelope, name, asked)
                except KafkaError as refused:
                    deleted.append(
                        PartitionDeleted(partition_index=asked.partition_index, error_code=refused.code)
                    )
                else:
                    deleted.append(PartitionDeleted(partition_index=asked.partition_index, low_watermark=low))
            topics.append(TopicDeleted(name=name, partitions=deleted))
        return DeleteRecordsReply(topics=topics)

    def _delete(self, envelope: Envelope, name: str, asked: DeleteRecordsPartition) -> int:
        if name in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        live = self.topics.by_name(envelope.org_id, name)
        partition = live.partition(asked.partition_index)
        if live.config.compact and not live.config.delete:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        if partition.log.failed is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        offset = partition.high_watermark if asked.offset == -1 else asked.offset
        if not 0 <= offset <= partition.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        partition.log.advance_start(offset)
        partition.wake()
        return partition.log.start_offset

    # --- producers ----------------------------------------------------------------------------

    def producers(self, envelope: Envelope, op: DescribeProducers) -> DescribeProducersReply:
        room = Room(self._most_bytes)
        room.must = True  # the first may be as large as it is
        topics = []
        for topic in op.topics:
            partitions = []
            for index in topic.partition_indexes:
                partitions.append(self._producers_of(envelope.org_id, topic.name, index, room))
                room.must = False
            topics.append(TopicProducers(name=topic.name, partitions=partitions))
        return DescribeProducersReply(topics=topics)

    def _producers_of(self, org: OrgId, name: str, index: int, room: Room) -> PartitionProducers:
        try:
            if not valid_name(name):
                raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
            partition = self.topics.by_name(org, name).partition(index)
            room.take(EACH + EACH * len(partition.producers.by_id))
        except KafkaError as refused:
            return PartitionProducers(
                partition_index=index,
                error_code=refused.code,
                error_message=refused.message or refused.code.meaning,
            )
        return PartitionProducers(partition_index=index, active_producers=_active(partition))


def _active(partition: Partition) -> list[ActiveProducer]:
    return [
        ActiveProducer(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.first_open_offset,
        )
        for producer_id, producer in partition.producers.by_id.items()
    ]


def _merged(asked: Iterable[tuple[str, list[P]]]) -> dict[str, list[P]]:
    """The partitions of each topic, each once and as it was named last. Topics without any are left out."""
    topics: dict[str, dict[int, P]] = {}
    for name, partitions in asked:
        if partitions:
            topics.setdefault(name, {}).update((p.partition_index, p) for p in partitions)
    return {name: list(partitions.values()) for name, partitions in topics.items()}


def _named_twice(op: ListOffsets) -> set[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    twice = set()
    for topic in op.topics:
        for asked in topic.partitions:
            key = topic.name, asked.partition_index
            if key in seen:
                twice.add(key)
            seen.add(key)
    return twice
