"""`rafka topic offsets` and `rafka topic delete-records`: where partitions begin and end."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..client import Client
from .connected import add_command, add_json, checked, confirm, run_connected, somebody_can_say_no, targets_of
from .output import DONE, add_bootstrap, print_json, print_table
from .starts import parse_listed_time, parse_partitions


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    _configure_offsets(commands)
    _configure_delete_records(commands)


def _configure_offsets(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "offsets",
        _offsets,
        "show the offset of a time in each partition",
        """\
  rafka topic offsets orders                            the ends
  rafka topic offsets orders --time earliest            the beginnings
  rafka topic offsets orders --time max-timestamp       of the newest record by its time
  rafka topic offsets orders --time 2026-11-18T07:00    the first record since then (UTC)
  rafka topic offsets orders --time @1795000000000      the same, in milliseconds since 1970
""",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument(
        "-t",
        "--time",
        default="latest",
        metavar="TIME",
        help="earliest, latest (the default), max-timestamp, an ISO date or @milliseconds",
    )
    parser.add_argument("-p", "--partition", action="append", metavar="N", help="only these: 0 or 0,2 or 0-3")
    add_json(parser)
    add_bootstrap(parser)


def _offsets(args: argparse.Namespace) -> int:
    time = checked(parse_listed_time, args.time)
    partitions = None if args.partition is None else checked(parse_partitions, args.partition)

    async def show(client: Client) -> int:
        targets = [one for name in args.topics for one in await targets_of(client, name, partitions)]
        found = await client.admin.list_offsets(dict.fromkeys(targets, time))
        rows = [
            (target.topic, target.partition, None if found[target].offset < 0 else found[target].offset)
            for target in targets
        ]
        _print_rows(args, ["topic", "partition", "offset"], rows)
        return DONE

    return run_connected(args, show)


def _configure_delete_records(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "delete-records",
        _delete_records,
        "delete the records before an offset; they cannot be had back",
        """\
  rafka topic delete-records orders --before 1000 -p 0
  rafka topic delete-records orders --before end        all there are
""",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--before", required=True, metavar="OFFSET", help="an offset, or end")
    parser.add_argument("-p", "--partition", action="append", metavar="N", help="only these: 0 or 0,2 or 0-3")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_json(parser)
    add_bootstrap(parser)


def _delete_records(args: argparse.Namespace) -> int:
    before = -1 if args.before == "end" else checked(_offset, args.before)
    partitions = None if args.partition is None else checked(parse_partitions, args.partition)
    if not args.yes and somebody_can_say_no():
        confirm(f"Delete the records of {args.topic} before {args.before}?")

    async def delete(client: Client) -> int:
        targets = await targets_of(client, args.topic, partitions)
        starts = await client.admin.delete_records(dict.fromkeys(targets, before))
        rows = [(target.topic, target.partition, starts[target]) for target in targets]
        _print_rows(args, ["topic", "partition", "start_offset"], rows)
        return DONE

    return run_connected(args, delete)


def _offset(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"not an offset: {text!r} (write a number, or end)")
    return int(text)


def _print_rows(args: argparse.Namespace, names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    if args.json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table([name.upper().replace("_", "-") for name in names], rows)
