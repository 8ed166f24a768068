"""Partitions are shared as every other client would share them, whoever leads the group."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.client import TopicPartition
from rafka.client.assignors import ASSIGNORS, Assignment, Member, assignors_named
from rafka.client.assignors.encoding import write_generation, write_sticky_memory

Shown = dict[str, dict[str, list[int]]]


def member(name: str, *topics: str, instance: str | None = None, **more: object) -> Member:
    return Member(member_id=name, instance_id=instance, topics=topics or ("t",), **more)  # type: ignore[arg-type]


def owned(numbers: list[int], topic: str = "t") -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic, number) for number in numbers)


def remembers(name: str, numbers: list[int], generation: int = 1, *topics: str) -> Member:
    """A member that `sticky` knows something of."""
    return member(name, *topics, user_data=write_sticky_memory(owned(numbers), generation))


def holds(name: str, numbers: list[int], generation: int = 1, *topics: str) -> Member:
    """A member that goes on reading while it rejoins."""
    return member(name, *topics, owned=owned(numbers), generation=generation)


def shared(assignor: str, partitions: Mapping[str, int], *members: Member) -> Shown:
    return shown(ASSIGNORS[assignor].assign(partitions, members))


def shown(assignment: Assignment) -> Shown:
    answer: Shown = {}
    for name, targets in assignment.items():
        answer[name] = {}
        for topic, partition in targets:
            answer[name].setdefault(topic, []).append(partition)
    return answer


def of_t(assignment: Shown) -> dict[str, list[int]]:
    return {name: topics.get("t", []) for name, topics in assignment.items()}


# --- range ---------------------------------------------------------------------------------


def test_range_gives_the_first_members_one_more() -> None:
    assert of_t(shared("range", {"t": 3}, member("C0"), member("C1"))) == {"C0": [0, 1], "C1": [2]}
    assert of_t(shared("range", {"t": 7}, member("A"), member("B"), member("C"))) == {
        "A": [0, 1, 2],
        "B": [3, 4],
        "C": [5, 6],
    }


def test_range_begins_anew_with_each_topic() -> None:
    assert shared("range", {"t0": 3, "t1": 3}, member("C0", "t0", "t1"), member("C1", "t0", "t1")) == {
        "C0": {"t0": [0, 1], "t1": [0, 1]},
        "C1": {"t0": [2], "t1": [2]},
    }


def test_range_serves_static_members_first() -> None:
    assert of_t(shared("range", {"t": 3}, member("m1"), member("m9", instance="a"))) == {
        "m9": [0, 1],
        "m1": [2],
    }


# --- roundrobin ------------------------------------------------------------------------------


def test_round_robin_deals_across_topics() -> None:
    two = (member("C0", "t0", "t1"), member("C1", "t0", "t1"))

    assert shared("roundrobin", {"t0": 3, "t1": 3}, *two) == {
        "C0": {"t0": [0, 2], "t1": [1]},
        "C1": {"t0": [1], "t1": [0, 2]},
    }


def test_round_robin_passes_over_members_that_do_not_want_the_topic() -> None:
    members = (member("C0", "t0"), member("C1", "t0", "t1"), member("C2", "t0", "t1", "t2"))

    assert shared("roundrobin", {"t0": 1, "t1": 2, "t2": 3}, *members) == {
        "C0": {"t0": [0]},
        "C1": {"t1": [0]},
        "C2": {"t1": [1], "t2": [0, 1, 2]},
    }


# --- sticky ------------------------------------------------------------------------------------


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_sticky_deals_to_new_members(assignor: str) -> None:
    assert of_t(shared(assignor, {"t": 7}, member("A"), member("B"), member("C"))) == {
        "A": [0, 3, 6],
        "B": [1, 4],
        "C": [2, 5],
    }


def test_sticky_takes_only_what_is_above_the_average() -> None:
    members = (remembers("A", [0, 2, 4]), remembers("B", [1, 3, 5]), member("C"))

    assert of_t(shared("sticky", {"t": 6}, *members)) == {"A": [0, 2], "B": [1, 3], "C": [4, 5]}


def test_cooperative_sticky_withholds_what_moves_until_it_was_given_up() -> None:
    first = (holds("A", [0, 2, 4]), holds("B", [1, 3, 5]), member("C"))
    second = (holds("A", [0, 2], 2), holds("B", [1, 3], 2), holds("C", [], 2))

    assert of_t(shared("cooperative-sticky", {"t": 6}, *first)) == {"A": [0, 2], "B": [1, 3], "C": []}
    assert of_t(shared("cooperative-sticky", {"t": 6}, *second)) == {"A": [0, 2], "B": [1, 3], "C": [4, 5]}


def test_cooperative_sticky_hands_over_at_once_what_nobody_owns() -> None:
    left = (holds("A", [0, 2]), holds("B", [1, 3]))

    assert of_t(shared("cooperative-sticky", {"t": 6}, *left)) == {"A": [0, 2, 4], "B": [1, 3, 5]}


def test_the_claim_of_the_later_generation_is_believed() -> None:
    rivals = (holds("A", [0, 1], 5), holds("B", [0, 1, 2], 4))

    assert of_t(shared("cooperative-sticky", {"t": 4}, *rivals)) == {"A": [0, 1], "B": [2, 3]}


def test_two_claims_of_one_generation_are_both_given_up() -> None:
    rivals = (holds("A", [0, 1], 5), holds("B", [0, 2], 5))

    assert of_t(shared("cooperative-sticky", {"t": 3}, *rivals)) == {"A": [1], "B": [2]}
    assert of_t(shared("sticky", {"t": 3}, remembers("A", [0, 1], 5), remembers("B", [0, 2], 5))) == {
        "A": [0, 1],
        "B": [2],
    }


def test_the_generation_may_stand_in_the_user_data_of_older_clients() -> None:
    early = Member(member_id="B", topics=("t",), owned=owned([0]), user_data=write_generation(4))

    assert of_t(shared("cooperative-sticky", {"t": 1}, holds("A", [0], 5), early)) == {"A": [0], "B": []}
    assert of_t(shared("cooperative-sticky", {"t": 1}, holds("A", [0], 3), early)) == {"A": [], "B": [0]}


def test_user_data_that_nobody_can_read_is_no_claim() -> None:
    assert of_t(shared("sticky", {"t": 2}, member("A", user_data=b"\x00"), member("B"))) == {
        "A": [0],
        "B": [1],
    }


def test_what_a_member_no_longer_wants_goes_to_who_does() -> None:
    members = (remembers("A", [0, 1], 1, "other"), member("B", "t"))

    assert shared("sticky", {"t": 2, "other": 1}, *members) == {"A": {"other": [0]}, "B": {"t": [0, 1]}}


def test_unequal_subscriptions_are_levelled_out() -> None:
    members = (
        remembers("A", [0, 1, 2, 3], 1, "t", "u"),
        member("B", "u"),
        member("C", "t"),
    )

    loads = {
        name: sum(map(len, topics.values()))
        for name, topics in shared("sticky", {"t": 4, "u": 2}, *members).items()
    }

    assert loads == {"A": 2, "B": 2, "C": 2}


# --- all of them ---------------------------------------------------------------------------------

TOPICS = ("a", "b", "c")
members_of_a_group = st.lists(
    st.tuples(
        st.sets(st.sampled_from(TOPICS), min_size=1),
        st.booleans(),
        st.sets(st.tuples(st.sampled_from(TOPICS), st.integers(0, 8))),
        st.integers(0, 2),
    ),
    max_size=7,
)
sizes = st.fixed_dictionaries({topic: st.integers(0, 8) for topic in TOPICS})


def group_of(parts: list[tuple[set[str], bool, set[tuple[str, int]], int]]) -> list[Member]:
    made = []
    for place, (topics, static, claims, generation) in enumerate(parts):
        targets = tuple(TopicPartition(*claim) for claim in sorted(claims))
        made.append(
            Member(
                member_id=f"m{place}",
                instance_id=f"i{9 - place}" if static else None,
                topics=tuple(sorted(topics)),
                owned=targets,
                generation=generation,
                user_data=write_sticky_memory(targets, generation),
            )
        )
    return made


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(partitions=sizes, parts=members_of_a_group)
def test_every_wanted_partition_goes_to_one_member_that_wants_it(
    name: str, partitions: dict[str, int], parts: list[tuple[set[str], bool, set[tuple[str, int]], int]]
) -> None:
    members = group_of(parts)

    assignment = ASSIGNORS[name].assign(partitions, members)

    given_out = [target for targets in assignment.values() for target in targets]
    topics = {topic for one in members for topic in one.topics}
    assert sorted(given_out) == sorted(TopicPartition(t, n) for t in topics for n in range(partitions[t]))
    for one in members:
        assert {target.topic for target in assignment[one.member_id]} <= set(one.topics)


@given(partitions=sizes, parts=members_of_a_group)
def test_two_loads_differ_by_one_at_most_where_a_move_could_make_them_equal(
    partitions: dict[str, int], parts: list[tuple[set[str], bool, set[tuple[str, int]], int]]
) -> None:
    members = group_of(parts)

    assignment = ASSIGNORS["sticky"].assign(partitions, members)

    for giver in members:
        for target in assignment[giver.member_id]:
            for taker in members:
                if target.topic in taker.topics:
                    difference = len(assignment[giver.member_id]) - len(assignment[taker.member_id])
                    assert difference <= 1, (giver.member_id, taker.member_id)


@given(partitions=sizes, parts=members_of_a_group)
def test_a_sharing_that_is_level_stays_as_it_is(
    partitions: dict[str, int], parts: list[tuple[set[str], bool, set[tuple[str, int]], int]]
) -> None:
    members = group_of(parts)
    first = ASSIGNORS["sticky"].assign(partitions, members)

    again = [
        Member(
            member_id=one.member_id,
            topics=one.topics,
            user_data=write_sticky_memory(first[one.member_id], 7),
        )
        for one in members
    ]

    assert ASSIGNORS["sticky"].assign(partitions, again) == first


@given(partitions=sizes, parts=members_of_a_group)
def test_cooperative_members_agree_after_giving_up_what_is_missing(
    partitions: dict[str, int], parts: list[tuple[set[str], bool, set[tuple[str, int]], int]]
) -> None:
    members = group_of(parts)
    topics = {topic for one in members for topic in one.topics}
    everything = sorted(TopicPartition(t, n) for t in topics for n in range(partitions[t]))
    cooperative = ASSIGNORS["cooperative-sticky"]

    for generation in (8, 9, 10):
        before = {one.member_id: set(one.owned) for one in members}
        assignment = cooperative.assign(partitions, members)
        given_out = [target for targets in assignment.values() for target in targets]
        assert len(given_out) == len(set(given_out))
        if generation > 8:  # claims are true from then on: nobody gets what another one still has
            for name, targets in assignment.items():
                others = set().union(*(had for other, had in before.items() if other != name), set())
                assert not others & set(targets)
        members = [
            Member(
                member_id=one.member_id,
                topics=one.topics,
                owned=tuple(assignment[one.member_id]),
                generation=generation,
            )
            for one in members
        ]

    assert sorted(given_out) == everything


def test_an_assignor_that_is_not_there_is_named() -> None:
    assert [one.name for one in assignors_named(["sticky", "range", "sticky"])] == ["sticky", "range"]
    with pytest.raises(ValueError, match=r"'fair' \(there are range, roundrobin"):
        assignors_named(["fair"])
    with pytest.raises(ValueError, match="at least one"):
        assignors_named([])
