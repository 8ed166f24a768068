"""`rafka group history`: the rebalances of a group, as rafka keeps them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import attrs
import trio

from ...client import Client, UnsupportedVersion
from ...client.messages.history import GroupHistoryReply, MovedMember, Rebalance
from ...text import plain
from ..connected import add_command
from ..output import ASKED_WRONGLY, DONE, CommandError, add_bootstrap, print_json
from ..table import GAP, padded
from .shared import run_with_groups

WAIT: Final = 20.0  # seconds that one question waits for a rebalance
# A rebalance is known when its leader has synced. Others may come for their share a moment later, and how
# long they waited is known then: so the row of a rebalance is held back so long, looking again so often.
LATE: Final = 2.0
LOOK: Final = 0.1
# Rows come one by one while a group is followed, so the columns are as wide as things mostly are.
COLUMNS: Final = (
    ("NUMBER", 6),
    ("BEGAN", 23),
    ("OUTCOME", 9),
    ("GENERATION", 10),
    ("MEMBERS", 8),
    ("MOVED", 5),
    ("JOIN-MS", 7),
    ("SYNC-MS", 7),
    ("TRIGGER", 22),
    ("BY", 0),
)


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "history",
        _history,
        "show why a group rebalanced, how long it took and what moved; only rafka keeps this",
        """\
  rafka group history billing
  rafka group history billing --members         what each member gained, lost and waited for
  rafka group history billing --follow          as they happen, until Ctrl-C
  rafka group history billing --json | jq -c '.rebalances[] | [.trigger, .trigger_member]'
""",
    )
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("-n", "--last", type=int, metavar="N", help="only the last N")
    parser.add_argument("-m", "--members", action="store_true", help="the members of each, too")
    parser.add_argument("-F", "--follow", action="store_true", help="go on with those to come")
    parser.add_argument(
        "--json", action="store_true", help="print JSON: all of it, or a line for each with --follow"
    )
    add_bootstrap(parser)


def _history(args: argparse.Namespace) -> int:
    if args.last is not None and args.last < 0:
        raise CommandError(f"-n is how many rebalances to show, not {args.last}", ASKED_WRONGLY)

    async def show(client: Client) -> int:
        try:
            reply = await client.groups.history(args.group)
        except UnsupportedVersion as error:
            raise CommandError(
                "this broker keeps no history of rebalances: only rafka does, from this version on"
            ) from error
        shown = reply.rebalances
        if args.last is not None:
            shown = shown[-args.last :] if args.last else []
        if args.json and not args.follow:
            print_json(_as_json(args.group, reply, shown))
            return DONE
        begin(args, reply)
        show_rebalances(args, shown)
        after = reply.rebalances[-1].told_ms if reply.rebalances else 0
        while args.follow:
            newer = await news(args, client, after)
            show_rebalances(args, newer)
            after = newer[-1].told_ms
        return DONE

    return run_with_groups(args, show)


def begin(args: argparse.Namespace, reply: GroupHistoryReply) -> None:
    if not args.json:
        print(plain(f"{args.group} ({reply.stable_id}, {reply.locator})"))
        print(_line([name for name, _ in COLUMNS]))


async def news(args: argparse.Namespace, client: Client, after: int) -> list[Rebalance]:
    """Wait for rebalances that were told later than this; members and all, if they are to be shown."""
    found: dict[int, Rebalance] = {}
    while not found:
        reply = await client.groups.history(args.group, after=after, max_wait=WAIT)
        found = {one.told_ms: one for one in reply.rebalances}
    give_up_at = trio.current_time() + LATE
    while (args.members or args.json) and _is_missing_pauses(found[max(found)]):
        if trio.current_time() >= give_up_at:
            break
        await trio.sleep(LOOK)
        reply = await client.groups.history(args.group, after=after)
        found |= {one.told_ms: one for one in reply.rebalances}
    return [found[told_ms] for told_ms in sorted(found)]


def _is_missing_pauses(one: Rebalance) -> bool:
    return one.outcome == "stable" and any(member.joined and member.pause_ms < 0 for member in one.members)


def show_rebalances(args: argparse.Namespace, rebalances: Sequence[Rebalance]) -> None:
    for one in rebalances:
        if args.json:
            print_json({"group": args.group, **_rebalance_json(one)})
            continue
        print(_line(_cells(one)))
        if args.members:
            for member in one.members:
                print(f"        {_member_line(member)}")
    sys.stdout.flush()


def _cells(one: Rebalance) -> list[str]:
    by = " ".join(part for part in (one.trigger_member, f"({one.reason})" if one.reason else "") if part)
    return [
        str(one.number),
        _moment(one.began_ms),
        one.outcome,
        _number(one.generation_id),
        f"{one.members_before} -> {one.members_after}",
        _number(one.moved),
        _number(one.join_ms),
        _number(one.sync_ms),
        one.trigger or "-",
        by or "-",
    ]


def _line(cells: Sequence[str]) -> str:
    placed = (padded(plain(text), width) for text, (_, width) in zip(cells, COLUMNS, strict=True))
    return GAP.join(placed).rstrip()


def _member_line(member: MovedMember) -> str:
    who = member.member_id
    if member.group_instance_id is not None:
        who += f" (instance {member.group_instance_id})"
    what = f"{_signed('+', member.gained)} {_signed('-', member.lost)}"
    if not member.joined:
        what = f"gone, {_signed('-', member.lost)}"
    pause = f", waited {member.pause_ms} ms" if member.pause_ms >= 0 else ""
    return plain(f"{who} {member.client_id} {member.client_host}: {what}{pause}")


def _signed(sign: str, count: int) -> str:
    return f"{sign}{count}" if count >= 0 else f"{sign}?"


def _number(value: int) -> str:
    return "-" if value < 0 else str(value)


def _moment(ms: int) -> str:
    """UTC, as times are typed on the command line."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}"


# --- JSON --------------------------------------------------------------------------------


def _as_json(group: str, reply: GroupHistoryReply, rebalances: Sequence[Rebalance]) -> dict[str, object]:
    return {
        "group": group,
        "stable_id": reply.stable_id,
        "locator": reply.locator,
        "rebalances": [_rebalance_json(one) for one in rebalances],
    }


def _rebalance_json(one: Rebalance) -> dict[str, Any]:
    made: Any = one  # a `message` class is an attrs class, which mypy is not told
    return attrs.asdict(made)
