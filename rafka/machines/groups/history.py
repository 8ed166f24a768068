"""The rebalance journal: what became of the last rebalances of each group, and a line about each.

It listens to a group's events and puts them together: why a rebalance began and who was behind
it, how long its phases took, who came and went, how many partitions changed hands. A rebalance is
kept once its outcome is known, up to a number in each group and an amount in all; the oldest go first.
Nothing of it outlives the process.

Whoever waits for news of a group is parked here, as a token, until there are some or its time is over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Final, Generic, NamedTuple

import attrs

from ...ops.group import MovedMember, Rebalance
from .events import Assigned, GenerationFormed, GroupEvent, RebalanceBegan, Resumed, Share
from .expiry import CONSUMER
from .model import GroupKey, Moment, Token
from .subscription import moves

STABLE: Final = "stable"
EMPTY: Final = "empty"
OVERTAKEN: Final = "overtaken"


@attrs.define
class _Past:
    """What is known of one group."""

    begun: int = 0  # rebalances, since the broker runs
    told_ms: int = 0  # of the last one whose outcome is known
    began: RebalanceBegan | None = None  # of the one that is under way
    formed: GenerationFormed | None = None
    kept: list[Rebalance] = attrs.Factory(list)
    late: dict[str, MovedMember] = attrs.Factory(dict)  # of the last one: who has not got its share yet


class History:
    def __init__(self, size: int, rows: int) -> None:
        self.size = size  # rebalances of a group; both may be changed at any time
        self.rows = rows  # in all: one for each rebalance and one for each of its members
        self._past: dict[GroupKey, _Past] = {}
        self._order: dict[tuple[GroupKey, int], int] = {}  # everything kept, oldest first, and its rows
        self._rows = 0

    def note(self, key: GroupKey, events: Sequence[GroupEvent]) -> list[Rebalance]:
        """Take these up. The rebalances whose outcome they are, oldest first."""
        past = self._past.get(key)
        if past is None:
            past = self._past[key] = _Past()
        ended: list[Rebalance] = []
        for event in events:
            if type(event) is Resumed:  # by far the most
                if (member := past.late.pop(event.member_id, None)) is not None:
                    member.pause_ms = event.pause_ms  # type: ignore[misc]  # it was not known before
            else:
                ended += _told(past, event)
        for rebalance in ended:
            self._keep(key, past, rebalance)
        return ended

    def since(self, key: GroupKey, after: int) -> list[Rebalance]:
        """Those told after that moment, oldest first.

        Whoever asks may have been told the last one by a broker that has been restarted since, maybe
        by a clock that was ahead of ours: then all are new.
        """
        past = self._past.get(key)
        if past is None:
            return []
        after = after if after <= past.told_ms else 0
        return [rebalance for rebalance in past.kept if rebalance.told_ms > after]

    def forget(self, key: GroupKey) -> None:
        past = self._past.pop(key, None)
        for rebalance in past.kept if past else ():
            self._rows -= self._order.pop((key, rebalance.number))

    def _keep(self, key: GroupKey, past: _Past, rebalance: Rebalance) -> None:
        rows = self._order[key, rebalance.number] = 1 + len(rebalance.members)
        self._rows += rows
        past.kept.append(rebalance)
        while len(past.kept) > self.size:
            self._rows -= self._order.pop((key, past.kept.pop(0).number))
        while self._rows > self.rows:
            oldest = next(iter(self._order))
            self._rows -= self._order.pop(oldest)
            self._past[oldest[0]].kept.pop(0)


def line(rebalance: Rebalance) -> str:
    """All of it for a log, but for the members."""
    if rebalance.outcome == STABLE:
        outcome = f"generation {rebalance.generation_id} is stable"
    elif rebalance.outcome == EMPTY:
        outcome = f"nobody is left, generation {rebalance.generation_id} is empty"
    else:
        outcome = "overtaken by the next one"
    parts = [
        f"rebalance {rebalance.number}: {outcome}",
        f"trigger: {rebalance.trigger}{_by(rebalance)}",
        f"join {rebalance.join_ms} ms" + (f", sync {rebalance.sync_ms} ms" if rebalance.sync_ms >= 0 else ""),
        f"members {rebalance.members_before} -> {rebalance.members_after}",
    ]
    if rebalance.outcome == STABLE:
        parts.append(f"protocol {rebalance.protocol_name or 'none'}, leader {rebalance.leader}")
    if rebalance.moved >= 0:
        parts.append(f"partitions moved {rebalance.moved}")
    return "; ".join(parts)


def _by(rebalance: Rebalance) -> str:
    who = f" ({rebalance.trigger_member})" if rebalance.trigger_member else ""
    return f"{who}, who said: {rebalance.reason}" if rebalance.reason else who


# --- putting events together ---------------------------------------------------------


def _told(past: _Past, event: GroupEvent) -> Iterator[Rebalance]:
    match event:
        case RebalanceBegan():
            if past.began is not None:
                yield _made(past, event.at, OVERTAKEN, ())
            past.begun += 1
            past.began, past.formed, past.late = event, None, {}
        case GenerationFormed():
            past.formed = event
            if event.members == 0 and past.began is not None:
                yield _made(past, event.at, EMPTY, ())
                past.began = None
        case Assigned():
            if past.began is not None and past.formed is not None:
                stable = _made(past, event.at, STABLE, event.shares)
                past.began = None
                past.late = {m.member_id: m for m in stable.members if m.joined and m.pause_ms < 0}
                yield stable


def _made(past: _Past, now: Moment, outcome: str, shares: Sequence[Share]) -> Rebalance:
    began, formed = past.began, past.formed
    assert began is not None
    consumers = formed is not None and formed.protocol_type == CONSUMER
    members = [_moved(share, consumers, joined=True) for share in shares]
    members += [_moved(share, consumers, joined=False) for share in (formed.gone if formed else ())]
    settled = outcome == STABLE and all(m.gained >= 0 for m in members)
    past.told_ms = max(past.told_ms + 1, now.wall_ms)
    return Rebalance(
        number=past.begun,
        began_ms=began.at.wall_ms,
        trigger=str(began.trigger),
        trigger_member=began.member_id,
        reason=began.reason,
        outcome=outcome,
        generation_id=formed.generation if formed else -1,
        protocol_type=formed.protocol_type if formed else "",
        protocol_name=formed.protocol_name if formed else "",
        leader=formed.leader if formed else "",
        join_ms=_ms(began.at, formed.at if formed else now),
        sync_ms=_ms(formed.at, now) if formed and outcome != EMPTY else -1,
        members_before=began.members_before,
        members_after=formed.members if formed else began.members_before,
        moved=sum(m.gained for m in members) if settled else -1,
        members=members,
        told_ms=past.told_ms,
    )


def _moved(share: Share, consumers: bool, *, joined: bool) -> MovedMember:
    gained, lost = moves(share.before, share.after) if consumers else (-1, -1)
    return MovedMember(
        member_id=share.member_id,
        group_instance_id=share.group_instance_id,
        client_id=share.client_id,
        client_host=share.client_host,
        joined=joined,
        gained=gained,
        lost=lost,
        pause_ms=share.pause_ms,
    )


def _ms(since: Moment, until: Moment) -> int:
    return max(0, round((until.at - since.at) * 1000))


# --- waiting for news ------------------------------------------------------------------


class Watch(NamedTuple, Generic[Token]):
    token: Token
    after: int


class Watches(Generic[Token]):
    """Who waits for news of which group, and until when."""

    def __init__(self) -> None:
        self._parked: defaultdict[GroupKey, dict[int, Watch[Token]]] = defaultdict(dict)
        self._until: list[tuple[float, int, GroupKey]] = []
        self._serial = 0

    @property
    def deadline(self) -> float:
        return self._until[0][0] if self._until else inf

    def park(self, key: GroupKey, watch: Watch[Token], until: float) -> None:
        self._serial += 1
        self._parked[key][self._serial] = watch
        heappush(self._until, (until, self._serial, key))

    def of(self, key: GroupKey) -> list[Watch[Token]]:
        """All who wait for this group; they do not wait any longer."""
        return list(self._parked.pop(key, {}).values())

    def due(self, now: float) -> Iterator[tuple[GroupKey, Watch[Token]]]:
        """Those whose time is over; they do not wait any longer."""
        while self.deadline <= now:
            _, serial, key = heappop(self._until)
            watch = self._parked[key].pop(serial, None)
            if not self._parked[key]:
                del self._parked[key]
            if watch is not None:
                yield key, watch

    def all(self) -> Iterator[tuple[GroupKey, Watch[Token]]]:
        """Everybody; they do not wait any longer."""
        parked, self._parked, self._until = self._parked, defaultdict(dict), []
        return ((key, watch) for key, watches in parked.items() for watch in watches.values())
