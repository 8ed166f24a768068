"""What may be asked about membership in consumer groups, and what is answered.

Members' metadata and assignments are bytes that they exchange among themselves: nobody
here looks into them. What is kept *for* a group, its offsets, is in `ops.offsets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ..errors import ErrorCode
from ..types import message
from .base import KafkaOp, Op

NO_GENERATION: Final = -1
NOT_ASKED: Final = -(2**31)  # authorized operations that were not asked for


# --- join ------------------------------------------------------------------------


@message
class JoinProtocol:
    """A way of sharing partitions that a member knows, and what it tells the leader if it is chosen."""

    name: str
    metadata: bytes


@message
class JoinedMember:
    member_id: str
    group_instance_id: str | None = None
    metadata: bytes


@message
class JoinGroupReply:
    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinedMember] = ()


@message
class JoinGroup(Op[JoinGroupReply]):
    code: ClassVar = KafkaOp.JOIN_GROUP

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str
    protocols: list[JoinProtocol]
    reason: str | None = None
    id_required: bool = True  # whoever comes without an id is given one and has to come again (KIP-394)
    may_skip: bool = True  # the client knows `skip_assignment` (KIP-814)

    def refusal(self, code: ErrorCode, message: str | None = None) -> JoinGroupReply:
        return JoinGroupReply(error_code=code, member_id=self.member_id)


# --- sync ------------------------------------------------------------------------


@message
class MemberAssignment:
    member_id: str
    assignment: bytes


@message
class SyncGroupReply:
    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@message
class SyncGroup(Op[SyncGroupReply]):
    code: ClassVar = KafkaOp.SYNC_GROUP

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: list[MemberAssignment]
    too_large: bool = False  # the assignments are more than the way here carries, and were left out

    def without_assignments(self) -> SyncGroup:
        """What the coordinator has to hear of where they are too large: the other members wait for them."""
        return SyncGroup(
            group_id=self.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignments=[],
            too_large=True,
        )

    def refusal(self, code: ErrorCode, message: str | None = None) -> SyncGroupReply:
        return SyncGroupReply(error_code=code)


# --- heartbeat -------------------------------------------------------------------


@message
class HeartbeatReply:
    error_code: ErrorCode = ErrorCode.NONE


@message
class Heartbeat(Op[HeartbeatReply]):
    code: ClassVar = KafkaOp.HEARTBEAT

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None

    def refusal(self, code: ErrorCode, message: str | None = None) -> HeartbeatReply:
        return HeartbeatReply(error_code=code)


# --- leave -----------------------------------------------------------------------


@message
class Leaver:
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@message
class LeaverReply:
    member_id: str
    group_instance_id: str | None = None
    error_code: ErrorCode = ErrorCode.NONE


@message
class LeaveGroupReply:
    error_code: ErrorCode = ErrorCode.NONE
    members: Sequence[LeaverReply] = ()


@message
class LeaveGroup(Op[LeaveGroupReply]):
    """Before version 3 one member leaves by `member_id`; the gateway makes it a list of one."""

    code: ClassVar = KafkaOp.LEAVE_GROUP

    group_id: str
    member_id: str = ""
    members: list[Leaver]

    def refusal(self, code: ErrorCode, message: str | None = None) -> LeaveGroupReply:
        return LeaveGroupReply(error_code=code)


# --- describe, list, delete ----------------------------------------------------------


@message
class DescribedMember:
    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    member_metadata: bytes = b""
    member_assignment: bytes = b""


@message
class DescribedGroup:
    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedMember] = ()
    authorized_operations: int = NOT_ASKED


@message
class DescribeGroupsReply:
    groups: Sequence[DescribedGroup]


@message
class DescribeGroups(Op[DescribeGroupsReply]):
    code: ClassVar = KafkaOp.DESCRIBE_GROUPS

    groups: list[str]
    include_authorized_operations: bool = False
    absence_told: bool = True  # before version 6 a group that is not there is merely "Dead"

    def refusal(self, code: ErrorCode, message: str | None = None) -> DescribeGroupsReply:
        return DescribeGroupsReply(
            groups=[DescribedGroup(group_id=group, error_code=code) for group in self.groups]
        )


@message
class ListedGroup:
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str


@message
class ListGroupsReply:
    error_code: ErrorCode = ErrorCode.NONE
    groups: Sequence[ListedGroup] = ()


@message
class ListGroups(Op[ListGroupsReply]):
    code: ClassVar = KafkaOp.LIST_GROUPS

    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()

    def refusal(self, code: ErrorCode, message: str | None = None) -> ListGroupsReply:
        return ListGroupsReply(error_code=code)


@message
class DeletedGroup:
    group_id: str
    error_code: ErrorCode = ErrorCode.NONE


@message
class DeleteGroupsReply:
    results: Sequence[DeletedGroup]


@message
class DeleteGroups(Op[DeleteGroupsReply]):
    code: ClassVar = KafkaOp.DELETE_GROUPS

    groups_names: list[str]

    def refusal(self, code: ErrorCode, message: str | None = None) -> DeleteGroupsReply:
        names = dict.fromkeys(self.groups_names)
        return DeleteGroupsReply(results=[DeletedGroup(group_id=name, error_code=code) for name in names])


# --- history: rafka's own --------------------------------------------------------------


@message
class MovedMember:
    """What one member went through in a rebalance."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    joined: bool  # in the generation that formed; otherwise it was in the one before and is gone
    gained: int = -1  # partitions; -1 where the assignment cannot be read
    lost: int = -1
    pause_ms: int = -1  # from the rebalance's beginning, as it found out or joined, to its assignment


@message
class Rebalance:
    """One rebalance: why it began, how long its phases took, and what came of it."""

    number: int  # counts up in each group while the broker runs
    began_ms: int
    trigger: str
    trigger_member: str = ""
    reason: str = ""  # what the member itself said
    outcome: str  # "stable", "empty", or "overtaken" by the next one
    generation_id: int
    protocol_type: str = ""
    protocol_name: str = ""
    leader: str = ""
    join_ms: int
    sync_ms: int = -1
    members_before: int
    members_after: int
    moved: int = -1
    members: Sequence[MovedMember] = ()
    told_ms: int = 0  # when its outcome was known; greater than that of the one before, also over restarts


@message
class GroupHistoryReply:
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    stable_id: str = ""  # cgp_ and a ULID
    locator: str = ""
    rebalances: Sequence[Rebalance] = ()


@message
class GroupHistory(Op[GroupHistoryReply]):
    """Rebalances that were told after this one's `told_ms`, oldest first; waits for one if there is none."""

    code: ClassVar = KafkaOp.GROUP_HISTORY

    group_id: str
    after: int = 0
    max_wait_ms: int = 0

    def refusal(self, code: ErrorCode, message: str | None = None) -> GroupHistoryReply:
        return GroupHistoryReply(error_code=code, error_message=message)
