"""G11 of the judge of groups: who asks is answered in time, and nobody rebalances for nothing.

How long an answer may take is bounded by what was asked. Who joins or syncs waits for others, at
most for the longest rebalance timeout; who sends anything else waits for nobody. The time in which
the network was partitioned comes on top.

Generations are counted against the changes that members know of. One change may cost two: a member
that is lost while a generation forms is missed again in the next.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import Final

from .group_facts import Facts, Findings
from .group_history import Asked, GroupHistory

PARTITION: Final = 4.0  # virtual seconds that one lasts, at most
PER_CHANGE: Final = 2  # generations
NOTICED: Final = 4.0  # virtual seconds, beyond a session and a rebalance, until a change has had its effect


def late_answers(facts: Facts) -> Findings:
    history = facts.history
    waits = ((one, history.longest_rebalance) for one in chain(history.joins, history.syncs))
    others = ((one, 0.0) for one in chain(history.beats, history.commits, history.leaves))
    for one, wait in chain(waits, others):
        if one.ended - one.begun > wait + history.slack + _silence(history, one):
            how = "had no answer" if one.code is None else f"was answered with {one.code} only"
            yield (
                "G11",
                f"what {one.client} asked of {one.group} at {one.begun:.4f} s {how} by {one.ended:.4f} s",
            )


def _silence(history: GroupHistory, one: Asked) -> float:
    """For how long at most the network was partitioned while it was asked."""
    times = [at for at, fault in history.faults if fault == "partition"]
    return sum(max(0.0, min(one.ended, at + PARTITION) - max(one.begun, at)) for at in times)


def steady_generations(facts: Facts) -> Findings:
    for group, (since, until) in facts.history.steady.items():
        before = max((j.generation for j in facts.joins if j.group == group and j.ended <= since), default=0)
        for join in facts.joins:
            if join.group == group and since < join.ended <= until and join.generation > before:
                yield "G11", f"generation {join.generation} of {group} at {join.ended:.4f} s, for no reason"


def calm_generations(facts: Facts) -> Findings:
    for look in facts.history.endings:
        if not look.calm:
            continue
        formed = {
            join.generation
            for join in facts.joins
            if join.group == look.group and look.since < join.ended <= look.due_at
        }
        if formed:
            yield "G11", f"{sorted(formed)} of {look.group} since {look.since:.4f} s, when all was calm"


def restless(facts: Facts) -> Findings:
    """In any stretch of time there are at most so many generations as the changes of late account for."""
    history = facts.history
    lasts = history.longest_session + history.longest_rebalance + NOTICED
    formed: dict[str, list[float]] = defaultdict(list)
    for (group, _), joins in facts.joins_of.items():
        formed[group].append(min(join.ended for join in joins))
    changed: dict[str, list[float]] = defaultdict(list)
    for change in history.changes:
        changed[change.group].append(change.at)
    for group, times in formed.items():
        times.sort()
        for index, until in enumerate(times):
            for first in range(index + 1):
                since, count = times[first] - lasts, index - first + 1
                changes = sum(since < at <= until for at in changed[group])
                if count > PER_CHANGE * changes:
                    yield (
                        "G11",
                        f"{count} generations of {group} from {times[first]:.4f} s to {until:.4f} s,"
                        f" for {changes} changes since {since:.4f} s",
                    )
                    break
