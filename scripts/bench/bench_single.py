"""What is measured on brokers of its own, once or a few times: starts, memory, recovery, growth.

Each function gives figures: what was measured on either side, and whether it is good enough.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs
from bench_peers import Kafka, Peer, Rafka, allow_many_files, memory_mb
from bench_wire import HELLO, Connection, batch_of_one, create_topics, fetch, list_offsets, produce
from bench_works import program, topic, wait_until_seen

GIGABYTE: Final = 1 << 30


@attrs.frozen
class Figure:
    name: str
    unit: str
    ours: float
    theirs: float | None  # None where nothing is compared
    goal: str
    reached: bool


def at_most(name: str, unit: str, ours: float, most: float) -> Figure:
    return Figure(name, unit, ours, None, f"<= {most:g} {unit}", ours <= most)


def ratio(name: str, unit: str, ours: float, theirs: float | None, most: float, goal: str) -> list[Figure]:
    """No figure where the other side is not there."""
    return [] if theirs is None else [Figure(name, unit, ours, theirs, goal, ours / theirs <= most)]


@contextmanager
def fresh(kind: type[Rafka] | type[Kafka]) -> Iterator[Peer]:
    """A broker on an empty disk, running inside the block."""
    with tempfile.TemporaryDirectory(prefix="rafka-bench-", ignore_cleanup_errors=True) as home:
        peer: Peer = kind(Path(home) / "peer")
        peer.start()
        try:
            yield peer
        finally:
            peer.kill()


def starts(kind: type[Rafka] | type[Kafka], count: int) -> float:
    """Milliseconds to the first reply, on a data directory that is there: the median."""
    with tempfile.TemporaryDirectory(prefix="rafka-bench-", ignore_cleanup_errors=True) as home:
        peer: Peer = kind(Path(home) / "peer")
        times = []
        for _ in range(count + 1):
            times.append(peer.start() * 1000)
            peer.stop()
        return statistics.median(times[1:])


def start_to_first_reply(scale: float, with_kafka: bool) -> list[Figure]:
    ours = starts(Rafka, max(3, int(10 * scale)))
    theirs = starts(Kafka, 2) if with_kafka else None
    name = "start to first reply"
    return [*ratio(name, "ms", ours, theirs, 1 / 10, "<= 1/10"), at_most(name, "ms", ours, 200)]


def idle_memory(scale: float, with_kafka: bool) -> list[Figure]:
    """Resident memory a moment after the start, and with many connections that said hello once."""
    allow_many_files()
    with fresh(Rafka) as peer:
        time.sleep(1)
        ours = memory_mb(peer.pid)
        crowds = [(count, memory_with(peer, count)) for count in (1_000, 10_000)]
    theirs = None
    if with_kafka:
        with fresh(Kafka) as peer:
            time.sleep(1)
            theirs = memory_mb(peer.pid)
    figures = [
        *ratio("idle memory", "MB", ours, theirs, 1 / 6, "<= 1/6"),
        at_most("idle memory", "MB", ours, 50),
    ]
    for (count, memory), most in zip(crowds, (65, 150), strict=True):
        figures.append(at_most(f"memory with {count:,} connections", "MB", memory, most))
    return figures


def memory_with(peer: Peer, count: int) -> float:
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(Connection(peer.port)).ask(HELLO)
        time.sleep(0.5)
        return memory_mb(peer.pid)


def filled(peer: Peer, name: str, size: int, batch: int = 1_000_000) -> None:
    """A topic of one partition with so many bytes in records of 10 KB."""
    with Connection(peer.port) as connection:
        connection.ask(create_topics([name], 1, {}))
        wait_until_seen(connection, [name])
    settings = ("acks=1", f"batch.size={batch}")
    program("stream", "write", f"127.0.0.1:{peer.port}", name, 1, 10_240, size // 10_240, *settings)


def recovery(scale: float, with_kafka: bool) -> list[Figure]:
    """From the start after a kill -9 until the end of a log of a gigabyte is told."""
    del with_kafka
    with fresh(Rafka) as peer:
        filled(peer, "large", max(1 << 24, int(GIGABYTE * min(1.0, scale))))
        peer.kill()
        began = time.perf_counter()
        peer.start()
        with Connection(peer.port) as connection:
            connection.ask(list_offsets("large"))
        took = time.perf_counter() - began
    return [at_most("recovery after kill -9, 1 GB in the log", "s", took, 2.0)]


def growth(scale: float, with_kafka: bool) -> list[Figure]:
    """The same request on an empty log and on a large one: the cost may grow by a tenth, no more."""
    del with_kafka
    size = max(1 << 24, int(GIGABYTE * min(1.0, scale)))
    with fresh(Rafka) as peer:
        empty_start = restarted(peer)
        filled(peer, "large", size, batch=16_384)
        middle = size // 10_240 // 2
        with topic(peer, 1) as small:
            filled(peer, f"{small}-filled", 1 << 20, batch=16_384)
            figures = [
                grown("append", lambda of: produce(of, batch_of_one(100)), peer, small, "large", scale),
                grown(
                    "fetch",
                    lambda of: fetch(of, middle if of == "large" else 50, 20_000),
                    peer,
                    f"{small}-filled",
                    "large",
                    scale,
                ),
            ]
        full_start = restarted(peer)
    ours = full_start / empty_start
    figures.append(Figure("start with a large log / an empty one", "x", ours, None, "<= 1.25", ours <= 1.25))
    return figures


def restarted(peer: Peer) -> float:
    """The median time of a start after a kind stop."""
    times = []
    for _ in range(5):
        peer.stop()
        times.append(peer.start())
    return statistics.median(times)


def grown(
    what: str, request: Callable[[str], bytes], peer: Peer, small: str, large: str, scale: float
) -> Figure:
    """Alternating rounds of the request on either log: requests a second, the medians' ratio."""
    rates: dict[str, list[float]] = {small: [], large: []}
    for _ in range(5):
        for name, found in rates.items():
            seconds = max(0.5, 2 * scale)
            found.append(program("requests", peer.port, 4, 1, seconds, request(name).hex())[0])
    ours = statistics.median(rates[small]) / statistics.median(rates[large])
    return Figure(f"{what} at a large log / at a small one", "x", ours, None, "<= 1.1", ours <= 1.1)


SINGLE: Final[dict[str, Callable[[float, bool], list[Figure]]]] = {
    "start": start_to_first_reply,
    "memory": idle_memory,
    "recovery": recovery,
    "growth": growth,
}
