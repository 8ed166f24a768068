"""`rafka group lag`: how many records a group is behind, once or as it changes."""

from __future__ import annotations

import argparse
import shutil
import sys
from datetime import datetime
from typing import Final

import attrs
import trio

from ...client import Client, ClientError
from ...client.group_descriptions import GroupDescription
from ...client.nursery import background
from ...text import plain
from ..connected import add_command, add_json
from ..output import ASKED_WRONGLY, DONE, CommandError, add_bootstrap, print_json, print_table
from ..table import lines_of, shortened
from .describe import offset_json
from .progress import Progress, described, progress_of, total_lag
from .shared import note, run_with_groups

HEADERS: Final = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
PATIENCE: Final = 1.0  # seconds for an answer that nobody wonders about
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
            await watch(args, client)
        _print(args, (await _look(args, client)).rows)
        return DONE

    return run_with_groups(args, show)


@attrs.frozen
class Look:
    """What was seen, and when."""

    group: GroupDescription | None
    rows: list[Progress]
    at: str = attrs.field(factory=lambda: datetime.now().strftime("%H:%M:%S"))


async def _look(args: argparse.Namespace, client: Client) -> Look:
    group = await described(client, args.group)
    return Look(group, await progress_of(client, args.group, group))


async def watch(args: argparse.Namespace, client: Client) -> None:
    """Look again and again. What fails for a passing reason is said, and tried again."""
    live = sys.stdout.isatty() and not args.json
    began = trio.current_time()
    look = await _look(args, client)
    _show(args, look, live, first=True)
    wrong = ""
    while True:
        await trio.sleep_until(began + args.interval)
        began = trio.current_time()
        try:
            async with background() as nursery:
                nursery.start_soon(_say_when_late, args, look, live, wrong)
                look = await _look(args, client)
        except ClientError as error:
            if not error.retriable:
                raise
            wrong = str(error)
            _say_what_is_wrong(args, look, live, wrong)
        else:
            wrong = ""
            _show(args, look, live)


def _show(args: argparse.Namespace, look: Look, live: bool, *, first: bool = False) -> None:
    if live:
        draw(args.group, look, clear=first)
    else:
        if not first and not args.json:
            print()
        _print(args, look.rows)
    sys.stdout.flush()


async def _say_when_late(args: argparse.Namespace, look: Look, live: bool, wrong: str) -> None:
    """A broker that went is asked for half a minute before that is an error: too long to show what was."""
    await trio.sleep(max(args.interval, PATIENCE))
    _say_what_is_wrong(args, look, live, wrong if live else "")


def _say_what_is_wrong(args: argparse.Namespace, look: Look, live: bool, error: str) -> None:
    if live:
        draw(args.group, look, clear=False, silent=True, error=error)
        sys.stdout.flush()
    else:
        note(error or f"no answer since {look.at}")


def _print(args: argparse.Namespace, rows: list[Progress]) -> None:
    if args.json:
        print_json([offset_json(row) for row in rows])
    else:
        print_table(HEADERS, [_cells(row) for row in rows])


def draw(name: str, look: Look, *, clear: bool, silent: bool = False, error: str = "") -> None:
    """Over what was there before, as much as the terminal is wide and high."""
    width, height = shutil.get_terminal_size()
    group = look.group
    state = f"{group.state}, members {len(group.members)}, " if group is not None else ""
    about = f": {state}lag {total_lag(look.rows)}, {look.at}"
    if silent:
        about = f": no answer since {look.at}"
    head = shortened(plain(name), max(1, width - len(about))) + about
    table = lines_of(HEADERS, [_cells(row) for row in look.rows], within=width)
    lines = [head, plain(error), *table]
    if len(lines) >= height:
        lines = [*lines[: height - 2], f"... and {len(lines) - height + 2} more"]
    drawn = "\n".join(shortened(line, width) + CLEAR_LINE for line in lines)
    sys.stdout.write((CLEAR if clear else "") + HOME + drawn + CLEAR_BELOW + "\n")


def _cells(row: Progress) -> list[object]:
    return [row.target.topic, row.target.partition, row.current, row.end, row.lag]
