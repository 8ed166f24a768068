"""Whether transactional batches may be written: asked of whoever keeps transactions, before they are.

The first batch of a transaction in a partition has to be verified (KIP-890): else one
that comes late, after its transaction was ended, would open one that nobody ends, and
readers would wait for it for ever. Once it is written the partition itself knows that
the transaction is open, and nobody is asked again.

    producer ──batch──> Writer ──Entrance──> TransactionGate     known at once, or Later
                          │ refusals, and passes for the others
                          └──────> Partition.append(batch, pass)

A pass is good until a batch of the producer is written there, or a marker: what was
verified for a transaction that has ended meanwhile is refused all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import attrs

from ..errors import ErrorCode, KafkaError
from ..machines.producers import Verification
from ..ops.base import Later
from ..ops.log import PartitionProduceReply, Produce
from ..records.batch import LOG_OVERHEAD, OVERHEAD, TRANSACTIONAL_BIT, BatchHeader, read_header
from ..types import Buffer, OrgId, message
from .partition import Partition
from .topics import LiveTopic, Topics

TopicPartition: TypeAlias = tuple[str, int]
Refusals: TypeAlias = Mapping[TopicPartition, ErrorCode]

_UP_TO_MAGIC: Final = 17
_SHORTEST: Final = 26  # a batch that says it is shorter is damaged
_ATTRIBUTES_AT: Final = 22  # the low byte of a batch's attributes
# Clients take these for the coordinator's own affair, and give up; this they know how to try again.
_TRY_AGAIN: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


@message
class Entrance:
    """A producer that wants to write to partitions in which it has no transaction open."""

    org: OrgId
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]
    adds: (
        bool  # they become part of the transaction, which begins if need be; else they have to be part of it
    )


class TransactionGate(Protocol):
    """Knows which transactions are open, and which partitions take part."""

    def enter(self, entrance: Entrance) -> Refusals | Later[Refusals]:
        """The partitions that may not be written to, and why: with the codes of AddPartitionsToTxn.

        With `adds` the answer comes once it would survive a crash that they take part. While
        the producer's last transaction is being ended it may wait for that, 100 ms at most.
        """


class NoTransactions:
    """The gate where nobody keeps transactions: every producer is a stranger."""

    def enter(self, entrance: Entrance) -> Refusals:
        return dict.fromkeys(entrance.partitions, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


@attrs.frozen
class Candidate:
    """A transactional batch and where it is to go."""

    name: str
    partition: Partition
    header: BatchHeader

    @property
    def place(self) -> TopicPartition:
        return self.name, self.partition.index


class Admission:
    """What one request is let in with. Asking for it is noted in the partitions: `Verification` says why.

    Where a partition knows a later epoch of the producer nobody has to be asked.
    """

    def __init__(self, org: OrgId, op: Produce, candidates: Sequence[Candidate], now_ms: int) -> None:
        self._op = op
        self._candidates = candidates
        self._refusals: Refusals = {}
        self._past: set[TopicPartition] = set()
        self._new: list[Candidate] = []
        self._passes: dict[TopicPartition, Verification] = {}
        for one in candidates:
            producers = one.partition.producers
            if producers.is_past(one.header.producer_id, one.header.producer_epoch):
                self._past.add(one.place)
                continue
            if one.header.producer_id not in producers.verifying:
                self._new.append(one)
            self._passes[one.place] = producers.verify(one.header, adds=op.adds_partitions, now_ms=now_ms)
        header = candidates[0].header
        self.entrance = Entrance(
            org=org,
            transactional_id=op.transactional_id or "",
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            partitions=list(self._passes),
            adds=op.adds_partitions,
        )

    def settle(self, refusals: Refusals) -> None:
        """What the gate has answered. Nothing is remembered of strangers: there may be any number of them."""
        self._refusals = refusals
        for one in self._new:
            if refusals.get(one.place) is ErrorCode.INVALID_PRODUCER_ID_MAPPING:
                one.partition.producers.verifying.pop(one.header.producer_id, None)

    def pass_for(self, live: LiveTopic, index: int) -> Verification | None:
        return self._passes.get((live.name, index))

    def refusal(self, live: LiveTopic, index: int) -> PartitionProduceReply | None:
        """The reply of a partition that may not be written to, in codes that its client knows."""
        place = live.name, index
        past = place in self._past
        code = ErrorCode.INVALID_PRODUCER_EPOCH if past else self._refusals.get(place, ErrorCode.NONE)
        if code is ErrorCode.NONE:
            return None
        words = None
        if code is ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif code in _TRY_AGAIN:
            words = (
                "Unable to verify the partition has been added to the transaction. "
                f"Underlying error: {code.name}"
            )
            code = ErrorCode.NOT_ENOUGH_REPLICAS
        elif code is ErrorCode.TRANSACTION_ABORTABLE and not self._op.abortable_told:
            code = ErrorCode.INVALID_TXN_STATE
        if code is ErrorCode.INVALID_TXN_STATE:
            words = "Partition was not added to the transaction"
        return PartitionProduceReply(index=index, error_code=code, error_message=words)


def transactional(op: Produce) -> bool:
    """Whether any batch claims to be part of a transaction. Looked at before any checksum, as Kafka does."""
    for topic in op.topic_data:
        for data in topic.partition_data:
            records = data.records
            if (
                records is not None
                and len(records) > _ATTRIBUTES_AT
                and records[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT
                and _opens_with_a_batch(records)
            ):
                return True
    return False


def to_be_verified(topics: Topics, org: OrgId, op: Produce) -> list[Candidate]:
    """The transactional batches whose producers have no transaction open where they go.

    KafkaError(INVALID_PRODUCER_ID_MAPPING) where the transactional batches are of several producers.
    """
    found = list(_transactional_batches(topics, org, op))
    if len({(one.header.producer_id, one.header.producer_epoch) for one in found}) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    return [
        one
        for one in found
        if not one.partition.producers.has_open(one.header.producer_id, one.header.producer_epoch)
    ]


def own_records(op: Produce) -> None:
    """Copy what is to be written: the buffer that it came in is used again while the request waits."""
    for topic in op.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = bytes(data.records)  # type: ignore[misc]  # it is nobody else's yet


def _transactional_batches(topics: Topics, org: OrgId, op: Produce) -> Iterator[Candidate]:
    """Of the partitions that there are. A batch without a producer is of no transaction, whatever it says."""
    for topic in op.topic_data:
        try:
            live = topics.by_id(org, topic.topic_id) if op.by_id else topics.by_name(org, topic.name)
        except KafkaError:
            continue
        for data in topic.partition_data:
            records = data.records
            if records is None or len(records) < OVERHEAD or not _opens_with_a_batch(records):
                continue
            header = read_header(records)
            if header.transactional and header.producer_id >= 0:
                try:
                    yield Candidate(live.name, live.partition(data.index), header)
                except KafkaError:
                    continue


def _opens_with_a_batch(records: Buffer) -> bool:
    """Whether the first batch is whole and of a format that knows transactions."""
    header = records[:_UP_TO_MAGIC]
    size = LOG_OVERHEAD + int.from_bytes(header[8:LOG_OVERHEAD], "big", signed=True)
    return _SHORTEST <= size <= len(records) and header[-1] == 2
