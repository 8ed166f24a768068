"""A transactional producer, a reader of committed records and a worker, whatever the library."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import pytest

MODULES: Final = {"kafka": "kafka_python", "confluent_kafka": "confluent", "aiokafka": "aio"}
TIMEOUT_S: Final = 30.0


class Fenced(Exception):
    """Another producer has this one's transactional id."""


class Transactional(Protocol):
    """A producer that writes in transactions. `Fenced` from any of these, once it is replaced."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes, partition: int) -> None: ...

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None: ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class Library(Protocol):
    @property
    def KNOWS_GENERATIONS(self) -> bool:
        """Whether it tells along with offsets which member of the group sends them (KIP-447).

        Where it does not, nobody can tell a member that has lost a partition meanwhile from
        its owner, and only one at a time may work.
        """

    def producer(
        self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000
    ) -> AbstractContextManager[Transactional]:
        """One that has taken the id over."""

    def read_committed(self, bootstrap: str, topic: str, partitions: int) -> list[bytes]:
        """All that is committed by now, partition by partition."""

    def committed_offset(self, bootstrap: str, group: str, topic: str, partition: int) -> int | None: ...

    def work(self, bootstrap: str, source: str, target: str, group: str, name: str) -> Iterator[int]:
        """As a member of the group read from one topic and write to the other, in transactions, for ever.

        Gives how many records each transaction had, after it was committed.
        """


def library_called(name: str) -> Library:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    if name == "kafka" and importlib.metadata.version("kafka-python").startswith("2."):
        # Aborts what it has not sent yet by dropping it twice, and then hangs: with Apache Kafka too.
        pytest.skip("the transactional producer of kafka-python 2 hangs when it aborts")
    module: Any = importlib.import_module(f"{__package__}.{MODULES[name]}")
    library: Library = module
    return library


def transformed(value: bytes) -> bytes:
    return value + b"'"
