"""One consumer group of the classic protocol, as a machine: no I/O, no clock, no await.

    EMPTY ──join──▶ PREPARING ──all joined, or deadline──▶ COMPLETING ──leader syncs──▶ STABLE
      ▲              ▲  │  ▲                                   │                          │
      └──nobody left────┘  └──a join, a leave, a silence───────┴──────────────────────────┘

Each method takes a question, the token of whoever waits for its answer and the time, and gives
back a `Decision`: facts to journal, then replies to send. A question without a reply in it is
parked and answered by a later call, exactly once. What is refused without further effect raises
KafkaError. `deadline` says when `tick` has something to do, and is the only clock there is.

This is the front door. Behind it, one room for each concern:

    join, replace      who comes in, and how static members come back
    rebalance          from one generation to the next; the initial delay
    sync               assignments
    heartbeat, timers  who lives, and what is out of time
    leave              who goes
    commits            who may commit offsets
    describe           how it looks from outside
    kept, restart      what outlives the process, and going on from it
    core, roster, sessions, subscription    what all of them stand on
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...errors import ErrorCode, KafkaError
from ...ops.group import DescribedGroup, Heartbeat, JoinGroup, LeaveGroup, ListedGroup, SyncGroup
from ...ops.offsets import OffsetCommit, TxnOffsetCommit
from ..facts import Fact
from . import commits, describe, heartbeat, join, leave, restart, sync, timers
from .core import Core, join_refused, sync_refused
from .facts import GroupDeleted
from .kept import Kept
from .model import Caller, Decision, GroupKey, GroupRules, Moment, Reply, State, Token
from .sessions import Sessions


@attrs.define(eq=False, init=False)
class Group(Core[Token]):
    def __init__(self, key: GroupKey, stable_id: str, rules: GroupRules) -> None:
        """An empty group. Facts about it may be applied, and `resume` called, before any question."""
        self.__attrs_init__(key, rules, Kept(stable_id))

    @property
    def stable_id(self) -> str:
        return self.kept.stable_id

    @property
    def deadline(self) -> float:
        return timers.deadline_of(self)

    @property
    def empty_since_ms(self) -> int | None:
        """Since when a group that once had members has none, by the calendar."""
        empty = self.state is State.EMPTY and self.protocol_type is not None and self.kept.at_ms >= 0
        return self.kept.at_ms if empty else None

    # --- questions ---------------------------------------------------------------------

    def join(self, op: JoinGroup, caller: Caller, token: Token, now: Moment) -> Decision[Token]:
        return join.join(self, op, caller, token, now)

    def sync(self, op: SyncGroup, token: Token, now: Moment) -> Decision[Token]:
        return sync.sync(self, op, token, now)

    def heartbeat(self, op: Heartbeat, token: Token, now: Moment) -> Decision[Token]:
        return heartbeat.heartbeat(self, op, token, now)

    def leave(self, op: LeaveGroup, token: Token, now: Moment) -> Decision[Token]:
        return leave.leave(self, op, token, now)

    def tick(self, now: Moment) -> Decision[Token]:
        return timers.tick(self, now)

    def check_commit(self, op: OffsetCommit, now: Moment) -> None:
        commits.check_commit(self, op, now)

    def check_txn_commit(self, op: TxnOffsetCommit) -> None:
        commits.check_txn_commit(self, op)

    def subscribed_to(self, topic: str) -> bool | None:
        return describe.subscribed_to(self, topic)

    def describe(self, absence_told: bool) -> DescribedGroup:
        return describe.describe(self, absence_told)

    def listed(self) -> ListedGroup:
        return describe.listed(self)

    # --- beginning and end -------------------------------------------------------------

    def apply(self, fact: Fact) -> None:
        if isinstance(fact, GroupDeleted):
            self.pending.clear()
            self.sessions = Sessions()
            self.move_to(State.DEAD)
        else:
            self.kept.apply(fact)

    def facts(self) -> Iterator[Fact]:
        """All that must survive, as few facts as can be."""
        return self.kept.facts(self.key)

    def resume(self, now: Moment) -> Decision[Token]:
        return restart.resume(self, now)

    def begin_deletion(self) -> GroupDeleted:
        """The fact that ends it, to be applied by whoever keeps the group; its offsets go with it."""
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if self.state is not State.EMPTY:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        return GroupDeleted(self.org, self.group_id)

    def abandon(self) -> list[Reply[Token]]:
        """The broker closes: whoever waits is told to look for another coordinator."""
        out: Decision[Token] = Decision()
        for member in self.roster.by_id.values():
            self.answer_join(member, join_refused(ErrorCode.NOT_COORDINATOR, member.member_id), out)
            self.answer_sync(member, sync_refused(ErrorCode.NOT_COORDINATOR), out)
        if self.state is not State.DEAD:
            self.move_to(State.DEAD)
        return out.replies
