"""Groups asked about in short, and clients that behave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio

from rafka.errors import ErrorCode
from rafka.ops import group as ops
from rafka.ops import offsets as offset_ops

from .kit import World

MINE = b"mine"


def join(group_id: str = "g", member_id: str = "", **more: Any) -> ops.JoinGroup:
    """As an old client joins: in at once, without being given an id first."""
    fields: dict[str, Any] = {
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [ops.JoinProtocol(name="range", metadata=b"")],
        "id_required": False,
    }
    return ops.JoinGroup(group_id=group_id, member_id=member_id, **(fields | more))


def sync(
    member_id: str, generation: int = 1, assigned: Mapping[str, bytes] | None = None, group_id: str = "g"
) -> ops.SyncGroup:
    assignments = [ops.MemberAssignment(member_id=m, assignment=a) for m, a in (assigned or {}).items()]
    return ops.SyncGroup(
        group_id=group_id, generation_id=generation, member_id=member_id, assignments=assignments
    )


def heartbeat(member_id: str, generation: int = 1, group_id: str = "g") -> ops.Heartbeat:
    return ops.Heartbeat(group_id=group_id, generation_id=generation, member_id=member_id)


def leave(member_id: str, group_id: str = "g") -> ops.LeaveGroup:
    return ops.LeaveGroup(group_id=group_id, members=[ops.Leaver(member_id=member_id)])


def commit(offset: int, topic: str = "t", index: int = 0, group_id: str = "g", **more: Any) -> Any:
    partition = offset_ops.CommitPartition(partition_index=index, committed_offset=offset)
    topics = [offset_ops.CommitTopic(name=topic, partitions=[partition])]
    return offset_ops.OffsetCommit(group_id=group_id, topics=topics, **more)


def code_of(reply: offset_ops.OffsetCommitReply) -> ErrorCode:
    return reply.topics[0].partitions[0].error_code


async def committed(world: World, group_id: str = "g") -> dict[tuple[str, int], int]:
    """All that a group has committed."""
    op = offset_ops.OffsetFetch(groups=[offset_ops.FetchOffsetsGroup(group_id=group_id)])
    (group,) = (await world.ask(op)).groups
    return {(t.name, p.partition_index): p.committed_offset for t in group.topics for p in t.partitions}


async def states(world: World) -> dict[str, str]:
    return {group.group_id: group.group_state for group in (await world.ask(ops.ListGroups())).groups}


async def stable(world: World, group_id: str = "g", **more: Any) -> str:
    """A stable group of one member; its id."""
    joined = await world.ask(join(group_id, **more))
    assert joined.error_code == 0, joined
    member_id = str(joined.member_id)
    synced = await world.ask(sync(member_id, joined.generation_id, {member_id: MINE}, group_id))
    assert synced.assignment == MINE
    return member_id


async def consume(
    world: World, generations: list[int], *, task_status: Any = trio.TASK_STATUS_IGNORED
) -> None:
    """A member that behaves: it joins, syncs, and sends heartbeats until it has to join again."""
    member_id = ""
    while True:
        joined = await world.ask(join(member_id=member_id))
        member_id = joined.member_id
        assigned = {member.member_id: member.member_id.encode() for member in joined.members}
        synced = await world.ask(sync(member_id, joined.generation_id, assigned))
        if synced.error_code != 0:
            continue
        assert synced.assignment == member_id.encode()
        generations.append(joined.generation_id)
        task_status.started()
        task_status = trio.TASK_STATUS_IGNORED
        alive = True
        while alive:
            await trio.sleep(3)
            alive = (await world.ask(heartbeat(member_id, joined.generation_id))).error_code == 0
