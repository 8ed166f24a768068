"""The judge of groups: finds in what members saw what a coordinator must never do.

The anomalies, by the numbers of the list that they were taken from:

    G0 astonishing answer    a code that a right coordinator never gives; clients say which
    G1 lost offset           the committed offset is no linearizable register
    G2 phantom offset        an offset was fetched that nobody committed, or that was refused
    G3 two owners            two members of one generation were assigned one partition
    G4 two owners at a time  a partition was taken over from one who was still within its session
    G5 stale commit          a commit was taken although a later generation had been synced
    G6 generation used twice two generations of one number, or a later one with a lower number
    G7 leader                two leaders, a roll that does not fit, shares that the leader did not give
    G8 not covered           all is calm, and a partition has no owner, or two
    G9 stale heartbeat       as G5, of a heartbeat
    G10 not fenced           the older of two with one instance id went on
    G11 liveness             a join or sync was never answered; a rebalance for no reason
    G12 skipped              an offset was committed that nobody had come to by processing
    G14 old topic's offset   what was committed to a deleted topic was fetched again
    G15 gone, yet there      a member that had left, or was told so, is in the group again

G13, offsets that go too soon, is a case of G1 here: none of these groups is idle for long enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import inf
from typing import Final, TypeAlias

import attrs

from .group_history import Asked, Committed, GroupHistory, Joined, Ownership, Place, Synced
from .group_registers import lost_offsets

UNKNOWN_MEMBER_ID: Final = 25
PARTITION: Final = 4.0  # virtual seconds that one lasts, at most
ANSWERED_WITHIN: Final = 6.0  # virtual seconds, beyond the longest rebalance timeout and all silences

_UUID: Final = len("-00000000-0000-0000-0000-000000000000")

Findings: TypeAlias = Iterator[tuple[str, str]]
Generation: TypeAlias = tuple[str, int]


@attrs.frozen
class GroupVerdict:
    anomalies: dict[str, list[str]]
    asked: int
    granted: int
    generations: int
    commits: int
    faults: int

    @property
    def worth(self) -> bool:
        """Whether enough was tried, and succeeded, for silence to mean something."""
        return self.granted >= 0.6 * self.asked > 0 and self.commits > 20 and self.faults >= 3

    def __str__(self) -> str:
        tried = (
            f"{self.granted} of {self.asked} questions granted, {self.generations} generations,"
            f" {self.commits} commits, {self.faults} faults"
        )
        found = [
            f"{kind}: {len(witnesses)} times, such as {'; '.join(witnesses[:5])}"
            for kind, witnesses in sorted(self.anomalies.items(), key=lambda item: int(item[0][1:]))
        ]
        return "\n".join([tried, *found])


def judge_groups(history: GroupHistory) -> GroupVerdict:
    facts = _Facts(history)
    anomalies: dict[str, list[str]] = defaultdict(list)
    for rule in _RULES:
        for kind, witness in rule(facts):
            anomalies[kind].append(witness)
    return GroupVerdict(
        anomalies=dict(anomalies),
        asked=len(facts.asked),
        granted=sum(one.ok for one in facts.asked),
        generations=len(facts.joins_of),
        commits=sum(one.ok for one in history.commits),
        faults=len(history.faults),
    )


class _Facts:
    """The history, indexed once for all rules."""

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
        self.instances: dict[str, str | None] = {}
        for join in self.joins:
            self.instances[join.member_id] = join.instance
            self.instances.update(join.roll)
        self.static = {join.instance for join in history.joins if join.instance is not None}

    def identity(self, member_id: str) -> str:
        """Who that is, whatever the id of the moment: a static member keeps its instance id.

        An id that nobody was told of but as somebody else's begins with the instance id.
        """
        made_for = member_id[:-_UUID]
        return self.instances.get(member_id) or (made_for if made_for in self.static else member_id)

    def replaced(self, old: Ownership, by: float) -> bool:
        """Whether another than this client may have come in with its instance id by then."""
        own = [join.begun for join in self.history.joins if join.client == old.client]
        return any(
            join.instance == old.instance and join.client != old.client and min(own) < join.begun < by
            for join in self.history.joins
        )

    def synced_beyond(self, group: str) -> Callable[[float], int]:
        """The highest generation that anybody had synced by a given time."""
        syncs = sorted((s.ended, s.generation) for s in self.syncs if s.group == group)
        times, highest = [], [-1]
        for ended, generation in syncs:
            times.append(ended)
            highest.append(max(highest[-1], generation))
        return lambda at: highest[bisect_left(times, at)]


def _astonishing(facts: _Facts) -> Findings:
    for surprise in facts.history.surprises:
        yield "G0", surprise


def _offsets(facts: _Facts) -> Findings:
    yield from lost_offsets(facts.history)


def _two_owners(facts: _Facts) -> Findings:
    for (group, generation), syncs in facts.syncs_of.items():
        owners: dict[object, str] = {}
        for sync in syncs:
            who = facts.identity(sync.member_id)
            for tp in sync.targets:
                if owners.setdefault(tp, who) != who:
                    yield (
                        "G3",
                        f"{tp} of {group} belongs to {who} and {owners[tp]} in generation {generation}",
                    )


def _two_at_a_time(facts: _Facts) -> Findings:
    heard: dict[str, list[float]] = defaultdict(list)
    for one in facts.asked:
        if one.ok:
            heard[one.client].append(one.begun)
    for times in heard.values():
        times.sort()
    by_place = defaultdict(list)
    for own in facts.history.owned:
        by_place[own.group, own.tp].append(own)
    for (group, tp), owns in by_place.items():
        owns.sort(key=lambda own: own.since)
        for index, new in enumerate(owns):
            for old in owns[:index]:
                if old.until <= new.since or old.client == new.client:
                    continue
                if any(one.instance is not None and facts.replaced(one, new.since) for one in (old, new)):
                    continue  # by another with its instance id: it is fenced, and what it was told is old
                times = heard[old.client]
                last = bisect_left(times, new.since) - 1
                since = times[last] if last >= 0 else -inf
                if new.since - since < old.patience:
                    yield (
                        "G4",
                        f"{new.client} took {tp} of {group} at {new.since:.4f} s from {old.client},"
                        f" which was granted something asked at {since:.4f} s",
                    )


def _stale(facts: _Facts) -> Findings:
    for group in sorted({sync.group for sync in facts.syncs}):
        beyond = facts.synced_beyond(group)
        for kind, some in (("G5", facts.history.commits), ("G9", facts.history.beats)):
            for one in some:
                if one.group == group and one.ok and one.generation < beyond(one.begun):
                    yield (
                        kind,
                        f"{one.client} in generation {one.generation} of {group}, asked {one.begun:.4f} s,"
                        f" when {beyond(one.begun)} had been synced",
                    )


def _generations(facts: _Facts) -> Findings:
    """Who joined first in a generation came after all lower ones were there, and before all higher ones."""
    first_told: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    for (group, generation), joins in facts.joins_of.items():
        begun, ended = min(j.begun for j in joins), min(j.ended for j in joins)
        first_told[group].append((generation, begun, ended))
        leaders = {facts.identity(join.leader) for join in joins if join.leader}
        if len(leaders) > 1:
            yield "G6", f"generation {generation} of {group} has the leaders {sorted(leaders)}"
        rolls = {frozenset(facts.identity(name) for name, _ in join.roll) for join in joins if join.roll}
        if len(rolls) > 1:
            yield "G6", f"generation {generation} of {group} has {len(rolls)} rolls: {rolls}"
        protocols = {join.protocol for join in joins}
        if len(protocols) > 1:
            yield "G6", f"generation {generation} of {group} shares by {protocols}"
    for group, told in first_told.items():
        told.sort()
        for (low, begun, _), (high, _, ended) in pairwise(told):
            if begun > ended:
                yield "G6", f"{low} of {group} was first asked for at {begun:.4f} s, after {high} was told"
        beyond = facts.synced_beyond(group)
        for join in facts.joins:
            if join.group == group and join.generation < beyond(join.begun):
                yield (
                    "G6",
                    f"{join.client} joined {join.generation} of {group}, asked {join.begun:.4f} s,"
                    f" when {beyond(join.begun)} had been synced",
                )


def _leaders(facts: _Facts) -> Findings:
    given: dict[Generation, list[dict[str, bytes]]] = defaultdict(list)
    for sync in facts.history.syncs:
        if sync.given is not None:
            shares = {facts.identity(name): share for name, share in sync.given.items()}
            given[sync.group, sync.generation].append(shares)
    for key, syncs in facts.syncs_of.items():
        got = {(facts.identity(sync.member_id), sync.assignment) for sync in syncs}
        if not any(all(shares.get(who, b"") == share for who, share in got) for shares in given[key]):
            yield "G7", f"{len(got)} shares of generation {key} are none that its leader gave"
    for (group, generation), joins in facts.joins_of.items():
        roll = {facts.identity(name) for join in joins for name, _ in join.roll}
        for join in joins:
            who = facts.identity(join.member_id)
            if roll and who not in roll:
                yield "G7", f"{who} joined generation {generation} of {group}, whose roll is {sorted(roll)}"


def _coverage(facts: _Facts) -> Findings:
    for look in facts.history.endings:
        owners = defaultdict(set)
        for own in facts.history.owned:
            at_that_time = own.since <= look.due_at <= own.until
            if own.group == look.group and at_that_time and own.client in look.living:
                owners[own.tp].add(own.client)
        for tp in sorted(look.wanted):
            if len(owners[tp]) != 1:
                when = "in calm" if look.calm else f"after a silence since {look.since:.4f} s"
                yield (
                    "G8",
                    f"{tp} of {look.group} has {len(owners[tp])} owners at {look.due_at:.4f} s, {when}",
                )


def _fencing(facts: _Facts) -> Findings:
    granted: dict[str, list[Asked]] = defaultdict(list)
    for one in facts.asked:
        if one.ok and facts.instances.get(one.member_id):
            granted[one.member_id].append(one)
    mints: dict[tuple[str, str], list[Joined]] = defaultdict(list)
    seen = set()
    for join in sorted(facts.joins, key=lambda join: join.ended):
        if join.instance is not None and join.member_id not in seen:
            seen.add(join.member_id)
            mints[join.group, join.instance].append(join)
    for minted in mints.values():
        for older in minted:
            known_at = min((one.ended for one in granted[older.member_id]), default=inf)
            newer = [join.ended for join in minted if join.begun > known_at]
            for one in granted[older.member_id]:
                if newer and one.begun > min(newer):
                    yield (
                        "G10",
                        f"{one.client} was granted what it asked at {one.begun:.4f} s,"
                        f" though another {older.instance} was in since {min(newer):.4f} s",
                    )


def _liveness(facts: _Facts) -> Findings:
    history = facts.history
    longest = history.longest_rebalance + ANSWERED_WITHIN
    for one in (*history.joins, *history.syncs):
        if one.code is None and one.ended - one.begun > longest + _silence(history, one):
            yield "G11", f"what {one.client} asked at {one.begun:.4f} s was not answered by {one.ended:.4f} s"
    for group, (since, until) in history.steady.items():
        before = max((j.generation for j in facts.joins if j.group == group and j.ended <= since), default=0)
        for join in facts.joins:
            if join.group == group and since < join.ended <= until and join.generation > before:
                yield "G11", f"generation {join.generation} of {group} at {join.ended:.4f} s, for no reason"


def _silence(history: GroupHistory, one: Asked) -> float:
    """For how long at most the network was partitioned while it was asked."""
    times = [at for at, fault in history.faults if fault == "partition"]
    return sum(max(0.0, min(one.ended, at + PARTITION) - max(one.begun, at)) for at in times)


def _calm_generations(facts: _Facts) -> Findings:
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


def _skipped(facts: _Facts) -> Findings:
    reached: dict[tuple[str, Place], int] = defaultdict(int)
    work: list[tuple[float, int, object]] = []
    for done in facts.history.processed:
        work.append((done.at, 0, done))
    for commit in facts.history.commits:
        if commit.ok and not commit.place.incarnation:
            work.append((commit.begun, 1, commit))
    for _, _, one in sorted(work, key=lambda item: item[:2]):
        if isinstance(one, Committed):
            if one.offset > reached[one.group, one.place]:
                yield "G12", f"{one.mark} commits {one.offset} of {one.place}, and nobody has got there"
            continue
        key = one.group, Place(*one.tp)  # type: ignore[attr-defined]
        if one.first > reached[key]:  # type: ignore[attr-defined]
            yield "G12", f"{one} begins beyond {reached[key]}, up to which all is processed"
        reached[key] = max(reached[key], one.after)  # type: ignore[attr-defined]


def _gone_yet_there(facts: _Facts) -> Findings:
    gone: dict[str, float] = {}

    def note(member_id: str, at: float) -> None:
        gone[member_id] = min(at, gone.get(member_id, inf))

    for left in facts.history.leaves:
        if left.ok:
            note(left.member_id, left.ended)
    for one in facts.asked:
        if one.code == UNKNOWN_MEMBER_ID and one.member_id:
            note(one.member_id, one.ended)
    for told in facts.history.told:
        for name in told.members:
            if told.begun > gone.get(name, inf):
                yield "G15", f"{name} is in {told.group} at {told.ended:.4f} s, gone {gone[name]:.4f} s"
    for one in facts.asked:
        if one.ok and one.begun > gone.get(one.member_id, inf):
            yield "G15", f"{one.member_id} was granted what it asked at {one.begun:.4f} s"
    for (group, generation), joins in facts.joins_of.items():
        begun = min(join.begun for join in joins)
        for name in sorted({name for join in joins for name, _ in join.roll}):
            if begun > gone.get(name, inf):
                yield "G15", f"{name} is on the roll of {generation} of {group}, gone {gone[name]:.4f} s"


_RULES: Iterable[Callable[[_Facts], Findings]] = (
    _astonishing,
    _offsets,
    _two_owners,
    _two_at_a_time,
    _stale,
    _generations,
    _leaders,
    _coverage,
    _fencing,
    _liveness,
    _calm_generations,
    _skipped,
    _gone_yet_there,
)
