"""The few requests that a bench sends by itself, packed by hand: no client's cost in the figures."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Final

import crc32c

LATEST: Final = -1
PRODUCE, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 2, 3, 18, 19, 20


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def frame(key: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhi", key, version, 7) + text("bench") + body
    return struct.pack(">i", len(request)) + request


HELLO: Final = frame(API_VERSIONS, 0, b"")


def list_offsets(topic: str) -> bytes:
    partition = struct.pack(">iq", 0, LATEST)
    return frame(LIST_OFFSETS, 1, struct.pack(">i", -1) + array([text(topic) + array([partition])]))


def create_topics(names: Sequence[str], partitions: int, config: dict[str, str]) -> bytes:
    settings = array([text(key) + text(value) for key, value in config.items()])
    topics = [text(name) + struct.pack(">ih", partitions, 1) + array([]) + settings for name in names]
    return frame(CREATE_TOPICS, 2, array(topics) + struct.pack(">i?", 30_000, False))


def delete_topics(names: Sequence[str]) -> bytes:
    return frame(DELETE_TOPICS, 1, array([text(name) for name in names]) + struct.pack(">i", 30_000))


def metadata(names: Sequence[str]) -> bytes:
    return frame(METADATA, 4, array([text(name) for name in names]) + b"\0")


def produce(topic: str, batch: bytes, acks: int = 1) -> bytes:
    partition = struct.pack(">ii", 0, len(batch)) + batch
    return frame(
        PRODUCE, 3, struct.pack(">hhi", -1, acks, 30_000) + array([text(topic) + array([partition])])
    )


def fetch(topic: str, offset: int, most: int) -> bytes:
    """Fetch v4 without waiting: what is there, at most so many bytes of it."""
    partition = struct.pack(">iqi", 0, offset, most)
    head = struct.pack(">iiiib", -1, 0, 1, most, 0)
    return frame(1, 4, head + array([text(topic) + array([partition])]))


def batch_of_one(size: int) -> bytes:
    """A batch of one record with a value of so many bytes."""
    value = bytes(97 + i % 26 for i in range(size))
    record = b"\0\0\0" + b"\x01" + varint(size) + value + b"\0"  # attributes, deltas; no key; no headers
    now = int(time.time() * 1000)
    body = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + varint(len(record)) + record
    checked = struct.pack(">I", crc32c.crc32c(body)) + body
    return struct.pack(">qi", 0, len(checked) + 5) + struct.pack(">ib", -1, 2) + checked


def varint(value: int) -> bytes:
    zigzag, out = value << 1, bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


class Connection:
    """One socket, one request at a time."""

    def __init__(self, port: int, timeout: float = 60) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.socket.makefile("rb")

    def ask(self, request: bytes) -> bytes:
        """The answer without its length and correlation id."""
        self.socket.sendall(request)
        return self.read()

    def read(self) -> bytes:
        """The next answer on its way."""
        (length,) = struct.unpack(">i", self.stream.read(4))
        return self.stream.read(length)[4:]

    def close(self) -> None:
        self.stream.close()
        self.socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_until(true: Callable[[], bool], what: str, within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} does not come")
        time.sleep(0.05)


def answers(port: int) -> bool:
    try:
        with Connection(port, 5) as connection:
            return bool(connection.ask(HELLO))
    except (OSError, struct.error):
        return False


def ready(answer: bytes, topics: int) -> bool:
    """Whether a Metadata v4 answer names so many topics, each without error and with its leaders."""
    at = 4  # throttle time
    (brokers,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(brokers):
        at = after_text(answer, at + 4) + 4
        at = after_text(answer, at)
    at = after_text(answer, at) + 4  # cluster id, controller
    (count,) = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(count):
        (error,) = struct.unpack_from(">h", answer, at)
        at = after_text(answer, at + 2) + 1
        (partitions,) = struct.unpack_from(">i", answer, at)
        at += 4
        if error or not partitions:
            return False
        for _ in range(partitions):
            code, _, leader = struct.unpack_from(">hii", answer, at)
            if code or leader < 0:
                return False
            at += 10
            for _ in range(2):  # replicas, in-sync replicas
                at += 4 + 4 * struct.unpack_from(">i", answer, at)[0]
    return bool(count == topics)


def after_text(answer: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">h", answer, at)
    return at + 2 + max(0, int(length))
