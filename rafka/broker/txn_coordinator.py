"""The transaction coordinator: the one task that decides how every transaction goes.

An actor like the others (drain, decide, journal, answer), with a fifth verb:

    finish   write the markers of what was decided, tell the group coordinator, and be done

An outcome is durable before its first marker is written, and the client has its answer by
then. Whatever a crash leaves decided and not finished is finished by the next start.
It asks only outward: partitions, and the group coordinator; neither ever asks back.

Most requests only add to a transaction, and end nothing. Where the page cache will do, and the
task rests, such a one is decided in the step in which it is asked: all that would be
done for it in a round is done at once, and nobody has to be woken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from typing import Any, Final, NoReturn, Protocol

import attrs
import trio

from ..config import Config
from ..env import Env
from ..errors import ErrorCode, KafkaError
from ..machines.catalog import INTERNAL_TOPICS
from ..machines.facts import Fact
from ..machines.offsets_topic import OFFSETS_PARTITIONS, OFFSETS_TOPIC, offsets_partition
from ..machines.transactions.directory import Transactions, TxnFact
from ..machines.transactions.model import Ending, TopicPartition, TxnKey, TxnRules
from ..ops import txn as ops
from ..ops.base import Envelope, Later, Op, R
from ..ops.log import InitProducerId
from ..storage.journal import Journal
from ..types import OrgId
from .actor import Inbox, Waiter, answer_all
from .partition import Partition
from .topics import Topics

log = logging.getLogger(__name__)

INBOX_SIZE: Final = 1024  # past this, the connections that ask wait to hand in their letter
RETRY_S: Final = 0.5  # until markers that could not be written are tried again
COORDINATOR_EPOCH: Final = 0  # there is one coordinator, and it never moves
ADDING: Final = frozenset((ops.AddPartitionsToTxn, ops.AddOffsetsToTxn))
GIVE_UP: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class Offsets(Protocol):
    """Of the group coordinator: offsets that were sent with a transaction become so, or go."""

    async def settle_transaction(self, org: OrgId, producer_id: int, committed: bool) -> None: ...


@attrs.frozen
class Add:
    """Partitions, or a group's, become part of a transaction because they are being written to."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]


@attrs.frozen
class Letter:
    org: OrgId
    op: Op[Any] | Add
    waiter: Waiter


class TxnCoordinator:
    def __init__(
        self,
        config: Config,
        env: Env,
        journal: Journal,
        topics: Topics,
        offsets: Offsets,
        new_producer_id: Callable[[], int],
    ) -> None:
        self._transactions = Transactions(txn_rules(config), new_producer_id)
        self._journal = journal
        self._topics = topics
        self._offsets = offsets
        self._now = env.now
        self._inbox: Inbox[Letter] = Inbox(INBOX_SIZE)
        self._marked: dict[TxnKey, set[TopicPartition]] = {}  # of endings that are not finished yet
        self._resting = False  # nothing lies in the inbox, and nothing is being finished
        self._failed: Exception | None = None
        self._wakes_ms = inf  # for deadlines, by the wall clock
        self._retry_at = inf
        self._forget_at = inf
        self._forget_every_s = 0.0
        self.reconfigure(config)

    # --- asking ---------------------------------------------------------------------------

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        if self._resting and type(op) in ADDING:
            return self._at_once(envelope.org_id, op)  # type: ignore[no-any-return]
        return self._hand_in(envelope.org_id, op)

    def add(self, org: OrgId, asked: Add) -> ErrorCode | Later[ErrorCode]:
        """Have partitions take part in a transaction. NONE once that would survive a crash."""
        if self._resting:
            return self._at_once(org, asked)  # type: ignore[no-any-return]
        return self._hand_in(org, asked)

    def takes_part(
        self, org: OrgId, transactional_id: str, producer_id: int, epoch: int, partition: TopicPartition
    ) -> ErrorCode:
        """Whether this producer may write to the partition: NONE, or why not."""
        return self._transactions.takes_part(org, transactional_id, producer_id, epoch, partition)

    def reconfigure(self, config: Config) -> None:
        self._transactions.rules = txn_rules(config)
        self._forget_every_s = config.transactions.cleanup_interval_ms / 1000

    def apply(self, fact: TxnFact) -> None:
        """Take up what the journal tells, before `run`."""
        self._transactions.apply(fact)

    def facts(self) -> Iterable[Fact]:
        """All that is remembered, for a snapshot."""
        return self._transactions.facts()

    def _at_once(self, org: OrgId, op: Op[Any] | Add) -> Any:
        """A round for this alone."""
        facts: list[TxnFact] = []
        answer = self._decide(op, org, facts, self._now_ms())
        if facts:
            try:
                self._journal.put(facts)
            except Exception as error:  # memory is ahead of the journal: the task has to end, and all with it
                self._failed = error
                self._inbox.poke()
                raise
            if self._transactions.look_again_ms < self._wakes_ms:
                self._inbox.poke()
        return answer

    def _hand_in(self, org: OrgId, op: Op[Any] | Add) -> Later[Any]:
        self._resting = False
        waiter = self._inbox.waiter()
        return self._inbox.post(Letter(org, op, waiter), waiter)

    # --- the actor -------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        journal = self._journal
        self._forget_at = trio.current_time() + self._forget_every_s
        await self._finish(after_restart=True)
        task_status.started()
        while True:
            deadline = self._deadline()
            self._resting = journal.at_once
            letters = await self._inbox.drain(deadline)
            self._resting = False
            if self._failed is not None:
                raise self._failed
            now_ms = self._now_ms()
            facts = list(self._transactions.tick(now_ms))
            facts += self._forget()
            answers = [self._decide(letter.op, letter.org, facts, now_ms) for letter in letters]
            journal.put(facts)
            if not journal.at_once:  # nobody is told of what a crash could take back
                await journal.settled()
            answer_all((letter.waiter, answer) for letter, answer in zip(letters, answers, strict=True))
            await self._finish()

    def _deadline(self) -> float:
        self._wakes_ms = open_until = self._transactions.look_again_ms
        if open_until < inf:  # it is over when more than its time has passed
            open_until = trio.current_time() + max(0.0, open_until + 1 - self._now_ms()) / 1000
        return min(open_until, self._retry_at, self._forget_at)

    def _forget(self) -> Sequence[TxnFact]:
        if trio.current_time() < self._forget_at:
            return ()
        self._forget_at = trio.current_time() + self._forget_every_s
        return self._transactions.forget_idle(self._now_ms())

    # --- deciding: nothing here awaits --------------------------------------------------------

    def _decide(self, op: Op[Any] | Add, org: OrgId, facts: list[TxnFact], now_ms: int) -> object:
        try:
            return self._handle(op, org, now_ms, facts)
        except KafkaError as refused:
            return refused.code if isinstance(op, Add) else op.refusal(refused.code, refused.message)
        except Exception:  # a mistake of ours must not end the broker: what has changed is in `facts`
            log.exception("%s failed", type(op).__name__)
            unforeseen = ErrorCode.UNKNOWN_SERVER_ERROR
            return unforeseen if isinstance(op, Add) else op.refusal(unforeseen)

    def _handle(self, op: Op[Any] | Add, org: OrgId, now_ms: int, facts: list[TxnFact]) -> object:
        """The answer. What it comes to is applied, and added to `facts`."""
        transactions = self._transactions
        match op:
            case Add():
                who = op.transactional_id, op.producer_id, op.producer_epoch
                facts += transactions.add_written(org, *who, op.partitions, now_ms)
                return ErrorCode.NONE
            case InitProducerId():
                verdict = transactions.init(op, org, now_ms)
                facts += verdict.facts
                return verdict.reply
            case ops.EndTxn():
                verdict = transactions.end(op, org, now_ms)
                facts += verdict.facts
                return verdict.reply
            case ops.AddPartitionsToTxn():
                return self._add_partitions(op, org, now_ms, facts)
            case ops.AddOffsetsToTxn():
                partition = OFFSETS_TOPIC, offsets_partition(op.group_id)
                who = op.transactional_id, op.producer_id, op.producer_epoch
                facts += transactions.add_written(org, *who, [partition], now_ms)
                return ops.AddOffsetsToTxnReply()
            case ops.DescribeTransactions():
                return transactions.describe(op, org)
            case ops.ListTransactions():
                return transactions.list(op, org, now_ms)
        raise TypeError(f"{type(op).__name__} is not for the transaction coordinator")

    def _add_partitions(
        self, op: ops.AddPartitionsToTxn, org: OrgId, now_ms: int, facts: list[TxnFact]
    ) -> ops.AddPartitionsToTxnReply:
        results = [
            ops.TxnAdditionResult(
                transactional_id=asked.transactional_id,
                topic_results=self._add_to_one(asked, org, now_ms, facts, by_client=op.by_client),
            )
            for asked in op.transactions
        ]
        return ops.AddPartitionsToTxnReply(results_by_transaction=results)

    def _add_to_one(
        self, asked: ops.TxnAddition, org: OrgId, now_ms: int, facts: list[TxnFact], *, by_client: bool
    ) -> Sequence[ops.TxnTopicResult]:
        """All partitions or none: where one cannot be added, nothing is attempted for the others. Rule P2."""
        wanted = {(topic.name, index) for topic in asked.topics for index in topic.partitions}
        found = {place: self._may_be_added(org, place, by_client) for place in wanted}
        if any(found.values()):
            return [
                ops.TxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        ops.TxnPartitionResult(
                            partition_index=index,
                            partition_error_code=found[topic.name, index]
                            or ErrorCode.OPERATION_NOT_ATTEMPTED,
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in asked.topics
            ]
        try:
            if asked.verify_only:
                return self._transactions.verify(asked, org)
            facts += self._transactions.add(asked, org, now_ms)
        except KafkaError as refused:
            return ops.refused_partitions(asked.topics, refused.code)
        return ops.refused_partitions(asked.topics, ErrorCode.NONE)

    def _may_be_added(self, org: OrgId, place: TopicPartition, by_client: bool) -> ErrorCode:
        topic, index = place
        if topic in INTERNAL_TOPICS and by_client:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if (topic == OFFSETS_TOPIC and 0 <= index < OFFSETS_PARTITIONS) or self._exists(org, topic, index):
            return ErrorCode.NONE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _exists(self, org: OrgId, topic: str, index: int) -> bool:
        live = self._topics.find(org, topic)
        return live is not None and 0 <= index < live.topic.partitions

    # --- finishing -----------------------------------------------------------------------------

    async def _finish(self, *, after_restart: bool = False) -> bool:
        """Write the markers of all that is decided, with one sync for a round. Whether there was any."""
        if trio.current_time() < self._retry_at < inf:
            fresh = [ending for ending in self._transactions.endings() if ending.key not in self._marked]
        else:
            fresh = list(self._transactions.endings())
            self._retry_at = inf
        written = [(ending, self._mark(ending, after_restart)) for ending in fresh]
        for ending, markers in written:
            if await self._all_durable(ending, markers):
                if any(topic == OFFSETS_TOPIC for topic, _ in ending.partitions):
                    await self._offsets.settle_transaction(
                        ending.key[0], ending.producer_id, ending.committed
                    )
                self._marked.pop(ending.key, None)
                # Nobody waits for this: after a crash it would be finished once more.
                self._journal.put(self._transactions.completed(ending.key, self._now_ms()))
            else:
                self._retry_at = trio.current_time() + RETRY_S
        return bool(written)

    def _mark(self, ending: Ending, after_restart: bool) -> list[tuple[Partition, TopicPartition, int]]:
        """Write what markers can be written: (where, which, the offset up to which it must be durable)."""
        first_try = ending.key not in self._marked
        done = self._marked.setdefault(ending.key, set())
        written = []
        for which in ending.partitions:
            if which in done:
                continue
            try:
                partition = self._partition(ending.key[0], which)
                if partition is None or (after_restart and not partition.has_open(ending.producer_id)):
                    done.add(which)  # it was deleted, or has its marker from before
                    continue
                appended = partition.write_marker(
                    ending.producer_id,
                    ending.epoch,
                    committed=ending.committed,
                    coordinator_epoch=COORDINATOR_EPOCH,
                    now_ms=self._now_ms(),
                    transaction_version=ending.version,
                )
            except KafkaError as refused:
                if refused.code in GIVE_UP:
                    done.add(which)
                else:
                    loud = logging.WARNING if first_try else logging.DEBUG
                    log.log(loud, "%s-%d takes no marker, and is asked again: %s", *which, refused)
            else:
                written.append((partition, which, appended.next_offset))
        return written

    def _partition(self, org: OrgId, which: TopicPartition) -> Partition | None:
        topic, index = which
        if topic == OFFSETS_TOPIC or not self._exists(org, topic, index):
            return None
        return self._topics.by_name(org, topic).partition(index)

    async def _all_durable(
        self, ending: Ending, markers: Iterable[tuple[Partition, TopicPartition, int]]
    ) -> bool:
        done = self._marked[ending.key]
        for partition, which, next_offset in markers:
            with suppress(KafkaError):  # the log has failed, or its topic was deleted meanwhile
                await partition.wait_durable(next_offset)
                done.add(which)
        done.update(which for which in ending.partitions if not self._exists(ending.key[0], *which))
        return done.issuperset(ending.partitions)

    def _now_ms(self) -> int:
        return int(self._now() * 1000)


def txn_rules(config: Config) -> TxnRules:
    """What the settings of transactions mean to their machine."""
    transactions = config.transactions
    return TxnRules(
        max_timeout_ms=transactions.max_timeout_ms,
        id_expiration_ms=transactions.id_expiration_ms,
        max_ids=transactions.max_ids,
        max_partitions=transactions.max_partitions,
        max_reply_bytes=transactions.max_reply_bytes,
    )
