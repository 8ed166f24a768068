"""A directory of transactions on a clock that the test moves, with producer ids that count up."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import attrs

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.transactions.directory import Transactions, TxnFact
from rafka.machines.transactions.model import Ending, TxnRules
from rafka.ops import txn as ops
from rafka.ops.log import InitProducerId, InitProducerIdReply
from rafka.types import DEFAULT_ORG

START_MS = 1_800_000_000_000
T0 = ("t", 0)
T1 = ("t", 1)


@attrs.define
class World:
    """Speaks to the machine as its keeper does, and remembers the facts."""

    ids: Iterator[int] = attrs.Factory(lambda: count(100))
    now_ms: int = START_MS
    journal: list[TxnFact] = attrs.Factory(list)
    all: Transactions = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.all = self.fresh()

    def fresh(self) -> Transactions:
        return Transactions(TxnRules(), lambda: next(self.ids))

    def restart(self) -> None:
        self.all = self.fresh()
        for fact in self.journal:
            self.all.apply(fact)

    def init(
        self, name: str = "x", producer_id: int = -1, epoch: int = -1, timeout_ms: int = 60_000
    ) -> InitProducerIdReply:
        op = InitProducerId(
            transactional_id=name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        verdict = self.all.init(op, DEFAULT_ORG, self.now_ms)
        self.journal += verdict.facts
        assert isinstance(verdict.reply, InitProducerIdReply)
        return verdict.reply

    def add(self, producer_id: int, epoch: int, *partitions: tuple[str, int], name: str = "x") -> None:
        asked = ops.TxnAddition(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[ops.TxnTopic(name=topic, partitions=[index]) for topic, index in partitions],
        )
        self.journal += self.all.add(asked, DEFAULT_ORG, self.now_ms)

    def end(
        self, producer_id: int, epoch: int, committed: bool = True, *, bumps: bool = True, name: str = "x"
    ) -> ops.EndTxnReply:
        op = ops.EndTxn(
            transactional_id=name,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            bumps_epoch=bumps,
        )
        verdict = self.all.end(op, DEFAULT_ORG, self.now_ms)
        self.journal += verdict.facts
        assert isinstance(verdict.reply, ops.EndTxnReply)
        return verdict.reply

    def complete(self) -> list[Ending]:
        """Write all markers that are due."""
        endings = list(self.all.endings())
        for ending in endings:
            self.journal += self.all.completed(ending.key, self.now_ms)
        return endings

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        self.journal += self.all.tick(self.now_ms)

    def seen(self, name: str = "x") -> ops.DescribedTransaction:
        reply = self.all.describe(ops.DescribeTransactions(transactional_ids=[name]), DEFAULT_ORG)
        return reply.transaction_states[0]

    def exhausted(self, name: str = "x") -> int:
        """A producer id whose epochs are used up: 32766 is the last that clients are given."""
        reply = self.init(name)
        while reply.producer_epoch < 32_766:
            reply = self.init(name)
        return reply.producer_id


def code_of(refused: Any, *args: Any, **kwargs: Any) -> ErrorCode:
    """The error code with which a call is refused."""
    try:
        refused(*args, **kwargs)
    except KafkaError as error:
        return error.code
    raise AssertionError("it was not refused")
