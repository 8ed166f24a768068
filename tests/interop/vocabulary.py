"""What every client is asked in the same words, whatever its own API looks like.

A `Client` writes and reads, an `Admin` administers; kafka_python.py, confluent.py and aio.py
say it in the words of each library. The tests know only what stands here, so one matrix
serves all clients, and what one library writes any other can be asked to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Literal, NewType, Protocol, TypeAlias

import attrs

Timestamp = NewType("Timestamp", int)  # milliseconds since 1970
Start: TypeAlias = Literal["beginning", "end"] | int
Acks: TypeAlias = Literal["0", "1", "all"]

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
# "all" first: Kafka may drop what acks=0 sends to a partition that nobody has been answered about yet.
ACKS: Final[tuple[Acks, ...]] = ("all", "1", "0")
READ_TIMEOUT: Final = 20.0


@attrs.frozen(kw_only=True)
class Rec:
    """One record, as it was sent or as it was read. A timestamp of None lets the client choose."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None
    offset: int = -1

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]:
        """What must be the same however and whenever the record was sent."""
        return self.key, self.value, self.headers


class Refused(Exception):
    """The broker said no, with this error code."""

    def __init__(self, code: int, said: object) -> None:
        super().__init__(f"{code}: {said}")
        self.code = code


class CannotAsk(Exception):
    """This library, at this version, has no such feature: the test skips."""


class Reader(Protocol):
    def read(self, count: int, timeout: float = READ_TIMEOUT) -> list[Rec]:
        """The next `count` records, or those that came before the time was up."""


class Client(Protocol):
    name: str

    def check_codec(self, codec: str) -> None:
        """CannotAsk where the library lacks what it needs to compress or decompress."""

    def produce(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Rec],
        *,
        partition: int = 0,
        codec: str = "none",
        acks: Acks = "all",
        idempotent: bool = False,
    ) -> list[int]:
        """Send them all in one go and give their offsets (-1 each where acks=0 says nothing)."""

    def reader(
        self, bootstrap: str, topic: str, *, partition: int = 0, start: Start = "beginning"
    ) -> AbstractContextManager[Reader]:
        """A consumer without a group, its position taken when the block is entered."""

    def offset_at(self, bootstrap: str, topic: str, timestamp: int, *, partition: int = 0) -> int | None:
        """The first offset with this timestamp or a later one."""

    def admin(self, bootstrap: str) -> AbstractContextManager[Admin]: ...


class Admin(Protocol):
    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def topics(self) -> set[str]: ...

    def create_partitions(self, name: str, total: int) -> None: ...

    def partitions(self, name: str) -> int: ...

    def config(self, name: str) -> dict[str, str]: ...

    def alter_config(self, name: str, config: Mapping[str, str]) -> None: ...

    def delete_records(self, name: str, before: int, partition: int = 0) -> None: ...

    def offsets(self, name: str, partition: int = 0) -> tuple[int, int]:
        """The log's first offset and the one that the next record will get."""

    def cluster(self) -> list[tuple[str, int]]:
        """Where the brokers are."""


def numbered(count: int, size: int = 20, *, start: int = 0) -> list[Rec]:
    """Records that can be told apart, and whose bytes are neither constant nor random."""
    return [
        Rec(
            key=b"k%d" % i,
            value=(b"%08d" % i + bytes((i + j) % 251 for j in range(16)) * (size // 16 + 1))[:size],
        )
        for i in range(start, start + count)
    ]


def read_all(
    client: Client, bootstrap: str, topic: str, count: int, *, partition: int = 0, start: Start = "beginning"
) -> list[Rec]:
    with client.reader(bootstrap, topic, partition=partition, start=start) as reader:
        return reader.read(count)


def contents(records: Sequence[Rec]) -> Iterator[object]:
    return (record.content for record in records)
