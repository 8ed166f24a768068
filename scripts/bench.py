"""rafka beside Apache Kafka: the figures of the performance goals, in one run, as a table.

    python scripts/bench.py                        everything, about half an hour
    python scripts/bench.py --quick                a tenth of it: does it work, roughly how fast
    python scripts/bench.py --only "produce 1 KB,memory"    works and groups whose names contain one of these
    python scripts/bench.py --alone                rafka only, where no Apache Kafka is at hand
    python scripts/bench.py --write                the table goes to docs/reference/performance.md too

Both sides run in page-cache mode on the same disk, driven by the same librdkafka; rounds alternate, so
that a busy machine is busy for both. The medians of the rounds are compared. Only ratios taken in one
run count: absolute figures differ from machine to machine and from hour to hour.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "bench"))

from bench_build import built  # noqa: E402
from bench_peers import Apart, Kafka, Peer, Rafka, cpu_seconds  # noqa: E402
from bench_single import SINGLE, Figure  # noqa: E402
from bench_works import WORKS, Work  # noqa: E402

PAGE: Final = HERE.parent / "docs" / "reference" / "performance.md"


def main() -> int:
    options = parsed()
    built("stream")
    built("requests")
    works = [work for work in WORKS if chosen(work.name, options.only) and not lonely(work, options.alone)]
    groups = [name for name in SINGLE if chosen(name, options.only)]
    if not works and not groups:
        raise SystemExit(f"nothing is called {options.only!r}")
    figures = in_rounds(works, options)
    for name in groups:
        say(f"{name} ...")
        found = SINGLE[name](options.scale, not options.alone)
        figures += found
        for figure in found:
            say(f"  {figure.name}: {number(figure.ours)} {figure.unit}, {figure.goal}")
    page = table(figures, options)
    print(page)
    if options.write:
        PAGE.write_text(PREFACE + page)
    return 0


def parsed() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(HERE.parent)}")
    return read_options(parser)


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """What every bench can be told."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="parts of names, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="that count; one more goes before, to warm up")
    parser.add_argument("--scale", type=float, default=1.0, help="of the amounts of work")
    parser.add_argument("--quick", action="store_true", help="two rounds of a tenth of the work")
    parser.add_argument("--alone", action="store_true", help="without Apache Kafka: no ratios")
    return parser


def read_options(parser: argparse.ArgumentParser) -> argparse.Namespace:
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.scale = 2, options.scale / 10
    return options


def chosen(name: str, only: str) -> bool:
    return any(part.strip() in name for part in only.split(","))


def lonely(work: Work, alone: bool) -> bool:
    """Nothing of rafka's is in this work when Kafka is not there."""
    return alone and all(side == "kafka" for side in work.sides)


def in_rounds(works: list[Work], options: argparse.Namespace) -> list[Figure]:
    """Every work on both its sides, alternating, the first side first in every other round."""
    sides = {side for work in works for side in work.sides if not (options.alone and side == "kafka")}
    rates: dict[tuple[str, str], list[float]] = {}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        peers = {side: running(side, home, stack) for side in sorted(sides)}
        for round_ in range(options.rounds + 1):
            for work in works:
                for side in work.sides if round_ % 2 else work.sides[::-1]:
                    if (peer := peers.get(side)) is None:
                        continue
                    cpu = cpu_seconds(peer.pid)
                    rate = work.run(peer, options.scale)
                    used = cpu_seconds(peer.pid) - cpu
                    if round_:
                        rates.setdefault((work.name, side), []).append(rate)
                    say(f"{round_} {work.name}: {side} {number(rate)} {work.unit}, {used:.1f} s of its CPU")
    return [figure_of(work, rates) for work in works]


def running(side: str, home: Path, stack: ExitStack) -> Peer:
    place = home / side.replace(" ", "-")
    peer: Peer
    if side == "kafka":
        peer = Kafka(place)
    elif side == "rafka apart":
        peer = Apart(place)
    else:
        peer = Rafka(place, "fsync" if side.endswith("fsync") else "page-cache")
    peer.start()
    stack.callback(peer.kill)
    return peer


def figure_of(work: Work, rates: dict[tuple[str, str], list[float]]) -> Figure:
    ours, theirs = (
        statistics.median(rates[work.name, side]) if (work.name, side) in rates else None
        for side in work.sides
    )
    assert ours is not None
    reached = theirs is not None and work.reached(ours / theirs)
    return Figure(work.name, work.unit, ours, theirs, work.aim, reached)


def table(figures: list[Figure], options: argparse.Namespace) -> str:
    lines = [
        "| work | unit | rafka | beside it | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    for figure in figures:
        beside = "" if figure.theirs is None else number(figure.theirs)
        ratio = "" if figure.theirs is None else f"{figure.ours / figure.theirs:.2f}"
        verdict = "pass" if figure.reached else "miss" if figure.theirs or "<=" in figure.goal else ""
        cells = (figure.name, figure.unit, number(figure.ours), beside, ratio, figure.goal, verdict)
        lines.append("| " + " | ".join(cells) + " |")
    today = datetime.datetime.now(datetime.UTC).date()
    system = f"{platform.system()} {platform.release()}"
    where = f"{os.cpu_count()} cores, {system}, Python {platform.python_version()}"
    how = f"{options.rounds} rounds, scale {options.scale:g}"
    return "\n".join([*lines, "", f"Taken on {today} with {where}; {how}.", ""])


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


PREFACE: Final = """# Performance

Written by `python scripts/bench.py --write`. Beside rafka stands Apache Kafka 4.3.1 in one process on the
same machine, driven by the same librdkafka in alternating rounds; the figures are medians. The `durable`
rows compare what their names say. Clients and brokers share the machine's cores: with few of them the
client is often the limit.

"""

if __name__ == "__main__":
    sys.exit(main())
