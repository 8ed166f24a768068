"""`sticky` and `cooperative-sticky`: loads as equal as can be, and as little moved as that allows.

Both come to the same sharing (KIP-54). They differ in what members do meanwhile:

* `sticky` is eager: everybody gives up everything, rejoins, and says in its user data what it had.
* `cooperative-sticky` goes on reading (KIP-429). A partition that changes hands is withheld from
  its new owner for one round: the old owner sees that it is missing, gives it up and rejoins, and
  the round that follows hands it over. So nobody ever reads what somebody else still reads.

Where two members claim the same partition the one of the later generation is believed; of two of
the same generation neither (KIP-792).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from ...wire.errors import WireError
from ..model import TopicPartition
from .balance import share
from .base import NO_GENERATION, Assignment, Member, Memory
from .encoding import read_generation, read_sticky_memory, write_generation, write_sticky_memory


class Sticky:
    name: Final = "sticky"
    cooperative: Final = False

    def user_data(self, memory: Memory) -> bytes | None:
        if memory.generation == NO_GENERATION:
            return None
        return write_sticky_memory(memory.targets, memory.generation)

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignment:
        claims = settle([_remembered(member) for member in members])
        return share(partitions, members, claims.owners)


class CooperativeSticky:
    name: Final = "cooperative-sticky"
    cooperative: Final = True

    def user_data(self, memory: Memory) -> bytes | None:
        return write_generation(memory.generation)

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignment:
        claims = settle([_with_generation(member) for member in members])
        shared = share(partitions, members, claims.owners)
        return {
            member_id: [target for target in targets if not claims.held_by_another(target, member_id)]
            for member_id, targets in shared.items()
        }


@attrs.frozen
class Claims:
    """Who owns what before the sharing, and what more than one member claims with equal right."""

    owners: Mapping[TopicPartition, str]
    disputed: frozenset[TopicPartition]

    def held_by_another(self, target: TopicPartition, member_id: str) -> bool:
        return target in self.disputed or self.owners.get(target, member_id) != member_id


def settle(members: Sequence[Member]) -> Claims:
    """Believe each claim of the latest generation that makes it, where it is the only one."""
    best: dict[TopicPartition, tuple[int, str]] = {}
    disputed: set[TopicPartition] = set()
    for member in members:
        for target in set(member.owned):
            rival = best.get(target)
            if rival is None or member.generation > rival[0]:
                best[target] = member.generation, member.member_id
                disputed.discard(target)
            elif member.generation == rival[0]:
                disputed.add(target)
    owners = {target: owner for target, (_, owner) in best.items() if target not in disputed}
    return Claims(owners, frozenset(disputed))


def _remembered(member: Member) -> Member:
    """An eager member owns nothing while it joins; what it had stands in its user data."""
    if member.user_data is None:
        return attrs.evolve(member, owned=(), generation=NO_GENERATION)
    try:
        owned, generation = read_sticky_memory(member.user_data)
    except WireError:  # another client's, in a form of its own
        owned, generation = (), NO_GENERATION
    return attrs.evolve(member, owned=owned, generation=generation)


def _with_generation(member: Member) -> Member:
    """Clients that write version 1 of a subscription have no field for the generation."""
    if member.generation != NO_GENERATION or member.user_data is None:
        return member
    try:
        return attrs.evolve(member, generation=read_generation(member.user_data))
    except WireError:
        return member
