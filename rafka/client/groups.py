"""What administrators do with consumer groups: `Client.groups`.

    for group in await client.groups.list_all():
        print(group.group_id, group.state)
    offsets = await client.groups.offsets("billing")

Groups are coordinated by different brokers; each question goes to the one that knows. Calls for
several groups, members or partitions give what became of each; calls for one raise at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..types import message
from .admin import Outcome
from .cluster import Cluster
from .coordinator import Coordinator
from .errors import group_named, refused, refused_if
from .group_descriptions import GroupDescription, describe_group
from .group_offsets import CommittedOffset, Refusals, commit_offsets, delete_offsets, fetch_offsets
from .messages import DeleteGroups, LeaveGroup, ListGroups
from .messages.group import (
    DeleteGroupsReply,
    LeaveGroupReply,
    ListGroupsReply,
    MemberToLeave,
)
from .messages.history import GroupHistory, GroupHistoryReply
from .model import TopicPartition

STATES_SINCE: Final = 4  # of ListGroups: lists the states, and can be asked for some only
TYPES_SINCE: Final = 5
MANY_LEAVERS_SINCE: Final = 3


@message
class GroupListing:
    group_id: str
    protocol_type: str
    state: str  # empty where the broker does not say
    type: str


@message
class MemberRef:
    """Which member: one of the two says it."""

    member_id: str = ""
    instance_id: str | None = None

    def __str__(self) -> str:
        return f"member {self.member_id!r}" if self.member_id else f"instance {self.instance_id!r}"


class Groups:
    """`Client.groups`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- what there is -----------------------------------------------------------

    async def list_all(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """The groups of all brokers, by name; only those in these states, or of these types, if given."""
        request = ListGroups(states_filter=[*states], types_filter=[*types])
        at_least = TYPES_SINCE if request.types_filter else STATES_SINCE if request.states_filter else 0
        await self._cluster.learn()
        found: dict[str, GroupListing] = {}
        for node_id in sorted(self._cluster.nodes):
            reply = await self._list(node_id, request, at_least)
            for one in reply.groups:
                found[one.group_id] = GroupListing(
                    group_id=one.group_id,
                    protocol_type=one.protocol_type,
                    state=one.group_state,
                    type=one.group_type,
                )
        return [found[name] for name in sorted(found)]

    async def describe(self, group_id: str) -> GroupDescription:
        """Raises UnknownGroup where there is none, BrokerRefused where it is of a third kind."""
        return await describe_group(self._cluster, group_id)

    async def _list(self, node_id: int, request: ListGroups, at_least: int) -> ListGroupsReply:
        async def once() -> ListGroupsReply:
            connection = await self._cluster.connection(node_id)
            within = self._cluster.settings.request_timeout
            reply = await connection.ask(request, within=within, at_least=at_least)
            if reply.error_code:
                raise refused(reply.error_code, f"the groups of broker {node_id}")
            return reply

        return await self._cluster.persist(once)

    # --- offsets -----------------------------------------------------------------

    async def offsets(
        self,
        group_id: str,
        targets: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, CommittedOffset]:
        """Where the group stands, in all partitions where none are named; only those with an offset."""
        return await fetch_offsets(
            Coordinator(self._cluster, group_id), targets, require_stable=require_stable
        )

    async def alter_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset | int]
    ) -> Refusals:
        """Put the group elsewhere. It has to have no members. A group that is not there is made by this."""
        committed = {
            target: CommittedOffset(offset=offset) if isinstance(offset, int) else offset
            for target, offset in offsets.items()
        }
        return await commit_offsets(Coordinator(self._cluster, group_id), committed)

    async def delete_offsets(self, group_id: str, targets: Iterable[TopicPartition]) -> Refusals:
        """Have the group forget these partitions. No member may be subscribed to their topics."""
        return await delete_offsets(Coordinator(self._cluster, group_id), targets)

    # --- how it came to be so --------------------------------------------------------

    async def history(self, group_id: str, *, after: int = 0, max_wait: float = 0) -> GroupHistoryReply:
        """The rebalances that were told after this one's `told_ms`, oldest first; waits so long for one.

        Only rafka keeps them: raises UnsupportedVersion of any other broker.
        """
        request = GroupHistory(group_id=group_id, after=after, max_wait_ms=int(max_wait * 1000))
        coordinator = Coordinator(self._cluster, group_id)

        async def once() -> GroupHistoryReply:
            within = max_wait + self._cluster.settings.request_timeout
            reply = await coordinator.ask_once(request, purpose=f"history of {group_id}", within=within)
            coordinator.check(reply.error_code)
            if reply.error_code:
                raise refused(reply.error_code, group_named(group_id), reply.error_message)
            return reply

        return await self._cluster.persist(once)

    # --- taking away ---------------------------------------------------------------

    async def delete(self, group_ids: Sequence[str]) -> list[Outcome]:
        """Delete groups and their offsets. They have to have no members."""
        outcomes = []
        for group_id in dict.fromkeys(group_ids):
            coordinator = Coordinator(self._cluster, group_id)
            reply = await coordinator.ask(DeleteGroups(groups_names=[group_id]), _codes_of_delete)
            outcomes += [
                Outcome(subject=one.group_id, error=refused_if(one.error_code, group_named(one.group_id)))
                for one in reply.results
            ]
        return outcomes

    async def remove_members(
        self, group_id: str, members: Sequence[MemberRef], *, reason: str | None = None
    ) -> list[Outcome]:
        """Have members leave, as if they had said so themselves. Those alive will join again."""
        request = LeaveGroup(
            group_id=group_id,
            members=[
                MemberToLeave(member_id=one.member_id, group_instance_id=one.instance_id, reason=reason)
                for one in members
            ],
        )
        coordinator = Coordinator(self._cluster, group_id)
        reply = await coordinator.ask(request, _codes_of_leave, at_least=MANY_LEAVERS_SINCE)
        if reply.error_code:
            raise refused(reply.error_code, group_named(group_id))
        return [
            Outcome(
                subject=str(asked), error=refused_if(left.error_code, f"{group_named(group_id)}, {asked}")
            )
            for asked, left in zip(members, reply.members, strict=True)
        ]


def _codes_of_delete(reply: DeleteGroupsReply) -> list[int]:
    return [one.error_code for one in reply.results]


def _codes_of_leave(reply: LeaveGroupReply) -> list[int]:
    return [reply.error_code]
