"""Bugs of transactions to plant: ways in which brokers have lost, doubled or shown too early what was in one.

A judge who has never found anything proves nothing. Every bug here has to be found
within a hundred seeds, by the judge: that a broker merely dies of it will not do. Some are named
as those in whose worlds nobody ever comes to an end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest import mock

import attrs
import trio

from rafka.broker.partition import Partition
from rafka.broker.txn_coordinator import TxnCoordinator
from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups.offsets import Offsets
from rafka.machines.offsets_topic import OFFSETS_TOPIC
from rafka.machines.transactions import directory, rules
from rafka.machines.transactions.model import UNKNOWN, TxnState
from rafka.machines.unstable import Unstable

Bug = Callable[[], AbstractContextManager[object]]


def _in_place_of(owner: Any, name: str, wrong: Any) -> Bug:
    return lambda: mock.patch.object(owner, name, wrong)


@contextmanager
def _nobody_is_fenced() -> Iterator[None]:
    """Whoever asks for the id aborts what is open, but the old producer may go on."""
    changed = rules.changed

    def fence(txn: Any, now_ms: int, *_: object) -> Any:
        return changed(txn, TxnState.PREPARE_ABORT, now_ms)

    with mock.patch.object(rules, "fence", fence):
        yield


@contextmanager
def _any_epoch_will_do() -> Iterator[None]:
    """The coordinator looks at the producer's id and not at its epoch."""
    end = rules.end

    def check(txn: Any, producer_id: int, epoch: int) -> Any:
        if txn is None or txn.producer_id != producer_id:
            raise KafkaError(UNKNOWN)
        return txn

    def end_of_any(txn: Any, producer_id: int, epoch: int, *rest: Any) -> Any:
        if txn is not None and txn.state is TxnState.ONGOING:
            epoch = txn.epoch
        return end(txn, producer_id, epoch, *rest)

    with mock.patch.object(rules, "check_producer", check), mock.patch.object(rules, "end", end_of_any):
        yield


@contextmanager
def _forgotten_at_the_start() -> Iterator[None]:
    """What was decided before a crash is not finished by the next start."""
    finish = TxnCoordinator._finish

    async def lazy(keeper: TxnCoordinator, *, after_restart: bool = False) -> bool:
        if after_restart:
            keeper._transactions._prepared.clear()
            return False
        return await finish(keeper)

    with mock.patch.object(TxnCoordinator, "_finish", lazy):
        yield


@contextmanager
def _first_marker_is_enough() -> Iterator[None]:
    """Where several partitions take part, only the first is told of the end."""
    endings = directory.Transactions.endings

    def shortened(transactions: Any) -> Iterator[Any]:
        for ending in endings(transactions):
            yield attrs.evolve(ending, partitions=ending.partitions[:1])

    with mock.patch.object(directory.Transactions, "endings", shortened):
        yield


@contextmanager
def _offsets_count_whatever_happens() -> Iterator[None]:
    settle = Offsets.settle

    def committed(offsets: Offsets, producer_id: int, committed: bool) -> Any:
        return settle(offsets, producer_id, True)

    with mock.patch.object(Offsets, "settle", committed):
        yield


@contextmanager
def _offsets_are_not_waited_for() -> Iterator[None]:
    """A transaction is complete while its offsets are not settled."""

    async def nothing(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    finish = TxnCoordinator._finish

    async def without_offsets(keeper: TxnCoordinator, **options: Any) -> bool:
        with mock.patch.object(keeper._offsets, "settle_transaction", nothing):
            return await finish(keeper, **options)

    with mock.patch.object(TxnCoordinator, "_finish", without_offsets):
        yield


@contextmanager
def _open_ones_are_not_recovered() -> Iterator[None]:
    """After a restart a partition does not know any more which transactions are open in it."""
    restore = Partition._restore

    def forgetful(partition: Partition) -> None:
        restore(partition)
        for producer in partition.producers.by_id.values():
            producer.first_open_offset = -1
        partition.producers.unstable = Unstable()

    with mock.patch.object(Partition, "_restore", forgetful):
        yield


@contextmanager
def _offsets_may_come_late() -> Iterator[None]:
    """Offsets are taken though their transaction has ended since its coordinator was asked."""
    takes_part = TxnCoordinator.takes_part

    def lenient(keeper: TxnCoordinator, *args: Any) -> ErrorCode:
        code = takes_part(keeper, *args)
        return ErrorCode.NONE if args[-1][0] == OFFSETS_TOPIC else code

    with mock.patch.object(TxnCoordinator, "takes_part", lenient):
        yield


TXN_BUGS: Final[Mapping[str, Bug]] = {
    "readers of committed records are not told who was aborted": _in_place_of(
        Partition, "aborted", lambda *_: ()
    ),
    "the last stable offset is the high watermark": _in_place_of(
        Partition, "last_stable_offset", property(lambda p: p.high_watermark)
    ),
    "who was aborted is forgotten": _in_place_of(Partition, "_note", lambda *_: None),
    "nobody is fenced": _nobody_is_fenced,
    "any epoch will do": _any_epoch_will_do,
    "what was decided is not finished after a crash": _forgotten_at_the_start,
    "one marker is taken for all": _first_marker_is_enough,
    "offsets count though their transaction was aborted": _offsets_count_whatever_happens,
    "offsets are not settled": _offsets_are_not_waited_for,
    "offsets may come after the end": _offsets_may_come_late,
    "open transactions are not recovered": _open_ones_are_not_recovered,
    "nothing times out": _in_place_of(directory.Transactions, "_watch", lambda *_: None),
}

# What one of these leaves undecided holds up whoever reads committed records, for ever.
BREAKING_TXN_BUGS: Final = frozenset(
    {
        "what was decided is not finished after a crash",
        "one marker is taken for all",
        "offsets are not settled",
        "offsets may come after the end",
    }
)
