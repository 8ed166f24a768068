"""What the way through a link costs: broker and gateway apart beside both in one process, as a table.

    python scripts/bench_link.py                   everything, about five minutes
    python scripts/bench_link.py --quick           does it work, roughly how much
    python scripts/bench_link.py --only produce    works whose names contain this

The link is a Unix socket, both sides run in page-cache mode on the same disk, rounds alternate. With few
cores the rates say most about how many processes share them; the CPU that a request takes, gateway
and broker together, says what the link costs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))

from bench import chosen, number, parsed, running, say
from bench_build import built
from bench_members import commits_a_second
from bench_peers import Apart, Peer, cpu_seconds
from bench_works import asked, read, written

SIDES: Final = ("rafka apart", "rafka")
SHORTEST_S: Final = 1.0  # of works that last a time and not an amount


@attrs.frozen
class Work:
    name: str
    unit: str
    run: Callable[[Peer, float], float]  # peer, scale: a rate
    amount: Callable[[float, float], float]  # rate, scale: how much was done in all
    cpu_unit: str
    cpu_times: float  # from seconds


def lasting(seconds: float) -> Callable[[float, float], float]:
    return lambda rate, scale: rate * max(SHORTEST_S, seconds * scale)


def megabytes(size: int, count: int) -> Callable[[float, float], float]:
    return lambda rate, scale: max(1000, int(count * scale)) * size / 1e6


def requests(name: str, connections: int, depth: int) -> Work:
    return Work(name, "/s", asked(connections, depth), lasting(4), "us each", 1e6)


def commits(depth: int) -> Callable[[Peer, float], float]:
    def run(peer: Peer, scale: float) -> float:
        rate: float = commits_a_second(peer.port, depth, max(SHORTEST_S, 4 * scale))
        return rate

    return run


WORKS: Final = [
    requests("small requests, 10 connections", 10, 1),
    requests("small requests, 100 connections", 100, 1),
    requests("small requests, 10 x 20 pipelined", 10, 20),
    Work("offset commits, 20 pipelined", "/s", commits(20), lasting(4), "us each", 1e6),
    Work("produce 1 KB", "MB/s", written(1024, 300_000, "acks=1"), megabytes(1024, 300_000), "ms a MB", 1e3),
    Work(
        "produce 1 KB, 16 KB batches",
        "MB/s",
        written(1024, 100_000, "acks=1", "batch.size=16384"),
        megabytes(1024, 100_000),
        "ms a MB",
        1e3,
    ),
    Work("consume 1 KB", "MB/s", read(1024, 500_000), megabytes(1024, 500_000), "ms a MB", 1e3),
]


def cpu_of(peer: Peer) -> float:
    """Of all processes of a peer."""
    gateway = cpu_seconds(peer.gateway.pid) if isinstance(peer, Apart) and peer.gateway else 0.0
    return cpu_seconds(peer.pid) + gateway


def main() -> int:
    options = parsed()
    built("stream")
    built("requests")
    works = [work for work in WORKS if chosen(work.name, options.only)]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        peers = {side: running(side, home, stack) for side in SIDES}
        for round_ in range(options.rounds + 1):
            for work in works:
                for side in SIDES if round_ % 2 else SIDES[::-1]:
                    before = cpu_of(peers[side])
                    rate = work.run(peers[side], options.scale)
                    cpu = (cpu_of(peers[side]) - before) / work.amount(rate, options.scale) * work.cpu_times
                    say(f"{round_} {work.name}: {side} {number(rate)} {work.unit}, {cpu:.1f} {work.cpu_unit}")
                    if round_:
                        found.setdefault((work.name, side), []).append((rate, cpu))
    print(table(works, found))
    return 0


def table(works: list[Work], found: dict[tuple[str, str], list[tuple[float, float]]]) -> str:
    lines = [
        "| work | unit | apart | in one | ratio | CPU apart | in one | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for work in works:
        (apart, apart_cpu), (one, one_cpu) = (
            [statistics.median(column) for column in zip(*found[work.name, side], strict=True)]
            for side in SIDES
        )
        cells = [work.name, work.unit, number(apart), number(one), f"{apart / one:.2f}"]
        cells += [f"{apart_cpu:.1f}", f"{one_cpu:.1f}", work.cpu_unit]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
