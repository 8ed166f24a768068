"""Storage alone, among kills and losses of power: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from .bugs import BREAKING_BUGS, STORAGE_BUGS
from .history import History
from .kit.runner import Chance
from .storage_world import Scenario, storage_world
from .trial import trial

# By default the first of them; `RAFKA_SIMULATION_SEEDS=20`, as in CI, plays more.
SEEDS = range(int(os.environ.get("RAFKA_SIMULATION_SEEDS", "8")))


async def world(chance: Chance) -> History:
    return await storage_world(chance, Scenario())


async def world_of_failing_syncs(chance: Chance) -> History:
    return await storage_world(chance, Scenario(p_sync_error=0.01))


async def world_with_preallocation(chance: Chance) -> History:
    return await storage_world(chance, Scenario(preallocate=True))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The storage tells of every torn tail, and here there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_acknowledged_stays_and_a_seed_is_a_run(seed: int) -> None:
    first, again = trial(seed, world), trial(seed, world)

    assert not first.finding, first
    assert first == again


def test_the_worlds_are_rough_enough_to_mean_something() -> None:
    verdicts = [trial(seed, world).verdict for seed in SEEDS[:5]]

    assert all(verdict and verdict.worth for verdict in verdicts)
    assert sum(verdict.faults for verdict in verdicts if verdict) > 20


@pytest.mark.parametrize("seed", [*SEEDS[:4], *(pytest.param(s, marks=pytest.mark.slow) for s in SEEDS[4:])])
def test_preallocated_segments_keep_what_was_acknowledged_too(seed: int) -> None:
    found = trial(seed, world_with_preallocation)

    assert not found.finding, found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_more_seeds(seed: int) -> None:
    found = trial(seed, world)

    assert not found.finding, found


@pytest.mark.slow
def test_failing_syncs_end_the_process_and_lose_nothing() -> None:
    for seed in range(30):
        found = trial(seed, world_of_failing_syncs)

        assert not found.finding, found


@pytest.mark.slow
@pytest.mark.parametrize("name", STORAGE_BUGS)
def test_a_planted_bug_is_found_within_a_hundred_seeds(name: str) -> None:
    with STORAGE_BUGS[name]():
        trials = (trial(seed, world) for seed in range(100))
        assert any(found.broke if name in BREAKING_BUGS else found.judged for found in trials)
