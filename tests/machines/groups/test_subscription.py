"""Reading what consumers tell each other, whatever they put there."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.machines.groups.subscription import (
    MOST_TOPICS,
    Subscriptions,
    moves,
    partitions_of,
    topics_of,
)

names = st.text(st.characters(codec="utf-8"), max_size=20)


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def subscription(topics: list[str], version: int = 0, rest: bytes = b"\xff\xff\xff\xff") -> bytes:
    return struct.pack(">hi", version, len(topics)) + b"".join(map(string, topics)) + rest


def assignment(parts: dict[str, list[int]], version: int = 0, rest: bytes = b"\xff\xff\xff\xff") -> bytes:
    out = struct.pack(">hi", version, len(parts))
    for topic, numbers in parts.items():
        out += string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return out + rest


@given(st.lists(names), st.integers(0, 2**15 - 1), st.binary(max_size=9))
def test_topics_are_read_whatever_the_version_and_whatever_follows(
    topics: list[str], version: int, rest: bytes
) -> None:
    assert topics_of(subscription(topics, version, rest)) == topics


@given(st.dictionaries(names, st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=5))
def test_partitions_are_read(parts: dict[str, list[int]]) -> None:
    expected = {(topic, number) for topic, numbers in parts.items() for number in numbers}
    assert partitions_of(assignment(parts)) == frozenset(expected)


@given(st.binary(max_size=40))
def test_no_bytes_are_an_error(data: bytes) -> None:
    topics, partitions = topics_of(data), partitions_of(data)

    assert topics is None or len(topics) <= len(data)
    assert partitions is None or len(partitions) <= len(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\0\0",
        b"\0\0\0\0\0",
        subscription(["t"], version=-1),
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\x09short",
    ],
)
def test_what_ends_too_early_or_makes_no_sense_is_unreadable(data: bytes) -> None:
    assert topics_of(data) is None


def test_an_assignment_of_no_bytes_is_of_no_partitions() -> None:
    assert partitions_of(b"") == frozenset()
    assert partitions_of(b"\0") is None
    assert partitions_of(b"\0\0\0\0\0\1\0\1t\x7f\xff\xff\xff\0\0\0\0") is None


def test_moves_are_counted_both_ways() -> None:
    before, after = assignment({"t": [0, 1, 2]}), assignment({"t": [2, 3], "u": [0]})

    assert moves(before, after) == (2, 2)
    assert moves(None, after) == (3, 0)
    assert moves(before, None) == (0, 3)
    assert moves(before, b"?") == (-1, -1)
    assert moves(b"?", b"?") == (0, 0), "nothing can have moved"


def test_a_generation_subscribes_to_what_any_member_does() -> None:
    both = Subscriptions.of([subscription(["a", "b"]), subscription(["c"])])

    assert [both.includes(topic) for topic in "abcd"] == [True, True, True, False]
    assert Subscriptions.of([subscription(["a"]), b""]).includes("a") is None
    assert Subscriptions.of([]).includes("a") is False


def test_members_who_name_very_many_topics_may_mean_any() -> None:
    """To read them all would hold up everybody else."""
    some = subscription([f"t{n}" for n in range(MOST_TOPICS // 2)])
    more = subscription([f"u{n}" for n in range(MOST_TOPICS // 2 + 1)])

    assert Subscriptions.of([some]).includes("v") is False
    assert Subscriptions.of([some, more]).includes("v") is None
    assert topics_of(subscription(["t"] * (MOST_TOPICS + 1))) is None
