"""What an assignor is given, what it gives back, and the order of members that all clients agree on.

An assignor is pure: the same members and partitions have the same outcome, whoever is the leader.
It runs in the client that the coordinator made leader of the group; no broker looks into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import attrs

from ..model import TopicPartition

NO_GENERATION: Final = -1

Assignment: TypeAlias = dict[str, list[TopicPartition]]  # of every member, by its id


@attrs.frozen(kw_only=True)
class Member:
    """What the leader knows of a member: the coordinator's word on who it is, its own on the rest."""

    member_id: str
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    owned: tuple[TopicPartition, ...] = ()  # what it goes on reading while it rejoins (KIP-429)
    generation: int = NO_GENERATION  # the one in which it came to own that (KIP-792)
    user_data: bytes | None = None


@attrs.frozen
class Memory:
    """What a member was last assigned, and in which generation, whether it still reads it or not."""

    targets: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION


class Assignor(Protocol):
    """A way of sharing partitions among members."""

    @property
    def name(self) -> str:
        """As it goes over the wire: members vote on names."""

    @property
    def cooperative(self) -> bool:
        """Whether members go on reading while they rejoin. Otherwise they give up everything first."""

    def user_data(self, memory: Memory) -> bytes | None:
        """What a member tells the leader besides its topics."""

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignment:
        """Share the partitions of these topics. Every member is in the answer, whatever it gets."""


def in_order(members: Iterable[Member]) -> list[Member]:
    """Static members first, by their instance id, which survives restarts; then the rest, by member id."""

    def key(member: Member) -> tuple[bool, str]:
        static = member.instance_id is not None
        return not static, member.instance_id if member.instance_id is not None else member.member_id

    return sorted(members, key=key)


def subscribed_partitions(partitions: Mapping[str, int], members: Iterable[Member]) -> list[TopicPartition]:
    """Every partition that somebody wants, by topic and number. Topics that are not there have none."""
    topics = sorted({topic for member in members for topic in member.topics})
    return [TopicPartition(topic, number) for topic in topics for number in range(partitions.get(topic, 0))]
