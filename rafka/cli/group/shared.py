"""What the group commands share: running with a client, and saying what to do about an error."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence

import attrs

from ...client import BrokerRefused, Client, TopicPartition, UnknownGroup
from ...errors import ErrorCode
from ...text import plain
from ..connected import Use, checked, run_connected, targets_of
from ..output import DONE, FAILED, CommandError, complain, print_json
from ..starts import parse_partitions


def run_with_groups(args: argparse.Namespace, use: Use) -> int:
    """As `run_connected`, with the way out named where the broker refuses."""

    async def advised(client: Client) -> int:
        try:
            return await use(client)
        except BrokerRefused as error:
            raise CommandError(advice(error, getattr(args, "group", "GROUP"))) from error

    return run_connected(args, advised)


def advice(error: BrokerRefused, group: str) -> str:
    """One line: what went wrong with this group, and what can be done about it."""
    match error.code:
        case ErrorCode.GROUP_ID_NOT_FOUND if isinstance(error, UnknownGroup):
            return f"{error.subject} does not exist: `rafka group list` shows those that do"
        case ErrorCode.NON_EMPTY_GROUP | ErrorCode.UNKNOWN_MEMBER_ID:
            return f"{error.subject} has active members: stop them first (`{show_members(group)}` shows them)"
        case ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
            return f"{error.subject}: members of the group are subscribed to the topic: stop them first"
        case _:
            return str(error)


def show_members(group: str) -> str:
    """The command that does, as it can be typed."""
    named = f"-- {shlex.quote(group)}" if group.startswith("-") else shlex.quote(group)
    return f"rafka group describe --members {named}"


def note(text: str) -> None:
    """Say something beside the answer."""
    print(f"% {plain(text)}", file=sys.stderr)


@attrs.frozen
class Told:
    """What became of one thing: a line for people, keys for programs."""

    subject: str
    keys: Mapping[str, object]
    error: str | None = None  # with the way out


def tell(args: argparse.Namespace, all_told: Sequence[Told], done: str) -> int:
    """A line for each, errors to stderr. 1 where there was one."""
    if args.json:
        print_json([{**one.keys, "done": one.error is None, "error": one.error} for one in all_told])
    else:
        for one in all_told:
            if one.error is None:
                print(plain(f"{one.subject}: {done}"))
            else:
                complain("rafka group", one.error, FAILED)
    return FAILED if any(one.error is not None for one in all_told) else DONE


# --- topics and partitions of them -----------------------------------------------------------


def add_topics(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    parser.add_argument(
        "-t",
        "--topic",
        action="append",
        default=[],
        required=required,
        dest="topics",
        metavar="TOPIC[:N,...]",
        help="this topic, all of it or some partitions (may be given again)",
    )


async def chosen(client: Client, topics: Sequence[str]) -> list[TopicPartition]:
    """The partitions that `--topic` options name."""
    targets: dict[TopicPartition, None] = {}
    for text in topics:
        name, partitions = checked(parse_scope, text)
        targets |= dict.fromkeys(await targets_of(client, name, partitions))
    return list(targets)


def parse_scope(text: str) -> tuple[str, list[int] | None]:
    """`orders`, or some of its partitions: `orders:0,2-4`.

    >>> parse_scope("orders:0,2-4")
    ('orders', [0, 2, 3, 4])
    """
    name, colon, numbers = text.partition(":")
    if not name:
        raise ValueError(f"not a topic: {text!r} (write orders, or orders:0,2)")
    return name, parse_partitions([numbers]) if colon else None
