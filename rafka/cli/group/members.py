"""`rafka group remove-member`: have members leave who do not say so themselves."""

from __future__ import annotations

import argparse

from ...client import BrokerRefused, Client
from ...client.groups import MemberRef
from ...errors import ErrorCode
from ..connected import add_command, add_json
from ..output import ASKED_WRONGLY, CommandError, add_bootstrap
from .shared import Told, advice, run_with_groups, show_members, tell


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "remove-member",
        _remove,
        "have members leave at once, before their sessions end; those alive join again",
        """\
  rafka group describe billing --members        who is in it
  rafka group remove-member billing --member consumer-1-0c6a...
  rafka group remove-member billing --instance pod-3      a static member that will not come back
  rafka group remove-member billing --all
""",
    )
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "--member", action="append", default=[], metavar="CONSUMER-ID", help="by its id in the group"
    )
    parser.add_argument(
        "--instance", action="append", default=[], metavar="INSTANCE-ID", help="by its group.instance.id"
    )
    parser.add_argument("--all", action="store_true", help="every member")
    parser.add_argument("--reason", default="removed by `rafka group`", help="what the broker's log says")
    add_json(parser)
    add_bootstrap(parser)


def _remove(args: argparse.Namespace) -> int:
    named = [MemberRef(member_id=one) for one in args.member]
    named += [MemberRef(instance_id=one) for one in args.instance]
    if named and args.all:
        raise CommandError("--all is every member: leave it out, or --member and --instance", ASKED_WRONGLY)
    if not named and not args.all:
        raise CommandError("say whom: --member, --instance, or --all", ASKED_WRONGLY)

    async def remove(client: Client) -> int:
        group = await client.groups.describe(args.group)
        members = named or [
            MemberRef(member_id=one.member_id, instance_id=one.instance_id) for one in group.members
        ]
        if not members:
            raise CommandError(f"group {args.group!r} has no members")
        outcomes = await client.groups.remove_members(args.group, members, reason=args.reason)
        told = [_told(args.group, who, one.error) for who, one in zip(members, outcomes, strict=True)]
        return tell(args, told, "removed")

    return run_with_groups(args, remove)


def _told(group: str, who: MemberRef, error: BrokerRefused | None) -> Told:
    keys = {"group": group, "member_id": who.member_id or None, "group_instance_id": who.instance_id}
    return Told(str(who), keys, None if error is None else _advice(error, group))


def _advice(error: BrokerRefused, group: str) -> str:
    if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
        return advice(error, group)
    return f"{error.subject} is not in the group (`{show_members(group)}` shows those that are)"
