"""How `rafka consume` writes a record: kcat's format strings, and JSON. No I/O.

A format string is compiled once into a list of small functions, one per letter, and each record is
what they give, joined. Bytes stay bytes: what a record holds goes out as it is.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from typing import Final

from ..records.record import Record

Part = Callable[[str, int, Record], bytes]
Formatter = Callable[[str, int, Record], bytes]

DEFAULT: Final = "%s\\n"

_TOKEN: Final = re.compile(r"%(?P<letter>.?)|\\(?:x(?P<hex>[0-9a-fA-F]{2})|(?P<escape>.?))", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


def compile_format(text: str, null: bytes = b"") -> Formatter:
    """What writes records in this format. `null` stands for a key or value that is null.

    ValueError where the format has a letter that means nothing.
    """
    letters = _letters(null)
    parts: list[Part] = []
    at = 0
    for token in _TOKEN.finditer(text):
        _add_literal(parts, text[at : token.start()].encode())
        at = token.end()
        if (letter := token["letter"]) is not None:
            if letter == "%":
                _add_literal(parts, b"%")
            elif letter in letters:
                parts.append(letters[letter])
            else:
                known = " ".join(f"%{one}" for one in letters)
                raise ValueError(f"no such format letter: %{letter} (there are {known} and %%)")
        elif token["hex"] is not None:
            _add_literal(parts, bytes.fromhex(token["hex"]))
        elif token["escape"] in _ESCAPES:
            _add_literal(parts, _ESCAPES[token["escape"]])
        else:
            raise ValueError(f"no such escape: {token[0]} (there are \\n \\t \\r \\0 \\\\ and \\xHH)")
    _add_literal(parts, text[at:].encode())

    def write(topic: str, partition: int, record: Record) -> bytes:
        return b"".join([part(topic, partition, record) for part in parts])

    return write


def unescape(text: str) -> bytes:
    """A delimiter as it was typed: `\\t`, `\\n`, `\\x1f`, or the characters themselves."""

    out = bytearray()
    at = 0
    for token in _TOKEN.finditer(text):
        out += text[at : token.start()].encode()
        at = token.end()
        if token["hex"] is not None:
            out += bytes.fromhex(token["hex"])
        else:
            out += _ESCAPES.get(token["escape"] or "", token[0].encode())
    return bytes(out + text[at:].encode())


def _add_literal(parts: list[Part], literal: bytes) -> None:
    if literal:
        parts.append(lambda topic, partition, record: literal)


def _letters(null: bytes) -> dict[str, Part]:
    """kcat's letters."""

    def raw(data: bytes | None) -> bytes:
        return null if data is None else data

    def size(data: bytes | None) -> bytes:
        return b"-1" if data is None else b"%d" % len(data)

    return {
        "t": lambda topic, partition, record: topic.encode(),
        "p": lambda topic, partition, record: b"%d" % partition,
        "o": lambda topic, partition, record: b"%d" % record.offset,
        "k": lambda topic, partition, record: raw(record.key),
        "s": lambda topic, partition, record: raw(record.value),
        "K": lambda topic, partition, record: size(record.key),
        "S": lambda topic, partition, record: size(record.value),
        "R": lambda topic, partition, record: _binary_size(record.value),
        "T": lambda topic, partition, record: b"%d" % record.timestamp,
        "h": lambda topic, partition, record: _headers(record, null),
    }


def _binary_size(data: bytes | None) -> bytes:
    return (-1 if data is None else len(data)).to_bytes(4, "big", signed=True)


def _headers(record: Record, null: bytes) -> bytes:
    return b",".join(
        key.encode() + b"=" + (null if value is None else value) for key, value in record.headers
    )


# --- JSON ----------------------------------------------------------------------------


def as_json(topic: str, partition: int, record: Record) -> bytes:
    """One line. Keys and values that are not UTF-8 come as base64, under `key_base64`, `value_base64`."""
    shown: dict[str, object] = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
    }
    _put(shown, "key", record.key)
    _put(shown, "value", record.value)
    if record.headers:
        shown["headers"] = [_header(key, value) for key, value in record.headers]
    return json.dumps(shown, ensure_ascii=False).encode() + b"\n"


def _header(key: str, value: bytes | None) -> dict[str, object]:
    shown: dict[str, object] = {"key": key}
    _put(shown, "value", value)
    return shown


def _put(shown: dict[str, object], name: str, data: bytes | None) -> None:
    try:
        shown[name] = None if data is None else data.decode()
    except UnicodeDecodeError:
        assert data is not None
        shown[f"{name}_base64"] = base64.b64encode(data).decode()
