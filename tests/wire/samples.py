"""Messages to try codecs on: every field of a version filled from a source of randomness."""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple

from rafka.types import Buffer
from rafka.wire.api import Api, Decoder
from rafka.wire.apis import APIS
from rafka.wire.classes import camel_case
from rafka.wire.frame import pieces
from rafka.wire.schema import BOOLEAN, BYTES, FLOAT64, RECORDS, STRING, UINT16, UUID, Field, Kind, Struct

TEXTS: Final = ["", "a", "orders", "größe", "名前", "x" * 126, "y" * 127, "z" * 300]
LENGTHS: Final = [0, 0, 1, 1, 2, 5]  # of arrays; from four on, elements of one size are read in one go
MANY: Final = [0, 1, 2, 127, 130]  # numbers, whose arrays have their own way


class Message(NamedTuple):
    """One side of an API."""

    api: Api
    side: str

    @property
    def name(self) -> str:
        return f"{self.api.name}{self.side.capitalize()}"

    @property
    def struct(self) -> Struct:
        return self.api.request if self.side == "request" else self.api.response

    @property
    def cls(self) -> type[Any]:
        return self.api.Request if self.side == "request" else self.api.Response

    def sample(self, random: Random, version: int) -> Any:
        return sample(random, self.struct, self.cls, version)

    def decoder(self, version: int) -> Decoder:
        api = self.api
        return api.request_decoder(version) if self.side == "request" else api.response_decoder(version)

    def encode(self, value: Any, version: int) -> bytes:
        out = bytearray()
        if self.side == "request":
            encode, splicing = self.api.request_encoder(version), self.api.request_splices
        else:
            encode, splicing = self.api.response_encoder(version), self.api.response_splices
        if not splicing:
            encode(value, out)
            return bytes(out)
        splices: list[tuple[int, Buffer]] = []
        encode(value, out, splices)
        return b"".join(pieces(out, splices))


MESSAGES: Final = [Message(api, side) for api in APIS.values() for side in ("request", "response")]

EVERY_VERSION: Final = [(message, version) for message in MESSAGES for version in message.api.versions]


def message_id(value: object) -> str:
    return value.name if isinstance(value, Message) else f"v{value}"


def sample(random: Random, struct: Struct, cls: type[Any], version: int) -> Any:
    values = {
        field.name: _value(random, field, cls, version) for field in struct.fields if field.alive_in(version)
    }
    return cls(**values)


def _value(random: Random, field: Field, cls: type[Any], version: int) -> Any:
    if field.nullable_in(version) and random.random() < 0.25:
        return None
    if not field.array:
        made = _one(random, field, cls, version)
        if field.tag is not None and isinstance(field.type, Struct) and made == type(made)():
            return None  # a tagged struct of defaults does not travel
        return made
    lengths = LENGTHS if isinstance(field.type, Struct) or field.type.code is None else MANY
    return [_one(random, field, cls, version) for _ in range(random.choice(lengths))]


def _one(random: Random, field: Field, cls: type[Any], version: int) -> Any:
    if isinstance(field.type, Struct):
        return sample(random, field.type, getattr(cls, camel_case(field.name)), version)
    return _primitive(random, field.type)


def _primitive(random: Random, kind: Kind) -> Any:
    if kind is STRING:
        return random.choice(TEXTS)
    if kind in (BYTES, RECORDS):
        return random.choice(TEXTS).encode()
    if kind is BOOLEAN:
        return random.random() < 0.5
    if kind is UUID:
        return bytes(random.randrange(256) for _ in range(16))
    if kind is FLOAT64:
        return random.choice([0.0, -1.5, 1e300])
    low = 0 if kind is UINT16 else -(1 << (8 * kind.size - 1))
    return random.choice([0, 1, 2, 100, low, low + (1 << 8 * kind.size) - 1])
