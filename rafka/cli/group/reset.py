"""`rafka group reset-offsets`: put a group elsewhere while nobody is in it."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from ...client import Client, TopicPartition, UnknownGroup
from ...client.group_descriptions import DEAD, EMPTY
from ...client.offsets import AtTime, Beginning, End
from ..connected import add_command, add_json, checked, confirm, somebody_can_say_no
from ..output import (
    ASKED_WRONGLY,
    DONE,
    FAILED,
    CommandError,
    add_bootstrap,
    complain,
    print_json,
    print_table,
)
from ..starts import parse_time
from .destination import (
    Destination,
    FromFile,
    Offsets,
    ShiftBy,
    To,
    ToCurrent,
    ToOffset,
    ago,
    read_plan,
    worked_out,
)
from .progress import described
from .shared import add_topics, advice, chosen, note, parse_scope, run_with_groups, show_members

HEADERS: Final = ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET", "OLD-OFFSET")


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "reset-offsets",
        _reset,
        "put a group elsewhere in its topics. Its members have to be stopped. Unless --dry-run is given "
        "it is done; on a terminal the plan is shown and confirmed first",
        """\
  rafka group reset-offsets billing --topic orders --to-earliest --dry-run     only the plan
  rafka group reset-offsets billing --topic orders --to-earliest               read all again
  rafka group reset-offsets billing --topic orders:0,2 --to-offset 1000
  rafka group reset-offsets billing --all-topics --to-datetime 2026-11-18T07:00   (UTC)
  rafka group reset-offsets billing --all-topics --by-duration PT2H            two hours back
  rafka group reset-offsets billing --topic orders --shift-by -100
  rafka group reset-offsets billing --all-topics --to-current --export > plan.csv
  rafka group reset-offsets billing --from-file plan.csv --execute
""",
    )
    parser.add_argument("group", metavar="GROUP")
    add_topics(parser)
    parser.add_argument(
        "--all-topics", action="store_true", help="every partition that the group has an offset of"
    )
    _add_destinations(parser)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="show the plan, change nothing")
    mode.add_argument("--execute", "-y", "--yes", action="store_true", help="do it without asking")
    parser.add_argument(
        "--export",
        action="store_true",
        help="print the plan as CSV that --from-file reads, and change nothing unless --execute is given",
    )
    add_json(parser)
    add_bootstrap(parser)


def _add_destinations(parser: argparse.ArgumentParser) -> None:
    to = parser.add_mutually_exclusive_group(required=True)
    to.add_argument("--to-earliest", action="store_true", help="the oldest record there is")
    to.add_argument("--to-latest", action="store_true", help="behind the newest record")
    to.add_argument("--to-current", action="store_true", help="where it is; the end where it is nowhere")
    to.add_argument("--to-offset", type=int, metavar="N", help="this offset")
    to.add_argument(
        "--to-datetime", metavar="DATE", help="the first record since then (UTC if it says no zone)"
    )
    to.add_argument("--by-duration", metavar="PnDTnHnMnS", help="the first record since so long ago")
    to.add_argument("--shift-by", type=int, metavar="N", help="N on, or back where N is negative")
    to.add_argument("--from-file", metavar="FILE", help="what a CSV file says: topic,partition,offset")


def _reset(args: argparse.Namespace) -> int:
    _check_scope(args)
    destination = _destination(args)

    async def reset(client: Client) -> int:
        await _check_idle(client, args.group)
        current = {target: one.offset for target, one in (await client.groups.offsets(args.group)).items()}
        targets = await _targets(args, client, destination, current)
        plan = await worked_out(client, destination, targets, current)
        return await _carry_out(args, client, dict(sorted(plan.items())), current)

    return run_with_groups(args, reset)


def _check_scope(args: argparse.Namespace) -> None:
    wrong = None
    if not args.group:
        wrong = "a group needs a name"
    elif args.topics and args.all_topics:
        wrong = "--topic and --all-topics exclude each other: leave out one of them"
    elif args.from_file is not None and (args.topics or args.all_topics):
        wrong = "--from-file names the partitions itself: leave out --topic and --all-topics"
    elif args.from_file is None and not (args.topics or args.all_topics):
        wrong = "say which partitions: --topic or --all-topics, or --from-file, which names them itself"
    elif args.json and args.export:
        wrong = "--json and --export are two formats: leave out one of them"
    if wrong is not None:
        raise CommandError(wrong, ASKED_WRONGLY)
    for text in args.topics:
        checked(parse_scope, text)


def _destination(args: argparse.Namespace) -> Destination:
    if args.to_earliest:
        return To(Beginning())
    if args.to_latest:
        return To(End())
    if args.to_current:
        return ToCurrent()
    if args.to_offset is not None:
        return ToOffset(args.to_offset)
    if args.shift_by is not None:
        return ShiftBy(args.shift_by)
    if args.to_datetime is not None:
        return To(AtTime(checked(parse_time, args.to_datetime)))
    if args.by_duration is not None:
        way: Destination = checked(lambda text: ago(text, round(time.time() * 1000)), args.by_duration)
        return way
    return read_plan(args.from_file, args.group)


async def _check_idle(client: Client, group_id: str) -> None:
    """Only a group that nobody is in can be moved: members would commit over it."""
    try:
        group = await described(client, group_id)
    except UnknownGroup:
        note(f"there is no group {group_id!r} yet")
        return
    if group is None:  # its members cannot be asked for, but whether there are any is listed
        state = {one.group_id: one.state for one in await client.groups.list_all()}.get(group_id, DEAD)
        if state not in (EMPTY, DEAD, ""):
            raise CommandError(f"group {group_id!r} is {state}: stop its members first")
    elif group.state not in (EMPTY, DEAD):
        members = f"{len(group.members)} active member{'s' * (len(group.members) != 1)}"
        raise CommandError(
            f"group {group_id!r} is {group.state} with {members}: stop them first "
            f"(`{show_members(group_id)}` shows them)"
        )


async def _targets(
    args: argparse.Namespace, client: Client, destination: Destination, current: Mapping[TopicPartition, int]
) -> Sequence[TopicPartition]:
    if isinstance(destination, FromFile):
        return list(destination.offsets)
    if not args.all_topics:
        return await chosen(client, args.topics)
    if not current:
        raise CommandError(f"group {args.group!r} has no offsets: name the topics with --topic")
    await client.cluster.learn({target.topic for target in current})
    for target in sorted(current):
        if client.cluster.leader(target) is None:
            note(f"{target} is gone, or has no leader: left out")
    return [target for target in sorted(current) if client.cluster.leader(target) is not None]


async def _carry_out(
    args: argparse.Namespace, client: Client, plan: Offsets, current: Mapping[TopicPartition, int]
) -> int:
    only_shown = args.dry_run or (args.export and not args.execute)
    if not plan:
        raise CommandError(f"group {args.group!r} has no partition that could be moved")
    if only_shown:
        _print(args, plan, current, {}, done=False)
        return DONE
    asking = not args.execute and somebody_can_say_no()
    if asking:
        print_table(HEADERS, _rows(args, plan, current), file=sys.stderr)
        confirm(f"Move {args.group} there?", "nothing was moved")
    refusals = await client.groups.alter_offsets(args.group, plan)
    errors = {target: advice(error, args.group) for target, error in refusals.items() if error is not None}
    if asking and not args.json and sys.stdout.isatty():  # they have seen the table
        print(f"{len(plan) - len(errors)} partition{'s' * (len(plan) - len(errors) != 1)} moved")
    else:
        _print(args, plan, current, errors, done=True)
    for error in {} if args.json else errors.values():
        complain("rafka group", error, FAILED)
    return FAILED if errors else DONE


def _print(
    args: argparse.Namespace,
    plan: Offsets,
    current: Mapping[TopicPartition, int],
    errors: Mapping[TopicPartition, str],
    *,
    done: bool,
) -> None:
    moved = {target: offset for target, offset in plan.items() if target not in errors}
    if args.json:
        rows = [
            {
                "group": args.group,
                "topic": target.topic,
                "partition": target.partition,
                "new_offset": offset,
                "old_offset": current.get(target),
                "done": done and target not in errors,
                "error": errors.get(target),
            }
            for target, offset in plan.items()
        ]
        print_json(rows)
    elif args.export:
        lines = ((*target, offset) for target, offset in moved.items())
        csv.writer(sys.stdout, lineterminator="\n").writerows(lines)
    elif moved:
        print_table(HEADERS, _rows(args, moved, current))


def _rows(
    args: argparse.Namespace, plan: Offsets, current: Mapping[TopicPartition, int]
) -> list[list[object]]:
    return [[args.group, *target, offset, current.get(target)] for target, offset in plan.items()]
