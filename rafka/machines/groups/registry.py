"""Which groups there are: each with its offsets, found by organisation and group.id.

    GroupCreated ──▶ here ──▶ GroupDeleted

A group and its offsets live and die together here, and know nothing of each other. This keeps
them, applies facts to them, and knows which group has to be looked at next: deadlines are in a heap,
so that ten thousand idle groups cost nothing. What may be asked of groups is in `directory`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final, Generic

import attrs

from ...errors import ErrorCode, KafkaError
from ...ops.group import Rebalance
from ...types import OrgId, TopicId
from ..facts import Fact
from .facts import GroupCreated, GroupDeleted
from .group import Group
from .history import History
from .model import Decision, GroupKey, GroupRules, Moment, Token
from .offset_facts import OFFSET_FACTS, OffsetFact, PendingOffsets, PendingSettled
from .offsets import Offsets
from .slug import stable_id
from .timers import deadline_of

_SLACK: Final = 64  # alarms that count no more, which the heap may hold before it is swept

_OF_OFFSETS: Final = frozenset(OFFSET_FACTS)


@attrs.frozen(kw_only=True)
class Limits:
    """What holds for all groups together, and for their offsets. Replaceable at any time."""

    max_groups: int = 100_000
    metadata_max: int = 4096  # of a committed offset
    retention_ms: int = 604_800_000
    history_size: int = 20
    history_rows: int = 50_000
    max_reply_bytes: int = 67_108_864  # of one answer about groups or their offsets


@attrs.define(eq=False)
class Entry(Generic[Token]):
    group: Group[Token]
    offsets: Offsets
    alarm: float = inf  # the soonest time for which it is in the heap
    said: int = 0  # facts that the group has recorded, and that are in some decision


class Registry(Generic[Token]):
    def __init__(
        self,
        rules: GroupRules,
        limits: Limits,
        entropy: Callable[[], bytes],
        on_rebalance: Callable[[GroupKey, Rebalance], None],
    ) -> None:
        """`entropy` gives ten random bytes; `on_rebalance` is told of each whose outcome is known."""
        self.rules = rules
        self.limits = limits
        self.history = History(limits.history_size, limits.history_rows)
        self._entropy = entropy
        self._on_rebalance = on_rebalance
        self._entries: dict[GroupKey, Entry[Token]] = {}
        self._alarms: list[tuple[float, int, GroupKey]] = []
        self._serial = 0  # makes equal deadlines come in the order in which they were set
        self._producers: dict[tuple[OrgId, int], set[GroupKey]] = {}  # who has offsets pending where
        self._unsaid = 0  # facts that were recorded since the last decision was given out

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[GroupKey, Entry[Token]]]:
        return iter(self._entries.items())

    def keys(self) -> list[GroupKey]:
        return list(self._entries)

    def get(self, key: GroupKey) -> Entry[Token] | None:
        return self._entries.get(key)

    def need(self, key: GroupKey) -> Entry[Token]:
        entry = self._entries.get(key)
        if entry is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {key[1]} not found.")
        return entry

    def reconfigure(self, rules: GroupRules, limits: Limits) -> None:
        self.rules, self.limits = rules, limits
        self.history.size, self.history.rows = limits.history_size, limits.history_rows
        for entry in self._entries.values():
            entry.group.rules = rules

    # --- coming and going ------------------------------------------------------------------

    def new(self, key: GroupKey, now: Moment) -> Entry[Token]:
        """A group that nobody knows yet. It is not there before `enter`."""
        longest = self.rules.max_name
        if len(key[1]) > longest:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, f"a group id has at most {longest} characters")
        if len(self._entries) >= self.limits.max_groups:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "there are as many groups as there may be")
        return self._entry(key, stable_id(now.wall_ms, self._entropy()))

    def enter(self, key: GroupKey, entry: Entry[Token], decision: Decision[Token]) -> None:
        """From now on it is there. That comes before whatever else was decided of it."""
        self._unsaid += 1
        self._entries[key] = entry
        decision.facts.insert(0, GroupCreated(*key, entry.group.stable_id))

    def record(self, fact: Fact, decision: Decision[Token]) -> None:
        self._unsaid += 1
        decision.facts.append(fact)
        self.apply(fact)

    def settled(self, key: GroupKey, entry: Entry[Token], decision: Decision[Token]) -> bool:
        """Take note of what a group has decided by itself. Whether a rebalance has ended with it."""
        entry.said = entry.group.recorded
        self.set_alarm(key, entry)
        if not decision.events:
            return False
        ended = self.history.note(key, decision.events)
        for rebalance in ended:
            self._on_rebalance(key, rebalance)
        return bool(ended)

    @property
    def sound(self) -> bool:
        """Whether every fact that was recorded is in a decision. After a mistake of ours it may not be."""
        return not self._unsaid and all(e.said == e.group.recorded for e in self._entries.values())

    def _entry(self, key: GroupKey, known_as: str) -> Entry[Token]:
        return Entry(Group(key, known_as, self.rules), Offsets(*key))

    # --- facts ------------------------------------------------------------------------------

    def apply(self, fact: Fact) -> None:
        """A fact of a group or of its offsets: when it is decided, and again when it is replayed."""
        key: GroupKey = fact.org, fact.group_id  # type: ignore[attr-defined]
        kind = type(fact)
        if kind in _OF_OFFSETS:
            self._entries[key].offsets.apply(fact)  # type: ignore[arg-type]
            if kind is PendingOffsets or kind is PendingSettled:
                self._follow(key, fact)  # type: ignore[arg-type]
        elif kind is GroupDeleted:
            self._entries.pop(key).group.apply(fact)
            self.history.forget(key)
        elif kind is GroupCreated and key not in self._entries:
            self._entries[key] = self._entry(key, fact.stable_id)  # type: ignore[attr-defined]
        else:
            self._entries[key].group.apply(fact)

    def _follow(self, key: GroupKey, fact: OffsetFact) -> None:
        """Keep in mind in which groups a producer has something pending."""
        if isinstance(fact, PendingOffsets):
            self._producers.setdefault((key[0], fact.producer_id), set()).add(key)
        elif isinstance(fact, PendingSettled):
            where = self._producers.get((key[0], fact.producer_id), set())
            where.discard(key)
            if not where:
                self._producers.pop((key[0], fact.producer_id), None)

    def pending_of(self, org: OrgId, producer_id: int) -> list[tuple[GroupKey, Entry[Token]]]:
        """The groups in which a producer has something pending; where it was deleted meanwhile, no more."""
        where = self._producers.get((org, producer_id), set())
        found = []
        for key in sorted(where):
            entry = self._entries.get(key)
            if entry is not None and entry.offsets.pending_epoch(producer_id) is not None:
                found.append((key, entry))
            else:
                where.discard(key)
        if not where:
            self._producers.pop((org, producer_id), None)
        return found

    def facts(self) -> Iterator[Fact]:
        """The shortest history that leads here."""
        for entry in self._entries.values():
            yield from entry.group.facts()
            yield from entry.offsets.facts()

    def forget_topic(self, topic_id: TopicId) -> None:
        """Its offsets are gone with it. That is a fact of the catalogue already."""
        for entry in self._entries.values():
            entry.offsets.forget_topic(topic_id)

    # --- deadlines ----------------------------------------------------------------------------

    @property
    def next_alarm(self) -> float:
        return self._alarms[0][0] if self._alarms else inf

    def set_alarm(self, key: GroupKey, entry: Entry[Token]) -> None:
        """A later deadline needs no alarm of its own: the sooner one looks again."""
        deadline = deadline_of(entry.group)
        if deadline < entry.alarm:
            entry.alarm = deadline
            self._serial += 1
            heappush(self._alarms, (deadline, self._serial, key))
            if len(self._alarms) > 2 * len(self._entries) + _SLACK:
                self._sweep()

    def _sweep(self) -> None:
        """Alarms of groups that are gone, or were given a sooner one, would stay until their time."""
        alarms = [alarm for alarm in self._alarms if self._counts(alarm)]
        heapify(alarms)
        self._alarms = alarms

    def _counts(self, alarm: tuple[float, int, GroupKey]) -> bool:
        entry = self._entries.get(alarm[2])
        return entry is not None and entry.alarm == alarm[0]

    def due(self, now: Moment) -> Iterator[tuple[GroupKey, Entry[Token]]]:
        """The groups that have something to do by now."""
        while self._alarms and self._alarms[0][0] <= now.at:
            at, _, key = heappop(self._alarms)
            entry = self._entries.get(key)
            if entry is None or entry.alarm != at:
                continue  # it is gone, or was given a sooner alarm after this one
            entry.alarm = inf
            if entry.group.deadline <= now.at:
                yield key, entry
            else:
                self.set_alarm(key, entry)
