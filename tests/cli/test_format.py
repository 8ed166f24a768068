"""kcat's format strings, and the JSON of one record."""

from __future__ import annotations

import json

import pytest

from rafka.cli.format import as_json, compile_format, unescape
from rafka.records.record import Record

RECORD = Record(7, 1000, b"k", b"v\xff", [("a", b"1"), ("b", None)])
NULLS = Record(8, -1, None, None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("%t %p %o\\n", b"orders 3 7\n"),
        ("%k=%s", b"k=v\xff"),
        ("%K/%S", b"1/2"),
        ("%R", b"\0\0\0\x02"),
        ("%T", b"1000"),
        ("%h", b"a=1,b="),
        ("100%%", b"100%"),
        ("\\t\\r\\0\\\\\\x41", b"\t\r\0\\A"),
        ("", b""),
        ("ü%o", "ü7".encode()),
    ],
)
def test_letters(text: str, shown: bytes) -> None:
    assert compile_format(text)("orders", 3, RECORD) == shown


def test_null_is_nothing_or_what_it_is_called() -> None:
    assert compile_format("%k|%s|%K|%S|%R")("t", 0, NULLS) == b"||-1|-1|\xff\xff\xff\xff"
    assert compile_format("%k|%s", b"NULL")("t", 0, NULLS) == b"NULL|NULL"


@pytest.mark.parametrize(
    ("text", "said"), [("%x", "no such format letter: %x"), ("%", "letter: %"), ("\\q", r"escape: \\q")]
)
def test_a_letter_that_means_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        compile_format(text)


@pytest.mark.parametrize(
    ("text", "meant"), [(":", b":"), ("\\t", b"\t"), ("\\xff", b"\xff"), ("a\\nb", b"a\nb"), ("%", b"%")]
)
def test_delimiters(text: str, meant: bytes) -> None:
    assert unescape(text) == meant


def test_json_keeps_what_is_not_text() -> None:
    assert json.loads(as_json("orders", 3, RECORD)) == {
        "topic": "orders",
        "partition": 3,
        "offset": 7,
        "timestamp": 1000,
        "key": "k",
        "value_base64": "dv8=",
        "headers": [{"key": "a", "value": "1"}, {"key": "b", "value": None}],
    }
    assert json.loads(as_json("orders", 3, NULLS))["value"] is None
