"""Ids that sort by time, and locators that no two groups share."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.machines.groups.slug import locator, slug, stable_id, ulid
from rafka.types import OrgId

ORG = OrgId("acme")
NOTHING_RANDOM = bytes(10)

# Ids that are alike once they are made safe, and some that look like the result.
group_ids = st.text(alphabet="aA-b. ßK_4", max_size=6) | st.text(max_size=20)


def test_a_ulid_is_what_others_make_of_the_same_time_and_randomness() -> None:
    # The example of the specification: its first ten letters are the time.
    assert ulid(1469922850259, NOTHING_RANDOM)[:10] == "01arz3ndek"
    assert ulid(0, NOTHING_RANDOM) == "0" * 26
    assert ulid(2**48 - 1, b"\xff" * 10) == "7" + "z" * 25


@given(st.tuples(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10)), st.integers(1, 10**9))
def test_ids_sort_by_the_time_they_were_made(made: tuple[int, bytes], later_ms: int) -> None:
    wall_ms, entropy = made
    later = min(wall_ms + later_ms, 2**48 - 1)

    assert stable_id(wall_ms, entropy) <= stable_id(later, b"\xff" * 10)


def test_a_stable_id_says_what_it_names() -> None:
    assert re.fullmatch("cgp_[0-9a-z]{26}", stable_id(1_700_000_000_000, b"0123456789"))


def test_a_ulid_wants_all_its_randomness() -> None:
    with pytest.raises(ValueError, match="10 random bytes"):
        ulid(0, b"short")


@pytest.mark.parametrize(
    ("group_id", "safe"),
    [
        ("orders", "orders"),
        ("Orders.EU_west-1", "orders.eu_west-1"),
        ("my group", "my-group"),
        ("a -- / b", "a-b"),
        ("  ", "-"),
        ("", "-"),
        ("größe", "gr-e"),
        ("../../etc", "..-..-etc"),
    ],
)
def test_a_slug_is_the_id_made_safe(group_id: str, safe: str) -> None:
    assert slug(group_id) == safe


@given(group_ids)
def test_a_slug_is_never_empty_and_always_safe(group_id: str) -> None:
    assert re.fullmatch(r"[a-z0-9._-]+", slug(group_id))
    assert "--" not in slug(group_id)


def test_a_plain_id_is_its_own_locator() -> None:
    assert locator(ORG, "orders") == "acme/consumer-groups/orders"


def test_an_id_that_had_to_be_changed_shows_a_hash_of_itself() -> None:
    assert re.fullmatch("acme/consumer-groups/orders-[0-9a-f]{8}", locator(ORG, "Orders"))
    assert locator(ORG, "Orders") != locator(ORG, "ORDERS")


def test_nobody_takes_anothers_locator_by_naming_a_group_after_it() -> None:
    taken = locator(ORG, "Orders").removeprefix("acme/consumer-groups/")

    assert locator(ORG, taken) != locator(ORG, "Orders")


@given(group_ids, group_ids)
def test_two_groups_have_two_locators(one: str, other: str) -> None:
    assert (locator(ORG, one) == locator(ORG, other)) == (one == other)


def test_organisations_do_not_meet() -> None:
    assert locator(OrgId("a"), "orders") != locator(OrgId("b"), "orders")
