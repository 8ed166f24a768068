"""The rebalance journal: what is told of each rebalance, how much is remembered, who waits for news."""

from __future__ import annotations

from struct import pack

import pytest

from rafka.machines.groups.history import History, Watch, Watches, line
from rafka.machines.groups.model import GroupKey
from rafka.ops.group import Rebalance
from rafka.types import DEFAULT_ORG, OrgId

from .kit import BEGAN_MS, KEY, World

OTHER: GroupKey = (DEFAULT_ORG, "payments")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def history() -> History:
    return History(size=5, rows=1000)


def ended(world: World, history: History, key: GroupKey = KEY) -> list[Rebalance]:
    """The rebalances that have ended since this was last asked."""
    events, world.events = world.events, []
    return history.note(key, events)


def partitions(*numbers: int, topic: bytes = b"t") -> bytes:
    """An assignment, as consumers write it."""
    return pack(f">hih{len(topic)}si{len(numbers)}ii", 0, 1, len(topic), topic, len(numbers), *numbers, -1)


def form(world: World, **assigned: bytes) -> list[str]:
    """A stable group of these members, each with its assignment; the first leads."""
    tokens = [world.join(name, id_required=False) for name in assigned]
    world.tick()
    ids = [world.joined(token).member_id for token in tokens]
    for who, member_id in list(zip(assigned, ids, strict=True))[1:]:
        world.sync(who, member_id)
    world.sync(next(iter(assigned)), ids[0], dict(zip(ids, assigned.values(), strict=True)))
    return ids


# --- what is told ----------------------------------------------------------------------


def test_a_first_generation_is_a_rebalance_too(world: World, history: History) -> None:
    ann, bob = form(world, ann=partitions(0, 1), bob=partitions(2))

    [told] = ended(world, history)

    assert (told.number, told.began_ms, told.outcome) == (1, BEGAN_MS, "stable")
    assert (told.trigger, told.trigger_member) == ("member joined", ann)
    assert (told.generation_id, told.protocol_type, told.protocol_name) == (1, "consumer", "range")
    assert (told.members_before, told.members_after, told.moved) == (0, 2, 3)
    assert told.leader == ann
    assert [(m.member_id, m.joined, m.gained, m.lost) for m in told.members] == [
        (ann, True, 2, 0),
        (bob, True, 1, 0),
    ]


def test_both_phases_are_timed(world: World, history: History) -> None:
    (ann,) = form(world, ann=partitions(0))
    ended(world, history)
    bob = world.join("bob", id_required=False)
    world.pass_time(2.5)
    again = world.join("ann", ann)
    world.pass_time(0.25)
    world.sync("ann", ann, {ann: partitions(0)})

    [told] = ended(world, history)

    assert (told.join_ms, told.sync_ms) == (2500, 250)
    assert not world.parked(bob)
    assert not world.parked(again)


def test_who_came_who_went_and_what_moved(world: World, history: History) -> None:
    ann, bob = form(world, ann=partitions(0, 1), bob=partitions(2, 3))
    ended(world, history)
    world.leave(bob)
    world.join("ann", ann)
    world.sync("ann", ann, {ann: partitions(0, 1, 2, 3)})

    [told] = ended(world, history)

    assert (told.number, told.trigger, told.trigger_member) == (2, "member left", bob)
    assert (told.members_before, told.members_after, told.moved) == (2, 1, 2)
    assert [(m.member_id, m.joined, m.gained, m.lost) for m in told.members] == [
        (ann, True, 2, 0),
        (bob, False, 0, 2),
    ]


def test_the_reason_that_a_member_gave_is_kept(world: World, history: History) -> None:
    world.join("ann", id_required=False, reason="rolling update")
    world.tick()
    world.sync("ann", world.group.leader, {})

    [told] = ended(world, history)

    assert told.reason == "rolling update"
    assert "who said: rolling update" in line(told)


def test_one_that_another_overtakes_is_told_as_such(world: World, history: History) -> None:
    (ann,) = form(world, ann=partitions(0))
    ended(world, history)
    world.join("bob", id_required=False)
    world.join("ann", ann)  # formed, and then somebody joins before the leader has synced
    world.join("cid", id_required=False)

    [told] = ended(world, history)

    assert (told.number, told.outcome) == (2, "overtaken")
    assert (told.generation_id, told.members_after, told.moved) == (2, 2, -1)


def test_a_rebalance_under_way_is_not_told_yet(world: World, history: History) -> None:
    world.join("ann", id_required=False)
    world.tick()

    assert ended(world, history) == []
    assert history.since(KEY, 0) == []


def test_the_last_one_to_leave_ends_it(world: World, history: History) -> None:
    (ann,) = form(world, ann=partitions(0))
    ended(world, history)
    world.leave(ann)

    [told] = ended(world, history)

    assert (told.outcome, told.members_after, told.sync_ms) == ("empty", 0, -1)
    assert [(m.member_id, m.joined, m.lost) for m in told.members] == [(ann, False, 1)]
    assert "nobody is left" in line(told)


def test_assignments_that_cannot_be_read_are_not_guessed_at(world: World, history: History) -> None:
    (ann,) = form(world, ann=b"opaque")

    [told] = ended(world, history)

    assert told.moved == -1
    assert [(m.member_id, m.gained, m.lost) for m in told.members] == [(ann, -1, -1)]
    assert "partitions moved" not in line(told)


def test_other_protocols_assign_no_partitions(world: World, history: History) -> None:
    world.join("ann", id_required=False, protocol_type="connect")
    world.tick()
    world.sync("ann", world.group.leader, {world.group.leader: partitions(0)})

    [told] = ended(world, history)

    assert (told.protocol_type, told.moved) == ("connect", -1)


def test_a_member_that_syncs_late_is_told_of_late(world: World, history: History) -> None:
    ann_token, bob_token = (world.join(name, id_required=False) for name in ("ann", "bob"))
    world.tick()
    ann, bob = world.joined(ann_token).member_id, world.joined(bob_token).member_id
    world.sync("ann", ann, {ann: partitions(0), bob: partitions(1)})
    ended(world, history)
    assert [m.pause_ms for m in history.since(KEY, 0)[0].members] == [0, -1]

    world.pass_time(1.5)
    world.sync("bob", bob)
    ended(world, history)

    assert [m.pause_ms for m in history.since(KEY, 0)[0].members] == [0, 1500]


def test_a_line_says_what_matters(world: World, history: History) -> None:
    ann, bob = form(world, ann=partitions(0, 1), bob=partitions(2))

    [told] = ended(world, history)

    assert line(told) == (
        f"rebalance 1: generation 1 is stable; trigger: member joined ({ann}); join 0 ms, sync 0 ms;"
        f" members 0 -> 2; protocol range, leader {ann}; partitions moved 3"
    )
    assert bob not in line(told), "there may be a thousand members"


# --- how much is remembered ------------------------------------------------------------------


def rebalances(history: History, key: GroupKey, count: int) -> None:
    """So many, of one member each: two rows."""
    world = World()
    (ann,) = form(world, ann=partitions(0))
    for _ in range(count - 1):
        world.join("ann", ann)
        world.sync("ann", ann, {ann: partitions(0)})
    history.note(key, world.events)


def numbers(history: History, key: GroupKey) -> list[int]:
    return [rebalance.number for rebalance in history.since(key, 0)]


def test_each_group_remembers_its_last_ones(history: History) -> None:
    rebalances(history, KEY, 7)

    assert numbers(history, KEY) == [3, 4, 5, 6, 7]


def test_whoever_knows_one_is_told_those_that_came_after_it(history: History) -> None:
    rebalances(history, KEY, 4)
    second = history.since(KEY, 0)[1]

    assert [r.number for r in history.since(KEY, second.told_ms)] == [3, 4]
    assert history.since(KEY, history.since(KEY, 0)[-1].told_ms) == []


@pytest.mark.parametrize("clock_went_back_ms", [0, 60_000])
def test_what_comes_after_a_restart_is_new_to_who_followed_before(clock_went_back_ms: int) -> None:
    """Numbers begin again with the process, so they cannot say it."""
    before, world = History(size=5, rows=1000), World()
    (ann,) = form(world, ann=partitions(0))
    [known] = ended(world, before)
    world.at += 10 - clock_went_back_ms / 1000
    world.join("ann", ann)
    world.sync("ann", ann, {ann: partitions(0)})
    after = History(size=5, rows=1000)

    [told] = ended(world, after)

    assert told.number == known.number
    assert after.since(KEY, known.told_ms) == [told]


def test_groups_are_numbered_by_themselves(history: History) -> None:
    rebalances(history, KEY, 2)
    rebalances(history, OTHER, 1)

    assert (numbers(history, KEY), numbers(history, OTHER)) == ([1, 2], [1])
    assert numbers(history, (OrgId("else"), KEY[1])) == []


def test_all_groups_together_have_a_bound_and_the_oldest_goes_first() -> None:
    history = History(size=5, rows=6)
    rebalances(history, KEY, 2)
    rebalances(history, OTHER, 2)

    assert (numbers(history, KEY), numbers(history, OTHER)) == ([2], [1, 2])


def test_a_group_of_many_members_takes_its_share_of_the_bound() -> None:
    history = History(size=5, rows=10)
    rebalances(history, OTHER, 2)
    world = World()
    form(world, **{f"m{n}": partitions(n) for n in range(7)})
    history.note(KEY, world.events)

    assert (numbers(history, KEY), numbers(history, OTHER)) == ([1], [2])


@pytest.mark.parametrize(("size", "rows"), [(0, 100), (5, 0)])
def test_nothing_may_be_remembered_at_all_and_is_still_told(size: int, rows: int) -> None:
    history, world = History(size, rows), World()
    form(world, ann=partitions(0))

    assert len(ended(world, history)) == 1
    assert numbers(history, KEY) == []


def test_a_smaller_bound_holds_from_the_next_one_on(history: History) -> None:
    rebalances(history, KEY, 4)

    history.size = 2
    rebalances(history, KEY, 1)

    assert numbers(history, KEY) == [4, 5]


def test_a_group_that_is_gone_leaves_nothing_behind(history: History) -> None:
    rebalances(history, KEY, 3)

    history.forget(KEY)

    assert numbers(history, KEY) == []
    assert (history._past, history._order, history._rows) == ({}, {}, 0)


# --- waiting for news ------------------------------------------------------------------------


def test_whoever_waits_is_named_once() -> None:
    watches: Watches[str] = Watches()
    watches.park(KEY, Watch("ann", 0), 5.0)
    watches.park(KEY, Watch("bob", 3), 6.0)
    watches.park(OTHER, Watch("cid", 0), 7.0)

    assert watches.of(KEY) == [Watch("ann", 0), Watch("bob", 3)]
    assert watches.of(KEY) == []
    assert list(watches.due(100.0)) == [(OTHER, Watch("cid", 0))]


def test_the_deadline_is_the_soonest_of_all() -> None:
    watches: Watches[str] = Watches()
    watches.park(KEY, Watch("ann", 0), 6.0)
    watches.park(OTHER, Watch("bob", 0), 5.0)

    assert watches.deadline == 5.0
    assert list(watches.due(4.9)) == []
    assert list(watches.due(5.0)) == [(OTHER, Watch("bob", 0))]
    assert watches.deadline == 6.0


def test_at_the_end_everybody_is_let_go() -> None:
    watches: Watches[str] = Watches()
    watches.park(KEY, Watch("ann", 0), 6.0)
    watches.park(OTHER, Watch("bob", 0), 5.0)

    assert sorted(watch.token for _, watch in watches.all()) == ["ann", "bob"]
    assert watches.deadline == float("inf")
