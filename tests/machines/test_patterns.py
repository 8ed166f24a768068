"""Patterns from clients: as Python's matcher where that is sound, and never slow."""

from __future__ import annotations

import re
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.machines.patterns import NotAPattern, Pattern

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        r"\S",
        "(a|b)",
        "(?:ab)",
        "^",
        "$",
        r"\.",
        "(x{2})",
        "[a-c_]",
    ]
)
TIMES = st.sampled_from(["", "", "*", "+", "?", "{1,2}", "*?"])
PATTERNS = st.lists(
    st.tuples(ATOMS, st.sampled_from(["", "", "*", "+", "?", "{1,2}", "*?"])), max_size=5
).map(lambda parts: "".join(atom + ("" if atom in "^$" else times) for atom, times in parts))


@given(PATTERNS, st.text("abcx1_.\n", max_size=6))
def test_a_pattern_matches_what_python_says_it_matches(pattern: str, text: str) -> None:
    said = re.compile(pattern.replace("$", r"\Z"), re.ASCII).fullmatch(text) is not None

    assert Pattern(pattern).matches(text) == said


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "a*a*a*a*a*a*a*b", "(.*a){20}"])
def test_what_keeps_others_busy_for_minutes_is_told_at_once(pattern: str) -> None:
    began = perf_counter()

    found = Pattern(pattern).matches("a" * 500 + "!")

    assert not found
    assert perf_counter() - began < 5


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", r"(a)\1", "(?=a)b", "(?<!a)b", "a" * 1001, "((a{100}){100}){100}"]
)
def test_what_is_no_pattern_or_cannot_be_matched_in_bounds_is_refused(pattern: str) -> None:
    with pytest.raises(NotAPattern):
        Pattern(pattern)


def test_letters_may_be_told_to_count_the_same_in_both_cases() -> None:
    assert Pattern("(?i)orders-[a-z]+").matches("ORDERS-Eu")
    assert not Pattern("orders").matches("ORDERS")
