"""What the way through a link costs: broker and gateway apart beside both in one process, as a table.

    python scripts/bench_link.py                   everything, about five minutes
    python scripts/bench_link.py --quick           does it work, roughly how much
    python scripts/bench_link.py --only produce    works whose names contain this

The link is a Unix socket, both sides run in page-cache mode on the same disk, rounds alternate. Four
processes share the machine's cores here: with two cores the second core that a gateway could have is
the client's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))

from bench import chosen, in_rounds, parsed, table
from bench_build import built
from bench_members import commits_a_second, rejoin_ms
from bench_works import Work, asked, read, travelled, written

SIDES: Final = ("rafka apart", "rafka")


def work(name: str, unit: str, run: Any, goal: float, *, more_is_better: bool = True) -> Work:
    return Work(name=name, unit=unit, run=run, goal=goal, more_is_better=more_is_better, sides=SIDES)


WORKS: Final = [
    work("small requests, 10 connections", "/s", asked(10, 1), 0.3),
    work("small requests, 100 connections", "/s", asked(100, 1), 0.3),
    work("small requests, 10 x 20 pipelined", "/s", asked(10, 20), 0.3),
    work("produce 1 KB", "MB/s", written(1024, 400_000, "acks=1"), 0.6),
    work("produce 1 KB, 16 KB batches", "MB/s", written(1024, 200_000, "acks=1", "batch.size=16384"), 0.5),
    work("consume 1 KB", "MB/s", read(1024, 800_000), 0.5),
    work("produce to consume, p50", "us", travelled(0), 2.0, more_is_better=False),
    work(
        "rejoin and sync, 100 members",
        "ms",
        lambda peer, scale: rejoin_ms(peer.port, 100, max(6, int(30 * scale))),
        3.0,
        more_is_better=False,
    ),
    work(
        "offset commits, 20 pipelined",
        "/s",
        lambda peer, scale: commits_a_second(peer.port, 20, max(1.0, 4 * scale)),
        0.3,
    ),
]


def main() -> int:
    options = parsed()
    built("stream")
    built("requests")
    print(table(in_rounds([each for each in WORKS if chosen(each.name, options.only)], options), options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
