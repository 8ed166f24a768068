"""A short question does not make an answer of any size: what is told in one reply has a bound."""

from __future__ import annotations

import tracemalloc

import attrs
import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.directory import Limits
from rafka.ops import group as ops
from rafka.ops import offsets as offset_ops

from .directory_kit import TOPIC, World, commit_op

NONE, TOO_MUCH = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
LIMIT = 100_000


@pytest.fixture
def world() -> World:
    return World(Limits(max_reply_bytes=LIMIT))


def describe(world: World, *names: str) -> list[ops.DescribedGroup]:
    return list(world.answer(ops.DescribeGroups(groups=list(names))).groups)


def fetch(world: World, *groups: offset_ops.FetchOffsetsGroup) -> list[offset_ops.FetchedGroup]:
    return list(world.answer(offset_ops.OffsetFetch(groups=list(groups))).groups)


def all_of(group_id: str = "g") -> offset_ops.FetchOffsetsGroup:
    return offset_ops.FetchOffsetsGroup(group_id=group_id)


def some_of(*indexes: int, group_id: str = "g") -> offset_ops.FetchOffsetsGroup:
    topic = offset_ops.FetchOffsetsTopic(name="t", topic_id=TOPIC, partition_indexes=[*indexes])
    return offset_ops.FetchOffsetsGroup(group_id=group_id, topics=[topic])


def commit_notes(world: World, count: int, note: str, group_id: str = "g") -> None:
    """One offset in each of so many partitions, each with a note of its own."""
    op = commit_op(dict.fromkeys(range(count), 7), group_id)
    for partition in op.topics[0].partitions:
        partition.committed_metadata = note  # type: ignore[misc]
    assert {p.error_code for p in world.answer(op).topics[0].partitions} == {NONE}


# --- DescribeGroups ------------------------------------------------------------------------------


def test_a_group_that_is_named_often_is_described_while_there_is_room(world: World) -> None:
    world.stable(protocols=[("range", bytes(30_000))])

    told = describe(world, *["g"] * 400)

    assert [group.error_code for group in told] == [NONE] * 3 + [TOO_MUCH] * 397
    assert sum(len(member.member_metadata) for group in told for member in group.members) <= LIMIT
    assert all(group.error_message and "fewer" in group.error_message for group in told[3:])
    assert [group.group_id for group in told] == ["g"] * 400


def test_a_group_alone_is_described_however_large_it_is(world: World) -> None:
    world.stable(protocols=[("range", bytes(2 * LIMIT))])

    first, second = describe(world, "g", "other")

    assert (first.error_code, len(first.members[0].member_metadata)) == (NONE, 2 * LIMIT)
    assert second.error_code is TOO_MUCH, "what is not said is not called absent, either"


def test_the_answer_ends_with_the_first_group_that_does_not_fit(world: World) -> None:
    """Else a large one could be put together again and again, and thrown away."""
    world.stable("small")
    world.stable("large", protocols=[("range", bytes(LIMIT))])

    told = describe(world, "small", *["large"] * 1000, "small")

    assert [group.error_code for group in told] == [NONE] + [TOO_MUCH] * 1001


def test_absent_groups_take_little_room(world: World) -> None:
    told = describe(world, *(f"g{at}" for at in range(400)))

    assert {group.error_code for group in told} == {ErrorCode.GROUP_ID_NOT_FOUND}


# --- OffsetFetch ---------------------------------------------------------------------------------


@pytest.mark.parametrize("note", ["x" * 1000, "€" * 333], ids=["ascii", "three bytes a letter"])
def test_a_partition_that_is_asked_for_often_is_refused_with_its_group(world: World, note: str) -> None:
    """It can be asked for once, or by parts; no part of it may be taken for "nothing committed"."""
    commit_notes(world, 1, note)

    [fits] = fetch(world, some_of(*[0] * 80))
    [refused] = fetch(world, some_of(*[0] * 120))

    assert (fits.error_code, len(fits.topics[0].partitions)) == (NONE, 80)
    assert (refused.error_code, list(refused.topics)) == (TOO_MUCH, [])


def test_all_offsets_of_a_group_are_given_once_however_many(world: World) -> None:
    commit_notes(world, 200, "x" * 1000)

    first, *further = fetch(world, all_of(), all_of(), all_of("other"))

    assert (first.error_code, len(first.topics[0].partitions)) == (NONE, 200)
    assert [(group.error_code, list(group.topics)) for group in further] == [(TOO_MUCH, [])] * 2


def test_groups_are_answered_while_there_is_room(world: World) -> None:
    commit_notes(world, 20, "x" * 1000, "a")
    commit_notes(world, 20, "x" * 1000, "b")

    told = fetch(world, *[all_of("a"), some_of(*range(20), group_id="b")] * 10)

    codes = [group.error_code for group in told]
    assert codes == [NONE] * 4 + [TOO_MUCH] * 16
    assert [group.group_id for group in told] == ["a", "b"] * 10


def test_nothing_is_made_beyond_the_room_that_there_is(world: World) -> None:
    world.groups.reconfigure(world.groups.rules, attrs.evolve(world.groups.limits, metadata_max=10))
    commit_notes(world, 10_000, "")
    asked = [all_of()] * 1000

    tracemalloc.start()
    try:
        told = fetch(world, *asked)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert [group.error_code for group in told] == [NONE] + [TOO_MUCH] * 999
    assert peak < 4_000_000, "10,000 partitions once, and a thousand refusals"


def test_the_bound_may_change_at_any_time(world: World) -> None:
    commit_notes(world, 1, "x" * 1000)
    world.groups.reconfigure(world.groups.rules, Limits(max_reply_bytes=2 * LIMIT))

    [told] = fetch(world, some_of(*[0] * 120))

    assert told.error_code is NONE
