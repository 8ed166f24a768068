"""The language of config values: text from a client becomes a checked value, and text again.

Kafka parses and words refusals in one place for topics, groups and client metrics; so does this.
A `ConfigDef` is a row of one of their tables.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, TypeAlias, TypeVar

import attrs

from ..errors import ErrorCode, KafkaError

Value: TypeAlias = bool | int | float | str | tuple[str, ...]
Check: TypeAlias = Callable[[Value], str | None]  # what is wrong with a value; None where nothing is

LONG_MAX: Final = 2**63 - 1


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Where a value comes from, as DescribeConfigs says it."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Kind(IntEnum):
    """The type of a value, as DescribeConfigs says it."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@attrs.frozen
class ConfigDef:
    """A config: its name, type, default, what it is for, and what is wrong with a value."""

    name: str
    kind: Kind
    default: Value
    doc: str
    check: Check | None = None


Row = TypeVar("Row", bound=ConfigDef)


def checked(row: ConfigDef, text: str) -> Value:
    """The value that the text stands for. Raises INVALID_CONFIG in the words that Kafka uses."""
    value = _parse(row, text)
    if row.check is not None and (reason := row.check(value)) is not None:
        raise _invalid(row, as_text(value), reason)
    return value


def as_text(value: Value) -> str:
    """A value as DescribeConfigs tells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _java_double(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def as_node(text: str) -> int | None:
    """The number of a broker, if the text is one."""
    if len(text) > _MOST_DIGITS or not text.removeprefix("-").isdecimal():
        return None
    return int(text)


def by_name(*rows: Row) -> dict[str, Row]:
    return {row.name: row for row in sorted(rows, key=lambda row: row.name)}


# What values may be


def at_least(low: float) -> Check:
    return lambda value: f"Value must be at least {low}" if _number(value) < low else None


def within(low: float, high: float) -> Check:
    def check(value: Value) -> str | None:
        if not _number(value) <= high:  # so that "not a number" is refused as well
            return f"Value must be no more than {high}"
        return f"Value must be at least {low}" if _number(value) < low else None

    return check


def one_of(*words: str) -> Check:
    def check(value: Value) -> str | None:
        given = value if isinstance(value, tuple) else (value,)
        return None if all(v in words for v in given) else f"String must be one of: {', '.join(words)}"

    return check


def split_list(text: str) -> tuple[str, ...]:
    """The items of a list, each once, in their order."""
    return tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text.strip() else ()


def appended(before: str, text: str) -> str:
    return ",".join(dict.fromkeys((*split_list(before), *split_list(text))))


def subtracted(before: str, text: str) -> str:
    gone = set(split_list(text))
    return ",".join(item for item in split_list(before) if item not in gone)


# Private

_MOST_DIGITS: Final = 11  # of a number that can be a broker's, with its sign
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?")
_BITS: Final[Mapping[Kind, int]] = {Kind.INT: 31, Kind.LONG: 63}


def _parse(row: ConfigDef, text: str) -> Value:
    bare = text.strip()
    match row.kind:
        case Kind.BOOLEAN:
            if bare.lower() not in ("true", "false"):
                raise _invalid(row, text, "Expected value to be either true or false")
            return bare.lower() == "true"
        case Kind.INT | Kind.LONG:
            top = 1 << _BITS[row.kind]
            if not _WHOLE.fullmatch(bare) or not -top <= int(bare) < top:
                raise _invalid(row, text, f"Not a number of type {row.kind.name}")
            return int(bare)
        case Kind.DOUBLE:
            if not _DOUBLE.fullmatch(bare):
                raise _invalid(row, text, "Not a number of type DOUBLE")
            return float(bare.rstrip("fFdD"))
        case Kind.LIST:
            return split_list(text)
        case _:
            return bare


def _invalid(row: ConfigDef, value: str, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_CONFIG, f"Invalid value {value} for configuration {row.name}: {reason}"
    )


def _number(value: Value) -> float:
    assert isinstance(value, int | float), "only numbers have bounds"
    return value


def _java_double(value: float) -> str:
    """As Java prints it: 0.5, 1.0E-5."""
    if not math.isfinite(value) or value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value).replace("inf", "Infinity")
    shortest = next(text for n in range(1, 17) if float(text := f"{value:.{n}e}") == value)
    mantissa, _, power = shortest.partition("e")
    return f"{mantissa}E{int(power)}"
