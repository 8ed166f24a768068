"""What `rafka produce` makes of its input."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from rafka.cli import main
from rafka.cli.format import as_json
from rafka.cli.produce import Input, Splitter, _record, from_json
from rafka.records.record import Record


def options(**given: Any) -> argparse.Namespace:
    usual = {"json": False, "key": None, "key_separator": None, "null": False}
    return argparse.Namespace(**{**usual, **given})


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_records_stand_between_delimiters_however_they_come(size: int) -> None:
    data = b"a--b----c"
    splitter = Splitter(b"--")

    found = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]

    assert [*found, splitter.rest] == [b"a", b"b", b"", b"c"]


def test_a_delimiter_at_the_end_begins_no_record() -> None:
    splitter = Splitter(b"\n")

    assert splitter.feed(b"a\n\n") == [b"a", b""]
    assert splitter.rest == b""


@pytest.mark.parametrize(
    ("given", "line", "key", "value"),
    [
        ({}, b"v", None, b"v"),
        ({"key_separator": ":"}, b"k:v:w", b"k", b"v:w"),
        ({"key_separator": ":"}, b"v", None, b"v"),
        ({"key_separator": "\\t"}, b"k\tv", b"k", b"v"),
        ({"key": "x"}, b"v", b"x", b"v"),
        ({"key_separator": ":", "key": "x"}, b"v", b"x", b"v"),
        ({"key_separator": ":"}, b":v", b"", b"v"),
        ({"key_separator": ":", "null": True}, b":v", None, b"v"),
        ({"key_separator": ":", "null": True}, b"k:", b"k", None),
        ({}, b"", None, b""),
    ],
)
def test_keys_and_nulls(given: dict[str, Any], line: bytes, key: bytes | None, value: bytes | None) -> None:
    assert _record(options(**given), line) == Input(key, value)


def test_what_consume_prints_produce_reads() -> None:
    record = Record(7, 1000, b"k", b"v\xff", [("a", b"1"), ("b", None)])

    assert from_json(as_json("t", 0, record)) == Input(b"k", b"v\xff", (("a", b"1"), ("b", None)), 1000)


def test_json_by_hand_may_be_short() -> None:
    given = {"value": {"id": 1}, "headers": {"a": "b"}}

    assert from_json(json.dumps(given).encode()) == Input(None, b'{"id": 1}', (("a", b"b"),))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"timestamp": "now"}', "not a timestamp"),
        (b'{"headers": 1}', "headers are"),
        (b'{"headers": [1]}', "not a header"),
        (b'{"value_base64": "?"}', "base64|padding|alphabet"),
    ],
)
def test_json_that_is_no_record_is_refused(line: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=f"(?i){said}"):
        from_json(line)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--acks", "2"], "acks is 0, 1 or all, not '2'"),
        (["-H", "nothing"], "not NAME=VALUE: 'nothing'"),
        (["--json", "-K", ":"], "leave out -K and -k"),
        (["-z", "rar"], "invalid choice: 'rar'"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["produce", "t", *words])

    assert code == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["produce", "t", "-l", "/no/such/file"]) == 1
    assert "/no/such/file: No such file or directory" in capsys.readouterr().err
