"""One run of a world and what came of it: a verdict, or the way in which the world broke."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

import attrs

from .history import History, Verdict, judge
from .kit.runner import Chance, run

World = Callable[[Chance], Awaitable[History]]


class AnyVerdict(Protocol):
    """What judges of all kinds of worlds have in common."""

    @property
    def anomalies(self) -> Mapping[str, object]: ...


H = TypeVar("H")
V = TypeVar("V", bound=AnyVerdict)

HORIZON: Final = 120.0  # virtual seconds; the worlds here are done after twenty


@attrs.frozen
class Trial(Generic[V]):
    seed: int
    trace: str
    verdict: V | None
    broke: str | None  # the error that ended the world early

    @property
    def finding(self) -> bool:
        """Whether anything came up that must not be."""
        return self.broke is not None or self.judged

    @property
    def judged(self) -> bool:
        """Whether it was the judge who found something. A world that broke is not judged."""
        return bool(self.verdict and self.verdict.anomalies)

    def __str__(self) -> str:
        return f"seed {self.seed}, trace {self.trace}: {self.broke or self.verdict}"


def trial(seed: int, world: World) -> Trial[Verdict]:
    """Run a world of logs."""
    return try_out(seed, world, judge)


def try_out(
    seed: int, world: Callable[[Chance], Awaitable[H]], judge: Callable[[H], V], horizon: float = HORIZON
) -> Trial[V]:
    """Run the world. A broker that dies of itself, or hangs, is a finding like any other."""
    try:
        outcome = run(seed, world, horizon=horizon)
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
