"""LeaveGroup: members go of their own will, or an operator takes static ones out by instance id.

A request may name many. Each is judged by itself; whatever they cause is caused once for all.
"""

from __future__ import annotations

from ...errors import ErrorCode, KafkaError
from ...ops.group import LeaveGroup, LeaveGroupReply, Leaver, LeaverReply
from .core import Cause, Core
from .events import Trigger
from .model import Decision, Moment, State, Token
from .rebalance import rebalance_or_complete
from .roster import Member


def leave(core: Core[Token], op: LeaveGroup, token: Token, now: Moment) -> Decision[Token]:
    if not op.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if core.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    leaving: dict[str, Member[Token]] = {}
    cause: Cause | None = None
    results = []
    for leaver in op.members:
        try:
            trigger, member_id = _judge(core, leaver, leaving)
        except KafkaError as refused:
            results.append(_result(leaver, refused.code))
            continue
        results.append(_result(leaver, ErrorCode.NONE))
        cause = cause or Cause(trigger, member_id, leaver.reason or "")
    out: Decision[Token] = Decision()
    core.remove(leaving.values(), now, out)
    if cause is not None and core.state is not State.EMPTY:
        rebalance_or_complete(core, cause, now, out)
    out.answer(token, LeaveGroupReply(members=results))
    return out


def leave_nothing(op: LeaveGroup) -> LeaveGroupReply:
    """The answer for a group that does not exist."""
    if not op.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    return LeaveGroupReply(members=[_result(leaver, ErrorCode.UNKNOWN_MEMBER_ID) for leaver in op.members])


def _judge(core: Core[Token], leaver: Leaver, leaving: dict[str, Member[Token]]) -> tuple[Trigger, str]:
    """Put the member among those who leave; why the others have to join again, and for whom. KafkaError."""
    if leaver.member_id in core.pending:
        core.drop_pending(leaver.member_id)
        return Trigger.ID_GIVEN_BACK, leaver.member_id
    holder = core.roster.holder(leaver.group_instance_id)
    if holder is not None and holder.member_id in leaving:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "it has left a moment ago, and its instance id with it")
    member = _meant(core, leaver)
    if member.member_id in leaving:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "it has left a moment ago")
    leaving[member.member_id] = member
    return Trigger.MEMBER_LEFT, member.member_id


def _meant(core: Core[Token], leaver: Leaver) -> Member[Token]:
    if leaver.member_id:
        return core.roster.identify(leaver.member_id, leaver.group_instance_id)
    member = core.roster.holder(leaver.group_instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _result(leaver: Leaver, code: ErrorCode) -> LeaverReply:
    return LeaverReply(
        member_id=leaver.member_id, group_instance_id=leaver.group_instance_id, error_code=code
    )
