"""Small types that every room speaks: ids, and the shape of what passes between rooms."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final, NewType, TypeAlias, TypeVar, dataclass_transform

import attrs

OrgId = NewType("OrgId", str)
TopicId = NewType("TopicId", bytes)  # sixteen bytes; the wire's UUID, never parsed

Buffer: TypeAlias = bytes | bytearray | memoryview

DEFAULT_ORG: Final = OrgId("default")  # serves those who never heard of organisations
NO_TOPIC_ID: Final = TopicId(bytes(16))

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(attrs.field,))
def message(cls: type[T]) -> type[T]:
    """A slotted, keyword-only attrs class that mypy holds to be frozen.

    Ops, replies and what they contain are made by the hundred thousand a second. An
    object frozen at run time costs three times as much to make, and the wire's
    compiled decoders could not fill its slots in place: so freezing is checked by
    mypy, and paid for by nobody.
    """
    return made_when_used(cls, kw_only=True)


def made_when_used(cls: type[T], *, kw_only: bool) -> type[T]:
    """A slotted attrs class, whole when it is first used.

    There are hundreds of such classes, and all that attrs writes for one would cost a
    quarter of a start. So a class gets its slots at once, and what attrs makes of it when
    that is first asked for: its `__init__`, and the `__attrs_attrs__` by which it is known.
    How it is compared and shown is the same for all.
    """
    if any(vars(base).get("__attrs_attrs__") for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__qualname__}: a message does not inherit fields of another")
    hints = vars(cls).get("__annotations__", {})
    fields = [name for name, hint in hints.items() if not str(hint).startswith(_CLASS_VARIABLES)]
    body = {name: value for name, value in vars(cls).items() if name not in (*fields, *_NOT_INHERITED)}
    unmade = _Unmade()
    body.update(
        __slots__=tuple(fields), __eq__=_equal, __repr__=_shown, __hash__=None, __attrs_attrs__=unmade
    )
    made: Any = type.__new__(type(cls), cls.__name__, cls.__bases__, body)

    def complete() -> None:
        twin: Any = attrs.define(cls, kw_only=kw_only, eq=False, repr=False, match_args=False)
        made.__attrs_attrs__, made.__init__ = twin.__attrs_attrs__, twin.__init__

    def first_init(self: Any, /, *values: object, **named: object) -> None:
        complete()
        made.__init__(self, *values, **named)

    unmade.complete = complete
    made.__init__ = first_init
    return made  # type: ignore[no-any-return]


class _Unmade:
    """Stands where `__attrs_attrs__` will be, until somebody asks for it."""

    complete: Callable[[], None]

    def __get__(self, instance: object, owner: type) -> Any:
        self.complete()
        return owner.__attrs_attrs__  # type: ignore[attr-defined]


_CLASS_VARIABLES: Final = ("ClassVar", "typing.ClassVar", "t.ClassVar")
_NOT_INHERITED: Final = ("__dict__", "__weakref__")


def _equal(self: Any, other: Any) -> bool:
    if other.__class__ is not self.__class__:
        return False
    return all(getattr(self, field.name) == getattr(other, field.name) for field in self.__attrs_attrs__)


def _shown(self: Any) -> str:
    fields = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__)
    return f"{self.__class__.__qualname__}({fields})"


def topic_id_text(topic_id: TopicId) -> str:
    """The id as Kafka's tools print it: unpadded base64url."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
