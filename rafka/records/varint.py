"""The numbers inside a record: zig-zag varints.

Loops over records decode the first two bytes of a varint in place, as a call costs more
than the decoding, and come here for the rest. A varint of more bytes than it needs is
fine; one of more than 5 bytes (10 for a timestamp) is not. What lies above 32 or 64 bits
falls off, as it does in Java.
"""

from __future__ import annotations


class VarintTooLong(ValueError):
    """No end within the bytes that such a number may have."""


def varint_rest(data: bytes, at: int, first: int) -> tuple[int, int]:
    """An unsigned 32-bit varint whose first byte was `first`, and where it ends."""
    raw, shift = first & 0x7F, 7
    while shift < 35:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFFFFFF, at
        shift += 7
    raise VarintTooLong(f"a varint of more than 5 bytes ends at {at}")


def varlong_rest(data: bytes, at: int, first: int) -> tuple[int, int]:
    """An unsigned 64-bit varint whose first byte was `first`, and where it ends."""
    raw, shift = first & 0x7F, 7
    while shift < 70:
        byte = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return raw & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise VarintTooLong(f"a varint of more than 10 bytes ends at {at}")


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A signed 32-bit varint at `at`, and where it ends."""
    raw = data[at]
    at += 1
    if raw > 0x7F:
        raw, at = varint_rest(data, at, raw)
    return (raw >> 1) ^ -(raw & 1), at


def read_varlong(data: bytes, at: int) -> tuple[int, int]:
    """A signed 64-bit varint at `at`, and where it ends."""
    raw = data[at]
    at += 1
    if raw > 0x7F:
        raw, at = varlong_rest(data, at, raw)
    return (raw >> 1) ^ -(raw & 1), at


def write_varint(number: int, out: bytearray) -> None:
    """Append a signed number of up to 64 bits in as few bytes as it takes."""
    raw = number << 1 if number >= 0 else (-number << 1) - 1
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def varint(number: int) -> bytes:
    """A signed number of up to 64 bits as a varint."""
    out = bytearray()
    write_varint(number, out)
    return bytes(out)
