"""Small types that every room speaks: ids, and the shape of what passes between rooms."""

from __future__ import annotations

import base64
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
    mypy, and paid for by nobody. There are many such classes, and each method that
    attrs writes for one costs time at every start: comparing and showing them is
    done by the two functions below, which all of them share.
    """
    shared: Any = cls
    shared.__eq__, shared.__repr__, shared.__hash__ = _equal, _shown, None
    made: Any = attrs.define(cls, kw_only=True, eq=False, repr=False, match_args=False)
    return made  # type: ignore[no-any-return]


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
