"""`rafka group delete`."""

from __future__ import annotations

import argparse

from ...client import Client, Outcome
from ..connected import add_command, add_json, confirm, somebody_can_say_no
from ..output import add_bootstrap
from .shared import Told, advice, run_with_groups, tell


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "delete",
        _delete,
        "delete groups and their offsets; asks first on a terminal",
        """\
  rafka group delete billing
  rafka group delete billing audit --yes
""",
    )
    parser.add_argument("groups", nargs="+", metavar="GROUP")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_json(parser)
    add_bootstrap(parser)


def _delete(args: argparse.Namespace) -> int:
    if not args.yes and somebody_can_say_no():
        confirm(f"Delete {', '.join(args.groups)} with all offsets?")

    async def delete(client: Client) -> int:
        return tell(args, [_told(one) for one in await client.groups.delete(args.groups)], "deleted")

    return run_with_groups(args, delete)


def _told(one: Outcome) -> Told:
    error = None if one.error is None else advice(one.error, one.subject)
    return Told(one.subject, {"group": one.subject}, error)
