"""Being a member of a group: join, sync, heartbeat, leave. What is said to the coordinator, one by one.

It keeps what the coordinator gave: member id, generation, the chosen way of sharing. When to say
what is `GroupConsumer`'s part. Whoever waits in JoinGroup holds up all that comes behind it on its
connection, so a member has a connection of its own; leaving goes another way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

import attrs

from ..errors import ErrorCode
from .assignors import Assignor, Member, assignors_named, member_of, write_assignment
from .assignors.base import NO_GENERATION, Assignment
from .cluster import Cluster
from .coordinator import Coordinator
from .errors import ClientError, error_code, group_named, refused
from .group_descriptions import CONSUMER
from .group_offsets import Committer
from .messages import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from .messages.group import JoinGroupReply, JoinProtocol, MemberAssignment, MemberToLeave
from .offsets import End, Start

INSTANCES_SINCE: Final = 5  # of JoinGroup
SLACK: Final = 5.0  # what a coordinator may take beyond the rebalance timeout
NOT_A_MEMBER: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


@attrs.frozen(kw_only=True)
class GroupSettings:
    """Times are in seconds. Defaults are the Java client's."""

    group_id: str
    topics: tuple[str, ...] = attrs.field(converter=tuple[str, ...])
    instance_id: str | None = None  # of a static member, which may restart without a rebalance (KIP-345)
    assignors: tuple[str, ...] = attrs.field(
        default=("range", "cooperative-sticky"), converter=tuple[str, ...]
    )  # as the member would like them, best first
    session_timeout: float = 45.0  # silence after which the member is taken for dead
    heartbeat_interval: float = 3.0
    rebalance_timeout: float = 300.0  # how long the reader may work on what it was given
    auto_commit: bool = True
    auto_commit_interval: float = 5.0
    start: Start | None = attrs.field(factory=End)  # where the group has no offset; None: an error
    close_timeout: float = 5.0  # for the last commit and saying goodbye

    def __attrs_post_init__(self) -> None:
        if not self.group_id:
            raise ValueError("a group needs a name")
        assignors_named(self.assignors)

    @property
    def cooperative(self) -> bool:
        """Whether reading goes on while the group rebalances: only where every assignor allows it."""
        return all(one.cooperative for one in assignors_named(self.assignors))


class NotAMember(Exception):
    """The coordinator has given this member up. What it read is somebody else's by now."""


class Rebalancing(Exception):
    """The generation is over before it began: join again."""


class Beat(Enum):
    """What the answer to a heartbeat means."""

    FINE = auto()
    REBALANCE = auto()
    GONE = auto()


@attrs.frozen(kw_only=True)
class Joined:
    """The generation that formed."""

    generation: int
    assignor: Assignor
    leading: bool
    members: tuple[Member, ...]  # all of them, for the leader; nobody for others
    keep: bool  # the leader came back, and the assignment stays as it is (KIP-814)


class Membership:
    def __init__(self, cluster: Cluster, settings: GroupSettings) -> None:
        self.coordinator: Final = Coordinator(cluster, settings.group_id)
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol: str | None = None
        self._settings = settings
        self._cluster = cluster
        self._assignors = assignors_named(settings.assignors)
        self._purpose = f"member {id(self)} of group {settings.group_id}"

    @property
    def committer(self) -> Committer:
        return Committer(self.generation, self.member_id, self._settings.instance_id)

    def forget(self) -> None:
        """Be nobody, after having been given up."""
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol = None

    # --- the four requests ---------------------------------------------------------

    async def join(self, metadata: Callable[[Assignor], bytes], reason: str | None = None) -> Joined:
        """Come in, or come again; returns when the generation has formed."""
        settings = self._settings
        protocols = [JoinProtocol(name=one.name, metadata=metadata(one)) for one in self._assignors]
        while True:
            request = JoinGroup(
                group_id=settings.group_id,
                session_timeout_ms=_ms(settings.session_timeout),
                rebalance_timeout_ms=_ms(settings.rebalance_timeout),
                member_id=self.member_id,
                group_instance_id=settings.instance_id,
                protocol_type=CONSUMER,
                protocols=protocols,
                reason=reason,
            )
            reply = await self.coordinator.ask_once(
                request,
                purpose=self._purpose,
                within=settings.rebalance_timeout + SLACK,
                at_least=INSTANCES_SINCE if settings.instance_id is not None else 0,
            )
            if reply.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                break
            self.member_id = reply.member_id  # a name to come again with (KIP-394)
        self._check(reply.error_code)
        self.member_id = reply.member_id
        self.generation = reply.generation_id
        self.protocol = reply.protocol_name
        return self._joined(reply)

    async def sync(self, joined: Joined, assignment: Assignment) -> bytes:
        """Hand in what the leader shared, nothing from others; returns this member's own part."""
        request = SyncGroup(
            group_id=self._settings.group_id,
            generation_id=joined.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type=CONSUMER,
            protocol_name=joined.assignor.name,
            assignments=[
                MemberAssignment(member_id=member_id, assignment=write_assignment(targets))
                for member_id, targets in assignment.items()
            ],
        )
        within = self._settings.rebalance_timeout + SLACK
        reply = await self.coordinator.ask_once(request, purpose=self._purpose, within=within)
        self._check(reply.error_code)
        return bytes(reply.assignment)

    async def heartbeat(self) -> Beat:
        """Say that this member is alive. Raises what is passing, and what is for good."""
        request = Heartbeat(
            group_id=self._settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._settings.instance_id,
        )
        within = min(self._settings.session_timeout, self._cluster.settings.request_timeout)
        reply = await self.coordinator.ask_once(request, purpose=self._purpose, within=within)
        try:
            self._check(reply.error_code)
        except Rebalancing:
            return Beat.REBALANCE
        except NotAMember:
            return Beat.GONE
        return Beat.FINE

    async def leave(self, reason: str) -> None:
        """Say goodbye, so that the others need not wait for the session to end."""
        if not self.member_id:
            return
        leaver = MemberToLeave(
            member_id=self.member_id, group_instance_id=self._settings.instance_id, reason=reason
        )
        request = LeaveGroup(group_id=self._settings.group_id, member_id=self.member_id, members=[leaver])
        self.forget()
        await self.coordinator.ask_once(request)

    def close(self) -> None:
        self._cluster.close_line(self._purpose)

    # --- answers -----------------------------------------------------------------

    def _check(self, number: int) -> None:
        """Sort the codes: join again, begin anew, try again later, or give up."""
        code = error_code(number)
        if code is ErrorCode.NONE:
            return
        if code is ErrorCode.REBALANCE_IN_PROGRESS:
            raise Rebalancing
        if code in NOT_A_MEMBER:
            self.forget()
            raise NotAMember
        self.coordinator.check(number)
        raise refused(code, group_named(self._settings.group_id))

    def _joined(self, reply: JoinGroupReply) -> Joined:
        by_name: Mapping[str | None, Assignor] = {one.name: one for one in self._assignors}
        assignor = by_name.get(reply.protocol_name)
        if assignor is None:
            raise ClientError(
                f"{group_named(self._settings.group_id)} shares partitions by {reply.protocol_name!r}, "
                "which this member did not offer"
            )
        return Joined(
            generation=reply.generation_id,
            assignor=assignor,
            leading=reply.leader == reply.member_id,
            members=_members(reply),
            keep=reply.skip_assignment,
        )


def _members(reply: JoinGroupReply) -> tuple[Member, ...]:
    return tuple(member_of(one.member_id, one.group_instance_id, one.metadata) for one in reply.members)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
