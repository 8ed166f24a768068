"""The part of a group that outlives the process. It changes in `apply`, from a fact, and nowhere else.

A live group decides, makes a fact of it and applies that; a restart applies the same facts again
and begins from what they left: the last generation that was stable, without those who have gone
since, and the highest generation number ever given out.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ..facts import Fact
from .facts import (
    GenerationBegun,
    GenerationSettled,
    GroupCreated,
    MembersRemoved,
    SettledMember,
    StaticMemberReplaced,
)
from .model import GroupKey


@attrs.define
class Kept:
    stable_id: str
    begun: int = 0  # the highest generation that anybody was told of
    generation: int = 0  # the last one that was stable, or empty
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    at_ms: int = -1  # since when it has been as it is
    members: dict[str, SettledMember] = attrs.Factory(dict)
    removed: list[str] = attrs.Factory(list)  # of that generation: it has to form anew without them

    def apply(self, fact: Fact) -> None:
        match fact:
            case GenerationBegun():
                self.begun = fact.generation
            case GenerationSettled():
                self.begun = max(self.begun, fact.generation)
                self.generation = fact.generation
                self.protocol_type, self.protocol_name = fact.protocol_type, fact.protocol_name
                self.leader, self.at_ms = fact.leader, fact.at_ms
                self.members = {member.member_id: member for member in fact.members}
                self.removed = []
            case StaticMemberReplaced():
                del self.members[fact.old_member_id]
                self.members[fact.member.member_id] = fact.member
                if self.leader == fact.old_member_id:
                    self.leader = fact.member.member_id
            case MembersRemoved():
                for name in fact.member_ids:
                    self.members.pop(name, None)
                self.removed += fact.member_ids
                self.at_ms = fact.at_ms
            case GroupCreated():
                self.stable_id = fact.stable_id
            case _:
                raise TypeError(f"{type(fact).__qualname__} is no fact of a group's members")

    def facts(self, key: GroupKey) -> Iterator[Fact]:
        """The fewest facts that lead here again."""
        org, group_id = key
        yield GroupCreated(org, group_id, self.stable_id)
        if self.at_ms >= 0:
            members = tuple(self.members.values())
            yield GenerationSettled(
                org,
                group_id,
                self.generation,
                self.protocol_type,
                self.protocol_name,
                self.leader,
                self.at_ms,
                members,
            )
        if self.removed:
            yield MembersRemoved(org, group_id, tuple(self.removed), self.at_ms)
        if self.begun > self.generation:
            yield GenerationBegun(org, group_id, self.begun)
