"""What a setting is: a dotted key, a default, a unit, a sentence, and what values it may have.

Sections (see `sections/`) are attrs classes whose fields are made by `setting(...)`.
Whoever makes a section, from a file or by hand in Python, meets the same checks:
a value out of bounds is a `ConfigError` that names key, value and what is allowed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import attrs

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1


class Kind(IntEnum):
    """The type of a value, numbered as DescribeConfigs tells it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigError(ValueError):
    """A setting cannot be used. One line: the key, the value, where it came from, and the way out."""

    def __init__(self, key: str, value: object, reason: str, source: str | None = None) -> None:
        self.key, self.value, self.reason, self.source = key, value, reason, source
        super().__init__(key, value, reason, source)

    def __str__(self) -> str:
        given = f"{self.key}={as_text(self.value)}" if self.value is not None else self.key
        return f"{given} (from {self.source}): {self.reason}" if self.source else f"{given}: {self.reason}"

    def found_in(self, source: str) -> ConfigError:
        return ConfigError(self.key, self.value, self.reason, self.source or source)


class Setting(NamedTuple):
    """All that is known of a setting but its value."""

    key: str
    kind: Kind
    doc: str
    unit: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] | None = None
    aliases: tuple[str, ...] = ()  # other names it is understood by, Kafka's own among them
    kafka: str | None = None  # Kafka's name where ours differs; admin clients are shown this one
    dynamic: bool = False  # admin clients may change it while the broker runs

    @property
    def names(self) -> tuple[str, ...]:
        return (self.key, *((self.kafka,) if self.kafka else ()), *self.aliases)

    @property
    def allowed(self) -> str:
        """The values it may have, in words; "" where any will do."""
        if self.one_of:
            return " or ".join(v or '""' for v in self.one_of)
        low, high = self.at_least, self.at_most
        if low is not None and high is not None:
            return f"{low} to {high}"
        if low is not None:
            return f"at least {low}"
        return f"at most {high}" if high is not None else ""

    def refuses(self, value: object) -> bool:
        if self.one_of is not None:
            return any(v not in self.one_of for v in (value if isinstance(value, tuple) else (value,)))
        if isinstance(value, int | float):
            return not (
                (self.at_least is None or value >= self.at_least)
                and (self.at_most is None or value <= self.at_most)
            )
        return False


def setting(
    key: str,
    default: Any,
    doc: str,
    kind: Kind = Kind.INT,
    *,
    unit: str | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    one_of: tuple[str, ...] | None = None,
    aliases: tuple[str, ...] = (),
    kafka: str | None = None,
    dynamic: bool = False,
) -> Any:
    """Declare a field of a section. `default` may be a function without arguments."""
    if at_most is None and kind in (Kind.INT, Kind.LONG):
        at_most = INT_MAX if kind is Kind.INT else LONG_MAX
    about = Setting(key, kind, doc, unit, at_least, at_most, one_of, aliases, kafka, dynamic)
    start = attrs.Factory(default) if callable(default) else default
    return attrs.field(default=start, metadata={"setting": about})


class Section:
    """What every section can do. Not left to attrs, which would write code for each at every start."""

    __slots__ = ()

    def __attrs_post_init__(self) -> None:
        for field, about in settings_of(type(self)):
            value = getattr(self, field.name)
            if value is not None and about.refuses(value):
                raise ConfigError(about.key, value, f"must be {about.allowed}")

    def __repr__(self) -> str:
        values = (f"{field.name}={getattr(self, field.name)!r}" for field, _ in settings_of(type(self)))
        return f"{type(self).__name__}({', '.join(values)})"


def settings_of(section: type[Any]) -> list[tuple[attrs.Attribute[Any], Setting]]:
    """The settings of a section in the order in which they are declared."""
    return [(field, field.metadata["setting"]) for field in attrs.fields(section)]


def as_text(value: object) -> str:
    """A value as a properties file would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return ",".join(as_text(v) for v in value)
    if isinstance(value, dict):
        return ",".join(f"{k}:{as_text(v)}" for k, v in value.items())
    return str(value)
