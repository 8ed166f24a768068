"""The classes that codecs build and read: those made from a declaration, and anybody's own.

`make_class` turns a declaration into slotted attrs classes with the fields of all
versions; a nested class hangs on the one around it under the field's name in camel
case (`PRODUCE.Request.TopicData.PartitionData`).

`Shape` is what a codec asks about a class: which fields it has, what class their
elements are, what its own defaults are. It reads attrs fields and type hints only,
so an op is as good as a class made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import attrs

from .schema import BOOLEAN, BYTES, FLOAT64, RECORDS, STRING, UUID, Field, Kind, Struct, Value

_TYPES: Final[dict[Kind, Any]] = {
    BOOLEAN: bool,
    BYTES: bytes,
    FLOAT64: float,
    RECORDS: memoryview | bytes | None,
    STRING: str,
    UUID: bytes,
}


def make_class(name: str, struct: Struct, qualname: str | None = None) -> type[Any]:
    """A slotted, keyword-only class with all fields of all versions, and the wire's defaults."""
    qualname = qualname or name
    fields: dict[str, Any] = {}
    inner: dict[str, type[Any]] = {}
    for field in struct.fields:
        hint: Any
        if isinstance(field.type, Struct):
            camel = camel_case(field.name)
            hint = inner[camel] = make_class(camel, field.type, f"{qualname}.{camel}")
        else:
            hint = _TYPES.get(field.type, int)
        default: Any = field.default
        if field.array:
            hint = list[hint]
            default = None if default is None else attrs.Factory(list)
        elif isinstance(field.type, Struct):
            hint = hint | None
        fields[field.name] = attrs.field(default=default, type=hint, kw_only=True)
    made: type[Any] = attrs.make_class(name, fields, slots=True)
    made.__qualname__ = qualname
    made.__module__ = __name__
    for camel, cls in inner.items():
        setattr(made, camel, cls)
    return made


def camel_case(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


class Shape:
    """A class as a codec sees it."""

    def __init__(self, cls: type[Any]) -> None:
        if not attrs.has(cls):
            raise TypeError(f"{cls.__qualname__} is not an attrs class")
        self.cls = cls
        self._attributes = {attribute.name: attribute for attribute in attrs.fields(cls)}
        self._hints = get_type_hints(cls)

    def __contains__(self, name: str) -> bool:
        return name in self._attributes

    def element(self, field: Field) -> Shape:
        """The class of a nested struct, or of an array's elements, found in the type hint."""
        for cls in _classes(self._hints.get(field.name)):
            return Shape(cls)
        raise TypeError(
            f"{self.cls.__qualname__}.{field.name} names no attrs class: what is to be made of it?"
        )

    def wants_tuple(self, name: str) -> bool:
        return any(get_origin(hint) is tuple for hint in _parts(self._hints.get(name)))

    def may_be_none(self, name: str) -> bool:
        return type(None) in _parts(self._hints.get(name))

    def own_defaults(self, struct: Struct) -> Iterator[tuple[str, Value]]:
        """Fields that the wire knows nothing of, and their defaults (which may be an `attrs.Factory`)."""
        declared = {field.name for field in struct.fields}
        for attribute in self._attributes.values():
            if attribute.name in declared or not attribute.init:
                continue
            if attribute.default is attrs.NOTHING:
                raise TypeError(
                    f"{self.cls.__qualname__}.{attribute.name} has no default, and the wire has no such field"
                )
            yield attribute.name, attribute.default

    def check_writable(self) -> None:
        """Decoders fill slots in place, so the class must not be frozen at run time."""
        blank = object.__new__(self.cls)
        for name in self._attributes:
            try:
                setattr(blank, name, None)
            except attrs.exceptions.FrozenError:
                raise TypeError(f"{self.cls.__qualname__} is frozen: declare it with @message") from None
            except Exception:  # a validator that refuses None: not frozen, then
                continue
            return


def _parts(hint: Any) -> tuple[Any, ...]:
    """The members of a union; a hint that is none is its only part."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _classes(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and attrs.has(hint):
        yield hint
    for argument in get_args(hint):
        yield from _classes(argument)
