"""What members of a group ask of its coordinator, and what administrators ask about groups.

Topics go by name, so the requests for offsets stop at version 9: from 10 on they go by topic id.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from ...types import Buffer, message
from ...wire.api import Api
from ...wire.apis.delete_groups import DELETE_GROUPS
from ...wire.apis.describe_groups import DESCRIBE_GROUPS
from ...wire.apis.find_coordinator import FIND_COORDINATOR
from ...wire.apis.heartbeat import HEARTBEAT
from ...wire.apis.join_group import JOIN_GROUP
from ...wire.apis.leave_group import LEAVE_GROUP
from ...wire.apis.list_groups import LIST_GROUPS
from ...wire.apis.sync_group import SYNC_GROUP
from .base import Request

# --- FindCoordinator -------------------------------------------------------------


@message
class FoundCoordinator:
    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None


@message
class FindCoordinatorReply:
    """Up to version 3 the one answer stands here; from 4 on in `coordinators`."""

    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: int = 0
    error_message: str | None = None
    coordinators: list[FoundCoordinator] = attrs.field(factory=list)


@message
class FindCoordinator(Request[FindCoordinatorReply]):
    """The key goes into both fields: which one is sent is a matter of the version."""

    api: ClassVar[Api] = FIND_COORDINATOR
    reply = FindCoordinatorReply

    key: str
    coordinator_keys: list[str]
    key_type: int = 0  # a group


# --- JoinGroup -------------------------------------------------------------------


@message
class JoinedMember:
    member_id: str
    group_instance_id: str | None = None
    metadata: Buffer


@message
class JoinGroupReply:
    error_code: int
    generation_id: int
    protocol_name: str | None
    leader: str
    member_id: str
    members: list[JoinedMember]
    protocol_type: str | None = None
    skip_assignment: bool = False


@message
class JoinProtocol:
    name: str
    metadata: bytes


@message
class JoinGroup(Request[JoinGroupReply]):
    api: ClassVar[Api] = JOIN_GROUP
    reply = JoinGroupReply

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinProtocol]
    reason: str | None


# --- SyncGroup -------------------------------------------------------------------


@message
class SyncGroupReply:
    error_code: int
    assignment: Buffer
    protocol_type: str | None = None
    protocol_name: str | None = None


@message
class MemberAssignment:
    member_id: str
    assignment: bytes


@message
class SyncGroup(Request[SyncGroupReply]):
    api: ClassVar[Api] = SYNC_GROUP
    reply = SyncGroupReply

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[MemberAssignment]


# --- Heartbeat -------------------------------------------------------------------


@message
class HeartbeatReply:
    error_code: int


@message
class Heartbeat(Request[HeartbeatReply]):
    api: ClassVar[Api] = HEARTBEAT
    reply = HeartbeatReply

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


# --- LeaveGroup ------------------------------------------------------------------


@message
class MemberLeft:
    member_id: str
    group_instance_id: str | None
    error_code: int


@message
class LeaveGroupReply:
    error_code: int
    members: list[MemberLeft] = attrs.field(factory=list)


@message
class MemberToLeave:
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@message
class LeaveGroup(Request[LeaveGroupReply]):
    """Before version 3 one member leaves, who stands in `member_id`."""

    api: ClassVar[Api] = LEAVE_GROUP
    reply = LeaveGroupReply

    group_id: str
    member_id: str = ""
    members: list[MemberToLeave]


# --- DescribeGroups --------------------------------------------------------------


@message
class GroupMember:
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: Buffer
    member_assignment: Buffer


@message
class GroupEntry:
    error_code: int
    error_message: str | None = None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[GroupMember]


@message
class DescribeGroupsReply:
    groups: list[GroupEntry]


@message
class DescribeGroups(Request[DescribeGroupsReply]):
    api: ClassVar[Api] = DESCRIBE_GROUPS
    reply = DescribeGroupsReply

    groups: list[str]


# --- ListGroups ------------------------------------------------------------------


@message
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str = ""
    group_type: str = ""


@message
class ListGroupsReply:
    error_code: int
    groups: list[ListedGroup]


@message
class ListGroups(Request[ListGroupsReply]):
    api: ClassVar[Api] = LIST_GROUPS
    reply = ListGroupsReply

    states_filter: list[str] = attrs.field(factory=list)
    types_filter: list[str] = attrs.field(factory=list)


# --- DeleteGroups ----------------------------------------------------------------


@message
class DeletedGroup:
    group_id: str
    error_code: int


@message
class DeleteGroupsReply:
    results: list[DeletedGroup]


@message
class DeleteGroups(Request[DeleteGroupsReply]):
    api: ClassVar[Api] = DELETE_GROUPS
    reply = DeleteGroupsReply

    groups_names: list[str]
