"""What of a group must survive: its identity, its numbers, and the last generation that was stable.

Who waits, and a generation that is only forming, are soft: members join again. A generation's
number is kept as soon as it is given out, so that no number is ever used twice; its members are
kept when their assignments are.
"""

from __future__ import annotations

from typing import Final

from ...types import OrgId, message
from ..facts import fact


@message
class SettledMember:
    """A member as it was when its generation became stable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocols: tuple[tuple[str, bytes], ...]  # all that it offers: name, metadata
    assignment: bytes


@fact("group-created")
class GroupCreated:
    org: OrgId
    group_id: str
    stable_id: str


@fact("generation-begun")
class GenerationBegun:
    """The number has been told to members, whatever becomes of them."""

    org: OrgId
    group_id: str
    generation: int


@fact("generation-settled")
class GenerationSettled:
    """A generation has its assignments; without members: the group is empty."""

    org: OrgId
    group_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    at_ms: int
    members: tuple[SettledMember, ...]


@fact("static-member-replaced")
class StaticMemberReplaced:
    """A static member came back under a new id and took over its own assignment."""

    org: OrgId
    group_id: str
    old_member_id: str
    member: SettledMember


@fact("members-removed")
class MembersRemoved:
    """They left, or were evicted, and must not come back with a restart."""

    org: OrgId
    group_id: str
    member_ids: tuple[str, ...]
    at_ms: int


@fact("group-deleted")
class GroupDeleted:
    org: OrgId
    group_id: str


GROUP_FACTS: Final = (
    GroupCreated,
    GenerationBegun,
    GenerationSettled,
    StaticMemberReplaced,
    MembersRemoved,
    GroupDeleted,
)
