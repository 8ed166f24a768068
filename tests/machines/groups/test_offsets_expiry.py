"""When offsets are too old: by what a group is, by when it was last alive, by what its members read."""

from __future__ import annotations

from typing import Any

import pytest

from rafka.machines.groups.expiry import Ageing, ageing
from rafka.machines.groups.offsets import Offsets

from .offset_kit import NOW, commit, commit_pending, everything, kept, new, replayed, settle

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
MINUTE = 60_000

SIMPLE: dict[str, Any] = {"protocol_type": None, "empty": True, "stable": False, "empty_since_ms": None}
CONSUMERS: dict[str, Any] = SIMPLE | {"protocol_type": "consumer"}


def reads_t(name: str) -> bool | None:
    return name == "t"


def unreadable(name: str) -> bool | None:
    return None


def check(offsets: Offsets, now_ms: int, how: Ageing | None) -> list[Any]:
    """What is left after a check with a retention of a minute."""
    if how is not None:
        kept(offsets, offsets.expire(now_ms, MINUTE, how))
    return list(everything(offsets))


def test_a_simple_groups_offsets_grow_old_from_their_commit_on() -> None:
    """CG-143"""
    offsets, how = new(), ageing(**SIMPLE, subscribed_to=reads_t)
    commit(offsets, {T0: 1}, at=NOW)
    commit(offsets, {T1: 2}, at=NOW + 1)

    assert check(offsets, NOW + MINUTE - 1, how) == [T0, T1]
    assert check(offsets, NOW + MINUTE, how) == [T1]
    assert check(offsets, NOW + MINUTE + 1, how) == []
    assert len(offsets) == 0


def test_an_empty_groups_offsets_grow_old_from_when_it_became_empty() -> None:
    """CG-141"""
    offsets = new()
    commit(offsets, {T0: 1}, at=NOW)
    how = ageing(**CONSUMERS | {"empty_since_ms": NOW + 5 * MINUTE}, subscribed_to=reads_t)

    assert check(offsets, NOW + 6 * MINUTE - 1, how) == [T0]
    assert check(offsets, NOW + 6 * MINUTE, how) == []


def test_an_empty_group_that_does_not_know_since_when_goes_by_the_commits() -> None:
    offsets, how = new(), ageing(**CONSUMERS, subscribed_to=reads_t)
    commit(offsets, {T0: 1}, at=NOW)

    assert check(offsets, NOW + MINUTE, how) == []


def test_in_a_stable_group_only_topics_that_nobody_reads_grow_old() -> None:
    """CG-142"""
    offsets = new()
    commit(offsets, {T0: 1, U0: 2}, at=NOW)
    how = ageing(**CONSUMERS | {"empty": False, "stable": True}, subscribed_to=reads_t)

    assert check(offsets, NOW + MINUTE - 1, how) == [T0, U0]
    assert check(offsets, NOW + MINUTE, how) == [T0]


@pytest.mark.parametrize(
    "group",
    [
        CONSUMERS | {"empty": False},
        CONSUMERS | {"empty": False, "stable": True, "protocol_type": "connect"},
    ],
    ids=["rebalancing", "of another kind"],
)
def test_in_other_groups_nothing_grows_old(group: dict[str, Any]) -> None:
    """CG-142"""
    assert ageing(**group, subscribed_to=reads_t) is None


def test_where_it_cannot_be_told_what_members_read_nothing_grows_old() -> None:
    """CG-142: unreadable metadata"""
    offsets = new()
    commit(offsets, {T0: 1}, at=NOW, retention_ms=1)
    how = ageing(**CONSUMERS | {"empty": False, "stable": True}, subscribed_to=unreadable)

    assert check(offsets, NOW + 9 * MINUTE, how) == [T0]


@pytest.mark.parametrize(
    ("retention_ms", "gone_after"), [(1000, 1000), (9 * MINUTE, 9 * MINUTE), (0, 0), (-7, 0)]
)
def test_a_time_that_the_client_gave_counts_instead(retention_ms: int, gone_after: int) -> None:
    """CG-131"""
    offsets, how = new(), Ageing(since_ms=NOW)
    commit(offsets, {T0: 1}, at=NOW, retention_ms=retention_ms)

    if gone_after:
        assert check(offsets, NOW + gone_after - 1, how) == [T0]
    assert check(offsets, NOW + gone_after, how) == []


def test_committing_again_without_a_time_takes_it_back() -> None:
    offsets = new()
    commit(offsets, {T0: 1}, at=NOW, retention_ms=1000)
    commit(offsets, {T0: 2}, at=NOW)

    assert check(offsets, NOW + 1000, Ageing()) == [T0]
    assert check(offsets, NOW + MINUTE, Ageing()) == []


def test_an_offset_with_a_transaction_pending_does_not_grow_old() -> None:
    offsets = new()
    commit(offsets, {T0: 1, T1: 2}, at=NOW)
    commit_pending(offsets, 7, {T0: 5}, at=NOW)

    assert check(offsets, NOW + MINUTE, Ageing()) == [T0]
    assert offsets.unsettled

    settle(offsets, 7, committed=True)
    assert check(offsets, NOW + MINUTE, Ageing()) == []


def test_committing_anew_keeps_an_offset() -> None:
    offsets = new()
    commit(offsets, {T0: 1, T1: 1}, at=NOW)
    commit(offsets, {T0: 2}, at=NOW + MINUTE)

    assert check(offsets, NOW + MINUTE, Ageing()) == [T0]
    assert check(offsets, NOW + 2 * MINUTE - 1, Ageing()) == [T0]
    assert check(offsets, NOW + 2 * MINUTE, Ageing()) == []


def test_offsets_are_as_old_after_a_restart_as_before() -> None:
    offsets = new()
    commit(offsets, {T0: 1}, at=NOW)
    commit(offsets, {U0: 1}, at=NOW, retention_ms=1000)
    again = replayed(offsets)

    assert check(again, NOW + 1000, Ageing()) == [T0]
    assert check(again, NOW + MINUTE, Ageing()) == []


def test_a_check_that_finds_nothing_is_no_fact() -> None:
    offsets = new()
    commit(offsets, {T0: 1}, at=NOW)

    assert offsets.expire(NOW, MINUTE, Ageing()) is None
    assert new().expire(NOW, MINUTE, Ageing()) is None
