"""What commands share that talk to a cluster: a client to work with, and its errors as one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from ..client import Client, ClientError, TopicPartition, connect, parse_addresses
from ..text import plain
from .output import ASKED_WRONGLY, CommandError, bootstrap

Use = Callable[[Client], Awaitable[int]]

# Where commands keep names that go to the broker, which takes UTF-8 only.
NAMES: Final = ("group", "groups", "topic", "topics", "member", "instance", "id", "group_instance_id")


def run_connected(args: argparse.Namespace, use: Use) -> int:
    """Run `use` with a client of the cluster that the options name; its exit code."""
    _check_names(args)
    try:
        parse_addresses(bootstrap(args))
    except ValueError as error:
        raise CommandError(str(error), ASKED_WRONGLY) from error

    async def main() -> int:
        async with connect(bootstrap(args), client_id="rafka-cli") as client:
            return await use(client)

    try:
        return trio.run(main)
    except ClientError as error:
        raise CommandError(str(error)) from error
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is not None:  # it hit while a background task was at work
            raise KeyboardInterrupt from None
        raise


def _check_names(args: argparse.Namespace) -> None:
    """Python keeps bytes of the command line that are no text of this locale as lone surrogates."""
    for value in (getattr(args, name, None) for name in NAMES):
        for name in value if isinstance(value, list) else [value]:
            try:
                (name or "").encode()
            except UnicodeEncodeError:
                raise CommandError(f"not a name in this locale's encoding: {name!r}", ASKED_WRONGLY) from None


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_command(
    commands: Any, name: str, act: Callable[[argparse.Namespace], int], summary: str, examples: str
) -> argparse.ArgumentParser:
    """A subcommand with its own help. `act` is found under `args.act`."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(act=act)
    return parser


def checked(parse: Callable[[Any], Any], value: Any) -> Any:
    """What `parse` makes of an option, or the command's error of having been asked wrongly."""
    try:
        return parse(value)
    except ValueError as error:
        raise CommandError(str(error), ASKED_WRONGLY) from error


def key_value(text: str) -> tuple[str, str]:
    """`k=v`, as configs and headers are written."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"not NAME=VALUE: {text!r}")
    return name, value


async def targets_of(client: Client, topic: str, partitions: list[int] | None = None) -> list[TopicPartition]:
    """The partitions of a topic, all of them where none is named."""
    info = await client.admin.describe_topic(topic)
    wanted = range(len(info.partitions)) if partitions is None else partitions
    for partition in wanted:
        if partition >= len(info.partitions):
            raise CommandError(
                f"topic {topic!r} has {len(info.partitions)} partitions, there is no partition {partition}"
            )
    return [TopicPartition(topic, partition) for partition in wanted]


def somebody_can_say_no() -> bool:
    """Whether the command was typed at a terminal, wherever its output goes."""
    return sys.stdin.isatty()


def confirm(question: str, otherwise: str = "nothing was deleted") -> None:
    """Ask, on stderr, as stdout may be a file or another command; anything but yes ends the command."""
    print(f"{plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline()
    if not answer:  # Ctrl-D
        print(file=sys.stderr)
    if answer.strip().lower() not in ("y", "yes"):
        raise CommandError(otherwise)
