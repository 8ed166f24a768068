"""Whatever way a broker ends, what it was told to be flushed is there afterwards, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from rafka.env.sim_disk import SimDisk

from .batches import sim_disk
from .history import small, survive


@pytest.fixture(autouse=True)
def seeded_scheduler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A seed tells the whole story: the order in which tasks run, too."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    state = trio._core._run._r.getstate()
    yield
    trio._core._run._r.setstate(state)


async def lives_of(disk: SimDisk, seed: int, *, durable: bool = True) -> None:
    trio._core._run._r.seed(seed)
    await survive(disk, seed, lives=4, steps=60, config=small(durable=durable))


@pytest.mark.parametrize("seed", range(40))
async def test_nothing_flushed_is_lost_and_nothing_doubled(seed: int, autojump_clock: MockClock) -> None:
    await lives_of(sim_disk(seed), seed)


@pytest.mark.parametrize("seed", range(1000, 1020))
async def test_nothing_flushed_is_lost_where_flushes_are_few(seed: int, autojump_clock: MockClock) -> None:
    await lives_of(sim_disk(seed), seed, durable=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2400))
async def test_hundreds_of_lives_more(seed: int, autojump_clock: MockClock) -> None:
    await lives_of(sim_disk(seed, p_cold=0.2), seed, durable=seed % 3 > 0)
