"""All transactional ids of the broker, and the deadlines of their open transactions.

A method takes an op and gives a `Verdict`: the reply, and the facts that it came to. The
facts are applied at once, so that the next op sees them; the keeper journals them before
it sends the reply. What has been prepared is then `endings()`: the keeper writes their
markers, and tells `completed` of those that are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, TypeAlias

import attrs

from ...errors import ErrorCode, KafkaError
from ...ops import txn as ops
from ...ops.log import InitProducerId, InitProducerIdReply
from ...types import OrgId
from ..patterns import NotAPattern, Pattern
from ..room import EACH, Room, written
from . import rules
from .facts import TransactionChanged, TransactionForgotten, TxnPartitionsAdded
from .model import (
    BUSY,
    FORGETTABLE,
    NO_EPOCH,
    NO_ID,
    PREPARED,
    STATE_NAMES,
    TRANSITIONS,
    Ending,
    TopicPartition,
    Transaction,
    TxnKey,
    TxnRules,
    TxnState,
)

TxnFact: TypeAlias = TransactionChanged | TxnPartitionsAdded | TransactionForgotten

INDEX: Final = 8  # bytes: the number of a partition in an answer
SPARE: Final = 1000  # deadlines that are out of date are thrown away when there are so many of them


@attrs.frozen
class Verdict:
    reply: object
    facts: tuple[TxnFact, ...] = ()


class Transactions:
    def __init__(self, txn_rules: TxnRules, new_producer_id: Callable[[], int]) -> None:
        self.rules = txn_rules
        self._new_id = new_producer_id
        self._by_key: dict[TxnKey, Transaction] = {}
        self._deadlines: list[tuple[int, TxnKey]] = []  # of open transactions; some are out of date
        self._prepared: dict[TxnKey, None] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    # --- what clients ask ----------------------------------------------------------------

    def init(self, op: InitProducerId, org: OrgId, now_ms: int) -> Verdict:
        """Rules I3-I16, for a producer that has a transactional id."""
        if (op.producer_id == NO_ID) != (op.producer_epoch == NO_EPOCH) or not op.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not 0 < op.transaction_timeout_ms <= self.rules.max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        key = org, op.transactional_id
        txn = self._by_key.get(key)
        if txn is None:
            if len(self._by_key) >= self.rules.max_ids:
                raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "there are too many transactional ids")
            txn = Transaction(key, self._new_id())
        fact = rules.claim(
            txn, op.producer_id, op.producer_epoch, op.transaction_timeout_ms, now_ms, self._new_id
        )
        self.apply(fact)
        if fact.state == TxnState.PREPARE_ABORT.value:
            return Verdict(op.refusal(BUSY), (fact,))
        reply = InitProducerIdReply(producer_id=fact.producer_id, producer_epoch=fact.epoch)
        return Verdict(reply, (fact,))

    def add(self, asked: ops.TxnAddition, org: OrgId, now_ms: int) -> tuple[TxnFact, ...]:
        """Partitions that exist become part of a transaction, all of them or none. Rules P3-P8a."""
        if not asked.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        txn = self._checked(org, asked.transactional_id, asked.producer_id, asked.producer_epoch)
        partitions = ((topic.name, index) for topic in asked.topics for index in topic.partitions)
        return self._take_in(txn, partitions, now_ms)

    def verify(self, asked: ops.TxnAddition, org: OrgId) -> list[ops.TxnTopicResult]:
        """Which partitions are part of the open transaction. Nothing changes. Rule P10."""
        if not asked.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        txn = self._checked(org, asked.transactional_id, asked.producer_id, asked.producer_epoch)
        return [
            ops.TxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    ops.TxnPartitionResult(
                        partition_index=index, partition_error_code=rules.takes_part(txn, (topic.name, index))
                    )
                    for index in topic.partitions
                ],
            )
            for topic in asked.topics
        ]

    def add_written(
        self,
        org: OrgId,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: Iterable[TopicPartition],
        now_ms: int,
    ) -> tuple[TxnFact, ...]:
        """Partitions become part by being written to (KIP-890), that of a group by AddOffsetsToTxn."""
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        return self._take_in(self._checked(org, transactional_id, producer_id, epoch), partitions, now_ms)

    def takes_part(
        self, org: OrgId, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        """Whether this producer may write to the partition now: NONE, or why not."""
        try:
            return rules.takes_part(self._checked(org, transactional_id, producer_id, epoch), partition)
        except KafkaError as refused:
            return refused.code

    def end(self, op: ops.EndTxn, org: OrgId, now_ms: int) -> Verdict:
        """Rules E1-E13a."""
        if not op.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        key = org, op.transactional_id
        fact = rules.end(
            self._by_key.get(key),
            op.producer_id,
            op.producer_epoch,
            op.committed,
            op.bumps_epoch,
            now_ms,
            self._new_id,
        )
        if fact is not None:
            self.apply(fact)
        producer_id, epoch = rules.told_at_end(self._by_key[key])
        reply = ops.EndTxnReply(producer_id=producer_id, producer_epoch=epoch)
        return Verdict(reply, () if fact is None else (fact,))

    def describe(self, op: ops.DescribeTransactions, org: OrgId) -> ops.DescribeTransactionsReply:
        told: list[ops.DescribedTransaction] = []
        room = Room(self.rules.max_reply_bytes)
        for name in op.transactional_ids:
            room.must = not told
            try:
                told.append(self._described(org, name, room))
            except KafkaError as full:
                told.append(ops.DescribedTransaction(transactional_id=name, error_code=full.code))
        return ops.DescribeTransactionsReply(transaction_states=told)

    def list(self, op: ops.ListTransactions, org: OrgId, now_ms: int) -> ops.ListTransactionsReply:
        """Those that pass every filter. KafkaError for a pattern that is none."""
        pattern = _compiled(op.transactional_id_pattern)
        states, ids = set(op.state_filters), set(op.producer_id_filters)
        return ops.ListTransactionsReply(
            unknown_state_filters=[
                name for name in dict.fromkeys(op.state_filters) if name not in STATE_NAMES
            ],
            transaction_states=[
                ops.ListedTransaction(
                    transactional_id=txn.key[1],
                    producer_id=txn.producer_id,
                    transaction_state=txn.state.value,
                )
                for txn in self._by_key.values()
                if txn.key[0] == org
                and (not states or txn.state.value in states)
                and (not ids or txn.producer_id in ids)
                and (op.duration_filter < 0 or now_ms - txn.started_ms > op.duration_filter)
                and (pattern is None or pattern.matches(txn.key[1]))
            ],
        )

    # --- the end of a transaction ------------------------------------------------------------

    def endings(self) -> Iterator[Ending]:
        """The transactions that are decided and not complete."""
        for key in self._prepared:
            txn = self._by_key[key]
            committed = txn.state is TxnState.PREPARE_COMMIT
            yield Ending(key, txn.producer_id, txn.epoch, committed, txn.version, tuple(txn.partitions))

    def completed(self, key: TxnKey, now_ms: int) -> tuple[TxnFact, ...]:
        """Its markers are written, wherever they can be."""
        fact = rules.complete(self._by_key[key], now_ms)
        self.apply(fact)
        return (fact,)

    # --- time -----------------------------------------------------------------------------------

    @property
    def look_again_ms(self) -> float:
        """A time not after the next deadline. It may be that of a transaction which has ended since."""
        return self._deadlines[0][0] if self._deadlines else inf

    @property
    def deadline_ms(self) -> float:
        """When the next open transaction has lasted too long, by the wall clock."""
        deadlines = self._deadlines
        while deadlines and not self._holds(*deadlines[0]):
            heappop(deadlines)
        return deadlines[0][0] if deadlines else inf

    def tick(self, now_ms: int) -> tuple[TxnFact, ...]:
        """Abort what has been open for longer than its producer said it would be."""
        facts: list[TxnFact] = []
        while self.deadline_ms < now_ms:
            _, key = heappop(self._deadlines)
            fact = rules.fence(self._by_key[key], now_ms, self._new_id)
            self.apply(fact)
            facts.append(fact)
        return tuple(facts)

    def forget_idle(self, now_ms: int) -> tuple[TxnFact, ...]:
        """Ids that nobody has used for long."""
        before = now_ms - self.rules.id_expiration_ms
        facts = tuple(
            TransactionForgotten(*txn.key)
            for txn in self._by_key.values()
            if txn.state in FORGETTABLE and txn.updated_ms <= before
        )
        for fact in facts:
            self.apply(fact)
        return facts

    # --- facts -----------------------------------------------------------------------------------

    def apply(self, fact: TxnFact) -> None:
        key = fact.org, fact.transactional_id
        match fact:
            case TransactionChanged():
                self._change(key, fact)
            case TxnPartitionsAdded():
                self._open(self._by_key[key], fact)
            case TransactionForgotten():
                self._by_key.pop(key, None)
                self._prepared.pop(key, None)

    def facts(self) -> Iterator[TxnFact]:
        """What leads to this very state."""
        for txn in self._by_key.values():
            yield rules.changed(txn, txn.state, txn.updated_ms)

    def _change(self, key: TxnKey, fact: TransactionChanged) -> None:
        state = TxnState(fact.state)
        if (before := self._by_key.get(key)) is not None:
            _check(before, state)
        self._by_key[key] = Transaction(
            key,
            producer_id=fact.producer_id,
            epoch=fact.epoch,
            previous_producer_id=fact.previous_producer_id,
            next_producer_id=fact.next_producer_id,
            last_epoch=fact.last_epoch,
            timeout_ms=fact.timeout_ms,
            state=state,
            partitions=dict.fromkeys((topic, index) for topic, index in fact.partitions),
            started_ms=fact.started_ms,
            updated_ms=fact.updated_ms,
            version=fact.version,
        )
        if state in PREPARED:
            self._prepared[key] = None
        else:
            self._prepared.pop(key, None)
        if state is TxnState.ONGOING:
            self._watch(key)

    def _open(self, txn: Transaction, fact: TxnPartitionsAdded) -> None:
        _check(txn, TxnState.ONGOING)
        if txn.state is not TxnState.ONGOING:
            txn.state, txn.partitions = TxnState.ONGOING, {}
            txn.started_ms = fact.started_ms
            self._watch(txn.key)
        txn.partitions.update(dict.fromkeys((topic, index) for topic, index in fact.partitions))
        txn.updated_ms = fact.updated_ms

    def _watch(self, key: TxnKey) -> None:
        deadlines = self._deadlines
        heappush(deadlines, (self._by_key[key].expires_ms, key))
        if len(deadlines) > 2 * len(self._by_key) + SPARE:
            deadlines[:] = {entry for entry in deadlines if self._holds(*entry)}
            heapify(deadlines)

    def _holds(self, expires_ms: int, key: TxnKey) -> bool:
        txn = self._by_key.get(key)
        return txn is not None and txn.state is TxnState.ONGOING and txn.expires_ms == expires_ms

    # --- smaller things ---------------------------------------------------------------------------

    def _checked(self, org: OrgId, transactional_id: str, producer_id: int, epoch: int) -> Transaction:
        return rules.check_producer(self._by_key.get((org, transactional_id)), producer_id, epoch)

    def _take_in(
        self, txn: Transaction, partitions: Iterable[TopicPartition], now_ms: int
    ) -> tuple[TxnFact, ...]:
        fact = rules.add(txn, partitions, now_ms, self.rules.max_partitions)
        if fact is None:
            return ()
        self.apply(fact)
        return (fact,)

    def _described(self, org: OrgId, transactional_id: str, room: Room) -> ops.DescribedTransaction:
        """KafkaError where there is no room for it."""
        room.take(EACH + written(transactional_id))
        txn = self._by_key.get((org, transactional_id))
        if txn is None:
            code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
            return ops.DescribedTransaction(transactional_id=transactional_id, error_code=code)
        room.take(INDEX * len(txn.partitions))
        topics: dict[str, list[int]] = {}
        for topic, index in txn.partitions:
            topics.setdefault(topic, []).append(index)
        room.take(sum(EACH + written(topic) for topic in topics))
        return ops.DescribedTransaction(
            transactional_id=transactional_id,
            transaction_state=txn.state.value,
            transaction_timeout_ms=txn.timeout_ms,
            transaction_start_time_ms=txn.started_ms,
            producer_id=txn.producer_id,
            producer_epoch=txn.epoch,
            topics=[ops.DescribedTxnTopic(topic=name, partitions=sorted(at)) for name, at in topics.items()],
        )


def _check(txn: Transaction, state: TxnState) -> None:
    assert state in TRANSITIONS[txn.state], f"{txn.state.name} cannot become {state.name}"


def _compiled(pattern: str | None) -> Pattern | None:
    if not pattern:
        return None
    try:
        return Pattern(pattern)
    except NotAPattern as wrong:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(wrong)) from wrong
