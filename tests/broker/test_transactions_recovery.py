"""However a broker ends, its partitions know their transactions: state, stability and what was aborted.

Random transactions of several producers over two partitions, through kills, losses of
power at any moment, damaged files, retention and compaction, against a model that keeps a list.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from ..storage.batches import sim_disk
from .transactions_story import Action, Damage, Ending, Story

OFTEN = ["write"] * 6 + ["end"] * 4
SELDOM = ["flush", "checkpoint", "roll", "compact", "delete", "expire"]

ACTIONS: st.SearchStrategy[Action] = st.tuples(
    st.sampled_from(OFTEN + SELDOM), st.integers(0, 1), st.integers(1, 3), st.integers(0, 9), st.booleans()
)
LIVES = st.lists(
    st.tuples(
        st.lists(ACTIONS, max_size=40),
        st.sampled_from(["close", "kill", "power loss"]),
        st.none() | st.integers(1, 200),
        st.sampled_from(["", "", "", ".txnindex", ".snapshot", "checkpoint"]),
    ),
    min_size=1,
    max_size=4,
)
Life = tuple[list[Action], Ending, int | None, Damage]


@pytest.fixture(autouse=True)
def seeded_scheduler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A seed tells the whole story: the order in which tasks run, too."""
    monkeypatch.setattr(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", True)
    state = trio._core._run._r.getstate()
    yield
    trio._core._run._r.setstate(state)


def play(lives: list[Life], seed: int, *, durable: bool, fetch_bytes: int) -> None:
    async def main() -> None:
        story = Story(sim_disk(seed), durable=durable, fetch_bytes=fetch_bytes)
        for actions, ending, cut_after, damage in lives:
            await story.live(actions, ending, cut_after)
            if ending != "power loss" and cut_after is None:
                story.damage(damage)
                if damage == "checkpoint":  # a loss of power as well would be more than can be mended
                    await story.live([], "close", None)
        await story.live([], "close", None)

    trio._core._run._r.seed(seed)
    trio.run(main, clock=MockClock(autojump_threshold=0))


@settings(max_examples=150)
@given(
    lives=LIVES,
    seed=st.integers(0, 1 << 16),
    durable=st.booleans(),
    fetch_bytes=st.sampled_from([1, 300, 1 << 20]),
)
def test_transactions_are_what_the_log_says(
    lives: list[Life], seed: int, durable: bool, fetch_bytes: int
) -> None:
    play(lives, seed, durable=durable, fetch_bytes=fetch_bytes)


def in_the_first(*actions: tuple[str, int, int, bool]) -> list[Action]:
    """Actions on the first partition: what, which producer, a number, a yes or no."""
    return [(what, 0, pid, number, yes) for what, pid, number, yes in actions]


PLAIN = ("write", 2, 0, False)
ABORTED = ("write", 1, 0, True)
ROLL = ("roll", 0, 0, False)
COMPACT_TWO_KEYS = ("compact", 0, 1, False)


@pytest.mark.parametrize("ending", ["kill", "power loss"])
@pytest.mark.parametrize("changes", range(1, 60))
def test_the_end_may_come_at_any_change_that_a_compaction_makes(changes: int, ending: Ending) -> None:
    """The pass is a partial one: it takes some records of the aborted transaction, and leaves some."""
    first, second = (ABORTED, PLAIN), (PLAIN, ABORTED, PLAIN, ABORTED, ("end", 1, 0, False))
    written = in_the_first(*first, ROLL, *second, ROLL, PLAIN)
    lives: list[Life] = [
        ([*written, ("checkpoint", 0, 0, 0, False)], "close", None, ""),
        (in_the_first(COMPACT_TWO_KEYS), ending, changes, ""),
    ]

    play(lives, changes, durable=True, fetch_bytes=1 << 20)
