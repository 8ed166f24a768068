"""From one generation to the next: how a rebalance begins, whom it waits for, and how it forms.

    prepare          stop the generation that is, and wait for everybody to join
    maybe_complete   has everybody?
    complete_join    those who have are the next generation; a leader is named, all are answered

What begins a rebalance is in the modules of the requests (`join`, `replace`, `leave`, `sync`)
and in `timers`.
"""

from __future__ import annotations

from math import inf
from typing import Final

from ...errors import ErrorCode
from ...ops.group import JoinGroupReply
from .core import CONSUMER, Cause, Core, sync_refused
from .events import GenerationFormed
from .facts import GenerationBegun, GenerationSettled
from .model import Decision, Moment, State, Token
from .roster import Member
from .subscription import Subscriptions

_SOONEST: Final = 0.001  # a timeout of nothing, or less, still lets the answer go out first
_NOBODY_CAME: Final = 1.0  # a join that nobody took part in is not looked at again sooner, in seconds


def rebalance_or_complete(core: Core[Token], cause: Cause, now: Moment, out: Decision[Token]) -> None:
    if core.state is State.PREPARING:
        maybe_complete(core, now, out)
    else:
        prepare(core, cause, now, out)


def prepare(core: Core[Token], cause: Cause, now: Moment, out: Decision[Token]) -> None:
    core.tell_begun(cause, now, out)
    if core.state is State.COMPLETING:
        _abort_syncs(core, ErrorCode.REBALANCE_IN_PROGRESS, now, out)
    core.unsynced.clear()
    core.sync_until = inf
    core.gathering = core.state is State.EMPTY
    core.move_to(State.PREPARING)
    if core.gathering:
        _gather(core, now)
    elif core.all_joined or not core.roster:  # ids that were given out are waited for by members only
        complete_join(core, now, out)
    else:
        core.join_until = now.at + _longest_rebalance(core)


def maybe_complete(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    if core.state is State.PREPARING and not core.gathering and core.all_joined:
        complete_join(core, now, out)


def abort_assignments(core: Core[Token], cause: Cause, now: Moment, out: Decision[Token]) -> None:
    """The leader's assignments cannot be kept: all who wait for them are told, and join again."""
    _abort_syncs(core, ErrorCode.UNKNOWN_SERVER_ERROR, now, out)
    prepare(core, cause, now, out)


def _abort_syncs(core: Core[Token], code: ErrorCode, now: Moment, out: Decision[Token]) -> None:
    for member in core.roster.by_id.values():
        member.assignment = b""
        if member.sync_waiter is not None:
            core.answer_sync(member, sync_refused(code), out)
            core.heard_from(member, now)


# --- the delay of a group that was empty -------------------------------------------------


def _gather(core: Core[Token], now: Moment) -> None:
    """Wait for company, once: clients that start together shall not make a generation each."""
    delay = core.rules.initial_delay_ms / 1000
    core.newcomer = False
    core.gather_left = max(_longest_rebalance(core) - delay, 0.0)
    core.join_until = now.at + delay


def join_timeout(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    """The join phase is out of time, or the delay is over, unless a newcomer extends it."""
    if core.gathering and core.newcomer and core.gather_left > 0:
        delay = min(core.rules.initial_delay_ms / 1000, core.gather_left)
        core.newcomer = False
        core.gather_left -= delay
        if delay > 0:
            core.join_until = now.at + delay
            return
    complete_join(core, now, out)


# --- forming -----------------------------------------------------------------------------


def complete_join(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    """Whoever has joined is in. Static members stay in as well, until their sessions end."""
    core.join_until, core.gathering = inf, False
    if core.joined < len(core.roster):
        absent = [m for m in core.roster.by_id.values() if m.join_waiter is None]
        core.remove([m for m in absent if m.group_instance_id is None], now, out)
    if not core.roster:
        _become_empty(core, now, out)
    elif core.joined == 0:
        # Nobody could be its leader: wait for one to come, or for their sessions to end.
        core.join_until = now.at + max(_longest_rebalance(core), _NOBODY_CAME)
    else:
        _form(core, now, out)


def _become_empty(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    core.generation = core.kept.begun + 1
    core.protocol_name, core.leader = None, ""
    core.subscriptions = Subscriptions()
    core.move_to(State.EMPTY)
    _tell_formed(core, now, out)
    settle(core, now, out)


def _form(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    core.generation = core.kept.begun + 1
    core.record(GenerationBegun(core.org, core.group_id, core.generation), out)
    core.protocol_name = core.roster.elected_protocol()
    core.leader = _elected_leader(core)
    core.subscriptions = subscriptions_of(core)
    core.move_to(State.COMPLETING)
    for member in core.roster.by_id.values():
        member.is_new = False
        core.answer_join(member, welcome(core, member), out)
        core.heard_from(member, now)
    core.unsynced = set(core.roster.by_id)
    core.sync_until = now.at + _longest_rebalance(core)
    _tell_formed(core, now, out)


def settle(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    """Keep the generation as it is: who is in it, and what each was assigned."""
    fact = GenerationSettled(
        core.org,
        core.group_id,
        core.generation,
        core.protocol_type,
        core.protocol_name,
        core.leader,
        now.wall_ms,
        tuple(member.settled(member.protocols, member.assignment) for member in core.roster.by_id.values()),
    )
    core.record(fact, out)
    core.before = dict(core.kept.members)


def welcome(core: Core[Token], member: Member[Token]) -> JoinGroupReply:
    """Into the generation that is; its leader is told who else is in."""
    assert core.protocol_name is not None
    leads = member.member_id == core.leader
    return JoinGroupReply(
        generation_id=core.generation,
        protocol_type=core.protocol_type,
        protocol_name=core.protocol_name,
        leader=core.leader,
        member_id=member.member_id,
        members=core.roster.roll(core.protocol_name) if leads else (),
    )


def subscriptions_of(core: Core[Token]) -> Subscriptions:
    name = core.protocol_name
    if core.protocol_type != CONSUMER or name is None:
        return Subscriptions()
    return Subscriptions.of(member.metadata(name) for member in core.roster.by_id.values())


def _elected_leader(core: Core[Token]) -> str:
    """Who led leads on if it has joined; else the first who did, in order of coming or of names."""
    joined = (m.member_id for m in core.roster.by_id.values() if m.join_waiter is not None)
    if core.rules.lexicographic_leader:
        return min(joined)
    leader = core.roster.by_id.get(core.leader)
    return core.leader if leader is not None and leader.join_waiter is not None else next(joined)


def _tell_formed(core: Core[Token], now: Moment, out: Decision[Token]) -> None:
    out.events.append(
        GenerationFormed(
            at=now,
            generation=core.generation,
            protocol_type=core.protocol_type or "",
            protocol_name=core.protocol_name or "",
            leader=core.leader,
            members=len(core.roster),
            gone=core.gone(),
        )
    )


def _longest_rebalance(core: Core[Token]) -> float:
    return max(core.roster.longest_rebalance_ms() / 1000, _SOONEST)
