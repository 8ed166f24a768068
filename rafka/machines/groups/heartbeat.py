"""Heartbeat: a member lives, and learns whether it has to join again."""

from __future__ import annotations

from typing import Final

from ...errors import ErrorCode, KafkaError
from ...ops.group import Heartbeat, HeartbeatReply
from .core import Core
from .model import Decision, Moment, State, Token

_ALL_WELL: Final = HeartbeatReply()
_JOIN_AGAIN: Final = HeartbeatReply(error_code=ErrorCode.REBALANCE_IN_PROGRESS)


def heartbeat(core: Core[Token], op: Heartbeat, token: Token, now: Moment) -> Decision[Token]:
    if not op.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if core.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = core.roster.identify(op.member_id, op.group_instance_id)
    if op.generation_id != core.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    core.heard_from(member, now)
    if core.state is State.PREPARING:
        core.found_out(member, now)
        return Decision.of(token, _JOIN_AGAIN)
    return Decision.of(token, _ALL_WELL)
