"""Transactions beside Apache Kafka, and what they cost beside doing without, as a table.

    python scripts/bench_txn.py                    everything, about five minutes
    python scripts/bench_txn.py --quick            does it work, roughly how fast
    python scripts/bench_txn.py --only producer    works whose names contain this
    python scripts/bench_txn.py --alone            rafka only

Rounds on the two sides alternate, both in page-cache mode, by confluent-kafka. The last two figures compare
rafka with itself: reading committed records with reading all, idempotent writing with plain.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE / "bench"))

from bench import chosen, in_rounds, lonely, parser_of, read_options, say, table  # noqa: E402
from bench_build import built  # noqa: E402
from bench_peers import Peer, Rafka, cpu_seconds  # noqa: E402
from bench_single import Figure, fresh  # noqa: E402
from bench_transactions import PARTITIONS, fill  # noqa: E402
from bench_works import Work, at, program, topic, written  # noqa: E402

CLIENT: Final = HERE / "bench" / "bench_transactions.py"


def transacted(producers: int) -> Callable[[Peer, float], float]:
    def run(peer: Peer, scale: float) -> float:
        with topic(peer, PARTITIONS) as name:
            seconds = max(1.0, 5 * scale)
            cpu = cpu_seconds(peer.pid)
            done = subprocess.run(
                [sys.executable, str(CLIENT), at(peer), name, str(producers), str(seconds)],
                capture_output=True,
                text=True,
                check=True,
            )
            rate = float(done.stdout)
            each = (cpu_seconds(peer.pid) - cpu) / (rate * seconds)
            say(f"    {each * 1e6:,.0f} us of the broker's CPU each")
            return rate

    return run


WORKS: Final = [
    Work(name="transactions, one producer", unit="/s", goal=2.0, run=transacted(1)),
    Work(name="transactions, ten producers", unit="/s", goal=1.3, run=transacted(10)),
]


def compared(
    name: str, goal: float, rounds: int, ours: Callable[[], float], plain: Callable[[], float]
) -> Figure:
    """Alternating, as with two brokers; the first round warms up."""
    rates: tuple[list[float], list[float]] = ([], [])
    for round_ in range(rounds + 1):
        for which, run in list(enumerate((ours, plain)))[:: 1 if round_ % 2 else -1]:
            rate = run()
            say(f"{round_} {name}: {'as said' if which == 0 else 'beside it'} {rate:,.0f} MB/s")
            if round_:
                rates[which].append(rate)
    mine, beside = map(statistics.median, rates)
    return Figure(name, "MB/s", mine, beside, f">= {goal:g}", mine >= goal * beside)


def reading(scale: float, rounds: int) -> Figure:
    """Read committed, against read uncommitted, of one topic that was written in transactions."""
    amount = max(10_000, int(600_000 * scale)) // 1000 * 1000
    with fresh(Rafka) as peer, topic(peer, PARTITIONS) as name:
        fill(at(peer), name, amount)

        def read(isolation: str) -> float:
            return program(
                "stream", "read", at(peer), name, PARTITIONS, amount, f"isolation.level={isolation}"
            )[0]

        return compared(
            "read committed, against read uncommitted",
            0.9,
            rounds,
            lambda: read("read_committed"),
            lambda: read("read_uncommitted"),
        )


def writing(scale: float, rounds: int) -> Figure:
    with fresh(Rafka) as peer:
        idempotent = written(1024, 400_000, "acks=all", "enable.idempotence=true")
        # What librdkafka allows an idempotent producer: else it is two clients that are compared.
        plain = written(1024, 400_000, "acks=all", "max.in.flight.requests.per.connection=5")
        return compared(
            "produce 1 KB idempotent, against plain",
            0.95,
            rounds,
            lambda: idempotent(peer, scale),
            lambda: plain(peer, scale),
        )


SINGLE: Final[dict[str, Callable[[float, int], Figure]]] = {"reading": reading, "writing": writing}


def main() -> int:
    options = read_options(parser_of(__doc__))
    built("stream")
    works = [work for work in WORKS if chosen(work.name, options.only) and not lonely(work, options.alone)]
    figures = in_rounds(works, options) if works else []
    figures += [
        measure(options.scale, options.rounds)
        for name, measure in SINGLE.items()
        if chosen(name, options.only)
    ]
    if not figures:
        raise SystemExit(f"nothing is called {options.only!r}")
    print(table(figures, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
