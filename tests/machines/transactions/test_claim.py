"""A producer asks for the id and the epoch of its transactional id."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode

from .kit import T0, World, code_of


def test_an_empty_transactional_id_and_an_absurd_timeout_are_refused() -> None:
    """TX-002."""
    world = World()

    assert code_of(world.init, "") is ErrorCode.INVALID_REQUEST
    assert code_of(world.init, timeout_ms=0) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert code_of(world.init, timeout_ms=900_001) is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert world.init(timeout_ms=900_000).producer_epoch == 0


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_a_producer_id_without_an_epoch_and_the_other_way_round_are_refused(
    producer_id: int, epoch: int
) -> None:
    """TX-003."""
    assert code_of(World().init, "x", producer_id, epoch) is ErrorCode.INVALID_REQUEST


def test_who_asks_again_gets_the_next_epoch_and_fences_who_was_there() -> None:
    """TX-004."""
    world = World()

    first, second = world.init(), world.init()

    assert (first.producer_epoch, second.producer_epoch) == (0, 1)
    assert first.producer_id == second.producer_id
    assert code_of(world.end, first.producer_id, 0) is ErrorCode.PRODUCER_FENCED


def test_a_producer_may_ask_for_its_next_epoch_and_ask_again_when_the_answer_was_lost() -> None:
    """TX-005."""
    world = World()
    pid = world.init().producer_id

    once, twice = world.init("x", pid, 0), world.init("x", pid, 0)

    assert (once.producer_epoch, twice.producer_epoch) == (1, 1)


def test_a_producer_two_epochs_behind_is_fenced() -> None:
    """TX-006."""
    world = World()
    pid = world.init().producer_id
    world.init()
    world.init()

    assert code_of(world.init, "x", pid, 0) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.init, "x", pid + 1, 2) is ErrorCode.PRODUCER_FENCED


def test_asking_during_a_transaction_aborts_it_and_the_next_one_who_asks_gets_in() -> None:
    """TX-007."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)

    busy = world.init()
    (ending,) = world.complete()
    after = world.init()

    assert busy.error_code is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (ending.committed, ending.epoch, ending.partitions) == (False, 1, (T0,))
    assert after.producer_epoch == 2


def test_the_producer_whose_transaction_was_aborted_by_its_own_question_loses_one_epoch_only() -> None:
    """TX-007."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)

    world.init("x", pid, 0)
    world.complete()

    assert world.init("x", pid, 0).producer_epoch == 1


def test_before_the_markers_are_written_everybody_has_to_come_again() -> None:
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(pid, 0, bumps=False)

    assert code_of(world.init) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(world.add, pid, 0, T0) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert code_of(world.end, pid, 0, bumps=False) is ErrorCode.CONCURRENT_TRANSACTIONS


def test_when_the_epochs_are_used_up_a_new_producer_id_is_given() -> None:
    """TX-046."""
    world = World()
    pid = world.exhausted()

    new = world.init("x", pid, 32_766)
    again = world.init("x", pid, 32_766)

    assert new.producer_id != pid
    assert new.producer_epoch == 0
    assert (again.producer_id, again.producer_epoch) == (new.producer_id, 0)
    world.init()
    assert code_of(world.init, "x", pid, 32_766) is ErrorCode.PRODUCER_FENCED


def test_whoever_comes_without_an_epoch_to_used_up_ones_gets_a_new_producer_id_too() -> None:
    """TX-046."""
    world = World()
    pid = world.exhausted()

    new = world.init()

    assert new.producer_id != pid
    assert new.producer_epoch == 0


def test_an_id_never_used_takes_any_producer_id_and_epoch() -> None:
    """TX-050."""
    assert World().init("new", 77, 3).producer_epoch == 0


def test_an_id_that_nobody_used_for_a_week_is_forgotten_unless_its_transaction_is_open() -> None:
    world = World()
    pid = world.init("idle").producer_id
    busy = world.init("busy", timeout_ms=900_000).producer_id
    week = 604_800_000
    world.now_ms += week
    world.add(busy, 0, T0, name="busy")

    world.journal += world.all.forget_idle(world.now_ms)

    assert world.seen("idle").error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert world.seen("busy").transaction_state == "Ongoing"
    assert code_of(world.add, pid, 0, T0, name="idle") is ErrorCode.INVALID_PRODUCER_ID_MAPPING
