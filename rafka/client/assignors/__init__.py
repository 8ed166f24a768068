"""How the members of a group share the partitions: the assignors by the names they have on the wire.

range                one contiguous piece of each topic for each member
roundrobin           all partitions dealt out one by one
sticky               equal loads, moving as little as possible
cooperative-sticky   the same, while members go on reading what does not move
"""

from collections.abc import Iterable, Mapping
from typing import Final

from .base import Assignment, Assignor, Member, Memory
from .encoding import (
    Subscription,
    member_of,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from .range import Range
from .roundrobin import RoundRobin
from .sticky import CooperativeSticky, Sticky

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    one.name: one for one in (Range(), RoundRobin(), Sticky(), CooperativeSticky())
}

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "Assignor",
    "Member",
    "Memory",
    "Subscription",
    "assignors_named",
    "member_of",
    "read_assignment",
    "read_subscription",
    "write_assignment",
    "write_subscription",
]


def assignors_named(names: Iterable[str]) -> tuple[Assignor, ...]:
    """ValueError where there is no such assignor."""
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in ASSIGNORS:
            raise ValueError(f"no such assignor: {name!r} (there are {', '.join(ASSIGNORS)})")
    if not chosen:
        raise ValueError(f"at least one assignor is needed: {', '.join(ASSIGNORS)}")
    return tuple(ASSIGNORS[name] for name in chosen)
