"""Who is in a group, and what they offer: members in the order of joining, kept countable.

A group may have thousands of members, so what is asked at every request is counted as members
come and go: how many support a protocol, who holds an instance id. What is asked once in a
generation (the vote, the longest timeout) looks at everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic

import attrs

from ...errors import ErrorCode, KafkaError
from ...ops.group import JoinedMember, JoinGroup, JoinProtocol
from .facts import SettledMember
from .model import Token

Protocols = tuple[tuple[str, bytes], ...]  # name and metadata, the preferred one first

ITSELF: Final = 1024  # bytes: the ids of a member, its client's name and address, and what keeps them


def protocols_of(op: JoinGroup) -> Protocols:
    return tuple([(protocol.name, protocol.metadata) for protocol in op.protocols])


def names_of(protocols: Protocols) -> list[str]:
    return [name for name, _ in protocols]


def size_of(protocols: Protocols) -> int:
    size = 0
    for name, metadata in protocols:
        size += len(name) + len(metadata)
    return size


def weight_of(protocols: Protocols) -> int:
    """What a member counts for in the size of its group: what it brings, and itself."""
    return ITSELF + size_of(protocols)


@attrs.define(eq=False)
class Member(Generic[Token]):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_ms: int
    rebalance_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False  # its first join has not been answered: its session has not begun
    join_waiter: Token | None = None
    sync_waiter: Token | None = None
    paused_at: float | None = None  # since when it knows that it must not read

    def metadata(self, protocol_name: str) -> bytes:
        """What it says to the leader of a protocol; what it said first, where it lists one twice."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        return b""

    def settled(self, protocols: Protocols, assignment: bytes) -> SettledMember:
        return SettledMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            session_ms=self.session_ms,
            rebalance_ms=self.rebalance_ms,
            protocols=protocols,
            assignment=assignment,
        )

    @classmethod
    def returned(cls, kept: SettledMember) -> Member[Token]:
        return cls(
            member_id=kept.member_id,
            group_instance_id=kept.group_instance_id,
            client_id=kept.client_id,
            client_host=kept.client_host,
            session_ms=kept.session_ms,
            rebalance_ms=kept.rebalance_ms,
            protocols=kept.protocols,
            assignment=kept.assignment,
        )


@attrs.define(eq=False)
class Roster(Generic[Token]):
    by_id: dict[str, Member[Token]] = attrs.Factory(dict)
    by_instance: dict[str, Member[Token]] = attrs.Factory(dict)
    weight: int = 0  # of all members together
    _supporters: dict[str, int] = attrs.Factory(dict)

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, member: Member[Token]) -> None:
        self.by_id[member.member_id] = member
        if member.group_instance_id is not None:
            self.by_instance[member.group_instance_id] = member
        self.weight += weight_of(member.protocols)
        self._count(member.protocols, 1)

    def remove(self, member: Member[Token]) -> None:
        del self.by_id[member.member_id]
        if member.group_instance_id is not None:
            del self.by_instance[member.group_instance_id]
        self.weight -= weight_of(member.protocols)
        self._count(member.protocols, -1)

    def change_offer(self, member: Member[Token], protocols: Protocols) -> None:
        old, member.protocols = member.protocols, protocols
        if len(old) == len(protocols) == 1 and old[0][0] == protocols[0][0]:  # as with most clients
            self.weight += len(protocols[0][1]) - len(old[0][1])
            return
        self.weight += size_of(protocols) - size_of(old)
        if names_of(old) != names_of(protocols):
            self._count(old, -1)
            self._count(protocols, 1)

    def holder(self, instance_id: str | None) -> Member[Token] | None:
        """Who holds the instance id. An empty one is one; None is nobody's."""
        return self.by_instance.get(instance_id) if instance_id is not None else None

    def identify(self, member_id: str, instance_id: str | None) -> Member[Token]:
        """The member that is meant. Refused where it is not in, or another holds its instance id."""
        if instance_id is not None:
            holder = self.by_instance.get(instance_id)
            if holder is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "nobody has this instance id")
            if holder.member_id != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
            return holder
        member = self.by_id.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def all_support_any(self, offered: Sequence[JoinProtocol]) -> bool:
        """Whether all who are in support at least one of these."""
        supporters, members = self._supporters, len(self.by_id)
        for protocol in offered:  # noqa: SIM110  # asked at each join: `any` would take twice as long
            if supporters.get(protocol.name, 0) == members:
                return True
        return False

    def elected_protocol(self) -> str:
        """The first of equals: whose voter joined first."""
        return self.most_voted()[0]

    def most_voted(self) -> list[str]:
        """The vote: each member for the first of its protocols that all support; the most votes win."""
        common = [name for name, count in self._supporters.items() if count == len(self.by_id)]
        if len(common) == 1:
            return common
        votes: dict[str, int] = {}
        for member in self.by_id.values():
            choice = next(name for name, _ in member.protocols if name in common)
            votes[choice] = votes.get(choice, 0) + 1
        most = max(votes.values())
        return [name for name, count in votes.items() if count == most]

    def longest_rebalance_ms(self) -> int:
        return max((member.rebalance_ms for member in self.by_id.values()), default=0)

    def roll(self, protocol_name: str) -> Sequence[JoinedMember]:
        """What the leader has to know to share out partitions."""
        return [
            JoinedMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(protocol_name),
            )
            for member in self.by_id.values()
        ]

    def _count(self, protocols: Protocols, by: int) -> None:
        for name in set(names_of(protocols)):  # once, though it be listed twice
            count = self._supporters.get(name, 0) + by
            if count:
                self._supporters[name] = count
            else:
                del self._supporters[name]
