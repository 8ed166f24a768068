"""Writes the source of decoders.

One function per (message, version, class), everything nested written out in place.
Fixed-size fields in a row are read by one `struct.Struct`, and so is the length that
follows them. A length below 128 is one byte and handled there and then.

Where checks are. Reading past the end raises by itself (IndexError, struct.error) or,
in slices, yields less; `at` only grows, so one look at the end tells whether the frame
was cut short. Counts are checked before anything is made of them: there must be bytes
left for so many elements, and so many elements left in the budget of the frame.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packer
from struct import error as StructError
from typing import Any, Final

from . import runtime
from .classes import Shape
from .errors import WireError
from .schema import BYTES, STRING, UUID, Field, Kind, Struct, alive, holds_records, min_size, tagged
from .source import Source

ELEMENT_BUDGET: Final = 200_000  # elements of arrays in one request, all arrays together
REPLY_BUDGET: Final = 10_000_000  # the same in a reply, which comes from a broker that was chosen

_FAST_LOOP_FROM: Final = 4  # elements; below, setting up `iter_unpack` costs more than it saves


def decoder(
    struct: Struct, shape: Shape, version: int, flexible: bool, title: str, budget: int
) -> Callable[..., Any]:
    """`decode(data, at, left=budget) -> (object, end)`."""
    return _Decoder(struct, version, flexible, title).function(shape, budget)


class _Decoder:
    def __init__(self, struct: Struct, version: int, flexible: bool, title: str) -> None:
        self.struct = struct
        self.version = version
        self.flexible = flexible
        self.title = title
        # Text is cheaper to cut from bytes; a frame with records is not copied, though.
        self.copies = not holds_records(struct)
        self.source = Source()
        # What is read next by one packer: (code, size, target or None to pass over).
        self.run: list[tuple[str, int, str | None]] = []

    def function(self, shape: Shape, budget: int) -> Callable[..., Any]:
        source = self.source
        it = source.fresh("it")
        source.names.update(
            new=object.__new__,
            once=(None,),
            WireError=WireError,
            StructError=StructError,
            check_text=runtime.check_text,
            read_length=runtime.read_length,
            read_string_length=runtime.read_string_length,
            read_tag=runtime.read_tag,
            read_tag_count=runtime.read_tag_count,
            skip_tags=runtime.skip_tags,
        )
        with source.block(f"def decode(data, at, left={budget}):"):
            wanted = "bytes" if self.copies else "memoryview"
            with source.block(f"if type(data) is not {wanted}:"):
                source += f"data = {wanted}(data)"
            source += "size = len(data)"
            with source.block("try:"):
                self.structure(self.struct, shape, it)
                self.flush()
            with source.block("except (IndexError, StructError):"):
                self.refuse("cut short", "from None")
            with source.block("if at > size:"):
                self.refuse("cut short")
            source += f"return {it}, at"
        return source.compile("decode", f"{self.title} decoder")

    def refuse(self, why: str, cause: str = "") -> None:
        """Raise; `why` may name variables in braces."""
        self.source += f'raise WireError(f"{self.title}: {why}") {cause}'.rstrip()

    # --- structs ---------------------------------------------------------------------

    def structure(self, struct: Struct, shape: Shape | None, it: str) -> None:
        """Read a struct into the variable `it`; without a shape, only past it."""
        if shape is not None:
            self.blank(struct, shape, it)
        for field in alive(struct, self.version):
            self.field(field, shape, it)
        if self.flexible:
            self.tags(struct, shape, it)

    def blank(self, struct: Struct, shape: Shape, it: str) -> None:
        """A new object, with defaults in what this version does not bring."""
        shape.check_writable()
        self.source += f"{it} = new({self.source.constant('cls', shape.cls)})"
        for field in struct.fields:
            if field.name in shape and (field.tag is not None or not field.alive_in(self.version)):
                self.source += f"{it}.{field.name} = {self.default(field, shape)}"
        for name, value in shape.own_defaults(struct):
            self.source += f"{it}.{name} = {self.own_default(value, it)}"

    def default(self, field: Field, shape: Shape) -> str:
        if field.array:
            if field.default is None:
                return "None"
            return "()" if shape.wants_tuple(field.name) else "[]"
        if isinstance(field.type, Struct) and not shape.may_be_none(field.name):
            raise TypeError(f"{shape.cls.__qualname__}.{field.name} is not always there: it may be None")
        return repr(field.default)

    def own_default(self, value: Any, it: str) -> str:
        factory = getattr(value, "factory", None)
        if factory is None:
            return self.source.constant("default", value)
        return f"{self.source.constant('factory', factory)}({it if value.takes_self else ''})"

    # --- fields ----------------------------------------------------------------------

    def field(self, field: Field, shape: Shape | None, it: str) -> None:
        target = None
        if shape is not None and field.name in shape:
            target = f"{it}.{field.name}"
        nullable = field.nullable_in(self.version)
        if field.array:
            self.array(field, shape if target else None, target, nullable)
        elif isinstance(field.type, Struct):
            inner = shape.element(field) if shape is not None and target else None
            self.nested(field.type, inner, target, nullable)
        else:
            self.primitive(field.type, target, nullable, field.name)

    def primitive(self, kind: Kind, target: str | None, nullable: bool, name: str) -> None:
        if kind.code is not None:
            self.run.append((kind.code, kind.size, target))
        else:
            self.sized(kind, target, nullable, name)

    def sized(self, kind: Kind, target: str | None, nullable: bool, name: str) -> None:
        """Text or bytes: a length, and so many bytes."""
        source = self.source
        n = self.length(
            "h" if kind is STRING else "i", "read_string_length" if kind is STRING else "read_length"
        )
        absent, length = (f"not {n}", f"{n} - 1") if self.flexible else (f"{n} < 0", n)
        if not nullable:
            with source.block(f"if {absent}:"):
                self.refuse(f"{name} is null")
            self.cut(kind, target, length)
            return
        with source.block(f"if {absent}:"):
            if target:
                source += f"{target} = None"
        with source.block("else:"):
            self.cut(kind, target, length)

    def cut(self, kind: Kind, target: str | None, length: str) -> None:
        source = self.source
        if target is None:
            source += f"at += {length}"
            return
        source += f"end = at + {length}"
        piece = "data[at:end]"
        if kind is STRING:
            raw = piece if self.copies else f"{piece}.tobytes()"
            source += f'{target} = {raw}.decode("utf-8", "replace") if {length} else ""'
        elif kind is BYTES and not self.copies:
            source += f"{target} = {piece}.tobytes()"
        else:
            source += f"{target} = {piece}"
        source += "at = end"

    def length(self, classic_code: str, slow: str) -> str:
        """Read a length into a new variable: compact (zero is null) or classic (negative is null)."""
        n = self.source.fresh("n")
        if self.flexible:
            self.run.append(("B", 1, n))
            self.flush()
            with self.source.block(f"if {n} > 127:"):
                self.source += f"{n}, at = {slow}(data, at - 1)"
        else:
            self.run.append((classic_code, {"h": 2, "i": 4}[classic_code], n))
            self.flush()
            if classic_code == "h":
                with self.source.block(f"if {n} > {runtime.TEXT_SAFE}:"):
                    self.source += f"check_text(data, at, {n})"
        return n

    def nested(self, struct: Struct, shape: Shape | None, target: str | None, nullable: bool) -> None:
        it = self.source.fresh("it")
        if not nullable:
            self.structure(struct, shape, it)
            self.flush()
            if target:
                self.source += f"{target} = {it}"
            return
        there = self.source.fresh("there")
        self.run.append(("b", 1, there))
        self.flush()
        with self.source.block(f"if {there} < 0:"):
            if target:
                self.source += f"{target} = None"
        with self.source.block("else:"):
            self.structure(struct, shape, it)
            self.flush()
            if target:
                self.source += f"{target} = {it}"

    # --- arrays ----------------------------------------------------------------------

    def array(self, field: Field, shape: Shape | None, target: str | None, nullable: bool) -> None:
        source = self.source
        n = self.length("i", "read_length")
        if self.flexible:
            source += f"{n} -= 1"
        with source.block(f"if {n} < 0:"):
            if not nullable:
                self.refuse(f"{field.name} is null")
            elif target:
                source += f"{target} = None"
        if nullable:
            with source.block("else:"):
                self.elements(field, shape, target, n)
        else:
            self.elements(field, shape, target, n)

    def elements(self, field: Field, shape: Shape | None, target: str | None, n: str) -> None:
        source = self.source
        source += f"left -= {n}"
        smallest = min_size(field.type, self.version, self.flexible)
        needed = n if smallest == 1 else f"{n} * {smallest}"
        with source.block(f"if {needed} > size - at or left < 0:"):
            self.refuse(f"{field.name} of {{{n}}} elements, {{size - at}} bytes left")
        as_tuple = shape is not None and shape.wants_tuple(field.name)
        if isinstance(field.type, Kind) and field.type.code is not None:
            self.numbers(field.type, target, n, as_tuple)
            return
        items = None
        if target:
            items = source.fresh("items")
            source += f"{items} = []" if as_tuple else f"{items} = {target} = []"
        if isinstance(field.type, Struct):
            inner = shape.element(field) if shape is not None else None
            self.structs(field.type, inner, items, n)
        else:
            with source.block(_loop(n)):
                item = source.fresh("item") if items else None
                self.primitive(field.type, item, False, f"an element of {field.name}")
                if items:
                    source += f"{items}.append({item})"
        if as_tuple:
            source += f"{target} = tuple({items})"

    def numbers(self, kind: Kind, target: str | None, n: str, as_tuple: bool) -> None:
        source = self.source
        if target:
            if kind is UUID:
                piece = "data[i : i + 16]" if self.copies else "data[i : i + 16].tobytes()"
                made = f"[{piece} for i in range(at, at + {n} * 16, 16)]"
                source += f"{target} = {'tuple' if as_tuple else ''}({made})"
            else:
                assert kind.code is not None
                packers = source.constant(f"many_{kind.name}", runtime.packers(kind.code))
                got = f"{packers}[{n}].unpack_from(data, at)"
                source += f"{target} = {got}" if as_tuple else f"{target} = list({got})"
        source += f"at += {n} * {kind.size}" if kind.size > 1 else f"at += {n}"

    def structs(self, struct: Struct, shape: Shape | None, items: str | None, n: str) -> None:
        source = self.source
        if items and shape is not None and self.fixed(struct):
            self.fast_loop(struct, shape, items, n)
        with source.block(_loop(n)):
            it = source.fresh("it")
            self.structure(struct, shape, it)
            self.flush()
            if items:
                source += f"{items}.append({it})"

    def fixed(self, struct: Struct) -> bool:
        """Whether every element has the same size, as long as none has tagged fields."""
        return all(
            not field.array and isinstance(field.type, Kind) and field.type.code is not None
            for field in alive(struct, self.version)
        )

    def fast_loop(self, struct: Struct, shape: Shape, items: str, n: str) -> None:
        """Unpack all elements in one go. One with tagged fields ends it; the plain loop goes on there."""
        source = self.source
        it = source.fresh("it")
        codes, targets, width = ">", [], 0
        for field in alive(struct, self.version):
            assert isinstance(field.type, Kind)
            assert field.type.code is not None
            width += field.type.size
            if field.name in shape:
                codes += field.type.code
                targets.append(f"{it}.{field.name}")
            else:
                codes += f"{field.type.size}x"
        if self.flexible:
            codes += "B"
            targets.append("tags")
            width += 1
        if not targets:
            return
        packer = source.constant("iter_unpack", Packer(codes).iter_unpack)
        with source.block(f"if {n} >= {_FAST_LOOP_FROM}:"):
            with source.block(f"for values in {packer}(data[at : at + {n} * {width}]):"):
                self.blank(struct, shape, it)
                source += f"{_listed(targets)} = values"
                if self.flexible:
                    with source.block("if tags:"):
                        source += "break"
                source += f"{items}.append({it})"
            source += f"at += len({items}) * {width}"
            source += f"{n} -= len({items})"

    # --- tagged fields ---------------------------------------------------------------

    def tags(self, struct: Struct, shape: Shape | None, it: str) -> None:
        source = self.source
        tags = source.fresh("tags")
        self.run.append(("B", 1, tags))
        self.flush()
        known = tagged(struct, self.version)
        with source.block(f"if {tags}:"):
            if not known:
                source += "at = skip_tags(data, at - 1)"
                return
            source += f"{tags}, at = read_tag_count(data, at - 1)"
            with source.block(f"for _ in range({tags}):"):
                source += "tag, length, at = read_tag(data, at)"
                keyword = "if"
                for field in known:
                    with source.block(f"{keyword} tag == {field.tag}:"):  # whatever the length says, as Kafka
                        self.field(field, shape, it)
                        self.flush()
                    keyword = "elif"
                with source.block("else:"):
                    source += "at += length"

    # --- runs ------------------------------------------------------------------------

    def flush(self) -> None:
        """Read what has gathered."""
        run, self.run = self.run, []
        if not run:
            return
        width = sum(size for _, size, _ in run)
        targets = [target for _, _, target in run if target]
        if not targets:
            self.source += f"at += {width}"
            return
        if len(run) == 1 and run[0][0] in "B?":
            self.source += f"{targets[0]} = data[at]" + (" != 0" if run[0][0] == "?" else "")
        else:
            codes = ">" + "".join(code if target else f"{size}x" for code, size, target in run)
            unpack = self.source.constant("unpack", _unpacker(codes))
            self.source += f"{_listed(targets)} = {unpack}(data, at)"
        self.source += f"at += {width}"


def _loop(n: str) -> str:
    """Once is what happens most, and cheaper without a `range`."""
    return f"for _ in once if {n} == 1 else range({n}):"


def _listed(targets: list[str]) -> str:
    return ", ".join(targets) + ("," if len(targets) == 1 else "")


_UNPACKERS: dict[str, Any] = {}


def _unpacker(codes: str) -> Any:
    """Kept, so that the same codes have the same name within one source."""
    if codes not in _UNPACKERS:
        _UNPACKERS[codes] = Packer(codes).unpack_from
    return _UNPACKERS[codes]
