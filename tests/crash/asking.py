"""Two questions asked in bytes written by hand, for when a client's own patience would blur the answer."""

from __future__ import annotations

import socket
import struct
import time

LATEST, EARLIEST = -1, -2


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def ask(port: int, key: int, version: int, body: bytes, timeout: float = 5) -> bytes:
    """One request with a header of version 1, one response without its header."""
    frame = struct.pack(">hhi", key, version, 1) + text("crash") + body
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        stream = connection.makefile("rb")
        (length,) = struct.unpack(">i", stream.read(4))
        return stream.read(length)[4:]


def offset_of(port: int, topic: str, partition: int, which: int = LATEST) -> int:
    """ListOffsets v1. Raises OSError where nobody answers, LookupError where the answer is an error."""
    one_partition = struct.pack(">i", 1) + struct.pack(">iq", partition, which)
    body = struct.pack(">ii", -1, 1) + text(topic) + one_partition
    answer = ask(port, 2, 1, body)
    _, code, _, offset = struct.unpack(">ihqq", answer[-22:])
    if code:
        raise LookupError(f"error {code}")
    return int(offset)


def wait_for_offset(port: int, topic: str, partition: int, at_least: int, timeout: float = 30) -> float:
    """Seconds until the partition's end has reached this offset."""
    began = time.monotonic()
    last: object = None
    while time.monotonic() - began < timeout:
        try:
            if (last := offset_of(port, topic, partition)) >= at_least:
                return time.monotonic() - began
        except (OSError, LookupError, struct.error) as error:
            last = error
        time.sleep(0.005)
    raise TimeoutError(f"{topic} {partition} does not reach {at_least}: {last}")
