"""Offsets of partitions, asked of their leaders: the ends, and where a time begins.

A *start* says in words where to begin reading, and `resolve` turns it into an offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import attrs

from ..errors import ErrorCode
from ..types import message
from .cluster import Cluster
from .errors import ClientError, UnknownTopic, refused
from .messages import ListOffsets
from .messages.data import ListedPartition, PartitionToList, TopicToList
from .model import TopicPartition

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3

NEEDED_VERSION: Final = {MAX_TIMESTAMP: 7}  # the first version that knows a special time


@attrs.frozen
class Beginning:
    """The oldest record there is."""


@attrs.frozen
class End:
    """Behind the newest record."""


@attrs.frozen
class FromEnd:
    """So many offsets before the end."""

    count: int


@attrs.frozen
class AtTime:
    """The first record that is not older than this time, in milliseconds since 1970; else the end."""

    timestamp: int


@attrs.frozen
class AtOffset:
    offset: int


Start: TypeAlias = Beginning | End | FromEnd | AtTime | AtOffset


@message
class FoundOffset:
    offset: int  # -1: none
    timestamp: int
    leader_epoch: int


async def list_offsets(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, FoundOffset]:
    """The offset of a time for each partition; LATEST, EARLIEST and MAX_TIMESTAMP are special times."""
    found: dict[TopicPartition, FoundOffset] = {}
    topics = {target.topic for target in wanted}

    async def ask_for_the_rest() -> None:
        rest = {target: time for target, time in wanted.items() if target not in found}
        failure: ClientError | None = None
        for leader, part in (await _by_leader(cluster, rest)).items():
            try:
                connection = await cluster.connection(leader)
                reply = await connection.ask(
                    _request(part, read_committed),
                    within=cluster.settings.request_timeout,
                    at_least=max(NEEDED_VERSION.get(time, 0) for time in part.values()),
                )
            except ClientError as error:
                failure = error
                continue
            for topic in reply.topics:
                for one in topic.partitions:
                    failure = _take(found, TopicPartition(topic.name, one.partition_index), one) or failure
        if failure is not None:
            raise failure

    if wanted:
        await cluster.persist(ask_for_the_rest, topics)
    return found


async def resolve(
    cluster: Cluster, starts: Mapping[TopicPartition, Start], *, read_committed: bool = False
) -> dict[TopicPartition, int]:
    """The offset at which each partition starts."""

    async def ends(targets: Iterable[TopicPartition], time: int) -> dict[TopicPartition, int]:
        found = await list_offsets(cluster, dict.fromkeys(targets, time), read_committed=read_committed)
        return {target: one.offset for target, one in found.items()}

    oldest = await ends(
        [t for t, start in starts.items() if isinstance(start, Beginning | FromEnd)], EARLIEST
    )
    newest = await ends(
        [t for t, start in starts.items() if isinstance(start, End | FromEnd | AtTime)], LATEST
    )
    times = {target: start.timestamp for target, start in starts.items() if isinstance(start, AtTime)}
    by_time = await list_offsets(cluster, times, read_committed=read_committed)

    resolved: dict[TopicPartition, int] = {}
    for target, start in starts.items():
        match start:
            case Beginning():
                resolved[target] = oldest[target]
            case End():
                resolved[target] = newest[target]
            case FromEnd(count):
                resolved[target] = max(oldest[target], newest[target] - count)
            case AtTime():
                offset = by_time[target].offset
                resolved[target] = offset if offset >= 0 else newest[target]
            case AtOffset(offset):
                resolved[target] = offset
    return resolved


async def _by_leader(
    cluster: Cluster, wanted: Mapping[TopicPartition, int]
) -> dict[int, dict[TopicPartition, int]]:
    parts: dict[int, dict[TopicPartition, int]] = {}
    for target, time in wanted.items():
        info = await cluster.topic(target.topic)
        if not 0 <= target.partition < len(info.partitions):
            raise UnknownTopic(f"{target} (the topic has {len(info.partitions)} partitions)")
        leader = info.partitions[target.partition].leader
        if leader is None:
            raise refused(ErrorCode.LEADER_NOT_AVAILABLE, str(target))
        parts.setdefault(leader, {})[target] = time
    return parts


def _request(wanted: Mapping[TopicPartition, int], read_committed: bool) -> ListOffsets:
    topics: dict[str, list[PartitionToList]] = {}
    for target, time in wanted.items():
        entry = PartitionToList(partition_index=target.partition, timestamp=time)
        topics.setdefault(target.topic, []).append(entry)
    return ListOffsets(
        topics=[TopicToList(name=name, partitions=partitions) for name, partitions in topics.items()],
        isolation_level=int(read_committed),
    )


def _take(
    found: dict[TopicPartition, FoundOffset], target: TopicPartition, answer: ListedPartition
) -> ClientError | None:
    if answer.error_code:
        return refused(answer.error_code, str(target))
    found[target] = FoundOffset(
        offset=answer.offset, timestamp=answer.timestamp, leader_epoch=answer.leader_epoch
    )
    return None
