"""What generated codecs call when the short way is not enough.

The generated source reads and writes lengths below 128 by itself, which is nearly
all of them. The rest is here: longer varints, tagged fields, and packers for
arrays of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packer
from typing import Final

from ..types import Buffer
from .errors import UnwritableError, WireError

STRING_MAX: Final = 32_767  # bytes, as Kafka has it, also where the length is a varint
TEXT_SAFE: Final = STRING_MAX // 3  # bytes that cannot become too many by being read as UTF-8
TAGS_MAX: Final = 10_000  # tagged fields in one section

# --- reading -------------------------------------------------------------------------


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes; what goes beyond 32 bits is lost, as in Kafka."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    byte = data[at + 1]
    if byte < 0x80:
        return value | byte << 7, at + 2
    value |= (byte & 0x7F) << 7
    byte = data[at + 2]
    if byte < 0x80:
        return value | byte << 14, at + 3
    value |= (byte & 0x7F) << 14
    byte = data[at + 3]
    if byte < 0x80:
        return value | byte << 21, at + 4
    value |= (byte & 0x7F) << 21
    byte = data[at + 4]
    if byte < 0x80:
        return (value | byte << 28) & 0xFFFF_FFFF, at + 5
    raise WireError("a varint of more than five bytes")


def read_length(data: Buffer, at: int) -> tuple[int, int]:
    """A compact length, one more than the true one; zero is null, and so is what Kafka takes for negative."""
    value, at = read_uvarint(data, at)
    return (0 if value > 0x8000_0000 else value), at


def read_string_length(data: Buffer, at: int) -> tuple[int, int]:
    value, at = read_length(data, at)
    if value > STRING_MAX + 1:
        raise WireError(f"a string of {value - 1} bytes")
    if value > TEXT_SAFE + 1:
        check_text(data, at, value - 1)
    return value, at


def check_text(data: Buffer, at: int, length: int) -> None:
    """Refuse a long string that has no form once it is read.

    What is no UTF-8 becomes U+FFFD, three bytes for one. Kept as the name of something it
    would spoil every answer that mentions it, for whoever asks.
    """
    raw = bytes(data[at : at + length])
    if not raw.isascii() and len(raw.decode("utf-8", "replace").encode()) > STRING_MAX:
        raise WireError(f"a string of {length} bytes that are not UTF-8")


def read_tag_count(data: Buffer, at: int) -> tuple[int, int]:
    count, at = read_uvarint(data, at)
    if count > 0x7FFF_FFFF:
        return 0, at  # to Kafka a negative number of them, which is none
    if count > TAGS_MAX or 2 * count > len(data) - at:
        raise WireError(f"{count} tagged fields")
    return count, at


def read_tag(data: Buffer, at: int) -> tuple[int, int, int]:
    """Tag, size, and where the field begins."""
    tag, at = read_uvarint(data, at)
    size, at = read_uvarint(data, at)
    if size > len(data) - at:
        raise WireError(f"a tagged field of {size} bytes, {len(data) - at} left")
    return tag, size, at


def skip_tags(data: Buffer, at: int) -> int:
    """Pass over a section of tagged fields of which none is known."""
    count, at = read_tag_count(data, at)
    for _ in range(count):
        _, size, at = read_tag(data, at)
        at += size
    return at


# --- writing -------------------------------------------------------------------------


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14 & 0x7F | 0x80)) + uvarint(
        value >> 21
    )


def string_uvarint(value: int) -> bytes:
    """The compact length of a string."""
    if value > STRING_MAX + 1:
        raise UnwritableError(f"a string of {value - 1} bytes")
    return uvarint(value)


def write_tags(out: bytearray, fields: Sequence[tuple[int, bytearray]]) -> None:
    out += uvarint(len(fields))
    for tag, value in fields:
        out += uvarint(tag)
        out += uvarint(len(value))
        out += value


# --- arrays of numbers ---------------------------------------------------------------


class Packers(dict[int, Packer]):
    """A packer for so many numbers of one kind. Short ones are kept, long ones are made anew."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, count: int) -> Packer:
        packer = Packer(f">{count}{self._code}")
        if count <= 64:
            self[count] = packer
        return packer


_PACKERS: Final[dict[str, Packers]] = {}


def packers(code: str) -> Packers:
    return _PACKERS.setdefault(code, Packers(code))
