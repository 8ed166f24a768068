"""What is measured in alternating rounds: each work is given a peer and gives one number.

A work's `goal` is a bound on the ratio of rafka's median to the other side's; `at_least` where more
is better, `at_most` where less is.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs
from bench_build import built
from bench_peers import Peer
from bench_wire import Connection, create_topics, delete_topics, list_offsets, metadata, ready

NAMES: Final = itertools.count()
PAGE_CACHE: Final = ("rafka", "kafka")


@attrs.frozen(kw_only=True)
class Work:
    name: str
    unit: str
    run: Callable[[Peer, float], float]  # peer, scale
    goal: float
    more_is_better: bool = True
    sides: tuple[str, str] = PAGE_CACHE  # whose ratio it is

    def reached(self, ratio: float) -> bool:
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal

    @property
    def aim(self) -> str:
        return f"{'>=' if self.more_is_better else '<='} {self.goal:.3g}"


@contextmanager
def topic(peer: Peer, partitions: int, **config: str) -> Iterator[str]:
    """A new topic, ready to be written to, and gone afterwards together with its disk space."""
    name = f"bench-{next(NAMES)}"
    settings = {"file.delete.delay.ms": "1000"} | {
        key.replace("_", "."): value for key, value in config.items()
    }
    with Connection(peer.port) as connection:
        connection.ask(create_topics([name], partitions, settings))
        wait_until_seen(connection, [name])
        time.sleep(0.2)
        yield name
        connection.ask(delete_topics([name]))


def wait_until_seen(connection: Connection, names: list[str]) -> None:
    question = metadata(names)
    deadline = time.monotonic() + 60
    while not ready(connection.ask(question), len(names)):
        if time.monotonic() > deadline:
            raise TimeoutError("a topic does not show")


def program(name: str, *args: object) -> list[float]:
    command = [str(built(name)), *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])}: {done.stderr.strip()}")
    return [float(word) for word in done.stdout.split()]


def written(size: int, count: int, *settings: str, **config: str) -> Callable[[Peer, float], float]:
    """Megabytes a second into four partitions."""

    def run(peer: Peer, scale: float) -> float:
        with topic(peer, 4, **config) as name:
            amount = max(1000, int(count * scale))
            return program("stream", "write", at(peer), name, 4, size, amount, *settings)[0]

    return run


def read(size: int, count: int) -> Callable[[Peer, float], float]:
    """Megabytes a second out of four partitions, each peer's filled once and read in every round."""
    filled: dict[str, str] = {}

    def run(peer: Peer, scale: float) -> float:
        amount = max(1000, int(count * scale))
        if peer.name not in filled:
            filled[peer.name] = f"bench-{next(NAMES)}"
            with Connection(peer.port) as connection:
                connection.ask(create_topics([filled[peer.name]], 4, {}))
                wait_until_seen(connection, [filled[peer.name]])
            program("stream", "write", at(peer), filled[peer.name], 4, size, amount, "acks=1")
        return program("stream", "read", at(peer), filled[peer.name], 4, amount)[0]

    return run


def asked(connections: int, depth: int) -> Callable[[Peer, float], float]:
    """ListOffsets requests a second."""

    def run(peer: Peer, scale: float) -> float:
        with topic(peer, 1) as name:
            seconds = max(1.0, 4 * scale)
            hexed = list_offsets(name).hex()
            return program("requests", peer.port, connections, depth, seconds, hexed)[0]

    return run


def travelled(which: int) -> Callable[[Peer, float], float]:
    """Microseconds from a writer's call to a reader's hand, 100-byte records, 1,000 a second."""

    def run(peer: Peer, scale: float) -> float:
        with topic(peer, 1) as name:
            count = max(1000, int(8000 * scale))
            return program("stream", "travel", at(peer), name, 100, count, 1000, "acks=1")[which]

    return run


def topic_seen(peer: Peer, scale: float) -> float:
    """Milliseconds from asking for a topic until Metadata shows it whole; the median of many."""
    times = []
    with Connection(peer.port) as connection:
        for _ in range(max(10, int(50 * scale))):
            name = f"bench-{next(NAMES)}"
            began = time.perf_counter()
            connection.ask(create_topics([name], 1, {}))
            wait_until_seen(connection, [name])
            times.append((time.perf_counter() - began) * 1000)
            connection.ask(delete_topics([name]))
    return statistics.median(times)


def five_hundred_topics(peer: Peer, scale: float) -> float:
    """Milliseconds for a request that makes 500 topics, until all are seen."""
    names = [f"bench-{next(NAMES)}" for _ in range(500)]
    with Connection(peer.port) as connection:
        began = time.perf_counter()
        connection.ask(create_topics(names, 1, {}))
        wait_until_seen(connection, names)
        took = (time.perf_counter() - began) * 1000
        connection.ask(delete_topics(names))
    return took


def at(peer: Peer) -> str:
    return f"127.0.0.1:{peer.port}"


def durably(count: int = 20_000) -> Callable[[Peer, float], float]:
    """acks=all in batches of 16 KB; Kafka is told to flush each, rafka syncs by itself where it is to."""
    settings = ("acks=all", "batch.size=16384")

    def run(peer: Peer, scale: float) -> float:
        flush = {"flush_messages": "1"} if peer.name == "kafka" else {}
        return written(1024, count, *settings, **flush)(peer, scale)

    return run


WORKS: Final = [
    Work(name="produce 1 KB", unit="MB/s", goal=2.2, run=written(1024, 800_000, "acks=1")),
    Work(
        name="produce 1 KB, 16 KB batches",
        unit="MB/s",
        goal=3.5,
        run=written(1024, 300_000, "acks=1", "batch.size=16384"),
    ),
    Work(name="produce 100 B", unit="MB/s", goal=1.4, run=written(100, 3_000_000, "acks=1")),
    Work(
        name="produce 1 KB, idempotent, acks=all",
        unit="MB/s",
        goal=2.0,
        run=written(1024, 800_000, "acks=all", "enable.idempotence=true"),
    ),
    Work(name="consume 1 KB", unit="MB/s", goal=1.0, run=read(1024, 1_500_000)),
    Work(name="consume 100 B", unit="MB/s", goal=0.95, run=read(100, 5_000_000)),
    Work(name="small requests, 10 connections", unit="/s", goal=1.1, run=asked(10, 1)),
    Work(name="small requests, 100 connections", unit="/s", goal=0.75, run=asked(100, 1)),
    Work(name="small requests, 10 x 20 pipelined", unit="/s", goal=3.0, run=asked(10, 20)),
    Work(name="produce to consume, p50", unit="us", goal=0.8, run=travelled(0), more_is_better=False),
    Work(name="produce to consume, p99", unit="us", goal=1.0, run=travelled(1), more_is_better=False),
    Work(name="a topic created and seen", unit="ms", goal=1 / 8, run=topic_seen, more_is_better=False),
    Work(
        name="500 topics in a request", unit="ms", goal=1 / 4, run=five_hundred_topics, more_is_better=False
    ),
    Work(
        name="durable: acks=all, synced, against Kafka's flush.messages=1",
        unit="MB/s",
        goal=5.0,
        run=durably(),
        sides=("rafka fsync", "kafka"),
    ),
    Work(
        name="durable: against rafka's own page-cache mode",
        unit="MB/s",
        goal=0.5,
        run=durably(100_000),
        sides=("rafka fsync", "rafka"),
    ),
]
