"""`rafka group delete-offsets`: have a group forget where it stands."""

from __future__ import annotations

import argparse

from ...client import Client, TopicPartition
from ..connected import add_command, add_json, checked, confirm, somebody_can_say_no
from ..output import CommandError, add_bootstrap
from .shared import Told, add_topics, advice, parse_scope, run_with_groups, tell


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "delete-offsets",
        _delete_offsets,
        "have a group forget how far it read a topic; asks first on a terminal",
        """\
  rafka group delete-offsets billing --topic orders
  rafka group delete-offsets billing --topic orders:0,2 --topic payments
""",
    )
    parser.add_argument("group", metavar="GROUP")
    add_topics(parser, required=True)
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_json(parser)
    add_bootstrap(parser)


def _delete_offsets(args: argparse.Namespace) -> int:
    scopes = [checked(parse_scope, text) for text in args.topics]
    if not args.yes and somebody_can_say_no():
        confirm(f"Have {args.group} forget its offsets of {', '.join(args.topics)}?")

    async def forget(client: Client) -> int:
        # What the group has, not what the topic has: offsets may be left of a topic that is gone.
        committed = await client.groups.offsets(args.group)
        if not committed:
            await client.groups.describe(args.group)
        targets: dict[TopicPartition, None] = {}
        for topic, partitions in scopes:
            found = [target for target in sorted(committed) if target.topic == topic]
            if not found:
                raise CommandError(f"group {args.group!r} has no offsets of {topic!r}: nothing was deleted")
            named = found if partitions is None else [TopicPartition(topic, number) for number in partitions]
            targets |= dict.fromkeys(named)
        there = {target for target in targets if target in committed}
        refusals = await client.groups.delete_offsets(args.group, sorted(there)) if there else {}
        errors = {one: f"group {args.group!r} has no offset of {one}" for one in targets if one not in there}
        errors |= {one: advice(error, args.group) for one, error in refusals.items() if error is not None}
        return tell(args, [_told(args, one, errors.get(one)) for one in sorted(targets)], "forgotten")

    return run_with_groups(args, forget)


def _told(args: argparse.Namespace, target: TopicPartition, error: str | None) -> Told:
    keys = {"group": args.group, "topic": target.topic, "partition": target.partition}
    return Told(str(target), keys, error)
