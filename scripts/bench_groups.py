"""Consumer groups beside Apache Kafka: rebalances, offset commits, and what many groups cost, as a table.

    python scripts/bench_groups.py                   everything, about ten minutes
    python scripts/bench_groups.py --quick           does it work, roughly how fast
    python scripts/bench_groups.py --only commits    works whose names contain this
    python scripts/bench_groups.py --alone           rafka only

Members are raw connections with frames packed by hand, so that the client hardly counts; rounds on the
two sides alternate, both in page-cache mode. Figures without another side are rafka's own bounds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent / "bench"))

from bench import chosen, in_rounds, lonely, parser_of, read_options, say, table
from bench_members import Group, commits_a_second, group_name, heartbeat, rejoin_ms
from bench_peers import Peer, Rafka, allow_many_files, cpu_seconds, memory_mb
from bench_single import Figure, at_most, fresh
from bench_works import Work


def rejoined(size: int, times: int) -> Callable[[Peer, float], float]:
    return lambda peer, scale: rejoin_ms(peer.port, size, max(6, int(times * scale)))


def committed(depth: int) -> Callable[[Peer, float], float]:
    return lambda peer, scale: commits_a_second(peer.port, depth, max(1.0, 4 * scale))


WORKS: Final = [
    Work(name="rejoin and sync, 10 members", unit="ms", goal=0.8, run=rejoined(10, 60), more_is_better=False),
    Work(
        name="rejoin and sync, 100 members", unit="ms", goal=1.0, run=rejoined(100, 60), more_is_better=False
    ),
    Work(
        name="rejoin and sync, 1,000 members",
        unit="ms",
        goal=1.0,
        run=rejoined(1000, 15),
        more_is_better=False,
    ),
    Work(name="offset commits, 20 pipelined", unit="/s", goal=2.5, run=committed(20)),
    Work(name="offset commits, one at a time", unit="/s", goal=1.2, run=committed(1)),
    Work(
        name="offset commits, 20 pipelined, durable, against rafka's own page-cache mode",
        unit="/s",
        goal=0.5,
        run=committed(20),
        sides=("rafka fsync", "rafka"),
    ),
]


def many_heartbeats(scale: float) -> list[Figure]:
    """1,000 groups of three, each member with a heartbeat every three seconds: how much of a core."""
    groups, beats_every = max(50, int(1000 * min(scale, 1))), 3.0
    with fresh(Rafka) as peer, ExitStack() as stack:
        formed = []
        for _ in range(groups):
            group = Group(peer.port, 3, stack)
            group.form()
            formed.append(group)
        members = [
            (connection, heartbeat(group.name, group.generation, member))
            for group in formed
            for connection, member in zip(group.connections, group.members, strict=True)
        ]
        spacing = beats_every / len(members)
        began, cpu = time.perf_counter(), cpu_seconds(peer.pid)
        for beat in range(int(len(members) * 3)):
            connection, request = members[beat % len(members)]
            connection.ask(request)
            time.sleep(max(0.0, began + beat * spacing - time.perf_counter()))
        share = (cpu_seconds(peer.pid) - cpu) / (time.perf_counter() - began) * 100
    return [at_most(f"{groups:,} groups of 3 with heartbeats", "% of a core", share, 10)]


def storm(scale: float) -> list[Figure]:
    """The heartbeats of another group while 1,000 members rejoin again and again."""
    size = max(50, int(1000 * min(scale, 1)))
    with fresh(Rafka) as peer, ExitStack() as stack:
        quiet = Group(peer.port, 1, stack)
        quiet.form()
        stormy = Group(peer.port, size, stack)
        stormy.form()
        over = threading.Event()

        def rage() -> None:
            for _ in range(10):
                stormy.again()
            over.set()

        raging = threading.Thread(target=rage)
        raging.start()
        times = []
        while not over.is_set():
            times.append(quiet.beat())
            time.sleep(0.001)
        raging.join()
    p99 = sorted(times)[int(len(times) * 0.99)]
    return [at_most(f"heartbeat p99 of others while {size:,} members rejoin", "ms", p99, 20)]


def many_groups(scale: float) -> list[Figure]:
    """What 10,000 idle groups take of memory, and whether others feel them."""
    count = max(500, int(10_000 * min(scale, 1)))
    with fresh(Rafka) as peer:
        before_mb = memory_mb(peer.pid)
        alone = rejoin_ms(peer.port, 10, 60)
        with ExitStack() as stack:
            connection = Group(peer.port, 1, stack)
            for _ in range(count):  # one connection for all: what is weighed is groups
                connection.name, connection.members = group_name(), [""]
                connection.form()
            grown = memory_mb(peer.pid) - before_mb
            among = rejoin_ms(peer.port, 10, 60)
    return [
        at_most(f"memory of {count:,} groups", "MB", grown, 100),
        Figure(
            f"rejoin of 10 among {count:,} idle groups / alone",
            "x",
            among / alone,
            None,
            "<= 1.2",
            among <= 1.2 * alone,
        ),
    ]


SINGLE: Final[dict[str, Callable[[float], list[Figure]]]] = {
    "heartbeats": many_heartbeats,
    "storm": storm,
    "memory": many_groups,
}


def main() -> int:
    options = read_options(parser_of(__doc__))
    allow_many_files()
    works = [work for work in WORKS if chosen(work.name, options.only) and not lonely(work, options.alone)]
    figures = in_rounds(works, options) if works else []
    for name, measure in SINGLE.items():
        if chosen(name, options.only):
            say(f"{name} ...")
            figures += measure(options.scale)
    if not figures:
        raise SystemExit(f"nothing is called {options.only!r}")
    print(table(figures, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
