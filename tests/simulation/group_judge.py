"""The judge of groups: finds in what members saw what a coordinator must never do.

The anomalies, by the numbers of the list that they were taken from:

    G0 astonishing answer    a code that a right coordinator never gives; clients say which
    G1 lost offset           the committed offset is no linearizable register
    G2 phantom offset        an offset was fetched that nobody committed, or that was refused; or it lies
                             beyond the end of the log
    G3 two owners            two members of one generation were assigned one partition
    G4 two owners at a time  a partition was taken over from one who was still within its session
    G5 stale commit          a commit was taken although a later generation was known, or from a stranger
    G6 generation used twice two generations of one number, or a later one with a lower number
    G7 leader                two leaders, a roll that does not fit, shares that the leader did not give
    G8 not covered           all is calm, and a partition has no owner, or two
    G9 stale heartbeat       as G5, of a heartbeat, or one in a generation that never formed
    G10 not fenced           the older of two with one instance id went on
    G11 liveness             something was answered too late, or never; a rebalance for no reason
    G12 skipped              an offset was committed that nobody had come to by processing
    G14 old topic's offset   what was committed to a deleted topic was fetched again
    G15 gone, yet there      a member that had left, or was told so, is in the group again

G13, offsets that go too soon, is a case of G1 here: none of these groups is idle for long enough.
Registers of offsets are judged in `group_registers`, and what takes too long in `group_liveness`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from math import inf
from typing import Final

import attrs

from .group_facts import Facts, Findings, Generation
from .group_history import Asked, Committed, GroupHistory, Joined, Place
from .group_liveness import calm_generations, late_answers, restless, steady_generations
from .group_registers import lost_offsets

UNKNOWN_MEMBER_ID: Final = 25
UNDER_WAY: Final = 5.0  # virtual seconds, for which what nobody waits for any more may go on


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
    facts = Facts(history)
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


def _astonishing(facts: Facts) -> Findings:
    for surprise in facts.history.surprises:
        yield "G0", surprise


def _offsets(facts: Facts) -> Findings:
    yield from lost_offsets(facts.history)


def _beyond_the_end(facts: Facts) -> Findings:
    """Whoever commits has been there, and logs do not become shorter."""
    commits: dict[Place, list[Committed]] = defaultdict(list)
    for commit in facts.history.commits:
        if commit.ok:
            commits[commit.place].append(commit)
    for look in facts.history.ends:
        for commit in commits[look.place]:
            if commit.begun <= look.begun and commit.offset > look.offset:
                yield (
                    "G2",
                    f"{commit.mark} of {commit.group} is {commit.offset} of {look.place}, whose log ended"
                    f" with {look.offset} at {look.ended:.4f} s",
                )


def _two_owners(facts: Facts) -> Findings:
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


def _two_at_a_time(facts: Facts) -> Findings:
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


def _stale(facts: Facts) -> Findings:
    for kind, some in (("G5", facts.history.commits), ("G9", facts.history.beats)):
        for one in some:
            if not one.ok or one.generation < 0:
                continue
            latest = facts.told_by(one.group, one.begun)
            if one.generation < latest:
                yield (
                    kind,
                    f"{one.client} in generation {one.generation} of {one.group}, asked {one.begun:.4f} s,"
                    f" when {latest} was known",
                )
            if facts.identity(one.member_id) not in facts.members_of[one.group, one.generation]:
                yield (
                    kind,
                    f"{one.member_id!r} was granted what it asked at {one.begun:.4f} s, and is not known to"
                    f" have been in generation {one.generation} of {one.group}",
                )


def _generations(facts: Facts) -> Findings:
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
    for join in facts.joins:
        latest = facts.told_by(join.group, join.begun)
        if join.generation < latest:
            yield (
                "G6",
                f"{join.client} joined {join.generation} of {join.group}, asked {join.begun:.4f} s,"
                f" when {latest} was known",
            )


def _leaders(facts: Facts) -> Findings:
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


def _strangers_on_the_roll(facts: Facts) -> Findings:
    """A dynamic member is on it only if it asked for this generation, though it may not have heard so."""
    unheard: dict[str, list[Joined]] = defaultdict(list)
    for join in facts.history.joins:
        if join.code is None:
            unheard[join.group].append(join)
    for (group, generation), joins in facts.joins_of.items():
        rolls = [join for join in joins if join.roll]
        told = min((join.ended for join in rolls), default=inf)
        since = facts.formed_after(group, generation - 1)
        heard = {join.member_id for join in joins}
        for name in sorted({name for join in rolls for name, instance in join.roll if instance is None}):
            if name not in heard and not any(
                join.begun <= told and since <= join.ended + UNDER_WAY and facts.may_be(join, name)
                for join in unheard[group]
            ):
                yield "G7", f"{name} is on the roll of {generation} of {group}, and never joined it"


def _coverage(facts: Facts) -> Findings:
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


def _fencing(facts: Facts) -> Findings:
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


def _skipped(facts: Facts) -> Findings:
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


def _gone_yet_there(facts: Facts) -> Findings:
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


_RULES: Iterable[Callable[[Facts], Findings]] = (
    _astonishing,
    _offsets,
    _beyond_the_end,
    _two_owners,
    _two_at_a_time,
    _stale,
    _generations,
    _leaders,
    _strangers_on_the_roll,
    _coverage,
    _fencing,
    late_answers,
    steady_generations,
    calm_generations,
    restless,
    _skipped,
    _gone_yet_there,
)
