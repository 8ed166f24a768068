"""Offsets within transactions: unseen until they commit, and then in the order in which all came."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode, KafkaError

from .offset_kit import (
    NONE,
    NOW,
    commit,
    commit_pending,
    commit_topics,
    delete,
    everything,
    fetch,
    new,
    replayed,
    settle,
    topic_id,
)

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
P, Q = 71, 72  # producers
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT


def test_a_pending_offset_is_unseen_and_unstable_until_its_transaction_commits() -> None:
    """CG-136, TX-032"""
    offsets = new()
    commit(offsets, {T0: 5})

    assert commit_pending(offsets, P, {T0: 50, T1: 51}) == [NONE, NONE]

    assert fetch(offsets, T0, T1) == [5, -1]
    assert fetch(offsets, T0, T1, U0, stable=True) == [UNSTABLE, UNSTABLE, -1]
    settle(offsets, P, committed=True)
    assert fetch(offsets, T0, T1, stable=True) == [50, 51]
    assert not offsets.unsettled


def test_of_a_transaction_that_aborts_nothing_is_left() -> None:
    """TX-032"""
    offsets = new()
    commit(offsets, {T0: 5})
    commit_pending(offsets, P, {T0: 50, T1: 51})

    settle(offsets, P, committed=False)

    assert fetch(offsets, T0, T1, stable=True) == [5, -1]
    assert everything(offsets) == {T0: 5}


def test_a_plain_commit_that_came_later_stands() -> None:
    """TX-033"""
    offsets = new()
    commit_pending(offsets, P, {T0: 50})
    commit(offsets, {T0: 7})

    unstable = fetch(offsets, T0, stable=True)
    settle(offsets, P, committed=True)

    assert unstable == [UNSTABLE]
    assert fetch(offsets, T0, stable=True) == [7]


def test_of_two_transactions_the_later_commit_stands_whichever_ends_first() -> None:
    for order in ((P, Q), (Q, P)):
        offsets = new()
        commit_pending(offsets, P, {T0: 50})
        commit_pending(offsets, Q, {T0: 60})

        for producer in order:
            settle(offsets, producer, committed=True)

        assert fetch(offsets, T0) == [60]


def test_a_second_commit_in_one_transaction_takes_the_place_of_the_first() -> None:
    offsets = new()
    commit_pending(offsets, P, {T0: 50})
    commit(offsets, {T0: 7})
    commit_pending(offsets, P, {T0: 51})

    settle(offsets, P, committed=True)

    assert fetch(offsets, T0) == [51]


def test_a_partition_stays_unstable_while_any_transaction_has_it_pending() -> None:
    offsets = new()
    commit_pending(offsets, P, {T0: 50})
    commit_pending(offsets, Q, {T0: 60})

    settle(offsets, Q, committed=True)

    assert fetch(offsets, T0) == [60]
    assert fetch(offsets, T0, stable=True) == [UNSTABLE]


def test_all_topics_are_those_committed_before_and_unstable_where_pending() -> None:
    """CG-207"""
    offsets = new()
    commit(offsets, {T0: 5, U0: 6})
    commit_pending(offsets, P, {T0: 50, T1: 51})

    assert everything(offsets) == {T0: 5, U0: 6}
    assert everything(offsets, stable=True) == {T0: UNSTABLE, U0: 6}


def test_what_was_deleted_does_not_come_back_with_a_transaction() -> None:
    """CG-209"""
    offsets = new()
    commit(offsets, {T0: 5})
    commit_pending(offsets, P, {T0: 50, T1: 51})
    commit_pending(offsets, Q, {T1: 61})

    assert delete(offsets, T0, T1) == [NONE, NONE]
    settle(offsets, P, committed=True)
    settle(offsets, Q, committed=True)

    assert everything(offsets) == {}


def test_what_was_not_deleted_counts_when_its_transaction_commits() -> None:
    offsets = new()
    commit_pending(offsets, P, {T0: 50, T1: 51})

    delete(offsets, T0)
    settle(offsets, P, committed=True)

    assert everything(offsets) == {T1: 51}


def test_with_a_topic_what_is_pending_of_it_goes() -> None:
    """CG-144"""
    offsets = new()
    commit_pending(offsets, P, {T0: 50, U0: 60})

    offsets.forget_topic(topic_id("t"))
    settle(offsets, P, committed=True)

    assert everything(offsets) == {U0: 60}


def test_metadata_that_is_too_long_is_refused_within_a_transaction_too() -> None:
    """CG-208"""
    offsets = new()

    told = commit_pending(offsets, P, {T0: (1, "x" * 4097), T1: 2})

    assert told == [ErrorCode.OFFSET_METADATA_TOO_LARGE, NONE]
    assert fetch(offsets, T0, T1, stable=True) == [-1, UNSTABLE]


def test_the_end_of_a_transaction_that_has_nothing_here_is_no_fact() -> None:
    offsets = new()
    commit_pending(offsets, P, {T0: 50})

    assert offsets.settle(Q, committed=True) is None


def test_a_producer_that_was_replaced_adds_nothing() -> None:
    offsets = new()
    commit_pending(offsets, P, {T0: 50}, epoch=3)

    with pytest.raises(KafkaError) as refused:
        offsets.commit_pending(commit_topics({T0: 40}), P, 2, NOW, 4096)
    commit_pending(offsets, P, {T1: 51}, epoch=4)

    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    settle(offsets, P, committed=True)
    assert everything(offsets) == {T0: 50, T1: 51}


@pytest.mark.parametrize("restarts", [0, 1, 2])
@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ({P: True, Q: True}, {T0: 60, T1: 61}),
        ({Q: True, P: True}, {T0: 60, T1: 61}),
        ({P: True, Q: False}, {T0: 7, T1: 51}),
        ({Q: False, P: False}, {T0: 7}),
    ],
)
def test_a_snapshot_keeps_what_is_pending_and_what_has_overtaken_it(
    restarts: int, ends: dict[int, bool], left: dict[tuple[str, int], int]
) -> None:
    """Overtaken on one partition, waiting on the other, and a second transaction after both."""
    offsets = new()
    commit_pending(offsets, P, {T0: (50, "p", 1), T1: 51}, epoch=3)
    commit(offsets, {T0: 7})
    commit_pending(offsets, Q, {T0: 60, T1: 61})

    for _ in range(restarts):
        offsets = replayed(offsets)
    unstable = fetch(offsets, T0, T1, stable=True)
    for producer, committed in ends.items():
        settle(offsets, producer, committed)

    assert unstable == [UNSTABLE, UNSTABLE]
    assert everything(offsets, stable=True) == left
