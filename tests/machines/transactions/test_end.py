"""Transactions end: by their producer, by their deadline, and after a restart."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode

from .kit import T0, T1, World, code_of


def test_a_commit_is_decided_then_its_markers_are_written_then_it_is_complete() -> None:
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0, T1)

    world.end(pid, 0, bumps=False)
    decided = world.seen().transaction_state
    (ending,) = world.complete()

    assert decided == "PrepareCommit"
    assert (ending.producer_id, ending.epoch, ending.committed) == (pid, 0, True)
    assert ending.partitions == (T0, T1)
    assert world.seen().transaction_state == "CompleteCommit"
    assert world.seen().topics == []
    assert list(world.all.endings()) == []


def test_nothing_can_be_ended_where_nothing_is_open() -> None:
    """TX-012."""
    world = World()
    pid = world.init().producer_id

    assert code_of(world.end, pid, 0, True, bumps=False) is ErrorCode.INVALID_TXN_STATE
    assert code_of(world.end, pid, 0, False, bumps=False) is ErrorCode.INVALID_TXN_STATE
    assert code_of(world.end, pid, 0, True) is ErrorCode.INVALID_TXN_STATE


def test_an_abort_of_nothing_takes_the_next_epoch_each_time_where_epochs_are_bumped() -> None:
    """TX-012."""
    world = World()
    pid = world.init().producer_id

    first = world.end(pid, 0, False)
    endings = world.complete()
    state = world.seen().transaction_state
    assert world.seen().transaction_start_time_ms == world.now_ms, "it began as it ended"
    second = world.end(pid, 1, False)
    world.complete()

    assert (first.producer_epoch, second.producer_epoch) == (1, 2)
    assert [ending.partitions for ending in endings] == [()]
    assert state == "CompleteAbort"


def test_a_commit_may_be_repeated_and_not_be_taken_back() -> None:
    """TX-013."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(pid, 0, bumps=False)
    world.complete()

    assert world.end(pid, 0, bumps=False).error_code is ErrorCode.NONE
    assert code_of(world.end, pid, 0, False, bumps=False) is ErrorCode.INVALID_TXN_STATE


def test_with_bumped_epochs_the_next_transaction_needs_the_next_epoch() -> None:
    """TX-043."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)

    told = world.end(pid, 0)
    (ending,) = world.complete()

    assert (told.producer_id, told.producer_epoch) == (pid, 1)
    assert ending.epoch == 1
    assert code_of(world.add, pid, 0, T0) is ErrorCode.PRODUCER_FENCED
    world.add(pid, 1, T0)


def test_an_end_whose_answer_was_lost_may_be_asked_for_again() -> None:
    """TX-044, TX-057."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(pid, 0)

    during = code_of(world.end, pid, 0)
    world.complete()
    after = world.end(pid, 0)

    assert during is ErrorCode.CONCURRENT_TRANSACTIONS
    assert (after.producer_id, after.producer_epoch) == (pid, 1)
    assert code_of(world.end, pid, 0, False) is ErrorCode.INVALID_TXN_STATE
    world.add(pid, 1, T0)
    world.end(pid, 1)
    world.complete()
    assert code_of(world.end, pid, 0) is ErrorCode.PRODUCER_FENCED


def test_a_late_end_cannot_end_the_transaction_that_followed() -> None:
    """T5: the reason for bumping epochs."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(pid, 0)
    world.complete()
    world.add(pid, 1, T1)

    assert code_of(world.end, pid, 0) is ErrorCode.PRODUCER_FENCED
    assert world.seen().transaction_state == "Ongoing"


def test_the_last_epoch_ends_with_a_new_producer_id() -> None:
    """TX-045."""
    world = World()
    pid = world.exhausted()
    world.add(pid, 32_766, T0)

    told = world.end(pid, 32_766)
    (ending,) = world.complete()
    again = world.end(pid, 32_766)

    assert told.producer_id != pid
    assert told.producer_epoch == 0
    assert (ending.producer_id, ending.epoch) == (pid, 32_767)
    assert (again.producer_id, again.producer_epoch) == (told.producer_id, 0)
    world.add(told.producer_id, 0, T0)


def test_how_a_transaction_ends_is_decided_by_the_request_that_ends_it() -> None:
    """TX-057."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(pid, 0, bumps=True)
    world.complete()
    world.add(pid, 1, T0)

    world.end(pid, 1, bumps=False)
    world.complete()

    assert world.seen().producer_epoch == 1


def test_a_transaction_that_lasts_too_long_is_aborted_at_its_deadline() -> None:
    """TX-035."""
    world = World()
    pid = world.init(timeout_ms=1_000).producer_id
    world.add(pid, 0, T0)

    world.pass_ms(1_000)
    on_time = world.seen().transaction_state
    world.pass_ms(1)
    (ending,) = world.complete()

    assert on_time == "Ongoing"
    assert (ending.epoch, ending.committed) == (1, False)
    assert code_of(world.add, pid, 0, T0) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.end, pid, 0, bumps=False) is ErrorCode.PRODUCER_FENCED
    assert code_of(world.end, pid, 0, True) is ErrorCode.INVALID_TXN_STATE
    assert world.end(pid, 0, False).producer_epoch == 1
    assert world.init("x", pid, 0).producer_epoch == 1


def test_a_deadline_is_of_the_transaction_and_not_of_the_one_before() -> None:
    world = World()
    pid = world.init(timeout_ms=1_000).producer_id
    world.add(pid, 0, T0)
    world.pass_ms(900)
    world.end(pid, 0, bumps=False)
    world.complete()
    world.add(pid, 0, T0)

    world.pass_ms(500)

    assert world.seen().transaction_state == "Ongoing"
    assert world.all.deadline_ms == world.now_ms + 500


@pytest.mark.parametrize("committed", [True, False])
def test_a_decided_transaction_is_completed_after_a_restart(committed: bool) -> None:
    """TX-036."""
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(pid, 0, committed)

    world.restart()
    (ending,) = world.complete()

    assert (ending.partitions, ending.committed, ending.epoch) == ((T0,), committed, 1)


def test_an_open_transaction_is_open_after_a_restart_and_keeps_its_deadline() -> None:
    """TX-037."""
    world = World()
    pid = world.init(timeout_ms=1_000).producer_id
    world.add(pid, 0, T0)
    world.add(pid, 0, T1)
    deadline = world.all.deadline_ms

    world.restart()

    assert world.all.deadline_ms == deadline
    assert [topic.partitions for topic in world.seen().topics] == [[0, 1]]
    assert world.end(pid, 0).error_code is ErrorCode.NONE


def test_what_a_snapshot_tells_is_what_the_facts_told() -> None:
    world = World()
    pid = world.init().producer_id
    world.add(pid, 0, T0)
    world.end(world.init("y").producer_id, 0, False, name="y")
    again = world.fresh()

    for fact in list(world.all.facts()):
        again.apply(fact)

    assert list(again.facts()) == list(world.all.facts())
    assert list(again.endings()) == list(world.all.endings())
    assert again.deadline_ms == world.all.deadline_ms


def test_a_transaction_does_not_last_longer_because_more_takes_part() -> None:
    world = World()
    pid = world.init(timeout_ms=1_000).producer_id
    world.add(pid, 0, T0)
    world.pass_ms(900)
    world.add(pid, 0, T1)

    world.pass_ms(101)

    assert world.seen().transaction_state == "PrepareAbort"


def test_deadlines_of_transactions_that_have_ended_do_not_pile_up() -> None:
    world = World()
    slow = world.init("slow", timeout_ms=1).producer_id  # its deadline is ahead of all others
    world.add(slow, 0, T0, name="slow")
    pid = world.init().producer_id

    for epoch in range(3_000):
        world.add(pid, epoch, T0)
        world.end(pid, epoch)
        world.complete()
        world.now_ms += 1

    assert len(world.all._deadlines) < 1_100
    world.pass_ms(1)
    assert world.seen("slow").transaction_state == "PrepareAbort"


def test_an_abort_in_the_last_epoch_goes_on_with_a_new_producer_id() -> None:
    """As an EndTxn there would (TX-045): the epoch after the last is for markers alone."""
    world = World()
    pid = world.exhausted()
    world.add(pid, 32_766, T0)
    world.pass_ms(60_001)
    (ending,) = world.complete()
    seen = world.seen()

    assert (ending.producer_id, ending.epoch) == (pid, 32_767)
    assert (seen.transaction_state, seen.producer_epoch) == ("CompleteAbort", 0)
    assert seen.producer_id != pid
    assert code_of(world.add, pid, 32_767, T0) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(world.end, pid, 32_767, False) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert code_of(world.end, pid, 32_766) is ErrorCode.INVALID_TXN_STATE
    aborted = world.end(pid, 32_766, False)
    claimed = world.init("x", pid, 32_766)
    assert (aborted.producer_id, aborted.producer_epoch) == (seen.producer_id, 0)
    assert (claimed.producer_id, claimed.producer_epoch) == (seen.producer_id, 0)


def test_a_producer_id_that_was_replaced_cannot_abort_the_transaction_of_the_next() -> None:
    world = World()
    pid = world.exhausted()
    new = world.init("x", pid, 32_766).producer_id
    world.add(new, 0, T0)

    assert code_of(world.init, "x", pid, 32_766) is ErrorCode.PRODUCER_FENCED
    assert world.seen().transaction_state == "Ongoing"
