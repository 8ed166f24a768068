"""`rafka group lag`: how many records a group is behind, once or as it changes."""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from datetime import datetime
from typing import Final

import trio

from ...client import Client, ClientError
from ...client.groups import GroupDescription
from ..connected import add_command, add_json
from ..output import ASKED_WRONGLY, DONE, CommandError, add_bootstrap, print_json, print_table
from .describe import offset_json
from .progress import Progress, described, progress_of, total_lag
from .shared import run_with_groups

HEADERS: Final = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
HOME: Final = "\x1b[H"
CLEAR: Final = "\x1b[2J"
CLEAR_LINE: Final = "\x1b[K"
CLEAR_BELOW: Final = "\x1b[J"


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "lag",
        _lag,
        "show how many records a group is behind, in each partition",
        """\
  rafka group lag billing
  rafka group lag billing --watch               a live table, until Ctrl-C
  rafka group lag billing --watch -i 0.5        twice a second
  rafka group lag billing --json | jq 'map(.lag) | add'
""",
    )
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "-w", "--watch", action="store_true", help="show it again and again; on a terminal, in place"
    )
    parser.add_argument(
        "-i", "--interval", type=float, default=2.0, metavar="SECONDS", help="between two looks (default 2)"
    )
    add_json(parser)
    add_bootstrap(parser)


def _lag(args: argparse.Namespace) -> int:
    if not args.interval > 0:
        raise CommandError(f"-i is a time between two looks, not {args.interval:g}", ASKED_WRONGLY)

    async def show(client: Client) -> int:
        if args.watch:
            await _watch(args, client)
            return DONE
        _print(args, await progress_of(client, args.group, await described(client, args.group)))
        return DONE

    return run_with_groups(args, show)


async def _watch(args: argparse.Namespace, client: Client) -> None:
    """Look again and again. What fails for a passing reason is said, and tried again."""
    live = sys.stdout.isatty() and not args.json
    first = True
    while True:
        began = trio.current_time()
        try:
            group = await described(client, args.group)
            rows = await progress_of(client, args.group, group)
        except ClientError as error:
            if first or not error.retriable:
                raise
            print(f"% {error}", file=sys.stderr)
        else:
            if live:
                draw(args.group, group, rows, clear=first)
            else:
                if not first and not args.json:
                    print()
                _print(args, rows)
            sys.stdout.flush()
        first = False
        await trio.sleep_until(began + args.interval)


def _print(args: argparse.Namespace, rows: list[Progress]) -> None:
    if args.json:
        print_json([offset_json(row) for row in rows])
    else:
        print_table(HEADERS, [_cells(row) for row in rows])


def draw(name: str, group: GroupDescription | None, rows: list[Progress], *, clear: bool) -> None:
    """Over what was there before, as much as the terminal is high."""
    state = f"{group.state}, members {len(group.members)}, " if group is not None else ""
    now = datetime.now().strftime("%H:%M:%S")
    table = io.StringIO()
    print_table(HEADERS, [_cells(row) for row in rows], file=table)
    lines = [f"{name}: {state}lag {total_lag(rows)}, {now}", "", *table.getvalue().splitlines()]
    width, height = shutil.get_terminal_size()
    if len(lines) >= height:
        lines = [*lines[: height - 2], f"... and {len(lines) - height + 2} more"]
    drawn = "\n".join(line[:width] + CLEAR_LINE for line in lines)
    sys.stdout.write((CLEAR if clear else "") + HOME + drawn + CLEAR_BELOW + "\n")


def _cells(row: Progress) -> list[object]:
    return [row.target.topic, row.target.partition, row.current, row.end, row.lag]
