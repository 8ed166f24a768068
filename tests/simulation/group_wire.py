"""What a client of groups asks, in the shape of each version, and what it reads out of the answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from rafka.types import NO_TOPIC_ID
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.sync_group import SYNC_GROUP

from .group_history import Place

COMMIT_BY_ID: Final = 10
FETCH_ALL_SINCE: Final = 2
FETCH_MANY_SINCE: Final = 8
FETCH_BY_ID: Final = 10
LEAVE_MANY_SINCE: Final = 3

# The first versions in which a member can say its instance id.
STATIC_SINCE: Final = {JOIN_GROUP: 5, SYNC_GROUP: 3, HEARTBEAT: 3, LEAVE_GROUP: 3, OFFSET_COMMIT: 7}


@attrs.frozen
class Who:
    group: str
    member_id: str = ""
    generation: int = -1
    instance: str | None = None


def heartbeat(who: Who) -> Any:
    return HEARTBEAT.Request(
        group_id=who.group,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
    )


def leave(version: int, who: Who) -> Any:
    if version < LEAVE_MANY_SINCE:
        return LEAVE_GROUP.Request(group_id=who.group, member_id=who.member_id)
    leaver = LEAVE_GROUP.Request.Members(member_id=who.member_id, group_instance_id=who.instance)
    return LEAVE_GROUP.Request(group_id=who.group, members=[leaver])


def left(version: int, reply: Any) -> int:
    """The code that matters: of the member, where the request as a whole was taken."""
    if version < LEAVE_MANY_SINCE or reply.error_code:
        return int(reply.error_code)
    return int(reply.members[0].error_code)


def sync(who: Who, protocol: tuple[str | None, str | None], given: Mapping[str, bytes] | None) -> Any:
    assignments = [
        SYNC_GROUP.Request.Assignments(member_id=member_id, assignment=assignment)
        for member_id, assignment in (given or {}).items()
    ]
    return SYNC_GROUP.Request(
        group_id=who.group,
        generation_id=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
        protocol_type=protocol[0],
        protocol_name=protocol[1],
        assignments=assignments,
    )


def commit(version: int, who: Who, values: Iterable[tuple[Place, int, str]]) -> Any:
    """Offsets and metadata by place. From v10 on topics are named by their incarnation alone."""
    topics: dict[tuple[str, str], list[Any]] = {}
    for place, offset, mark in values:
        partition = OFFSET_COMMIT.Request.Topics.Partitions(
            partition_index=place.partition, committed_offset=offset, committed_metadata=mark
        )
        topics.setdefault((place.topic, place.incarnation), []).append(partition)
    return OFFSET_COMMIT.Request(
        group_id=who.group,
        generation_id_or_member_epoch=who.generation,
        member_id=who.member_id,
        group_instance_id=who.instance,
        topics=[
            OFFSET_COMMIT.Request.Topics(
                name=name,
                topic_id=bytes.fromhex(incarnation) if version >= COMMIT_BY_ID else NO_TOPIC_ID,
                partitions=partitions,
            )
            for (name, incarnation), partitions in topics.items()
        ],
    )


def fetch(version: int, group: str, partitions: Mapping[str, list[int]] | None) -> Any:
    """Offsets of these topics, by name up to v9; of all there are for None, from v2 on."""
    if version < FETCH_MANY_SINCE:
        asked = OFFSET_FETCH.Request.Topics
        topics = (
            None
            if partitions is None
            else [asked(name=n, partition_indexes=p) for n, p in partitions.items()]
        )
        return OFFSET_FETCH.Request(group_id=group, topics=topics)
    named = OFFSET_FETCH.Request.Groups
    some = (
        None
        if partitions is None
        else [named.Topics(name=n, partition_indexes=p) for n, p in partitions.items()]
    )
    return OFFSET_FETCH.Request(groups=[named(group_id=group, topics=some)])


@attrs.frozen
class Found:
    topic: str
    partition: int
    offset: int
    mark: str
    code: int


def found(version: int, reply: Any) -> tuple[int, list[Found]]:
    """The code of the whole answer, and what it holds."""
    whole = reply if version < FETCH_MANY_SINCE else reply.groups[0]
    code = whole.error_code if version >= FETCH_ALL_SINCE else 0
    return int(code), [
        Found(topic.name, one.partition_index, one.committed_offset, one.metadata or "", one.error_code)
        for topic in whole.topics
        for one in topic.partitions
    ]
