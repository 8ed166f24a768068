"""`range`: of each topic every member gets one contiguous piece, the first members the larger ones.

Members with equal subscriptions get equal numbers of each topic, so two topics of the same size
that are joined by key fall together. With many topics the first members carry more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..model import TopicPartition
from .base import Assignment, Member, Memory, in_order


class Range:
    name: Final = "range"
    cooperative: Final = False

    def user_data(self, memory: Memory) -> bytes | None:
        return None

    def assign(self, partitions: Mapping[str, int], members: Sequence[Member]) -> Assignment:
        assignment: Assignment = {member.member_id: [] for member in members}
        ordered = in_order(members)
        for topic in sorted({topic for member in members for topic in member.topics}):
            subscribers = [member for member in ordered if topic in member.topics]
            each, extra = divmod(partitions.get(topic, 0), len(subscribers))
            first = 0
            for place, member in enumerate(subscribers):
                after = first + each + (place < extra)
                assignment[member.member_id] += [TopicPartition(topic, n) for n in range(first, after)]
                first = after
        return assignment
