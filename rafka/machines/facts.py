"""Facts: what must survive, said in the past tense, and how a fact becomes bytes.

A machine decides; what its decision changes for good is a list of facts, and only
`apply(fact)` changes durable fields. The journal keeps facts in order, and a
restart applies them again: so the shape of a fact is a promise to every later
version of rafka.

    @fact("topic-created")
    class TopicCreated:
        org: OrgId
        name: str
        partitions: int

The tag is written to disk beside the fields and must never change or be used again
for something else; the class may be renamed at will. A field may be added if it
has a default. A field that is no longer declared is passed over when it is read.
Fields are what msgpack knows (str, bytes, int, float, bool, None, tuples, lists,
dicts) and slotted attrs classes of those.

Which facts there are is told to a `FactRegistry` by whoever puts the broker
together; this module knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

import attrs
import msgpack

from ..types import made_when_used

if TYPE_CHECKING:
    from cattrs import Converter

Fact: TypeAlias = object  # an instance of a class that is marked with @fact

T = TypeVar("T")

_TAG = "__fact_tag__"
_SCALARS: Final = (str, bytes, int, float, bool, NoneType, ...)
_NESTED: Final = (tuple, list, dict, Union, UnionType)

_packed: Callable[[Any], bytes] = msgpack.Packer().pack  # one, since making it costs as much as using it


class UnreadableFact(ValueError):
    """A kept fact cannot be understood: its tag is unknown, or its fields do not fit."""


@dataclass_transform(frozen_default=True, field_specifiers=(attrs.field,))
def fact(tag: str) -> Callable[[type[T]], type[T]]:
    """Make the class a slotted attrs class that the journal can keep under `tag`.

    mypy holds it to be frozen, as it does ops and replies, and for the same reason: an
    object that is frozen at run time costs three times as much to make.
    """

    def mark(cls: type[T]) -> type[T]:
        made = made_when_used(cls, kw_only=False)
        setattr(made, _TAG, tag)
        return made

    return mark


def tag_of(cls: type) -> str:
    """The tag of a class marked with @fact. TypeError where it is not, even if its base is."""
    tag = vars(cls).get(_TAG)
    if tag is None:
        raise TypeError(f"{cls.__qualname__} is not marked with @fact, so it cannot be journaled")
    return str(tag)


class FactRegistry:
    """The facts of one broker, and the way of each to bytes and back."""

    def __init__(self, classes: Iterable[type]) -> None:
        self._pack: dict[type, tuple[bytes, Callable[[Any], Any]]] = {}
        self._unpack: dict[bytes, Callable[[Any, type], Any]] = {}
        self._classes: dict[bytes, type] = {}
        for cls in classes:
            tag = tag_of(cls).encode()
            if tag in self._classes:
                names = f"{self._classes[tag].__qualname__} and {cls.__qualname__}"
                raise ValueError(f"the tag {tag.decode()!r} is taken twice: by {names}")
            self._classes[tag] = cls

    @cached_property
    def _converter(self) -> Converter:
        """Made, as are its ways with each class, when first used: a start needs few of them."""
        from cattrs.fns import identity
        from cattrs.preconf.msgpack import make_converter

        converter = make_converter(detailed_validation=False)
        converter.register_unstructure_hook_func(_plain, identity)
        return converter

    def _learn(self, cls: type) -> None:
        """How this class becomes bytes, and is made of them again."""
        tag = str(vars(cls).get(_TAG)).encode()
        if self._classes.get(tag) is not cls:
            raise TypeError(f"{cls.__qualname__} is not in the registry of facts")
        self._pack[cls] = tag, self._converter.get_unstructure_hook(cls)
        self._unpack[tag] = self._converter.get_structure_hook(cls)

    def pack(self, fact: Fact) -> tuple[bytes, bytes]:
        """(tag, fields). TypeError for what is no fact of this registry: a mistake of ours."""
        if (known := self._pack.get(type(fact))) is None:
            self._learn(type(fact))
            known = self._pack[type(fact)]
        tag, fields = known
        return tag, _packed(fields(fact))

    def unpack(self, tag: bytes, packed: bytes) -> Fact:
        """The fact again. UnreadableFact for a tag nobody declares, or fields that do not fit."""
        cls = self._classes.get(tag)
        if cls is None:
            raise UnreadableFact(
                f"facts of the kind {tag.decode(errors='backslashreplace')!r} are unknown to this version:"
                " a newer rafka has written them"
            )
        if tag not in self._unpack:
            self._learn(cls)
        try:
            # Tuples, since a key of a dict may be one.
            fields = msgpack.unpackb(packed, use_list=False, strict_map_key=False)
            return self._unpack[tag](fields, cls)
        except (ValueError, TypeError, KeyError, AttributeError) as wrong:
            raise UnreadableFact(
                f"a fact of the kind {tag.decode()!r} does not have the fields it should: {wrong!r}"
            ) from wrong


def _plain(kind: Any) -> bool:
    """Whether values of a type go into msgpack as they are, whatever they contain."""
    kind = getattr(kind, "__supertype__", kind)  # of a NewType
    if get_origin(kind) in _NESTED:
        return all(map(_plain, get_args(kind)))
    return kind in _SCALARS
