"""Groups in worlds of kills, losses of power, bad networks and members of all kinds: what they saw holds."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import pytest

from .group_bugs import GROUP_BUGS
from .group_history import GroupHistory
from .group_judge import GroupVerdict, judge_groups
from .group_world import GroupScenario, group_world, in_memory, page_cache, rough, steady
from .kit.runner import Chance
from .trial import Trial, try_out

MANY: Final = range(100, 250)
PLANTED: Final = range(100)
HORIZON: Final = 240.0  # virtual seconds


def world(scenario: GroupScenario) -> Callable[[Chance], Awaitable[GroupHistory]]:
    async def play(chance: Chance) -> GroupHistory:
        return await group_world(chance, scenario)

    return play


def trial(seed: int, scenario: GroupScenario) -> Trial[GroupVerdict]:
    return try_out(seed, world(scenario), judge_groups, HORIZON)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Brokers tell of every torn tail, lost connection and rebalance, and here there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_what_members_saw_holds_and_a_seed_is_a_run() -> None:
    first, again = trial(0, rough()), trial(0, rough())

    assert not first.finding, first
    assert first == again
    assert first.verdict is not None
    assert first.verdict.worth


def test_no_group_rebalances_for_a_broker_that_restarts() -> None:
    """Nor for a static member that is back within its session."""
    found = trial(0, steady())

    assert not found.finding, found


def test_what_members_saw_holds_in_memory_too() -> None:
    found = trial(0, in_memory())

    assert not found.finding, found


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [rough, steady, page_cache, in_memory])
@pytest.mark.parametrize("seed", MANY)
def test_many_more_seeds(seed: int, scenario: Callable[[], GroupScenario]) -> None:
    found = trial(seed, scenario())

    assert not found.finding, found


@pytest.mark.slow
@pytest.mark.parametrize("name", GROUP_BUGS)
def test_a_planted_bug_is_found_within_a_hundred_seeds(name: str) -> None:
    with GROUP_BUGS[name]():
        assert any(trial(seed, scenario).judged for seed in PLANTED for scenario in (rough(), steady()))
