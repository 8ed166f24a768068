"""What only the version of a request says: told to the op before it is asked, and to the reply after.

Ops are the same for all versions. Where an old client means something else by the
same bytes, or expects something else in the answer, it is said here and nowhere else.
An op that has just been decoded is nobody else's yet: only here are its fields set.
"""

from __future__ import annotations

from typing import Final

from ..errors import ErrorCode, KafkaError
from ..ops.cluster import ListConfigResources
from ..ops.group import (
    DescribeGroups,
    JoinGroup,
    JoinGroupReply,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    SyncGroup,
)
from ..ops.log import Fetch, ListOffsets, Produce, ProduceReply
from ..ops.offsets import (
    FetchedPartition,
    FetchedTopic,
    FetchOffsetsGroup,
    OffsetCommit,
    OffsetFetch,
    OffsetFetchReply,
)
from ..ops.topics import Metadata
from ..types import NO_TOPIC_ID

# The special timestamps of ListOffsets, and the version that brought each.
LOWEST_TIMESTAMP: Final = (-2, -2, -2, -2, -2, -2, -2, -3, -4, -5, -5, -6)


class Unanswered(Exception):
    """The client asked for no reply. `failed`: it learns of an error by losing its connection."""

    def __init__(self, failed: bool) -> None:
        super().__init__(failed)
        self.failed = failed


def prepare_produce(op: Produce, version: int) -> None:
    op.by_id = version >= 13  # type: ignore[misc]
    op.zstd_allowed = version >= 7  # type: ignore[misc]
    op.abortable_told = version >= 11  # type: ignore[misc]
    op.adds_partitions = version >= 12  # type: ignore[misc]


def settle_produce(op: Produce, reply: ProduceReply, version: int) -> ProduceReply:
    """acks=0 is never answered; a write that failed closes the connection instead."""
    if op.acks != 0:
        return reply
    raise Unanswered(failed=any(p.error_code for topic in reply.responses for p in topic.partition_responses))


def prepare_fetch(op: Fetch, version: int) -> None:
    op.by_id = version >= 13  # type: ignore[misc]
    op.leader_told = version >= 16  # type: ignore[misc]
    if op.replica_state is not None:
        op.replica_id = op.replica_state.replica_id  # type: ignore[misc]


def prepare_list_offsets(op: ListOffsets, version: int) -> None:
    op.lowest_timestamp = LOWEST_TIMESTAMP[version]  # type: ignore[misc]


def prepare_metadata(op: Metadata, version: int) -> None:
    """Version 0 says "all" with an empty list. Only from 12 on may a topic be asked for by id."""
    if version == 0 and not op.topics:
        op.topics = None  # type: ignore[misc]
    for topic in op.topics or ():
        if version < 12 and (topic.name is None or topic.topic_id != NO_TOPIC_ID):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Metadata v{version} cannot name a topic by its id")
        if topic.name is None and topic.topic_id == NO_TOPIC_ID:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a topic has neither name nor id")


def prepare_list_config_resources(op: ListConfigResources, version: int) -> None:
    """Version 0 is ListClientMetricsResources."""
    if version == 0:
        op.resource_types = None  # type: ignore[misc]


# --- groups ------------------------------------------------------------------------------


def prepare_join_group(op: JoinGroup, version: int) -> None:
    """Version 0 has one timeout for both. Who comes without an id has to come again from 4 on (KIP-394)."""
    if version == 0:
        op.rebalance_timeout_ms = op.session_timeout_ms  # type: ignore[misc]
    op.id_required = version >= 4  # type: ignore[misc]
    op.may_skip = version >= 9  # type: ignore[misc]


def settle_join_group(op: JoinGroup, reply: JoinGroupReply, version: int) -> JoinGroupReply:
    """No protocol is an empty name before version 7, and null from then on."""
    if not reply.protocol_name:
        reply.protocol_name = None if version >= 7 else ""  # type: ignore[misc]
    return reply


def prepare_sync_group(op: SyncGroup, version: int) -> None:
    """From version 5 on a member has to say what it takes the group to be (KIP-559)."""
    if version >= 5 and (op.protocol_type is None or op.protocol_name is None):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def prepare_leave_group(op: LeaveGroup, version: int) -> None:
    """Before version 3 one member leaves, and its own error is the answer's."""
    if version < 3:
        op.members = [Leaver(member_id=op.member_id)]  # type: ignore[misc]


def settle_leave_group(op: LeaveGroup, reply: LeaveGroupReply, version: int) -> LeaveGroupReply:
    if version < 3 and not reply.error_code and reply.members:
        return LeaveGroupReply(error_code=reply.members[0].error_code)
    return reply


def prepare_describe_groups(op: DescribeGroups, version: int) -> None:
    op.absence_told = version >= 6  # type: ignore[misc]


# --- offsets of groups -------------------------------------------------------------------


def prepare_offset_commit(op: OffsetCommit, version: int) -> None:
    op.by_id = version >= 10  # type: ignore[misc]
    op.epochs_known = version >= 9  # type: ignore[misc]


def prepare_offset_fetch(op: OffsetFetch, version: int) -> None:
    """Before version 8 one group is asked for, and the answer stands in the reply itself."""
    op.by_id = version >= 10  # type: ignore[misc]
    if version < 8:
        op.groups = [FetchOffsetsGroup(group_id=op.group_id, topics=op.topics)]  # type: ignore[misc]


def settle_offset_fetch(op: OffsetFetch, reply: OffsetFetchReply, version: int) -> OffsetFetchReply:
    """Version 1 has no place for the error of a group but at its partitions."""
    if version >= 8:
        return reply
    [group] = reply.groups
    topics = group.topics
    if version == 1 and group.error_code:
        topics = [
            FetchedTopic(
                name=topic.name,
                partitions=[
                    FetchedPartition(partition_index=index, error_code=group.error_code)
                    for index in topic.partition_indexes
                ],
            )
            for topic in op.topics or ()
        ]
    return OffsetFetchReply(groups=reply.groups, topics=topics, error_code=group.error_code)
