"""What a group is made of, and the small moves that every rule makes with it.

No rule is here: who may join, when a generation is formed and who is evicted is said in the
modules beside this one, as functions over a `Core`. Here is bookkeeping that must never be
forgotten in any of them: a waiter is answered once, a count fits what it counts, a state follows
another only as the table allows, and what must survive goes through a fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, Generic, NamedTuple

import attrs

from ...errors import ErrorCode
from ...ops.group import JoinGroupReply, SyncGroupReply
from ...types import OrgId
from ..facts import Fact
from .events import RebalanceBegan, Share, Trigger
from .facts import MembersRemoved, SettledMember
from .kept import Kept
from .model import TRANSITIONS, Decision, GroupKey, GroupRules, Moment, State, Token
from .roster import Member, Roster
from .sessions import Sessions
from .subscription import Subscriptions

CONSUMER: Final = "consumer"  # the protocol type whose metadata Kafka reads, and we
_REASON: Final = 255  # letters of a member's own reason that are kept, as many as clients send


class Cause(NamedTuple):
    """Why a rebalance begins, and whose doing it is."""

    trigger: Trigger
    member_id: str = ""
    reason: str = ""


@attrs.define(eq=False)
class Core(Generic[Token]):
    key: GroupKey
    rules: GroupRules
    kept: Kept
    state: State = State.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    roster: Roster[Token] = attrs.Factory(Roster)
    pending: set[str] = attrs.Factory(set)  # ids given out, with which nobody has joined yet
    sessions: Sessions = attrs.Factory(Sessions)  # of members and of pending ids

    joined: int = 0  # members whose join is parked
    unsynced: set[str] = attrs.Factory(set)  # members who have not synced in this generation
    join_until: float = inf
    sync_until: float = inf

    gathering: bool = False  # the group was empty: only its delay completes the join
    newcomer: bool = False  # somebody came during the delay
    gather_left: float = 0.0  # for how long the delay may yet be extended, in seconds

    subscriptions: Subscriptions = attrs.Factory(Subscriptions)
    before: dict[str, SettledMember] = attrs.Factory(dict)  # the last stable generation, for events
    recorded: int = 0  # facts that were decided here, and not replayed

    @property
    def org(self) -> OrgId:
        return self.key[0]

    @property
    def group_id(self) -> str:
        return self.key[1]

    @property
    def all_joined(self) -> bool:
        return self.joined == len(self.roster.by_id) and not self.pending

    def move_to(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state.name} cannot become {state.name}"
        self.state = state

    def new_id(self, prefix: str) -> str:
        """A member id: for whoever reads it, what it was made for; for whoever guesses, no luck."""
        return f"{prefix}-{self.rules.new_uuid()}"

    def record(self, fact: Fact, out: Decision[Token]) -> None:
        self.kept.apply(fact)
        self.recorded += 1
        out.facts.append(fact)

    # --- waiters -----------------------------------------------------------------------

    def park_join(self, member: Member[Token], token: Token, now: Moment, out: Decision[Token]) -> None:
        """Keep the waiter. A join that the member asked for before is answered: its client has gone."""
        if member.join_waiter is None:
            self.joined += 1
        else:
            out.answer(member.join_waiter, join_refused(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.join_waiter = token
        if not member.is_new:
            self.sessions.disarm(member.member_id)  # whoever waits need not say that it lives
        self.found_out(member, now)

    def answer_join(self, member: Member[Token], answer: JoinGroupReply, out: Decision[Token]) -> None:
        if member.join_waiter is not None:
            out.answer(member.join_waiter, answer)
            member.join_waiter = None
            self.joined -= 1

    def park_sync(self, member: Member[Token], token: Token, out: Decision[Token]) -> None:
        self.answer_sync(member, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS), out)
        member.sync_waiter = token
        self.sessions.disarm(member.member_id)

    def answer_sync(self, member: Member[Token], answer: SyncGroupReply, out: Decision[Token]) -> None:
        if member.sync_waiter is not None:
            out.answer(member.sync_waiter, answer)
            member.sync_waiter = None

    def heard_from(self, member: Member[Token], now: Moment) -> None:
        """Its session begins anew, unless it waits for us."""
        if member.join_waiter is None and member.sync_waiter is None:
            self.sessions.arm(member.member_id, now.at + member.session_ms / 1000)

    def found_out(self, member: Member[Token], now: Moment) -> None:
        if member.paused_at is None:
            member.paused_at = now.at

    def forget_unsynced(self, member_id: str) -> None:
        self.unsynced.discard(member_id)
        if not self.unsynced:
            self.sync_until = inf

    # --- members who go ------------------------------------------------------------------

    def remove(self, members: Iterable[Member[Token]], now: Moment, out: Decision[Token]) -> None:
        """Take members out, whatever they wait for. What follows from that is the caller's to do."""
        settled = []
        for member in members:
            self.answer_join(member, join_refused(ErrorCode.UNKNOWN_MEMBER_ID), out)
            self.answer_sync(member, sync_refused(ErrorCode.UNKNOWN_MEMBER_ID), out)
            self.roster.remove(member)
            self.sessions.disarm(member.member_id)
            self.forget_unsynced(member.member_id)
            if member.member_id in self.kept.members:
                settled.append(member.member_id)
        if self.leader not in self.roster.by_id:
            self.leader = next(iter(self.roster.by_id), "")
        if settled:
            self.record(MembersRemoved(self.org, self.group_id, tuple(settled), now.wall_ms), out)

    def drop_pending(self, member_id: str) -> None:
        self.pending.discard(member_id)
        self.sessions.disarm(member_id)

    # --- events --------------------------------------------------------------------------

    def tell_begun(self, cause: Cause, now: Moment, out: Decision[Token]) -> None:
        out.events.append(
            RebalanceBegan(
                at=now,
                trigger=cause.trigger,
                member_id=cause.member_id,
                reason=cause.reason[:_REASON],
                members_before=len(self.before),
            )
        )

    def gone(self) -> Sequence[Share]:
        """Those of the last stable generation who are not in any more."""
        present = self.roster.by_id
        return [
            share(kept, kept.assignment, None) for name, kept in self.before.items() if name not in present
        ]


def share(
    member: Member[Token] | SettledMember, before: bytes | None, after: bytes | None, pause_ms: int = -1
) -> Share:
    return Share(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        before=before,
        after=after,
        pause_ms=pause_ms,
    )


def join_refused(code: ErrorCode, member_id: str = "") -> JoinGroupReply:
    return JoinGroupReply(error_code=code, member_id=member_id)


def sync_refused(code: ErrorCode) -> SyncGroupReply:
    return SyncGroupReply(error_code=code)
