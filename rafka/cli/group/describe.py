"""`rafka group describe`: the tables of Kafka's own tool, and everything at once as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ...client import Client, TopicPartition, UnknownGroup
from ...client.group_descriptions import EMPTY, GroupDescription, MemberDescription
from ..connected import add_command, add_json
from ..output import DONE, CommandError, add_bootstrap, print_json, print_table
from .progress import Progress, described, progress_of, total_lag
from .shared import note, run_with_groups


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "describe",
        _describe,
        "show how far groups are, their members, or their state",
        """\
  rafka group describe billing                  offsets, lag and who reads what
  rafka group describe billing --members        who is in it
  rafka group describe billing --members --verbose     and which partitions each has
  rafka group describe billing --state          coordinator, strategy, state
  rafka group describe                          all of them
  rafka group describe billing --json | jq '.[0].offsets[] | select(.lag > 0)'
""",
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP")
    views = parser.add_mutually_exclusive_group()
    views.add_argument(
        "--offsets",
        dest="show",
        action="store_const",
        const=_print_offsets,
        help="offsets and lag of each partition (the default)",
    )
    views.add_argument("--members", dest="show", action="store_const", const=_print_members, help="members")
    views.add_argument(
        "--state", dest="show", action="store_const", const=_print_state, help="the group as a whole"
    )
    parser.set_defaults(show=_print_offsets)
    parser.add_argument(
        "--verbose", action="store_true", help="leader epochs of offsets, partitions of members"
    )
    add_json(parser)
    add_bootstrap(parser)


def _describe(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        names = args.groups or [one.group_id for one in await client.groups.list_all()]
        shown = []
        for number, name in enumerate(names):
            try:
                group = await described(client, name)
            except UnknownGroup:
                if args.groups:
                    raise
                continue  # it was listed, and is gone by now
            if args.json:
                shown.append(_as_json(name, group, await progress_of(client, name, group)))
                continue
            if number:
                print()
            await args.show(client, name, group, args.verbose)
        if args.json:
            print_json(shown)
        return DONE

    return run_with_groups(args, show)


async def _print_offsets(client: Client, name: str, group: GroupDescription | None, verbose: bool) -> None:
    _remark(name, group)
    rows = await progress_of(client, name, group)
    headers = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    headers += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    if verbose:
        headers.insert(3, "LEADER-EPOCH")
    print_table(headers, [_offset_row(name, row, verbose) for row in rows])


def _offset_row(name: str, row: Progress, verbose: bool) -> list[object]:
    member = row.member
    cells: list[object] = [name, row.target.topic, row.target.partition, row.current, row.end, row.lag]
    cells += [None] * 3 if member is None else [member.member_id, member.host, member.client_id]
    if verbose:
        cells.insert(3, row.leader_epoch)
    return cells


async def _print_members(client: Client, name: str, group: GroupDescription | None, verbose: bool) -> None:
    group = _known(name, group)
    _remark(name, group)
    static = any(member.instance_id is not None for member in group.members)
    headers = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else [])]
    headers += ["HOST", "CLIENT-ID", "#PARTITIONS", *(["ASSIGNMENT"] if verbose else [])]
    rows = []
    for member in group.members:
        row: list[object] = [name, member.member_id, *([member.instance_id] if static else [])]
        row += [member.host, member.client_id, len(member.assignment)]
        rows.append([*row, assignment_text(member.assignment)] if verbose else row)
    print_table(headers, rows)


async def _print_state(client: Client, name: str, group: GroupDescription | None, verbose: bool) -> None:
    group = _known(name, group)
    headers = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    at = group.coordinator
    row = [name, f"{at.address} ({at.node_id})", group.protocol, group.state, len(group.members)]
    print_table(headers, [row])


def _known(name: str, group: GroupDescription | None) -> GroupDescription:
    if group is None:
        raise CommandError(
            f"group {name!r} is of the next-generation protocol, whose members this command cannot ask for: "
            "`rafka group lag` shows its offsets"
        )
    return group


def _remark(name: str, group: GroupDescription | None) -> None:
    """What Kafka's tool says beside the table."""
    if group is None:
        note(f"group {name!r} is of the next-generation protocol: its members are not shown")
    elif group.state == EMPTY:
        note(f"group {name!r} has no active members")
    elif group.state.endswith("Rebalance"):
        note(f"group {name!r} is rebalancing")


def assignment_text(targets: Iterable[TopicPartition]) -> str:
    """Partitions as Kafka's tool writes them: `orders:0,1;payments:0`."""
    topics: dict[str, list[str]] = {}
    for topic, partition in targets:
        topics.setdefault(topic, []).append(str(partition))
    return ";".join(f"{topic}:{','.join(numbers)}" for topic, numbers in topics.items())


# --- JSON --------------------------------------------------------------------------------


def _as_json(name: str, group: GroupDescription | None, rows: list[Progress]) -> dict[str, object]:
    shown: dict[str, object] = {"group": name}
    if group is not None:
        shown |= {
            "state": group.state,
            "protocol_type": group.protocol_type or None,
            "assignment_strategy": group.protocol or None,
            "coordinator": {
                "node_id": group.coordinator.node_id,
                "host": group.coordinator.host,
                "port": group.coordinator.port,
            },
            "members": [_member_json(member) for member in group.members],
        }
    return shown | {"lag": total_lag(rows), "offsets": [offset_json(row) for row in rows]}


def _member_json(member: MemberDescription) -> dict[str, object]:
    topics: dict[str, list[int]] = {}
    for topic, partition in member.assignment:
        topics.setdefault(topic, []).append(partition)
    return {
        "consumer_id": member.member_id,
        "group_instance_id": member.instance_id,
        "host": member.host,
        "client_id": member.client_id,
        "partitions": topics,
    }


def offset_json(row: Progress) -> dict[str, object]:
    member = row.member
    return {
        "topic": row.target.topic,
        "partition": row.target.partition,
        "leader_epoch": row.leader_epoch,
        "current_offset": row.current,
        "log_end_offset": row.end,
        "lag": row.lag,
        "consumer_id": None if member is None else member.member_id,
        "host": None if member is None else member.host,
        "client_id": None if member is None else member.client_id,
    }
