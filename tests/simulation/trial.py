"""One run of a world and what came of it: a verdict, or the way in which the world broke."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import attrs

from .history import History, Verdict, judge
from .kit.runner import Chance, run

World = Callable[[Chance], Awaitable[History]]

HORIZON: Final = 120.0  # virtual seconds; the worlds here are done after twenty


@attrs.frozen
class Trial:
    seed: int
    trace: str
    verdict: Verdict | None
    broke: str | None  # the error that ended the world early

    @property
    def finding(self) -> bool:
        """Whether anything came up that must not be."""
        return self.broke is not None or bool(self.verdict and self.verdict.anomalies)

    def __str__(self) -> str:
        return f"seed {self.seed}, trace {self.trace}: {self.broke or self.verdict}"


def trial(seed: int, world: World) -> Trial:
    """Run the world. A broker that dies of itself, or hangs, is a finding like any other."""
    try:
        outcome = run(seed, world, horizon=HORIZON)
    except BaseException as error:
        broke = _innermost(error)
        if not isinstance(broke, Exception):
            raise
        return Trial(seed, "", None, repr(broke))
    return Trial(seed, outcome.trace, judge(outcome.value), None)


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
