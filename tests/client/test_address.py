"""Bootstrap addresses as people write them."""

from __future__ import annotations

import pytest

from rafka.client import Address, parse_addresses


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("a:1", [("a", 1)]),
        ("a:1, b:2 ,", [("a", 1), ("b", 2)]),
        ("kafka", [("kafka", 9092)]),
        ("PLAINTEXT://kafka:9093", [("kafka", 9093)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
    ],
)
def test_what_is_an_address(text: str, addresses: list[tuple[str, int]]) -> None:
    assert parse_addresses(text) == tuple(Address(*one) for one in addresses)


@pytest.mark.parametrize("text", ["", ",", ":9092", "a:b", "a:0", "a:70000", "[::1", "[::1]9092"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        parse_addresses(text)


def test_an_address_reads_as_it_is_written() -> None:
    assert [str(one) for one in parse_addresses("a:1,[::1]:2")] == ["a:1", "[::1]:2"]
