"""What members saw, indexed once for all rules of the judge of groups."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from math import inf
from typing import Final, TypeAlias

from .group_history import Asked, GroupHistory, Joined, Ownership, Synced

Findings: TypeAlias = Iterator[tuple[str, str]]  # the number of the anomaly, and what was seen
Generation: TypeAlias = tuple[str, int]  # the group, and the number

OF_THE_NETWORK: Final = ("partition", "reset")  # all other faults end the broker

_UUID: Final = len("-00000000-0000-0000-0000-000000000000")


class Facts:
    """A history, and what can be looked up in it."""

    def __init__(self, history: GroupHistory) -> None:
        self.history = history
        self.joins = [one for one in history.joins if one.ok]
        self.syncs = [one for one in history.syncs if one.ok]
        self.asked: list[Asked] = [
            *history.joins,
            *history.syncs,
            *history.beats,
            *history.commits,
            *history.leaves,
        ]
        self.joins_of: dict[Generation, list[Joined]] = defaultdict(list)
        for join in self.joins:
            self.joins_of[join.group, join.generation].append(join)
        self.syncs_of: dict[Generation, list[Synced]] = defaultdict(list)
        for sync in self.syncs:
            self.syncs_of[sync.group, sync.generation].append(sync)
        self.members_of: dict[Generation, set[str]] = defaultdict(set)  # who they are, as far as known
        self._told: dict[str, list[tuple[float, int]]] = defaultdict(list)  # when, and the highest by then
        self.instances: dict[str, str | None] = {}
        for join in self.joins:
            self.instances[join.member_id] = join.instance
            self.instances.update(join.roll)
        self.static = {join.instance for join in history.joins if join.instance is not None}
        for join in self.joins:
            who = {join.member_id, *(name for name, _ in join.roll)}
            self.members_of[join.group, join.generation].update(map(self.identity, who))
        # With a restart a generation is void in which nobody has synced, though it was told of.
        binding = self.syncs if _broker_died(history) else [*self.joins, *self.syncs]
        for one in sorted(binding, key=lambda one: one.ended):
            told = self._told[one.group]
            told.append((one.ended, max(one.generation, told[-1][1] if told else -1)))

    def identity(self, member_id: str) -> str:
        """Who that is, whatever the id of the moment: a static member keeps its instance id.

        An id that nobody was told of but as somebody else's begins with the instance id.
        """
        made_for = _made_for(member_id)
        return self.instances.get(member_id) or (made_for if made_for in self.static else member_id)

    def replaced(self, old: Ownership, by: float) -> bool:
        """Whether another than this client may have come in with its instance id by then."""
        own = [join.begun for join in self.history.joins if join.client == old.client]
        return any(
            join.instance == old.instance and join.client != old.client and min(own) < join.begun < by
            for join in self.history.joins
        )

    def may_be(self, join: Joined, member_id: str) -> bool:
        """Whether this question, which was not answered, may have brought that member in."""
        return join.member_id == member_id if join.member_id else join.client == _made_for(member_id)

    def told_by(self, group: str, at: float) -> int:
        """The highest generation that anybody had been told of for good before that time; -1 for none."""
        told = self._told[group]
        index = bisect_left(told, (at, -1)) - 1
        return told[index][1] if index >= 0 else -1

    def formed_after(self, group: str, generation: int) -> float:
        """A time before this generation was there, or the last one before it of which anybody heard."""
        known = [number for name, number in self.joins_of if name == group and number <= generation]
        return min(join.begun for join in self.joins_of[group, max(known)]) if known else -inf


def _broker_died(history: GroupHistory) -> bool:
    return any(fault not in OF_THE_NETWORK for _, fault in history.faults)


def _made_for(member_id: str) -> str:
    """The client whose member got this id, or the instance id."""
    return member_id[:-_UUID]
