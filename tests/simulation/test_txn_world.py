"""Pipelines in worlds of kills, zombies, losses of power and bad networks: all comes out exactly once."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator

import attrs
import pytest

from .history import Verdict
from .kit.runner import Chance
from .trial import Trial, try_out
from .txn_bugs import BREAKING_TXN_BUGS, TXN_BUGS
from .txn_history import PipelineHistory, judge
from .txn_world import Pipeline, txn_world

SEEDS = range(3)
HORIZON = 180.0
SHORT = Pipeline(batches=3, trouble=2.0)


async def world(chance: Chance) -> PipelineHistory:
    return await txn_world(chance, Pipeline())


async def short_world(chance: Chance) -> PipelineHistory:
    return await txn_world(chance, SHORT)


async def world_of_page_cache(chance: Chance) -> PipelineHistory:
    """What is written is safe from all but a loss of power."""
    return await txn_world(
        chance, Pipeline(durability="page-cache", faults=("kill", "kill", "partition", "reset"))
    )


async def world_in_memory(chance: Chance) -> PipelineHistory:
    """No broker in memory survives a death: only the network is bad."""
    return await txn_world(chance, attrs.evolve(SHORT, storage="memory:", faults=("partition", "reset")))


def trial(seed: int) -> Trial[Verdict]:
    return try_out(seed, world, judge, HORIZON)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Brokers tell of every torn tail and lost connection, and here there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_everything_comes_out_exactly_once_and_the_worlds_are_rough_enough_to_mean_it() -> None:
    histories = list[PipelineHistory]()

    def keep(history: PipelineHistory) -> Verdict:
        histories.append(history)
        return judge(history)

    for seed in SEEDS:
        found = try_out(seed, world, keep, HORIZON)
        assert not found.finding, found

    assert sum(len(history.faults) for history in histories) > 10
    assert sum(history.zombies for history in histories) > 5
    assert sum(history.late for history in histories) > 5
    fates = [attempt.fate for history in histories for attempt in history.attempts]
    assert {"commit", "abort", "unknown"} == set(fates)
    assert fates.count("commit") > 0.4 * len(fates)


def test_a_seed_is_a_run() -> None:
    assert try_out(7, short_world, judge) == try_out(7, short_world, judge)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_everything_comes_out_exactly_once_of_the_page_cache_too(seed: int) -> None:
    found = try_out(seed, world_of_page_cache, judge, HORIZON)

    assert not found.finding, found


def test_everything_comes_out_exactly_once_of_memory_too() -> None:
    found = try_out(1, world_in_memory, judge)

    assert not found.finding, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
@pytest.mark.parametrize("which", [world, world_of_page_cache, world_in_memory])
def test_many_more_seeds(seed: int, which: Callable[[Chance], Awaitable[PipelineHistory]]) -> None:
    found = try_out(seed, which, judge, HORIZON)

    assert not found.finding, found


@pytest.mark.slow
@pytest.mark.parametrize("name", TXN_BUGS)
def test_a_planted_bug_is_found_within_a_hundred_seeds(name: str) -> None:
    with TXN_BUGS[name]():
        trials = (trial(seed) for seed in range(100))
        assert any(found.broke if name in BREAKING_TXN_BUGS else found.judged for found in trials)
