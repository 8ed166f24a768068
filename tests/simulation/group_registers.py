"""Committed offsets as registers: is there an order of all commits and fetches that explains them?

Each commit carries a mark that no other has, so the question has an exact and quick answer
(Gibbons and Korach, "Testing shared memories", 1997). A mark's *cluster* is its commit and all
fetches that saw it. Between the first end and the last beginning in a cluster its value must have
been the current one: a forward zone. Where all of a cluster has a moment in common there is only
a backward zone, within which that moment may be chosen. The history is explained if no two forward
zones overlap and no backward zone lies within a forward one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import inf
from typing import TypeAlias

import attrs

from .group_history import Committed, Fetched, GroupHistory, Place

Key: TypeAlias = tuple[str, Place]  # the group and the partition


@attrs.define
class _Cluster:
    mark: str
    first_end: float
    last_begin: float

    def add(self, begun: float, ended: float) -> None:
        self.first_end = min(self.first_end, ended)
        self.last_begin = max(self.last_begin, begun)

    @property
    def forward(self) -> bool:
        return self.first_end < self.last_begin


def lost_offsets(history: GroupHistory) -> Iterator[tuple[str, str]]:
    """G1, G2 and G14 of `group_judge`."""
    commits: dict[Key, dict[str, Committed]] = defaultdict(dict)
    by_mark: dict[str, Committed] = {}
    for commit in history.commits:
        by_mark[commit.mark] = commit
        if commit.code in (0, None):
            commits[commit.group, commit.place][commit.mark] = commit
    fetches: dict[Key, list[Fetched]] = defaultdict(list)
    for fetch in history.fetches:
        found = by_mark.get(fetch.mark)
        if fetch.offset >= 0 and (wrong := _phantom(fetch, found)):
            yield "G2", wrong
        elif found is not None and fetch.begun > history.deleted.get(found.place.incarnation, inf):
            yield "G14", f"{found.mark} fetched at {fetch.ended:.4f} s, though its topic was deleted"
        elif found is not None and found.place != fetch.place:
            yield "G2", f"{found.mark} of {found.place} fetched as {fetch.place}"
        else:
            fetches[fetch.group, fetch.place].append(fetch)
    for key in sorted(commits.keys() | fetches.keys(), key=repr):
        for witness in _unexplained(commits[key].values(), fetches[key]):
            yield "G1", f"{key[0]} {key[1].topic}-{key[1].partition}: {witness}"


def _phantom(fetch: Fetched, found: Committed | None) -> str | None:
    if found is None:
        return f"{fetch.offset} with {fetch.mark!r} fetched from {fetch.group}, which nobody committed"
    if found.code not in (0, None):
        return f"{fetch.mark} fetched, which was refused with {found.code}"
    if found.group != fetch.group or found.offset != fetch.offset:
        return f"{fetch.mark} was {found.offset} of {found.group}, fetched as {fetch.offset} of {fetch.group}"
    if fetch.ended < found.begun:
        return f"{fetch.mark} fetched before it was committed"
    return None


def _unexplained(commits: Iterable[Committed], fetches: Iterable[Fetched]) -> Iterator[str]:
    clusters = {"": _Cluster("", -inf, -inf)}  # at first nothing is committed
    for commit in commits:
        ended = commit.ended if commit.ok else inf  # without an answer it may be done at any time since
        clusters[commit.mark] = _Cluster(commit.mark, ended, commit.begun)
    for fetch in fetches:
        clusters[fetch.mark].add(fetch.begun, fetch.ended)
    known = [cluster for cluster in clusters.values() if cluster.first_end < inf]
    zones = sorted((c for c in known if c.forward), key=lambda c: c.first_end)
    for earlier, later in pairwise(zones):
        if later.first_end < earlier.last_begin:
            yield f"{_told(earlier)} and {_told(later)} cannot both have stood"
    for cluster in known:
        if cluster.forward:
            continue
        for zone in zones:
            if zone.first_end < cluster.last_begin and cluster.first_end < zone.last_begin:
                yield f"{_told(cluster)} was overwritten by {_told(zone)}, which stood before and after it"


def _told(cluster: _Cluster) -> str:
    return f"{cluster.mark or 'nothing'} ({cluster.first_end:.4f} s to {cluster.last_begin:.4f} s)"
