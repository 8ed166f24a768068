"""Ops and replies as msgpack, both ways: what crosses a link between two processes.

An object is packed as the array of its fields, in the order in which its class declares
them; what they contain likewise. An op is `[code, fields]`. Bytes of any kind become
msgpack's binary, and record batches come back as memoryviews, as the wire gives them.

Gateway and broker need not be of the same day. A field that the sender does not know
yet takes its default, and one that the receiver does not know is passed over: so **new
fields go to the end of their class and have a default**, which a test holds us to.
Anything else is another `VERSION`, and two ends of different versions do not talk.

The functions are generated for each class when its op is first asked, and registered
as cattrs hooks; only the link between processes imports this module.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NoReturn, TypeAlias, Union, get_args, get_origin

import attrs
import cattrs
import msgpack

from ..errors import ErrorCode
from . import cluster, group, log, offsets, topics, txn
from .base import Envelope, KafkaOp, Op

VERSION: Final = 1
MODULES: Final = (log, topics, cluster, group, offsets, txn)

Fields: TypeAlias = Sequence[object]

_SEQUENCES: Final = (list, tuple, collections.abc.Sequence)
_BUFFERS: Final = {bytes, bytearray, memoryview}


class UnreadableOp(ValueError):
    """What came is no op or reply."""


class UnknownOp(UnreadableOp):
    """No op of this release has the code."""


@attrs.frozen(eq=False)
class Packing:
    """The ways of one op and its reply to fields and back."""

    code: KafkaOp
    op: type[Op[Any]]
    reply: type[Any]
    op_fields: Callable[[Any], Fields]
    op_of: Callable[[Fields], Any]
    reply_fields: Callable[[Any], Fields]
    reply_of: Callable[[Fields], Any]


@cache
def packing_of(code: int) -> Packing:
    """UnknownOp where no op has this code."""
    op = _ops().get(code)
    if op is None:
        raise UnknownOp(f"no op has the code {code:#x}: the other end is of a newer release")
    hooks = converter()
    reply = reply_class(op)
    return Packing(
        op.code,
        op,
        reply,
        hooks.get_unstructure_hook(op),
        _reader(hooks, op),
        hooks.get_unstructure_hook(reply),
        _reader(hooks, reply),
    )


def reply_class(op: type[Op[Any]]) -> type[Any]:
    """`Produce` is an `Op[ProduceReply]`."""
    reply: type[Any] = get_args(op.__orig_bases__[0])[0]  # type: ignore[attr-defined]
    return reply


def pack_op(op: Op[Any]) -> bytes:
    packed: bytes = msgpack.packb((op.code, packing_of(op.code).op_fields(op)))
    return packed


def unpack_op(packed: bytes) -> Op[Any]:
    code, fields = _unpacked(packed, 2)
    op: Op[Any] = packing_of(code).op_of(fields)
    return op


def pack_reply(code: KafkaOp, reply: object) -> bytes:
    """The reply alone: whoever asked knows to which op."""
    packed: bytes = msgpack.packb(packing_of(code).reply_fields(reply))
    return packed


def unpack_reply(code: KafkaOp, packed: bytes) -> Any:
    return packing_of(code).reply_of(_unpacked(packed))


def envelope_fields(envelope: Envelope) -> Fields:
    fields: Fields = converter().unstructure(envelope)
    return fields


def envelope_of(fields: Fields) -> Envelope:
    return converter().structure(fields, Envelope)


def _unpacked(packed: bytes, length: int | None = None) -> Any:
    try:
        found = msgpack.unpackb(packed, use_list=False)
    except ValueError as wrong:
        raise UnreadableOp(f"not msgpack: {wrong}") from wrong
    if not isinstance(found, tuple) or (length is not None and len(found) != length):
        raise UnreadableOp("not an array of fields")
    return found


@cache
def _ops() -> dict[int, type[Op[Any]]]:
    return {
        value.code: value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Op) and "code" in vars(value)
    }


def _reader(hooks: cattrs.Converter, cls: type[Any]) -> Callable[[Fields], Any]:
    hook = hooks.get_structure_hook(cls)

    def read(fields: Fields) -> Any:
        try:
            return hook(fields, cls)
        except UnreadableOp:
            raise
        except (TypeError, ValueError, KeyError, AttributeError) as wrong:
            raise UnreadableOp(f"the fields do not fit {cls.__qualname__}: {wrong!r}") from wrong

    return read


# --- cattrs hooks, generated ----------------------------------------------------------------------


@cache
def converter() -> cattrs.Converter:
    """Classes to tuples of their fields, and back."""
    hooks = cattrs.Converter(detailed_validation=False)
    hooks.register_unstructure_hook_factory(attrs.has, lambda cls: _to_fields(hooks, cls))
    hooks.register_structure_hook_factory(attrs.has, lambda cls: _from_fields(hooks, cls))
    return hooks


class _Codes(dict[int, ErrorCode]):
    """By number. One that a newer broker knows and this gateway does not is no foreseen error."""

    def __missing__(self, number: int) -> ErrorCode:
        return ErrorCode.UNKNOWN_SERVER_ERROR


_CODES: Final = _Codes({int(code): code for code in ErrorCode})


def _to_fields(hooks: cattrs.Converter, cls: type[Any]) -> Callable[[Any], Fields]:
    """`def to_fields(o): return (o.a, [hook(x) for x in o.b],)`"""
    names: dict[str, object] = {}
    parts = [_packed(hooks, field.type, f"o.{field.name}", names) for field in _fields(cls)]
    source = f"def to_fields(o):\n    return ({''.join(f'{part}, ' for part in parts)})\n"
    return _compiled(source, names, f"{cls.__qualname__}.to_fields")


def _from_fields(hooks: cattrs.Converter, cls: type[Any]) -> Callable[[Fields, Any], Any]:
    """Fills the slots of a new object, one assignment for each field, once their types are as they should be.

    Whoever is asked takes an op for what its class says, as after the wire's decoders: nobody looks again.
    """
    fields = _fields(cls)
    names: dict[str, object] = {"new": object.__new__, "cls": cls, "fit": _fit, "misfit": _misfit}
    source = "def from_fields(v, _):\n"
    source += f"    if v.__class__ is not tuple or len(v) != {len(fields)}: v = fit(v, cls)\n"
    source += "    o = new(cls)\n"
    if fields:
        source += f"    {''.join(f'v{at}, ' for at in range(len(fields)))} = v\n"
        checks = [_check(field.type, f"v{at}", names) for at, field in enumerate(fields)]
        if wanted := [check for check in checks if check]:
            every = "".join(f"{check or True}, " for check in checks)
            source += f"    if not ({' and '.join(wanted)}): misfit(cls, ({every}))\n"
    for at, field in enumerate(fields):
        source += f"    o.{field.name} = {_unpacked_as(hooks, field.type, f'v{at}', names)}\n"
    return _compiled(source + "    return o\n", names, f"{cls.__qualname__}.from_fields")


def _compiled(source: str, names: Mapping[str, object], title: str) -> Callable[..., Any]:
    scope: dict[str, Any] = dict(names)
    exec(compile(source, f"<{title}>", "exec"), scope)
    made: Callable[..., Any] = next(scope[name] for name in ("to_fields", "from_fields") if name in scope)
    return made


def _fields(cls: type[Any]) -> Sequence[attrs.Attribute[Any]]:
    found: Sequence[attrs.Attribute[Any]] = attrs.fields(attrs.resolve_types(cls))
    return found


def _fit(values: Fields, cls: type[Any]) -> Fields:
    """As many values as the class has fields: the sender is of another day."""
    if not isinstance(values, (tuple, list)):
        raise UnreadableOp(f"what came for {cls.__qualname__} is no array of fields")
    fields = attrs.fields(cls)
    return [*values[: len(fields)], *(_default(field, cls) for field in fields[len(values) :])]


def _misfit(cls: type[Any], fits: Sequence[bool]) -> NoReturn:
    name = attrs.fields(cls)[fits.index(False)].name
    raise UnreadableOp(f"what came for {cls.__qualname__}.{name} is of another type")


def _default(field: attrs.Attribute[Any], cls: type[Any]) -> object:
    """A default as it would have been packed. Those of sequences are empty ones."""
    default: Any = field.default
    if default is attrs.NOTHING:
        raise UnreadableOp(f"{cls.__qualname__} came without {field.name}, which has no default")
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        default = default.factory()
    return converter().unstructure(default) if attrs.has(type(default)) else default


# --- expressions ----------------------------------------------------------------------------------


def _packed(hooks: cattrs.Converter, wanted: Any, value: str, names: dict[str, object]) -> str:
    """The expression that makes of `value` what msgpack takes."""
    wanted, optional = _bare(wanted)
    if _plain(wanted) or wanted is memoryview:
        return value
    if get_origin(wanted) in _SEQUENCES:
        inner = _element(wanted)
        item = _packed(hooks, inner, "x", names)
        made = value if item == "x" else f"[{item} for x in {value}]"
    else:
        made = f"{_named(names, hooks.get_unstructure_hook(wanted))}({value})"
    return made if not optional or made == value else f"None if {value} is None else {made}"


def _unpacked_as(hooks: cattrs.Converter, wanted: Any, value: str, names: dict[str, object]) -> str:
    """The expression that makes of what msgpack gave what the field holds."""
    wanted, optional = _bare(wanted)
    origin = get_origin(wanted)
    if wanted is ErrorCode:
        made = f"{_named(names, _CODES)}[{value}]"
    elif wanted is memoryview:
        made = f"memoryview({value})"
    elif _plain(wanted):
        return value
    elif origin in _SEQUENCES:
        item = _unpacked_as(hooks, _element(wanted), "x", names)
        made = f"[{item} for x in {value}]" if item != "x" else value
        if origin is list and item == "x":
            made = f"list({value})"
        elif origin is not list and item != "x":
            made = f"tuple({made})"
    else:
        hook = hooks.get_structure_hook(wanted)
        made = f"{_named(names, hook)}({value}, {_named(names, wanted)})"
    return made if not optional or made == value else f"None if {value} is None else {made}"


def _check(wanted: Any, value: str, names: dict[str, object]) -> str:
    """The expression that says whether what msgpack gave fits; empty where taking it apart tells."""
    wanted, optional = _bare(wanted)
    if wanted is ErrorCode or _plain(wanted):
        check = f"{value}.__class__ is {_given_as(wanted).__name__}"
    elif get_origin(wanted) in _SEQUENCES:
        check = f"({value}.__class__ is tuple or {value}.__class__ is list)"
        inner, may_be_none = _bare(_element(wanted))
        if _plain(inner):
            taken = {_given_as(inner), NoneType} if may_be_none else {_given_as(inner)}
            check += f" and {_named(names, frozenset(taken).issuperset)}(map(type, {value}))"
        elif each := _check(_element(wanted), "x", names):
            check += f" and all([{each} for x in {value}])"
    else:
        return ""
    return f"({value} is None or {check})" if optional else f"({check})"


def _given_as(wanted: type[Any]) -> type[Any]:
    """What msgpack gives for a plain type."""
    return int if issubclass(wanted, Enum) else wanted


def _bare(wanted: Any) -> tuple[Any, bool]:
    """The type without its NewTypes and without None; memoryview for any kind of buffer."""
    while hasattr(wanted, "__supertype__"):
        wanted = wanted.__supertype__
    if get_origin(wanted) not in (Union, UnionType):
        return wanted, False
    parts = set(get_args(wanted))
    optional = NoneType in parts
    parts.discard(NoneType)
    if parts == _BUFFERS:
        return memoryview, optional
    if len(parts) == 1:
        bare, deeper = _bare(parts.pop())
        return bare, optional or deeper
    raise TypeError(f"a field may be one thing or None, and not {wanted}")


def _plain(wanted: Any) -> bool:
    """What msgpack takes and gives as it is."""
    return wanted in (str, int, bool, float, bytes) or (
        isinstance(wanted, type) and issubclass(wanted, int) and issubclass(wanted, Enum)
    )


def _element(wanted: Any) -> Any:
    return get_args(wanted)[0]


def _named(names: dict[str, object], value: object) -> str:
    """A name for a value in the generated source, the same for the same."""
    for name, known in names.items():
        if known is value:
            return name
    name = f"n{len(names)}"
    names[name] = value
    return name
