"""A seed is a run: what must be equal is equal, what must be forbidden is, what hangs is found."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable

import pytest
import trio

from .runner import Chance, Forbidden, NoProgress, run, virtual_threads, wall_clock


async def six_tasks(chance: Chance) -> str:
    """Who was when: six tasks that give way to each other, and throw dice for how long they sleep."""
    order = []
    dice = chance.stream("naps")

    async def task(name: str) -> None:
        for _ in range(5):
            order.append(name)
            await trio.lowlevel.checkpoint()
            await trio.sleep(dice.random())

    async with trio.open_nursery() as nursery:
        for name in "abcdef":
            nursery.start_soon(task, name)
    return "".join(order)


def test_the_same_seed_takes_the_same_steps() -> None:
    first, again = run(7, six_tasks), run(7, six_tasks)

    assert first == again
    assert first.steps > 60


def test_other_seeds_take_other_steps() -> None:
    outcomes = [run(seed, six_tasks) for seed in range(20)]

    assert len({outcome.trace for outcome in outcomes}) == 20
    assert len({outcome.value for outcome in outcomes}) == 20


def test_the_steps_can_be_kept_to_compare_two_runs() -> None:
    steps: list[str] = []

    outcome = run(7, six_tasks, keep=steps)

    assert len(steps) == outcome.steps
    assert any("six_tasks" in step for step in steps)


def test_hours_cost_nothing() -> None:
    async def world(chance: Chance) -> float:
        before = wall_clock()
        await trio.sleep(3000)
        return wall_clock() - before

    begun = time.monotonic()
    outcome = run(1, world)

    assert outcome.value == outcome.virtual_seconds == 3000
    assert time.monotonic() - begun < 5


def test_a_thread_is_a_wait_and_then_the_work_in_one_moment() -> None:
    async def world(chance: Chance) -> tuple[str, float]:
        return await trio.to_thread.run_sync(str.upper, "done"), trio.current_time()

    assert run(3, world).value[0] == "DONE"
    assert 0 < run(3, world).virtual_seconds < 0.1


def test_cancelling_waits_for_the_thread() -> None:
    done: list[str] = []

    async def world(chance: Chance) -> None:
        spawn = virtual_threads(chance.stream("own"))
        with trio.CancelScope() as scope:
            scope.cancel()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(spawn, done.append, "before the cancel was seen")
        with trio.move_on_after(1e-9):
            await spawn(done.append, "although it was cancelled")

    run(3, world)

    assert done[-1] == "although it was cancelled"


@pytest.mark.parametrize(
    "reality",
    [
        lambda: time.time(),
        lambda: time.monotonic(),
        lambda: time.perf_counter_ns(),
        lambda: os.urandom(1),
        lambda: uuid.uuid4(),
        lambda: random.SystemRandom().random(),
    ],
    ids=["time", "monotonic", "perf_counter_ns", "urandom", "uuid4", "SystemRandom"],
)
def test_reality_is_forbidden(reality: Callable[[], object]) -> None:
    async def world(chance: Chance) -> None:
        reality()

    with pytest.raises(Forbidden):
        run(1, world)


def test_abandoning_a_thread_is_forbidden() -> None:
    async def world(chance: Chance) -> None:
        await virtual_threads(chance.stream("own"))(len, b"", abandon_on_cancel=True)

    with pytest.raises(Forbidden, match="abandon_on_cancel"):
        run(1, world)


def test_reality_is_back_afterwards() -> None:
    run(1, six_tasks)

    assert time.time() > 1_700_000_000
    assert len(os.urandom(4)) == 4


def test_a_world_that_waits_for_ever_is_found_out() -> None:
    async def world(chance: Chance) -> None:
        await trio.sleep_forever()

    with pytest.raises(NoProgress, match="seed 9"):
        run(9, world, horizon=60)


def test_a_world_that_fails_says_its_seed() -> None:
    async def world(chance: Chance) -> None:
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted") as failure:
        run(11, world)

    assert failure.value.__notes__[0].startswith("seed 11")
