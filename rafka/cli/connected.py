"""What commands share that talk to a cluster: a client to work with, and its errors as one line."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from ..client import Client, ClientError, TopicPartition, connect, parse_addresses
from .output import ASKED_WRONGLY, CommandError, bootstrap

Use = Callable[[Client], Awaitable[int]]


def run_connected(args: argparse.Namespace, use: Use) -> int:
    """Run `use` with a client of the cluster that the options name; its exit code."""
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


def confirm(question: str, otherwise: str = "nothing was deleted") -> None:
    """Ask on the terminal; anything but yes ends the command."""
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandError(otherwise)
