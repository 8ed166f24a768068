"""From what somebody wrote to what a setting holds: cattrs hooks, one for each type of field.

A file's values have types, those of flags, environment and properties are text; both
are taken, and what does not fit is refused in words. Imported only when something was set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, get_origin

import attrs
import cattrs

from .links import LinkAddress, parse_link
from .listeners import Listener, parse_listener
from .places import Place, parse_place
from .setting import ConfigError, Setting, settings_of
from .sources import Given

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")


def structured(given: Given, section: type[Any], field: str) -> object:
    """The value as the section's field has it. Raises ConfigError."""
    about, wanted = _field(section, field)
    optional = wanted in (int | None, str | None, LinkAddress | None)
    if optional and given.value == "":
        return None
    try:
        return _converter().structure(given.value, wanted)
    except ValueError as error:
        reason = str(error)
    if about.allowed and about.one_of is None:
        reason += f", {about.allowed}"
    elif about.one_of:
        reason = f"must be {about.allowed}"
    raise ConfigError(given.key, given.value, reason, given.source)


def _field(section: type[Any], name: str) -> tuple[Setting, Any]:
    attrs.resolve_types(section)  # at once where it was done before
    return next((about, field.type) for field, about in settings_of(section) if field.name == name)


@cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook(bool, _boolean)
    converter.register_structure_hook(int, _whole)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(Place, lambda value, _: parse_place(_text(value)))
    converter.register_structure_hook(LinkAddress, lambda value, _: parse_link(_text(value)))
    converter.register_structure_hook_func(
        lambda t: t == tuple[str, ...], lambda value, _: tuple(_list(value))
    )
    converter.register_structure_hook_func(lambda t: t == tuple[Listener, ...], _listeners)
    converter.register_structure_hook_func(lambda t: t == Mapping[str, str], _pairs)
    converter.register_structure_hook_func(_is_literal, lambda value, _: _text(value))
    return converter


def _is_literal(wanted: Any) -> bool:
    origin: Any = get_origin(wanted)
    return origin is Literal


def _boolean(value: object, _: Any = None) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError("must be true or false")


def _whole(value: object, _: Any = None) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and len(value) < 100 and _WHOLE.fullmatch(value.strip()):
        return int(value)
    raise ValueError("must be a whole number")


def _number(value: object, _: Any = None) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            pass
        else:
            if number == number:
                return number
    raise ValueError("must be a number")


def _text(value: object, _: Any = None) -> str:
    if isinstance(value, str):
        return value.strip()
    raise ValueError("must be text")


def _list(value: object) -> list[str]:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return [item.strip() for item in value]
    if isinstance(value, str):
        return [item.strip() for item in value.split(",")] if value.strip() else []
    raise ValueError("must be a list, as in: a,b")


def _listeners(value: object, _: Any) -> tuple[Listener, ...]:
    return tuple(parse_listener(item) for item in _list(value))


def _pairs(value: object, _: Any) -> dict[str, str]:
    pairs = {}
    for item in _list(value):
        name, colon, protocol = item.partition(":")
        if not (name and colon and protocol):
            raise ValueError("must be NAME:PROTOCOL,...")
        pairs[name.strip().upper()] = protocol.strip().upper()
    return pairs
