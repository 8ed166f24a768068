"""Writes the source of encoders.

One function per (message, version, class), everything nested written out in place.
Fixed-size fields in a row are written by one `struct.Struct`, together with the length
that follows them and with whatever is constant: fields that the class lacks have the
wire's defaults. A compact length below 128 is one byte of that struct.

Record batches are not copied. Where a message holds some, the encoder takes a list of
splices besides, and notes which buffer belongs at which position of the output.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from struct import Struct as Packer
from struct import error as StructError
from typing import Any

from . import runtime
from .classes import Shape
from .errors import UnwritableError
from .schema import RECORDS, STRING, UUID, Field, Kind, Struct, Value, alive, holds_records, tagged
from .source import Source


def encoder(struct: Struct, shape: Shape, version: int, flexible: bool, title: str) -> Callable[..., None]:
    """`encode(object, out)`, or `encode(object, out, splices)` where the message holds records."""
    return _Encoder(version, flexible).function(struct, shape, title, holds_records(struct))


class _Encoder:
    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source()
        self.out = "out"
        # What is written next by one packer: (code, expression, or None for a zero byte).
        self.run: list[tuple[str, str | None]] = []

    def function(self, struct: Struct, shape: Shape, title: str, splices: bool) -> Callable[..., None]:
        source = self.source
        it = source.fresh("it")
        source.names.update(
            StructError=StructError,
            UnwritableError=UnwritableError,
            string_uvarint=runtime.string_uvarint,
            uvarint=runtime.uvarint,
            write_tags=runtime.write_tags,
        )
        with source.block(f"def encode({it}, out{', splices' if splices else ''}):"):
            with source.block("try:"):
                self.structure(struct, shape, it)
                self.flush()
            wrong = "(AttributeError, TypeError, ValueError, OverflowError, StructError)"
            with source.block(f"except {wrong} as error:"):
                source += f'raise UnwritableError(f"{title}: {{error}}") from error'
        return source.compile("encode", f"{title} encoder")

    # --- structs ---------------------------------------------------------------------

    def structure(self, struct: Struct, shape: Shape | None, it: str) -> None:
        """Write the object in the variable `it`; without a shape, one made of defaults."""
        for field in alive(struct, self.version):
            self.field(field, shape, it)
        if self.flexible:
            self.tags(struct, shape, it)

    def field(self, field: Field, shape: Shape | None, it: str) -> None:
        if shape is None or field.name not in shape:
            self.default(field)
            return
        value = f"{it}.{field.name}"
        nullable = field.nullable_in(self.version)
        if field.array:
            self.array(field, shape, value, nullable)
        elif isinstance(field.type, Struct):
            self.nested(field.type, shape.element(field), value, nullable)
        else:
            self.primitive(field.type, value, nullable)

    def default(self, field: Field) -> None:
        """A field that the class knows nothing of."""
        if field.array or (isinstance(field.type, Kind) and field.type.code is None):
            classic_code = "h" if field.type is STRING and not field.array else "i"
            if field.default is None:
                if not field.nullable_in(self.version):
                    raise TypeError(f"{field.name} has no default in version {self.version}")
                self.constant_length(-1, classic_code)
                return
            raw = field.default.encode() if isinstance(field.default, str) else bytes(field.default)
            self.constant_length(len(raw), classic_code)
            if raw:
                self.run.append((f"{len(raw)}s", repr(raw)))
        elif isinstance(field.type, Struct):
            if field.nullable_in(self.version):
                self.run.append(("b", "-1"))
            else:
                self.structure(field.type, None, "")
        else:
            assert field.type.code is not None
            self.run.append((field.type.code, repr(field.default)))

    def constant_length(self, length: int, classic_code: str) -> None:
        if self.flexible:
            raw = runtime.uvarint(length + 1)
            self.run.append((f"{len(raw)}s", repr(raw)))
        else:
            self.run.append((classic_code, repr(length)))

    # --- values ----------------------------------------------------------------------

    def primitive(self, kind: Kind, value: str, nullable: bool) -> None:
        if kind.code is not None:
            self.run.append((kind.code, value))
        elif kind is STRING:
            self.text(value, nullable)
        elif kind is RECORDS:
            self.splice(value)
        else:
            self.bytes(value, nullable)

    def text(self, value: str, nullable: bool) -> None:
        source = self.source
        raw = source.fresh("raw")
        if nullable:
            source += f"{raw} = {value}"
            n = source.fresh("n")
            with source.block(f"if {raw} is None:"):
                source += f"{n} = {0 if self.flexible else -1}"
                source += f'{raw} = b""'
            with source.block("else:"):
                source += f"{raw} = {raw}.encode()"
                source += f"{n} = len({raw}){' + 1' if self.flexible else ''}"
        else:
            source += f"{raw} = {value}.encode()"
            n = f"len({raw})"
            if self.flexible:
                n = source.fresh("n")
                source += f"{n} = len({raw}) + 1"
        self.length(n, "h", "string_uvarint")
        source += f"{self.out} += {raw}"

    def bytes(self, value: str, nullable: bool) -> None:
        source = self.source
        raw = source.fresh("raw")
        n = source.fresh("n")
        source += f"{raw} = {value}"
        if nullable:
            with source.block(f"if {raw} is None:"):
                source += f"{n} = {0 if self.flexible else -1}"
                source += f'{raw} = b""'
            with source.block("else:"):
                source += f"{n} = len({raw}){' + 1' if self.flexible else ''}"
        else:
            source += f"{n} = len({raw}){' + 1' if self.flexible else ''}"
        self.length(n, "i", "uvarint")
        source += f"{self.out} += {raw}"

    def splice(self, value: str) -> None:
        """Record batches: their length here, and they themselves among the splices."""
        source = self.source
        raw = source.fresh("raw")
        n = source.fresh("n")
        one = "+ 1" if self.flexible else "+ 0"
        source += f"{raw} = {value}"
        with source.block(f"if {raw} is None:"):
            source += f"{n} = {0 if self.flexible else -1}"
        with source.block(f"elif type({raw}) is list or type({raw}) is tuple:"):
            source += f"{n} = sum(map(len, {raw})) {one}"
        with source.block("else:"):
            source += f"{n} = len({raw}) {one}"
        self.length(n, "i", "uvarint")
        with source.block(f"if {n} > {1 if self.flexible else 0}:"):
            with source.block(f"if type({raw}) is list or type({raw}) is tuple:"):
                source += "here = len(out)"
                source += f"splices.extend([(here, piece) for piece in {raw}])"
            with source.block("else:"):
                source += f"splices.append((len(out), {raw}))"

    def length(self, n: str, classic_code: str, slow: str) -> None:
        """Write a length that is known at run time, with all that has gathered before it."""
        source = self.source
        if not self.flexible:
            self.run.append((classic_code, n))
            self.flush()
            return
        before = list(self.run)
        with source.block(f"if {n} < 128:"):
            self.run.append(("B", n))
            self.flush()
        self.run = before
        with source.block("else:"):
            self.flush()
            source += f"{self.out} += {slow}({n})"

    def nested(self, struct: Struct, shape: Shape, value: str, nullable: bool) -> None:
        source = self.source
        it = source.fresh("it")
        source += f"{it} = {value}"
        if not nullable:
            self.structure(struct, shape, it)
            return
        self.flush()
        with source.block(f"if {it} is None:"):
            source += f"{self.out}.append(255)"
        with source.block("else:"):
            self.run.append(("b", "1"))
            self.structure(struct, shape, it)
            self.flush()

    def array(self, field: Field, shape: Shape, value: str, nullable: bool) -> None:
        source = self.source
        items = source.fresh("items")
        n = source.fresh("n")
        source += f"{items} = {value}"
        if nullable:
            with source.block(f"if {items} is None:"):
                source += f"{n} = {0 if self.flexible else -1}"
                source += f"{items} = ()"
            with source.block("else:"):
                source += f"{n} = len({items}){' + 1' if self.flexible else ''}"
        else:
            source += f"{n} = len({items}){' + 1' if self.flexible else ''}"
        self.length(n, "i", "uvarint")
        if isinstance(field.type, Kind) and field.type.code is not None:
            self.numbers(field.type, items)
            return
        item = source.fresh("it")
        with source.block(f"for {item} in {items}:"):
            if isinstance(field.type, Struct):
                self.structure(field.type, shape.element(field), item)
            else:
                self.primitive(field.type, item, False)
            self.flush()

    def numbers(self, kind: Kind, items: str) -> None:
        source = self.source
        if kind is UUID:
            with source.block(f"for each in {items}:"):
                self.run.append(("16s", "each"))
                self.flush()
            return
        assert kind.code is not None
        packers = source.constant(f"many_{kind.name}", runtime.packers(kind.code))
        with source.block(f"if {items}:"):
            source += f"{self.out} += {packers}[len({items})].pack(*{items})"

    # --- tagged fields ---------------------------------------------------------------

    def tags(self, struct: Struct, shape: Shape | None, it: str) -> None:
        """Tagged fields are written where they differ from their defaults."""
        known = [field for field in tagged(struct, self.version) if shape is not None and field.name in shape]
        if not known or shape is None:
            self.run.append(("x", None))
            return
        self.flush()
        source, outer = self.source, self.out
        found = source.fresh("found")
        with source.block(f"if {' or '.join(self.maybe(field, f'{it}.{field.name}') for field in known)}:"):
            source += f"{found} = []"
            for field in known:
                with source.block(f"if {self.differs(field, shape, f'{it}.{field.name}')}:"):
                    self.out = source.fresh("tagged")
                    source += f"{self.out} = bytearray()"
                    self.field(field, shape, it)
                    self.flush()
                    source += f"{found}.append(({field.tag}, {self.out}))"
                    self.out = outer
            source += f"write_tags({outer}, {found})"
        with source.block("else:"):
            source += f"{outer}.append(0)"

    def maybe(self, field: Field, value: str) -> str:
        """A cheap look, which nearly always says no."""
        if field.array:
            return value
        if isinstance(field.type, Struct) or field.default is None:
            return f"{value} is not None"
        return f"{value} != {field.default!r}"

    def differs(self, field: Field, shape: Shape, value: str) -> str:
        if field.array or isinstance(field.type, Kind):
            return self.maybe(field, value)
        inner = shape.element(field)
        parts = [
            self.differs(part, inner, f"{value}.{part.name}")
            for part in field.type.fields
            if part.alive_in(self.version) and part.name in inner
        ]
        return f"{value} is not None and ({' or '.join(parts)})"

    # --- runs ------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what has gathered."""
        run, self.run = self.run, []
        if not run:
            return
        if len(run) == 1 and run[0][0] in "Bx":
            self.source += f"{self.out}.append({run[0][1] or 0})"
            return
        codes = ">" + "".join(code for code, _ in run)
        values = [value for _, value in run if value is not None]
        if all(_literal(value) for value in values):
            raw = Packer(codes).pack(*map(_value, values))
            self.source += f"{self.out} += {raw!r}"
            return
        pack = self.source.constant("pack", _packer(codes))
        self.source += f"{self.out} += {pack}({', '.join(values)})"


_PACK: dict[str, Any] = {}


def _packer(codes: str) -> Any:
    """Kept, so that the same codes have the same name within one source."""
    if codes not in _PACK:
        _PACK[codes] = Packer(codes).pack
    return _PACK[codes]


def _literal(expression: str) -> bool:
    try:
        _value(expression)
    except (ValueError, SyntaxError):
        return False
    return True


def _value(expression: str) -> Value:
    return literal_eval(expression)
