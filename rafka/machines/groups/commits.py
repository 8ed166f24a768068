"""Who may commit offsets in the name of a group. The offsets themselves are in `offsets`."""

from __future__ import annotations

from ...errors import ErrorCode, KafkaError
from ...ops.offsets import OffsetCommit, TxnOffsetCommit
from .core import Core
from .model import Moment, State, Token


def check_commit(core: Core[Token], op: OffsetCommit, now: Moment) -> None:
    """Members commit in their generation; outsiders only where nobody is in. A sign of life as well."""
    generation = op.generation_id_or_member_epoch
    if core.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if generation < 0 and core.state is State.EMPTY:
        return
    if generation < 0 and not op.member_id and op.group_instance_id is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "the group has members, and this is none of them")
    member = core.roster.identify(op.member_id, op.group_instance_id)
    if generation != core.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
    if core.state is State.COMPLETING:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
    core.heard_from(member, now)


def check_txn_commit(core: Core[Token], op: TxnOffsetCommit) -> None:
    """The same identity, but old producers do not say who they are, and no state is refused."""
    if core.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if op.generation_id < 0 and core.state is State.EMPTY:
        return
    if op.generation_id < 0 and not op.member_id and op.group_instance_id is None:
        return
    core.roster.identify(op.member_id, op.group_instance_id)
    if op.generation_id != core.generation:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
