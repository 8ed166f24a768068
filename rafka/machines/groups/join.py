"""JoinGroup: who may come in, under which id, and whether everybody has to join again for it.

The rules are evaluated from the top; their order is Kafka's, and clients depend on it. A member
that comes without an id is given one and asked to come again with it, so that a client that
gives up leaves no member behind; a member with an instance id is let in at once.
"""

from __future__ import annotations

from typing import Final

from ...errors import ErrorCode, KafkaError
from ...ops.group import JoinGroup
from .core import Cause, Core, join_refused
from .events import Trigger
from .model import Caller, Decision, GroupRules, Moment, State, Token
from .rebalance import maybe_complete, prepare, rebalance_or_complete, welcome
from .replace import replace
from .roster import ITSELF, Member, protocols_of, weight_of

_FIRST_JOIN: Final = 300.0  # how long a new member may wait in its first join, in seconds


def check_join(op: JoinGroup, rules: GroupRules) -> None:
    """What is refused whether or not there is such a group."""
    if not op.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if not rules.min_session_ms <= op.session_timeout_ms <= rules.max_session_ms:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
    if len(op.protocols) > rules.max_protocols:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "more protocols than a member may offer")
    longest = max(len(op.protocol_type), len(op.group_instance_id or ""))
    brought = 0
    for protocol in op.protocols:
        size = len(protocol.name)
        brought += size + len(protocol.metadata)
        if size > longest:
            longest = size
    if longest > rules.max_name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"a name of more than {rules.max_name} characters")
    if brought > rules.max_metadata_bytes:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "more metadata than a member may bring")


def join(core: Core[Token], op: JoinGroup, caller: Caller, token: Token, now: Moment) -> Decision[Token]:
    check_join(op, core.rules)
    if core.state is State.DEAD:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    rules, roster = core.rules, core.roster
    if len(roster.by_id) >= rules.max_size and not _has_room(core, op.member_id):
        return _turn_away(core, op.member_id, token, now)
    if roster.weight + ITSELF + rules.max_metadata_bytes > rules.max_group_bytes and not _fits(core, op):
        if op.member_id in core.pending:
            return _turn_away(core, op.member_id, token, now)
        raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED, "the group would be too large")
    if not _supported(core, op):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if op.member_id:
        return _join_with_id(core, op, caller, token, now)
    if op.group_instance_id is not None:
        old = core.roster.by_instance.get(op.group_instance_id)
        if old is not None:
            return replace(core, old, op, token, now)
        return _add(core, core.new_id(op.group_instance_id), op, caller, token, now)
    member_id = core.new_id(caller.client_id)
    if op.id_required:
        return _give_id(core, member_id, op, token, now)
    return _add(core, member_id, op, caller, token, now)


def _has_room(core: Core[Token], member_id: str) -> bool:
    """Of a group that is full: while a generation forms, places are for those who come; later for members."""
    member = core.roster.by_id.get(member_id)
    if core.state is State.PREPARING:
        return core.joined < core.rules.max_size or (member is not None and member.join_waiter is not None)
    return member is not None or core.state is State.EMPTY


def _fits(core: Core[Token], op: JoinGroup) -> bool:
    """Of a group that may be too large: what all members bring, with this one's offer in place of its old."""
    roster, most = core.roster, core.rules.max_group_bytes
    member = roster.by_id.get(op.member_id) or roster.holder(op.group_instance_id)
    replaced = weight_of(member.protocols) if member is not None else 0
    return roster.weight - replaced + weight_of(protocols_of(op)) <= most


def _turn_away(core: Core[Token], member_id: str, token: Token, now: Moment) -> Decision[Token]:
    """Out of the group, whether it was in or only about to be: the others need not wait for it."""
    out = Decision.of(token, join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED))
    if member_id in core.pending:
        core.drop_pending(member_id)
    elif (member := core.roster.by_id.get(member_id)) is not None:
        core.remove([member], now, out)
    else:
        return out
    maybe_complete(core, now, out)
    return out


def _supported(core: Core[Token], op: JoinGroup) -> bool:
    if core.state is State.EMPTY:
        return bool(op.protocol_type) and bool(op.protocols)
    return op.protocol_type == core.protocol_type and core.roster.all_support_any(op.protocols)


def _give_id(core: Core[Token], member_id: str, op: JoinGroup, token: Token, now: Moment) -> Decision[Token]:
    """KIP-394: an id that nobody comes back with is forgotten after a session timeout."""
    if len(core.pending) >= core.rules.max_pending:
        # Retried by every client after its back-off, with the same coordinator.
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "too many ids given out and not used")
    core.pending.add(member_id)
    core.sessions.arm(member_id, now.at + op.session_timeout_ms / 1000)
    return Decision.of(token, join_refused(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _join_with_id(
    core: Core[Token], op: JoinGroup, caller: Caller, token: Token, now: Moment
) -> Decision[Token]:
    if op.member_id in core.pending:
        if op.group_instance_id is not None:
            return Decision.of(token, join_refused(ErrorCode.UNKNOWN_SERVER_ERROR))  # as Kafka: no such way
        core.drop_pending(op.member_id)
        return _add(core, op.member_id, op, caller, token, now)
    member = core.roster.identify(op.member_id, op.group_instance_id)
    return _rejoin(core, member, op, token, now)


def _add(
    core: Core[Token], member_id: str, op: JoinGroup, caller: Caller, token: Token, now: Moment
) -> Decision[Token]:
    out: Decision[Token] = Decision()
    member: Member[Token] = Member(
        member_id=member_id,
        group_instance_id=op.group_instance_id,
        client_id=caller.client_id,
        client_host=caller.client_host,
        session_ms=op.session_timeout_ms,
        rebalance_ms=op.rebalance_timeout_ms,
        protocols=protocols_of(op),
        is_new=True,
    )
    if not core.roster:
        core.protocol_type = op.protocol_type
    core.roster.add(member)
    core.leader = core.leader or member_id
    core.newcomer = core.gathering
    core.sessions.arm(member_id, now.at + _FIRST_JOIN)
    core.park_join(member, token, now, out)
    rebalance_or_complete(core, Cause(Trigger.MEMBER_JOINED, member_id, op.reason or ""), now, out)
    return out


def _rejoin(
    core: Core[Token], member: Member[Token], op: JoinGroup, token: Token, now: Moment
) -> Decision[Token]:
    """A member that is in joins again: to be told what it is in, or since something has changed."""
    protocols = protocols_of(op)
    same = protocols == member.protocols
    leads = member.member_id == core.leader
    if same and (core.state is State.COMPLETING or (core.state is State.STABLE and not leads)):
        return Decision.of(token, welcome(core, member))

    out: Decision[Token] = Decision()
    if not same:
        core.roster.change_offer(member, protocols)
    member.session_ms, member.rebalance_ms = op.session_timeout_ms, op.rebalance_timeout_ms
    core.park_join(member, token, now, out)
    if core.state is State.PREPARING:
        maybe_complete(core, now, out)
    else:
        trigger = Trigger.LEADER_REJOINED if same else Trigger.PROTOCOLS_CHANGED
        prepare(core, Cause(trigger, member.member_id, op.reason or ""), now, out)
    return out
