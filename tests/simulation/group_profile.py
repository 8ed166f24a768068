"""Who a member of a simulated group is, through all of its lives, and the topics that there are to share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from rafka.client.assignors import ASSIGNORS
from rafka.client.model import TopicPartition

QUIET: Final = TopicPartition("orders", 3)  # a partition to which nothing more comes from then on:
QUIET_SINCE: Final = 8.0  # its offset is committed no more, and must stay
TOPICS: Final = {"orders": 4, "payments": 3}  # that are there from beginning to end


@attrs.frozen(kw_only=True)
class Profile:
    """What stays the same through all lives of a member."""

    group: str
    topics: Mapping[str, int]  # with the number of their partitions
    assignors: tuple[str, ...]
    session_s: float
    rebalance_s: float
    instance: str | None = None
    p_stall: float = 0.0  # at each turn of its work
    p_impatient: float = 0.0  # at each join, that it is given up and asked again
    p_half_open: float = 0.5  # that the broker does not hear of its death
    turns: float = 3.5  # signs of life in a session, at least

    @property
    def cooperative(self) -> bool:
        return all(ASSIGNORS[name].cooperative for name in self.assignors)

    @property
    def turn_s(self) -> float:
        """The longest time between two signs of life."""
        return self.session_s / self.turns
