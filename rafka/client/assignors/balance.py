"""Sharing partitions so that loads are equal and little moves: what both sticky assignors do.

Mostly all members want the same topics. Then every load is the average rounded down or up, and one
pass does it. Otherwise a partition can only go to who wants its topic: what is free goes to the
least loaded, and then partitions move while a move makes two loads more equal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from ..model import TopicPartition
from .base import Assignment, Member, subscribed_partitions


def share(
    partitions: Mapping[str, int], members: Sequence[Member], owners: Mapping[TopicPartition, str]
) -> Assignment:
    """Everything that is wanted, shared. `owners` says who had what before."""
    wanted = {member.member_id: frozenset(member.topics) for member in members}
    everything = subscribed_partitions(partitions, members)
    kept: Assignment = {member_id: [] for member_id in sorted(wanted)}
    for target in everything:
        owner = owners.get(target)
        if owner is not None and target.topic in wanted.get(owner, ()):
            kept[owner].append(target)
    if len(set(wanted.values())) <= 1:
        shared = _share_equally(everything, kept)
    else:
        shared = _share_by_subscription(everything, kept, wanted)
    return {member_id: sorted(targets) for member_id, targets in shared.items()}


# --- equal subscriptions ---------------------------------------------------------------------


def _share_equally(everything: Sequence[TopicPartition], kept: Assignment) -> Assignment:
    """Trim who has more than the average, then deal what is free to who has less."""
    if not kept:
        return {}
    least, extras = divmod(len(everything), len(kept))  # so many members may have one more
    short: deque[str] = deque()
    level: deque[str] = deque()
    for member_id, targets in kept.items():
        targets.sort(key=lambda target: (target.partition, target.topic))
        if len(targets) < least:
            short.append(member_id)
        elif len(targets) > least and extras:
            extras -= 1
            del targets[least + 1 :]
        else:
            del targets[least:]
            level.append(member_id)
    taken = {target for targets in kept.values() for target in targets}
    for target in everything:
        if target in taken:
            continue
        member_id = short.popleft() if short else level.popleft()
        kept[member_id].append(target)
        if len(kept[member_id]) < least:
            short.append(member_id)
        elif len(kept[member_id]) == least:
            level.append(member_id)
    return kept


# --- different subscriptions -------------------------------------------------------------------


def _share_by_subscription(
    everything: Sequence[TopicPartition], kept: Assignment, wanted: Mapping[str, frozenset[str]]
) -> Assignment:
    takers: dict[str, list[str]] = {}  # of each topic
    for target in everything:
        if target.topic not in takers:
            takers[target.topic] = [member_id for member_id in kept if target.topic in wanted[member_id]]
    owner = {target: member_id for member_id, targets in kept.items() for target in targets}
    loads = {member_id: len(targets) for member_id, targets in kept.items()}
    # What few can take goes first, while those few have room.
    ordered = sorted(everything, key=lambda target: (len(takers[target.topic]), target))
    for target in ordered:
        if target not in owner:
            owner[target] = _least_loaded(takers[target.topic], loads)
            loads[owner[target]] += 1
    while _level_out(ordered, takers, owner, loads):
        pass
    shared: Assignment = {member_id: [] for member_id in kept}
    for target, member_id in owner.items():
        shared[member_id].append(target)
    return shared


def _level_out(
    ordered: Sequence[TopicPartition],
    takers: Mapping[str, list[str]],
    owner: dict[TopicPartition, str],
    loads: dict[str, int],
) -> bool:
    """One pass of moves, each from a load to one that is smaller by two at least: so it comes to an end."""
    moved = False
    for target in ordered:
        taker = _least_loaded(takers[target.topic], loads)
        if loads[owner[target]] - loads[taker] >= 2:
            loads[owner[target]] -= 1
            loads[taker] += 1
            owner[target] = taker
            moved = True
    return moved


def _least_loaded(takers: Sequence[str], loads: Mapping[str, int]) -> str:
    return min(takers, key=loads.__getitem__)
