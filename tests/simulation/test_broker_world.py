"""The whole broker, in worlds of kills, losses of power and bad networks: what clients saw holds."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import pytest

from .broker_world import Scenario, broker_world
from .bugs import BROKER_BUGS
from .history import History
from .kit.runner import Chance
from .trial import trial

# By default the first of them; `RAFKA_SIMULATION_SEEDS=20`, as in CI, plays more.
SEEDS = range(int(os.environ.get("RAFKA_SIMULATION_SEEDS", "8")))


async def world(chance: Chance) -> History:
    return await broker_world(chance, Scenario())


async def world_in_memory(chance: Chance) -> History:
    """No broker in memory survives a death: only the network is bad."""
    return await broker_world(chance, Scenario(storage="memory:", faults=("partition", "reset")))


async def world_with_preallocation(chance: Chance) -> History:
    return await broker_world(chance, Scenario(preallocate=True))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Brokers tell of every torn tail and lost connection, and here there are thousands."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_clients_saw_holds_and_a_seed_is_a_run(seed: int) -> None:
    first, again = trial(seed, world), trial(seed, world)

    assert not first.finding, first
    assert first == again


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_what_clients_saw_holds_in_memory_too(seed: int) -> None:
    found = trial(seed, world_in_memory)

    assert not found.finding, found


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
@pytest.mark.parametrize("name", BROKER_BUGS)
def test_a_planted_bug_is_found_within_a_hundred_seeds(name: str) -> None:
    with BROKER_BUGS[name]():
        assert any(trial(seed, world).judged for seed in range(100))
