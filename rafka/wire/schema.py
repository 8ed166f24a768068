"""The language in which Kafka's messages are declared.

A message is a `struct` of fields, declared once for all its versions. Each field
says in which version it appeared (`since`) and may say in which it was last seen
(`until`), from which on it may be null (`nullable_since`), the number under which it
travels as a tagged field (`tag`), and the value that it has where nobody gave one
(`default`). Names are Kafka's own in snake case.

Defaults are Kafka's too: zero, false, empty; the `nullable_` ones are null. A tagged
struct that is not there is None.

This is data. It knows no bytes: `decoding` and `encoding` turn it into source.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import attrs

Value: TypeAlias = Any  # what a field holds: int, bool, float, str, bytes, None, list or object

LAST: Final = 2**15 - 1  # no version is higher


@attrs.frozen(eq=False)
class Kind:
    """A primitive type. `code` is its letter in the `struct` module, None where its size varies."""

    name: str
    code: str | None
    size: int
    zero: Value


INT8: Final = Kind("int8", "b", 1, 0)
INT16: Final = Kind("int16", "h", 2, 0)
UINT16: Final = Kind("uint16", "H", 2, 0)
INT32: Final = Kind("int32", "i", 4, 0)
INT64: Final = Kind("int64", "q", 8, 0)
FLOAT64: Final = Kind("float64", "d", 8, 0.0)
BOOLEAN: Final = Kind("bool", "?", 1, False)
UUID: Final = Kind("uuid", "16s", 16, bytes(16))
STRING: Final = Kind("string", None, 0, "")
BYTES: Final = Kind("bytes", None, 0, b"")
RECORDS: Final = Kind("records", None, 0, None)


@attrs.frozen(eq=False)
class Struct:
    """Fields in the order in which they travel."""

    fields: tuple[Field, ...]


@attrs.frozen(eq=False, kw_only=True)
class Field:
    name: str
    type: Kind | Struct  # of the element, in an array
    array: bool = False
    since: int = 0
    until: int = LAST
    nullable_since: int | None = None
    tag: int | None = None
    default: Value = None

    def alive_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def nullable_in(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since


def struct(*fields: Field) -> Struct:
    return Struct(fields)


def array(
    name: str,
    element: Kind | Struct,
    *,
    since: int = 0,
    until: int = LAST,
    nullable_since: int | None = None,
    tag: int | None = None,
    default: Value = (),
) -> Field:
    """Elements of one type. `default=None` says null; otherwise it is empty."""
    return Field(
        name=name,
        type=element,
        array=True,
        since=since,
        until=until,
        nullable_since=nullable_since,
        tag=tag,
        default=default,
    )


def nullable_array(name: str, element: Kind | Struct, **when: Value) -> Field:
    return array(name, element, nullable_since=0, **{"default": None, **when})


def nested(name: str, inner: Struct, *, since: int = 0, tag: int | None = None) -> Field:
    """A struct in its place, or under a tag."""
    return Field(name=name, type=inner, since=since, tag=tag)


def nullable_nested(name: str, inner: Struct, *, since: int = 0) -> Field:
    return Field(name=name, type=inner, since=since, nullable_since=0)


def int8(name: str, **when: Value) -> Field:
    return _primitive(name, INT8, when)


def int16(name: str, **when: Value) -> Field:
    return _primitive(name, INT16, when)


def uint16(name: str, **when: Value) -> Field:
    return _primitive(name, UINT16, when)


def int32(name: str, **when: Value) -> Field:
    return _primitive(name, INT32, when)


def int64(name: str, **when: Value) -> Field:
    return _primitive(name, INT64, when)


def float64(name: str, **when: Value) -> Field:
    return _primitive(name, FLOAT64, when)


def boolean(name: str, **when: Value) -> Field:
    return _primitive(name, BOOLEAN, when)


def uuid(name: str, **when: Value) -> Field:
    """Sixteen raw bytes."""
    return _primitive(name, UUID, when)


def string(name: str, **when: Value) -> Field:
    return _primitive(name, STRING, when)


def nullable_string(name: str, **when: Value) -> Field:
    return _primitive(name, STRING, {"nullable_since": 0, "default": None, **when})


def bytes_(name: str, **when: Value) -> Field:
    return _primitive(name, BYTES, when)


def nullable_bytes(name: str, **when: Value) -> Field:
    return _primitive(name, BYTES, {"nullable_since": 0, "default": None, **when})


def records(name: str, **when: Value) -> Field:
    """Record batches, never copied: read as a view of the frame, written as a splice. May be null."""
    return _primitive(name, RECORDS, {"nullable_since": 0, **when})


def _primitive(name: str, kind: Kind, when: dict[str, Value]) -> Field:
    return Field(name=name, type=kind, **{"default": kind.zero, **when})


# --- what follows from a declaration -------------------------------------------------


def alive(struct: Struct, version: int) -> list[Field]:
    """The fields in their places, in order."""
    return [field for field in struct.fields if field.tag is None and field.alive_in(version)]


def tagged(struct: Struct, version: int) -> list[Field]:
    """The fields under tags, in the order in which they are written."""
    found = [field for field in struct.fields if field.tag is not None and field.alive_in(version)]
    return sorted(found, key=lambda field: field.tag or 0)


def min_size(type_: Kind | Struct, version: int, flexible: bool) -> int:
    """The fewest bytes that a value of the type takes, its null included."""
    if isinstance(type_, Struct):
        fields = sum(min_field_size(field, version, flexible) for field in alive(type_, version))
        return fields + flexible  # one byte says that no tagged fields follow
    if type_.code is not None:
        return type_.size
    if flexible:
        return 1
    return 2 if type_ is STRING else 4


def min_field_size(field: Field, version: int, flexible: bool) -> int:
    if field.array:
        return 1 if flexible else 4
    if isinstance(field.type, Struct) and field.nullable_in(version):
        return 1
    return min_size(field.type, version, flexible)


def holds_records(struct: Struct) -> bool:
    """Whether a message has record batches in it, at whatever depth."""
    return any(
        field.type is RECORDS or (isinstance(field.type, Struct) and holds_records(field.type))
        for field in struct.fields
    )
