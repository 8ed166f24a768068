"""What requests about transactions have to do with topics and groups, before and after their coordinator.

The transaction coordinator decides who may do what; partitions and the group coordinator do it.
Here one is asked before the other, so that neither has to know the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias

import trio

from ..config import Config
from ..errors import ErrorCode, KafkaError
from ..machines.offsets_topic import OFFSETS_PARTITIONS, OFFSETS_TOPIC, offsets_partition
from ..machines.transactions.model import TopicPartition
from ..ops import txn as ops
from ..ops.base import Envelope, Later, Op, R
from ..ops.log import InitProducerId, InitProducerIdReply
from ..ops.offsets import OffsetCommitReply, TxnOffsetCommit
from ..types import OrgId
from .admission import Entrance, Refusals
from .group_requests import Coordinator, GroupRequests
from .partition import Partition
from .producer_ids import ProducerIds
from .topics import Topics
from .txn_coordinator import Add, Offsets, TxnCoordinator

BUSY: Final = ErrorCode.CONCURRENT_TRANSACTIONS
ELSEWHERE: Final = (  # a coordinator of groups that is not here, or not any more
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

Answered: TypeAlias = ErrorCode | Later[ErrorCode]
Written: TypeAlias = list[tuple[Partition, int, ops.MarkerPartitionResult]]
OfGroups: TypeAlias = list[tuple[ops.Marker, list[ops.MarkerPartitionResult]]]


class Groups(Coordinator, Offsets, Protocol):
    """Of the group coordinator: it takes offsets that are part of a transaction, and settles them."""


class TxnRequests:
    """Answers InitProducerId, TxnOffsetCommit and WriteTxnMarkers, and keeps the gate of Produce."""

    def __init__(
        self,
        coordinator: TxnCoordinator,
        producer_ids: ProducerIds,
        groups: Groups,
        topics: Topics,
        current: Callable[[], Config],
        now: Callable[[], float],
    ) -> None:
        self._coordinator = coordinator
        self._producer_ids = producer_ids
        self._groups = groups
        self._of_known_topics = GroupRequests(topics, self)
        self._topics = topics
        self._current = current
        self._now = now

    def init(
        self, envelope: Envelope, op: InitProducerId
    ) -> InitProducerIdReply | Later[InitProducerIdReply]:
        """Without a transactional id nobody has to be asked."""
        if op.transactional_id is None:
            return self._producer_ids.init(envelope, op)
        return self._coordinator.ask(envelope, op)

    # --- the gate of Produce, as `admission.TransactionGate` ------------------------------------

    def enter(self, entrance: Entrance) -> Refusals | Later[Refusals]:
        if entrance.adds:
            asked = self._added(entrance)
            code = self._coordinator.add(entrance.org, asked)
            if isinstance(code, Later) or code is BUSY:
                return Later(self._enter, entrance, asked, code)
            return _refused(entrance, code)
        if not self._current().transactions.verification:
            return {}
        if not entrance.transactional_id:
            return dict.fromkeys(entrance.partitions, ErrorCode.INVALID_REQUEST)
        who = entrance.transactional_id, entrance.producer_id, entrance.producer_epoch
        return {
            place: self._coordinator.takes_part(entrance.org, *who, place) for place in entrance.partitions
        }

    @staticmethod
    def _added(entrance: Entrance) -> Add:
        who = entrance.transactional_id, entrance.producer_id, entrance.producer_epoch
        return Add(*who, entrance.partitions)

    async def _enter(self, entrance: Entrance, asked: Add, first: Answered) -> Refusals:
        return _refused(entrance, await self._insist(entrance.org, asked, first))

    # --- offsets ---------------------------------------------------------------------------

    def commit_offsets(
        self, envelope: Envelope, op: TxnOffsetCommit
    ) -> OffsetCommitReply | Later[OffsetCommitReply]:
        """Rules T1-T7, U4-U7. What does not exist is answered first, and is part of nothing."""
        return self._of_known_topics.commit_pending(envelope, op)

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        """As a coordinator of groups: it takes offsets once the group is part of the transaction."""
        assert isinstance(op, TxnOffsetCommit)
        return self._commit_offsets(envelope, op)  # type: ignore[return-value]

    def _commit_offsets(
        self, envelope: Envelope, op: TxnOffsetCommit
    ) -> OffsetCommitReply | Later[OffsetCommitReply]:
        if not op.group_id:
            return op.refusal(ErrorCode.INVALID_GROUP_ID)
        if not op.transactional_id:
            return op.refusal(ErrorCode.INVALID_REQUEST)
        partition = OFFSETS_TOPIC, offsets_partition(op.group_id)
        if not op.adds_group:
            return self._hand_over(envelope, op, partition, ErrorCode.NONE)
        asked = Add(op.transactional_id, op.producer_id, op.producer_epoch, [partition])
        code = self._coordinator.add(envelope.org_id, asked)
        if isinstance(code, Later) or code is BUSY:
            return Later(self._hand_over_later, envelope, op, asked, code)
        return self._hand_over(envelope, op, partition, code)

    async def _hand_over_later(
        self, envelope: Envelope, op: TxnOffsetCommit, asked: Add, first: Answered
    ) -> OffsetCommitReply:
        code = await self._insist(envelope.org_id, asked, first)
        answer = self._hand_over(envelope, op, asked.partitions[0], code)
        return await answer.wait() if isinstance(answer, Later) else answer

    def _hand_over(
        self, envelope: Envelope, op: TxnOffsetCommit, partition: TopicPartition, code: ErrorCode
    ) -> OffsetCommitReply | Later[OffsetCommitReply]:
        """To the groups, if the group is part of the transaction."""
        if code == ErrorCode.NONE and (op.adds_group or self._current().transactions.verification):
            # Between this look and the letter to the groups nobody else runs. A transaction that ends from
            # here on is settled by a later letter: what was sent with it cannot count for the next one.
            who = op.transactional_id, op.producer_id, op.producer_epoch
            code = self._coordinator.takes_part(envelope.org_id, *who, partition)
        if code != ErrorCode.NONE:
            return op.refusal(_told_of_offsets(code, op.abortable_known))
        return self._groups.ask(envelope, op)

    async def _insist(self, org: OrgId, asked: Add, first: Answered) -> ErrorCode:
        """Have partitions take part; while the last transaction is still ending, try for a moment."""
        settings = self._current().transactions
        deadline = trio.current_time() + settings.retry_backoff_max_ms / 1000
        answer = first
        while True:
            code = await answer.wait() if isinstance(answer, Later) else answer
            if code is not BUSY or trio.current_time() >= deadline:
                return code
            await trio.sleep(settings.retry_backoff_ms / 1000)
            answer = self._coordinator.add(org, asked)

    # --- markers ---------------------------------------------------------------------------

    def write_markers(
        self, envelope: Envelope, op: ops.WriteTxnMarkers
    ) -> ops.WriteTxnMarkersReply | Later[ops.WriteTxnMarkersReply]:
        """An administrator ends a transaction that hangs. This broker's own coordinator does not ask."""
        return (
            Later(self._write_markers, envelope, op) if op.markers else ops.WriteTxnMarkersReply(markers=())
        )

    async def _write_markers(self, envelope: Envelope, op: ops.WriteTxnMarkers) -> ops.WriteTxnMarkersReply:
        org = envelope.org_id
        written: Written = []
        of_groups: OfGroups = []
        results = [self._write(org, marker, written, of_groups) for marker in op.markers]
        for partition, next_offset, result in written:
            try:
                await partition.wait_durable(next_offset)
            except KafkaError as failed:
                result.error_code = failed.code  # type: ignore[misc]
        if of_groups:
            await self._settle(envelope, of_groups)
        return ops.WriteTxnMarkersReply(markers=_by_producer(results))

    async def _settle(self, envelope: Envelope, of_groups: OfGroups) -> None:
        """Hand to the groups what of the markers is theirs, and take over what they say of it."""
        op = ops.WriteTxnMarkers(markers=[_for_groups(marker, results) for marker, results in of_groups])
        answer = self._groups.ask(envelope, op)
        reply = await answer.wait() if isinstance(answer, Later) else answer
        for (_, results), told in zip(of_groups, reply.markers, strict=True):
            for result, of_partition in zip(results, told.topics[0].partitions, strict=True):
                code = of_partition.error_code
                result.error_code = (  # type: ignore[misc]  # nobody has seen it yet
                    ErrorCode.NOT_LEADER_OR_FOLLOWER if code in ELSEWHERE else code
                )

    def _write(
        self, org: OrgId, marker: ops.Marker, written: Written, of_groups: OfGroups
    ) -> ops.MarkerResult:
        """`written` and `of_groups` learn of the results that may still change."""
        topics = [
            ops.MarkerTopicResult(
                name=topic.name,
                partitions=[
                    self._write_one(org, marker, (topic.name, index), written)
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ]
        accepted = [
            result
            for topic in topics
            if topic.name == OFFSETS_TOPIC
            for result in topic.partitions
            if result.error_code == ErrorCode.NONE
        ]
        if accepted:
            of_groups.append((marker, accepted))
        return ops.MarkerResult(producer_id=marker.producer_id, topics=topics)

    def _write_one(
        self, org: OrgId, marker: ops.Marker, where: TopicPartition, written: Written
    ) -> ops.MarkerPartitionResult:
        name, index = where
        result = ops.MarkerPartitionResult(partition_index=index)
        if marker.producer_id < 0 or marker.producer_epoch < 0 or marker.transaction_version < 0:
            result.error_code = ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[misc]  # as Kafka has it
            return result
        if name == OFFSETS_TOPIC and 0 <= index < OFFSETS_PARTITIONS:
            return result
        try:
            partition = self._topics.by_name(org, name).partition(index)
            appended = partition.write_marker(
                marker.producer_id,
                marker.producer_epoch,
                committed=marker.transaction_result,
                coordinator_epoch=marker.coordinator_epoch,
                now_ms=int(self._now() * 1000),
                transaction_version=marker.transaction_version,
            )
        except KafkaError as refused:
            result.error_code = refused.code  # type: ignore[misc]
        else:
            written.append((partition, appended.next_offset, result))
        return result


def _for_groups(marker: ops.Marker, results: Iterable[ops.MarkerPartitionResult]) -> ops.Marker:
    """The marker for these partitions of the groups, and for no others."""
    topic = ops.MarkerTopic(
        name=OFFSETS_TOPIC, partition_indexes=[result.partition_index for result in results]
    )
    return ops.Marker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.transaction_result,
        topics=[topic],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _by_producer(results: Iterable[ops.MarkerResult]) -> list[ops.MarkerResult]:
    """One heading for each producer and each of its topics; what has no partitions is not mentioned."""
    producers: dict[int, dict[str, list[ops.MarkerPartitionResult]]] = {}
    for result in results:
        for topic in result.topics:
            if topic.partitions:
                topics = producers.setdefault(result.producer_id, {})
                topics.setdefault(topic.name, []).extend(topic.partitions)
    return [
        ops.MarkerResult(
            producer_id=producer_id,
            topics=[ops.MarkerTopicResult(name=name, partitions=found) for name, found in topics.items()],
        )
        for producer_id, topics in producers.items()
    ]


def _refused(entrance: Entrance, code: ErrorCode) -> Refusals:
    return {} if code == ErrorCode.NONE else dict.fromkeys(entrance.partitions, code)


def _told_of_offsets(code: ErrorCode, abortable_known: bool) -> ErrorCode:
    """What a client is told whose offsets are not part of its transaction. Rules T6, U3, section 7.1."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not abortable_known:
        return ErrorCode.INVALID_TXN_STATE
    return code
