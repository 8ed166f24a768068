"""SyncGroup: the leader brings what it has worked out, and each member is told its own part.

Whoever syncs before the leader waits for it; whoever comes later, or asks again, is answered from
what is stored. A member that does not sync within the rebalance timeout is taken out.
"""

from __future__ import annotations

from ...errors import ErrorCode, KafkaError
from ...ops.group import SyncGroup, SyncGroupReply
from .core import Cause, Core, share, sync_refused
from .events import Assigned, Resumed, Share, Trigger
from .model import Decision, Moment, State, Token
from .rebalance import abort_assignments, settle
from .roster import Member


def sync(core: Core[Token], op: SyncGroup, token: Token, now: Moment) -> Decision[Token]:
    if not op.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if core.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = core.roster.identify(op.member_id, op.group_instance_id)
    if op.generation_id != core.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if op.protocol_type is not None or op.protocol_name is not None:  # only newer clients say so
        _check_protocol(core, op)
    out: Decision[Token] = Decision()
    if core.state is State.PREPARING:
        core.found_out(member, now)
        out.answer(token, sync_refused(ErrorCode.REBALANCE_IN_PROGRESS))
        return out
    core.forget_unsynced(member.member_id)
    if core.state is State.STABLE:
        _answer_from_store(core, member, token, now, out)
        return out
    core.park_sync(member, token, out)
    if member.member_id == core.leader:
        _assign(core, op, now, out)
    return out


def _check_protocol(core: Core[Token], op: SyncGroup) -> None:
    if _differ(op.protocol_type, core.protocol_type) or _differ(op.protocol_name, core.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _differ(asked: str | None, ours: str | None) -> bool:
    return asked is not None and ours is not None and asked != ours


def _answer_from_store(
    core: Core[Token], member: Member[Token], token: Token, now: Moment, out: Decision[Token]
) -> None:
    out.answer(token, _assignment(core, member))
    core.heard_from(member, now)
    if member.paused_at is not None:
        out.events.append(
            Resumed(
                at=now,
                generation=core.generation,
                member_id=member.member_id,
                pause_ms=_end_of_pause(member, now),
            )
        )


def _assign(core: Core[Token], op: SyncGroup, now: Moment, out: Decision[Token]) -> None:
    """Store what the leader says. Members it does not name get nothing."""
    size = sum([len(given.assignment) for given in op.assignments])
    if op.too_large or size > core.rules.max_assignment_bytes:
        cause = Cause(Trigger.ASSIGNMENTS_TOO_LARGE, op.member_id)
        abort_assignments(core, cause, now, out)
        return
    assignments = {given.member_id: given.assignment for given in op.assignments}
    shares = []
    for member_id, member in core.roster.by_id.items():
        member.assignment = assignments.get(member_id, b"")
        shares.append(_give(core, member, now, out))
    core.move_to(State.STABLE)
    settle(core, now, out)
    out.events.append(Assigned(at=now, generation=core.generation, shares=shares))


def _give(core: Core[Token], member: Member[Token], now: Moment, out: Decision[Token]) -> Share:
    """Answer the member if it waits. Its share is told as it was before this generation is kept."""
    pause_ms = -1
    if member.sync_waiter is not None:
        core.answer_sync(member, _assignment(core, member), out)
        core.heard_from(member, now)
        pause_ms = _end_of_pause(member, now)
    was = core.before.get(member.member_id)
    return share(member, was.assignment if was else None, member.assignment, pause_ms)


def _assignment(core: Core[Token], member: Member[Token]) -> SyncGroupReply:
    return SyncGroupReply(
        protocol_type=core.protocol_type, protocol_name=core.protocol_name, assignment=member.assignment
    )


def _end_of_pause(member: Member[Token], now: Moment) -> int:
    since, member.paused_at = member.paused_at, None
    return round((now.at - since) * 1000) if since is not None else 0
