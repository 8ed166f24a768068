"""What a group has read: asked for, committed and forgotten, by a member or from outside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from ..types import message
from .assignors.base import NO_GENERATION
from .coordinator import Coordinator
from .errors import BrokerRefused, group_named, refused, refused_if
from .messages import OffsetCommit, OffsetDelete, OffsetFetch
from .messages.group_offsets import (
    FetchedOffsets,
    GroupOffsetsWanted,
    OffsetCommitReply,
    OffsetDeleteReply,
    OffsetFetchReply,
    PartitionToCommit,
    PartitionToForget,
    TopicOffsetsWanted,
    TopicToCommit,
    TopicToForget,
)
from .model import TopicPartition

Refusals = dict[TopicPartition, BrokerRefused | None]  # None: it was done

NONE_COMMITTED: Final = -1
ALL_TOPICS_SINCE: Final = 2


@message
class CommittedOffset:
    """The offset is that of the next record to read."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@attrs.frozen
class Committer:
    """Who commits: a member in its generation, or somebody from outside while the group is empty."""

    generation: int = NO_GENERATION
    member_id: str = ""
    instance_id: str | None = None


OUTSIDE: Final = Committer()


async def fetch_offsets(
    coordinator: Coordinator,
    targets: Iterable[TopicPartition] | None = None,
    *,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """Where the group stands, in all partitions where none are named. Those without an offset are left out.

    `require_stable` waits for transactions that would move an offset to end.
    """
    topics = None if targets is None else _wanted(targets)
    group_id = coordinator.group_id
    request = OffsetFetch(
        group_id=group_id,
        topics=topics,
        groups=[GroupOffsetsWanted(group_id=group_id, topics=topics)],
        require_stable=require_stable,
    )
    reply = await coordinator.ask(
        request, _codes_of_fetch, at_least=ALL_TOPICS_SINCE if topics is None else 0
    )
    found: dict[TopicPartition, CommittedOffset] = {}
    for topic in _answered(reply, group_id):
        for one in topic.partitions:
            target = TopicPartition(topic.name, one.partition_index)
            if one.error_code:
                raise refused(one.error_code, f"{group_named(group_id)}, {target}")
            if one.committed_offset != NONE_COMMITTED:
                found[target] = CommittedOffset(
                    offset=one.committed_offset,
                    leader_epoch=one.committed_leader_epoch,
                    metadata=one.metadata or "",
                )
    return found


async def commit_offsets(
    coordinator: Coordinator,
    offsets: Mapping[TopicPartition, CommittedOffset],
    committer: Committer = OUTSIDE,
) -> Refusals:
    """Remember where the group stands; what became of each partition."""
    topics: dict[str, list[PartitionToCommit]] = defaultdict(list)
    for target, committed in offsets.items():
        entry = PartitionToCommit(
            partition_index=target.partition,
            committed_offset=committed.offset,
            committed_leader_epoch=committed.leader_epoch,
            committed_metadata=committed.metadata,
        )
        topics[target.topic].append(entry)
    reply = await coordinator.ask(
        OffsetCommit(
            group_id=coordinator.group_id,
            generation_id_or_member_epoch=committer.generation,
            member_id=committer.member_id,
            group_instance_id=committer.instance_id,
            topics=[TopicToCommit(name=name, partitions=parts) for name, parts in topics.items()],
        ),
        _codes_of_commit,
    )
    return {
        TopicPartition(topic.name, one.partition_index): refused_if(
            one.error_code, f"{group_named(coordinator.group_id)}, {topic.name}-{one.partition_index}"
        )
        for topic in reply.topics
        for one in topic.partitions
    }


async def delete_offsets(coordinator: Coordinator, targets: Iterable[TopicPartition]) -> Refusals:
    """Have the group forget these partitions; what became of each."""
    topics: dict[str, list[PartitionToForget]] = defaultdict(list)
    for target in targets:
        topics[target.topic].append(PartitionToForget(partition_index=target.partition))
    reply = await coordinator.ask(
        OffsetDelete(
            group_id=coordinator.group_id,
            topics=[TopicToForget(name=name, partitions=parts) for name, parts in topics.items()],
        ),
        _codes_of_delete,
    )
    if reply.error_code:
        raise refused(reply.error_code, group_named(coordinator.group_id))
    return {
        TopicPartition(topic.name, one.partition_index): refused_if(
            one.error_code, f"{group_named(coordinator.group_id)}, {topic.name}-{one.partition_index}"
        )
        for topic in reply.topics
        for one in topic.partitions
    }


def _wanted(targets: Iterable[TopicPartition]) -> list[TopicOffsetsWanted]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in targets:
        topics[topic].append(partition)
    return [TopicOffsetsWanted(name=name, partition_indexes=numbers) for name, numbers in topics.items()]


def _answered(reply: OffsetFetchReply, group_id: str) -> list[FetchedOffsets]:
    """The topics of the answer, from where its version has them."""
    error, topics = reply.error_code, reply.topics
    for group in reply.groups:
        error, topics = group.error_code, group.topics
    if error:
        raise refused(error, group_named(group_id))
    return topics


def _codes_of_fetch(reply: OffsetFetchReply) -> list[int]:
    topics = [*reply.topics, *(topic for group in reply.groups for topic in group.topics)]
    return [
        reply.error_code,
        *(group.error_code for group in reply.groups),
        *(one.error_code for topic in topics for one in topic.partitions),
    ]


def _codes_of_commit(reply: OffsetCommitReply) -> list[int]:
    return [one.error_code for topic in reply.topics for one in topic.partitions]


def _codes_of_delete(reply: OffsetDeleteReply) -> list[int]:
    return [reply.error_code]
