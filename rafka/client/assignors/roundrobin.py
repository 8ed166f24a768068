"""`roundrobin`: all partitions of all topics, dealt to the members like cards.

A partition goes to the next member in the circle that is subscribed to its topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .base import Assignment, Member, Memory, in_order, subscribed_partitions


class RoundRobin:
    name: Final = "roundrobin"
    cooperative: Final = False

    def user_data(self, memory: Memory) -> bytes | None:
        return None

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        circle = [(member.member_id, frozenset(member.topics)) for member in in_order(members)]
        place = 0
        for target in subscribed_partitions(partitions, members):
            while target.topic not in circle[place % len(circle)][1]:
                place += 1
            assignment[circle[place % len(circle)][0]].append(target)
            place += 1
        return assignment
