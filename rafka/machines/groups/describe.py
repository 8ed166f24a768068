"""How a group looks from outside: DescribeGroups, ListGroups, and what it is subscribed to."""

from __future__ import annotations

from typing import Final

from ...errors import ErrorCode
from ...ops.group import DescribedGroup, DescribedMember, ListedGroup
from ..room import EACH, written
from .core import CONSUMER, Core
from .model import State, Token
from .roster import Member

CLASSIC: Final = "classic"  # the type of every group that JoinGroup makes


def describe(core: Core[Token], absence_told: bool) -> DescribedGroup:
    if core.state is State.DEAD:
        return described_absent(core.group_id, absence_told)
    name = core.protocol_name if core.state is State.STABLE else None
    return DescribedGroup(
        group_id=core.group_id,
        group_state=core.state.shown,
        protocol_type=core.protocol_type or "",
        protocol_data=name or "",
        members=[_described(member, name) for member in core.roster.by_id.values()],
    )


def described_absent(group_id: str, absence_told: bool) -> DescribedGroup:
    """Old clients take the state for the answer; newer ones are told an error."""
    if not absence_told:
        return DescribedGroup(group_id=group_id, group_state=State.DEAD.shown)
    return DescribedGroup(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} not found.",
        group_state=State.DEAD.shown,
    )


def size(described: DescribedGroup) -> int:
    """How many bytes it comes to, about."""
    return (
        EACH
        + written(described.group_id)
        + written(described.error_message)
        + written(described.protocol_type)
        + written(described.protocol_data)
        + sum(map(_member_size, described.members))
    )


def listed(core: Core[Token]) -> ListedGroup:
    return ListedGroup(
        group_id=core.group_id,
        protocol_type=core.protocol_type or "",
        group_state=core.state.shown,
        group_type=CLASSIC,
    )


def subscribed_to(core: Core[Token], topic: str) -> bool | None:
    """None where nobody can tell: no generation has formed, or metadata that cannot be read, or not by us."""
    if not core.roster:
        return False
    if core.protocol_type != CONSUMER or core.generation == 0:
        return None
    return core.subscriptions.includes(topic)


def _described(member: Member[Token], protocol_name: str | None) -> DescribedMember:
    return DescribedMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol_name) if protocol_name is not None else b"",
        member_assignment=member.assignment,
    )


def _member_size(member: DescribedMember) -> int:
    return (
        EACH
        + written(member.member_id)
        + written(member.group_instance_id)
        + written(member.client_id)
        + written(member.client_host)
        + len(member.member_metadata)
        + len(member.member_assignment)
    )
