"""What a group has read: commit, ask, forget.

Topics go by name, so these stop at version 9: from 10 on they go by topic id.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from ...types import message
from ...wire.api import Api
from ...wire.apis.offset_commit import OFFSET_COMMIT
from ...wire.apis.offset_delete import OFFSET_DELETE
from ...wire.apis.offset_fetch import OFFSET_FETCH
from .base import Request

# --- OffsetCommit ----------------------------------------------------------------


@message
class CommittedPartition:
    partition_index: int
    error_code: int


@message
class CommittedTopic:
    name: str
    partitions: list[CommittedPartition]


@message
class OffsetCommitReply:
    topics: list[CommittedTopic]


@message
class PartitionToCommit:
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    committed_metadata: str | None = ""


@message
class TopicToCommit:
    name: str
    partitions: list[PartitionToCommit]


@message
class OffsetCommit(Request[OffsetCommitReply]):
    """Without a generation and a member it comes from outside the group, which then has to be empty."""

    api: ClassVar[Api] = OFFSET_COMMIT
    reply = OffsetCommitReply
    newest = 9

    group_id: str
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: list[TopicToCommit]


# --- OffsetFetch -----------------------------------------------------------------


@message
class FetchedOffset:
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int = -1
    metadata: str | None
    error_code: int


@message
class FetchedOffsets:
    name: str
    partitions: list[FetchedOffset]


@message
class FetchedGroup:
    group_id: str
    topics: list[FetchedOffsets]
    error_code: int


@message
class OffsetFetchReply:
    """Up to version 7 the answer for the one group stands here; from 8 on in `groups`."""

    topics: list[FetchedOffsets] = attrs.field(factory=list)
    error_code: int = 0
    groups: list[FetchedGroup] = attrs.field(factory=list)


@message
class TopicOffsetsWanted:
    name: str
    partition_indexes: list[int]


@message
class GroupOffsetsWanted:
    group_id: str
    topics: list[TopicOffsetsWanted] | None


@message
class OffsetFetch(Request[OffsetFetchReply]):
    """The group goes into both places: which one is sent is a matter of the version. None: all topics."""

    api: ClassVar[Api] = OFFSET_FETCH
    reply = OffsetFetchReply
    newest = 9

    group_id: str
    topics: list[TopicOffsetsWanted] | None
    groups: list[GroupOffsetsWanted]
    require_stable: bool = False


# --- OffsetDelete ----------------------------------------------------------------


@message
class ForgottenPartition:
    partition_index: int
    error_code: int


@message
class ForgottenTopic:
    name: str
    partitions: list[ForgottenPartition]


@message
class OffsetDeleteReply:
    error_code: int
    topics: list[ForgottenTopic]


@message
class PartitionToForget:
    partition_index: int


@message
class TopicToForget:
    name: str
    partitions: list[PartitionToForget]


@message
class OffsetDelete(Request[OffsetDeleteReply]):
    api: ClassVar[Api] = OFFSET_DELETE
    reply = OffsetDeleteReply

    group_id: str
    topics: list[TopicToForget]
