"""What administrators do with transactions: `Client.transactions`.

    for one in await client.transactions.list_all(states=["Ongoing"]):
        print(one.transactional_id, one.state)

A transaction *hangs* where a partition waits for its end and its coordinator knows nothing of it:
readers of committed records then wait for ever. `hanging` finds such, `abort` ends them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..errors import ErrorCode
from ..types import message
from .cluster import Cluster
from .coordinator import TRANSACTION_KEY, Coordinator
from .errors import BrokerRefused, refused
from .messages.data import InitProducerId
from .messages.txn import (
    DescribeProducers,
    DescribeTransactions,
    ListTransactions,
    MarkerTopic,
    MarkerToWrite,
    ProducersOf,
    ProducerState,
    WriteTxnMarkers,
)
from .model import TopicPartition

ONGOING: Final = "Ongoing"
DURATION_SINCE: Final = 1  # the version of ListTransactions that takes a duration
PATTERN_SINCE: Final = 2
TERMINATE_TIMEOUT_MS: Final = 60_000  # of the producer that takes an id over, only to end what is open


@message
class TransactionListing:
    transactional_id: str
    coordinator: int
    producer_id: int
    state: str


@message
class TransactionDescription:
    transactional_id: str
    coordinator: int
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]


@message
class PartitionProducer:
    """Who writes to a partition, and where its open transaction began there."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    open_since: int | None


class Transactions:
    """`Client.transactions`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def list_all(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int = -1,
        pattern: str | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids that all brokers know, by name. ValueError for a state that none knows."""
        request = ListTransactions(
            state_filters=[*states],
            producer_id_filters=[*producer_ids],
            duration_filter=longer_than_ms,
            transactional_id_pattern=pattern,
        )
        at_least = PATTERN_SINCE if pattern else DURATION_SINCE if longer_than_ms >= 0 else 0
        await self._cluster.learn()
        found = []
        for node_id in sorted(self._cluster.nodes):
            connection = await self._cluster.connection(node_id)
            reply = await connection.ask(
                request, within=self._cluster.settings.request_timeout, at_least=at_least
            )
            if reply.error_code:
                raise refused(reply.error_code, f"the transactions of broker {node_id}")
            if reply.unknown_state_filters:
                raise ValueError(f"no state of a transaction: {', '.join(reply.unknown_state_filters)}")
            found += [
                TransactionListing(
                    transactional_id=one.transactional_id,
                    coordinator=node_id,
                    producer_id=one.producer_id,
                    state=one.transaction_state,
                )
                for one in reply.transaction_states
            ]
        return sorted(found, key=lambda one: one.transactional_id)

    async def describe(self, transactional_id: str) -> TransactionDescription:
        """BrokerRefused with TRANSACTIONAL_ID_NOT_FOUND where nobody knows it."""
        coordinator = Coordinator(self._cluster, transactional_id, TRANSACTION_KEY)
        reply = await coordinator.ask(
            DescribeTransactions(transactional_ids=[transactional_id]),
            lambda reply: [one.error_code for one in reply.transaction_states],
        )
        [one] = reply.transaction_states
        if one.error_code:
            raise refused(one.error_code, f"transactional id {transactional_id!r}")
        return TransactionDescription(
            transactional_id=transactional_id,
            coordinator=await coordinator.node_id(),
            state=one.transaction_state,
            producer_id=one.producer_id,
            producer_epoch=one.producer_epoch,
            timeout_ms=one.transaction_timeout_ms,
            started_ms=one.transaction_start_time_ms if one.transaction_start_time_ms >= 0 else None,
            partitions=tuple(
                TopicPartition(topic.topic, index) for topic in one.topics for index in topic.partitions
            ),
        )

    async def producers(self, target: TopicPartition) -> list[PartitionProducer]:
        """Who has written to the partition lately, by producer id."""

        async def once() -> list[ProducerState]:
            request = DescribeProducers(
                topics=[ProducersOf(name=target.topic, partition_indexes=[target.partition])]
            )
            connection = await self._cluster.connection(await self._leader(target))
            reply = await connection.ask(request, within=self._cluster.settings.request_timeout)
            [topic] = reply.topics
            [partition] = topic.partitions
            if partition.error_code:
                raise refused(partition.error_code, str(target), partition.error_message)
            return partition.active_producers

        states = await self._cluster.persist(once, [target.topic])
        return [
            PartitionProducer(
                partition=target,
                producer_id=one.producer_id,
                producer_epoch=one.producer_epoch,
                last_sequence=one.last_sequence,
                last_timestamp_ms=one.last_timestamp,
                coordinator_epoch=one.coordinator_epoch,
                open_since=one.current_txn_start_offset if one.current_txn_start_offset >= 0 else None,
            )
            for one in sorted(states, key=lambda one: one.producer_id)
        ]

    # --- ends ------------------------------------------------------------------------

    async def terminate(self, transactional_id: str) -> None:
        """Abort what is open under the id, and fence the producer that has it."""
        coordinator = Coordinator(self._cluster, transactional_id, TRANSACTION_KEY)
        request = InitProducerId(
            transactional_id=transactional_id, transaction_timeout_ms=TERMINATE_TIMEOUT_MS
        )

        async def once() -> None:
            reply = await coordinator.ask_once(request)
            coordinator.check(reply.error_code)
            if reply.error_code:  # while the abort goes on, it says so: a passing error
                raise refused(reply.error_code, f"transactional id {transactional_id!r}")

        await self._cluster.persist(once)

    async def hanging(
        self, targets: Iterable[TopicPartition], *, longer_than_ms: int, now_ms: int
    ) -> list[PartitionProducer]:
        """Open transactions older than any may become, of which no coordinator knows.

        A coordinator aborts what lasts too long by itself; only what it does not know can get so old.
        """
        suspects = [
            one
            for target in targets
            for one in await self.producers(target)
            if one.open_since is not None and now_ms - one.last_timestamp_ms > longer_than_ms
        ]
        if not suspects:
            return []
        listed = await self.list_all(producer_ids={one.producer_id for one in suspects})
        known: set[tuple[int, TopicPartition]] = set()
        for one in listed:
            try:
                described = await self.describe(one.transactional_id)
            except BrokerRefused as error:
                if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:  # it went a moment ago
                    raise
                continue
            known.update((described.producer_id, partition) for partition in described.partitions)
        return [one for one in suspects if (one.producer_id, one.partition) not in known]

    async def abort(self, producer: PartitionProducer) -> None:
        """Write the end of a transaction that hangs into its partition, as an abort."""
        target = producer.partition
        request = WriteTxnMarkers(
            markers=[
                MarkerToWrite(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    topics=[MarkerTopic(name=target.topic, partition_indexes=[target.partition])],
                    coordinator_epoch=max(producer.coordinator_epoch, 0),
                )
            ]
        )
        connection = await self._cluster.connection(await self._leader(target))
        reply = await connection.ask(request, within=self._cluster.settings.request_timeout)
        for marker in reply.markers:
            for topic in marker.topics:
                for partition in topic.partitions:
                    if partition.error_code:
                        raise refused(partition.error_code, str(target))

    async def _leader(self, target: TopicPartition) -> int:
        info = await self._cluster.topic(target.topic)
        if not 0 <= target.partition < len(info.partitions):
            raise refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(target))
        leader = info.partitions[target.partition].leader
        if leader is None:
            raise refused(ErrorCode.LEADER_NOT_AVAILABLE, str(target))
        return leader
