"""A static member comes back (KIP-345): it holds an instance id and has forgotten its member id.

It takes the place of the member that held the instance id, under a new id and with the old
assignment. In a stable group nobody else notices, unless what it offers now would change the
vote. The old id is fenced: whoever still uses it is told that another has taken over.
"""

from __future__ import annotations

from ...errors import ErrorCode
from ...ops.group import JoinGroup, JoinGroupReply
from .core import Cause, Core, join_refused, sync_refused
from .events import Trigger
from .facts import StaticMemberReplaced
from .model import Decision, Moment, State, Token
from .rebalance import rebalance_or_complete, welcome
from .roster import Member, names_of, protocols_of


def replace(
    core: Core[Token], old: Member[Token], op: JoinGroup, token: Token, now: Moment
) -> Decision[Token]:
    out: Decision[Token] = Decision()
    leader_before = core.leader
    new = _successor(core, old, op)
    _swap(core, old, new, out)
    unnoticed = core.state is State.STABLE and _vote_stays(core, old, new)
    _keep(core, old, new, unnoticed, out)
    core.heard_from(new, now)
    if unnoticed:
        out.answer(token, _same_generation(core, new, op, leader_before))
        return out
    core.park_join(new, token, now, out)
    cause = Cause(Trigger.STATIC_MEMBER_REPLACED, new.member_id, op.reason or "")
    rebalance_or_complete(core, cause, now, out)
    return out


def _successor(core: Core[Token], old: Member[Token], op: JoinGroup) -> Member[Token]:
    assert op.group_instance_id is not None
    return Member(
        member_id=core.new_id(op.group_instance_id),
        group_instance_id=op.group_instance_id,
        client_id=old.client_id,  # as Kafka, which shows whom the instance was first held by
        client_host=old.client_host,
        session_ms=op.session_timeout_ms,
        rebalance_ms=op.rebalance_timeout_ms,
        protocols=protocols_of(op),
        assignment=old.assignment,
        paused_at=old.paused_at,
    )


def _swap(core: Core[Token], old: Member[Token], new: Member[Token], out: Decision[Token]) -> None:
    core.answer_join(old, join_refused(ErrorCode.FENCED_INSTANCE_ID, old.member_id), out)
    core.answer_sync(old, sync_refused(ErrorCode.FENCED_INSTANCE_ID), out)
    core.roster.remove(old)
    core.roster.add(new)
    core.sessions.disarm(old.member_id)
    if core.leader == old.member_id:
        core.leader = new.member_id
    if old.member_id in core.unsynced:
        # Kafka forgets this, and rebalances for the old id although the new one has synced.
        core.unsynced.remove(old.member_id)
        core.unsynced.add(new.member_id)


def _keep(
    core: Core[Token], old: Member[Token], new: Member[Token], unnoticed: bool, out: Decision[Token]
) -> None:
    """A restart must know the new id, or it would fence the member that holds it.

    What the member offers now counts in the generation that is; if there has to be another, what
    is kept of the last one stays as its vote was.
    """
    if (kept := core.kept.members.get(old.member_id)) is None:
        return
    successor = new.settled(new.protocols if unnoticed else kept.protocols, kept.assignment)
    if core.before.pop(old.member_id, None) is not None:
        core.before[new.member_id] = successor
    core.record(StaticMemberReplaced(core.org, core.group_id, old.member_id, successor), out)


def _vote_stays(core: Core[Token], old: Member[Token], new: Member[Token]) -> bool:
    """Whether the members would choose the protocol that they use, or one as good as it.

    Only other names can change that. Among equals the place of a voter would decide, and the
    successor has come last.
    """
    return (
        names_of(old.protocols) == names_of(new.protocols) or core.protocol_name in core.roster.most_voted()
    )


def _same_generation(
    core: Core[Token], new: Member[Token], op: JoinGroup, leader_before: str
) -> JoinGroupReply:
    """Its own generation again. A leader that can be told so leaves the assignment as it is (KIP-814);
    one that cannot is told that its old self leads, so that it takes itself for a follower."""
    answer = welcome(core, new)
    if op.may_skip:
        return JoinGroupReply(
            generation_id=answer.generation_id,
            protocol_type=answer.protocol_type,
            protocol_name=answer.protocol_name,
            leader=answer.leader,
            skip_assignment=new.member_id == core.leader,
            member_id=new.member_id,
            members=answer.members,
        )
    return JoinGroupReply(
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        leader=leader_before,
        member_id=new.member_id,
    )
