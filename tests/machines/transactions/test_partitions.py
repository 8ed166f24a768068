"""Partitions take part in a transaction."""

from __future__ import annotations

import attrs

from rafka.errors import ErrorCode
from rafka.ops import txn as ops
from rafka.types import DEFAULT_ORG

from .kit import T0, T1, World, code_of


def test_strangers_and_old_epochs_may_add_nothing() -> None:
    """TX-008."""
    world = World()
    pid = world.init().producer_id

    assert code_of(world.add, pid, 0, T0, name="unknown") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(world.add, pid + 1, 0, T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(world.add, pid, 1, T0) is ErrorCode.PRODUCER_FENCED


def test_a_partition_added_twice_is_there_once_and_costs_no_fact() -> None:
    """TX-010."""
    world = World()
    pid = world.init().producer_id

    world.add(pid, 0, T0, T0)
    facts = len(world.journal)
    world.add(pid, 0, T0)

    assert len(world.journal) == facts
    assert world.seen().topics == [ops.DescribedTxnTopic(topic="t", partitions=[0])]


def test_a_transaction_without_partitions_is_open_all_the_same() -> None:
    """TX-051."""
    world = World()
    pid = world.init().producer_id

    world.add(pid, 0)

    assert world.seen().transaction_state == "Ongoing"
    assert world.end(pid, 0).error_code is ErrorCode.NONE


def test_a_transaction_has_a_largest_size() -> None:
    world = World()
    world.all.rules = attrs.evolve(world.all.rules, max_partitions=1)
    pid = world.init().producer_id
    world.add(pid, 0, T0)

    assert code_of(world.add, pid, 0, T1) is ErrorCode.POLICY_VIOLATION


def test_there_is_a_greatest_number_of_transactional_ids() -> None:
    world = World()
    world.all.rules = attrs.evolve(world.all.rules, max_ids=1)
    world.init("one")

    assert code_of(world.init, "two") is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert world.init("one").producer_epoch == 1


def test_writing_is_allowed_to_the_partitions_of_the_open_transaction_and_to_its_producer() -> None:
    world = World()
    pid = world.init().producer_id

    def may(producer_id: int = pid, epoch: int = 0, partition: tuple[str, int] = T0) -> ErrorCode:
        return world.all.takes_part(DEFAULT_ORG, "x", producer_id, epoch, partition)

    before = may()
    world.add(pid, 0, T0)

    assert before is ErrorCode.TRANSACTION_ABORTABLE
    assert may() is ErrorCode.NONE
    assert may(partition=T1) is ErrorCode.TRANSACTION_ABORTABLE
    assert may(epoch=1) is ErrorCode.PRODUCER_FENCED
    assert may(producer_id=1) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    world.end(pid, 0, bumps=False)
    assert may() is ErrorCode.CONCURRENT_TRANSACTIONS
    world.complete()
    assert may() is ErrorCode.TRANSACTION_ABORTABLE


def test_a_broker_may_ask_without_adding() -> None:
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    asked = ops.TxnAddition(
        transactional_id="x",
        producer_id=pid,
        producer_epoch=0,
        verify_only=True,
        topics=[ops.TxnTopic(name="t", partitions=[0, 1])],
    )

    (topic,) = world.all.verify(asked, DEFAULT_ORG)

    codes = [result.partition_error_code for result in topic.results_by_partition]
    assert codes == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert len(world.seen().topics) == 1


def test_the_transactions_of_two_organisations_do_not_know_each_other() -> None:
    world = World()
    pid = world.init().producer_id

    other = world.all.takes_part(type(DEFAULT_ORG)("other"), "x", pid, 0, T0)

    assert other is ErrorCode.INVALID_PRODUCER_ID_MAPPING
