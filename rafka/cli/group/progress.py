"""How far a group is: for each partition where it stands, where the log ends, and who reads it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ...client import BrokerRefused, Client, ClientError, TopicPartition, UnknownGroup
from ...client.group_descriptions import GroupDescription, MemberDescription
from ...client.offsets import LATEST
from ...errors import ErrorCode


@attrs.frozen(kw_only=True)
class Progress:
    """One partition. None where there is nothing to tell: never committed, or the topic is gone."""

    target: TopicPartition
    current: int | None = None
    leader_epoch: int | None = None
    end: int | None = None
    member: MemberDescription | None = None

    @property
    def lag(self) -> int | None:
        if self.current is None or self.end is None:
            return None
        return max(0, self.end - self.current)


async def described(client: Client, group_id: str) -> GroupDescription | None:
    """None: the group is there, but has no consumers who could be asked for. Raises UnknownGroup."""
    try:
        return await client.groups.describe(group_id)
    except UnknownGroup:
        raise
    except BrokerRefused as error:
        if error.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


async def progress_of(client: Client, group_id: str, group: GroupDescription | None) -> list[Progress]:
    """Every partition that the group has read or is reading, by topic and number."""
    offsets = await client.groups.offsets(group_id)
    readers = {target: member for member in group.members for target in member.assignment} if group else {}
    targets = sorted({*offsets, *readers})
    ends = await known_ends(client, targets)
    rows = []
    for target in targets:
        committed = offsets.get(target)
        rows.append(
            Progress(
                target=target,
                current=None if committed is None else committed.offset,
                leader_epoch=None
                if committed is None or committed.leader_epoch < 0
                else committed.leader_epoch,
                end=ends.get(target),
                member=readers.get(target),
            )
        )
    return rows


async def known_ends(client: Client, targets: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where the logs end, of those partitions that are there and have a leader."""
    targets = list(targets)
    await client.cluster.learn({target.topic for target in targets})
    led = [target for target in targets if client.cluster.leader(target) is not None]
    try:
        found = await client.admin.list_offsets(dict.fromkeys(led, LATEST))
    except ClientError as error:
        if not error.retriable:
            raise
        return {}  # a topic went away, or lost its leader, between the two questions
    return {target: one.offset for target, one in found.items()}


def total_lag(rows: Iterable[Progress]) -> int:
    return sum(row.lag or 0 for row in rows)
