"""`rafka group describe`: the tables of Kafka's own tool, and everything at once as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from ...client import BrokerRefused, Client, TopicPartition, UnknownGroup
from ...client.group_descriptions import EMPTY, GroupDescription, MemberDescription
from ..connected import add_command, add_json
from ..output import DONE, FAILED, add_bootstrap, complain, print_json, print_table
from .progress import Progress, described, progress_of, total_lag
from .shared import advice, note, run_with_groups


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
        "--verbose", action="store_true", help="leader epochs of offsets, partitions of members, epochs"
    )
    add_json(parser)
    add_bootstrap(parser)


def _describe(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        names = args.groups or [one.group_id for one in await client.groups.list_all()]
        shown: list[dict[str, object]] = []
        code, tables = DONE, 0
        for name in dict.fromkeys(names):
            try:
                group = await described(client, name)
                wanted = args.json or args.show is _print_offsets
                rows = await progress_of(client, name, group) if wanted else []
            except BrokerRefused as error:
                gone = isinstance(error, UnknownGroup) and not args.groups  # since it was listed
                if not gone:
                    code = complain("rafka group", advice(error, name), FAILED)
                continue
            if args.json:
                shown.append(_as_json(name, group, rows))
                continue
            if tables:
                print()
            tables += 1
            _remark(name, group)
            if group is None and not wanted and args.groups:
                code = FAILED  # what was asked for is not shown
            args.show(name, group, rows, args.verbose)
        if args.json:
            print_json(shown)
        return code

    return run_with_groups(args, show)


# --- tables, with the columns of Kafka's tool --------------------------------------------------


def _print_offsets(name: str, group: GroupDescription | None, rows: list[Progress], verbose: bool) -> None:
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


def _print_members(name: str, group: GroupDescription | None, rows: list[Progress], verbose: bool) -> None:
    if group is None:
        return
    static = any(member.instance_id is not None for member in group.members)
    headers = ["GROUP", "CONSUMER-ID", *(["GROUP-INSTANCE-ID"] if static else [])]
    headers += ["HOST", "CLIENT-ID", "#PARTITIONS"]
    if verbose:
        headers += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
    table = []
    for member in group.members:
        row: list[object] = [name, member.member_id, *([member.instance_id] if static else [])]
        row += [member.host, member.client_id, len(member.assignment)]
        if verbose:
            row += [member.epoch, assignment_text(member.assignment)]
            row += [group.target_epoch, assignment_text(member.target or ())]
        table.append(row)
    print_table(headers, table)


def _print_state(name: str, group: GroupDescription | None, rows: list[Progress], verbose: bool) -> None:
    if group is None:
        return
    at = group.coordinator
    headers = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    row: list[object] = [name, f"{at.address} ({at.node_id})", group.protocol, group.state]
    if verbose:
        headers += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        row += [group.epoch, group.target_epoch]
    print_table([*headers, "#MEMBERS"], [[*row, len(group.members)]])


def _remark(name: str, group: GroupDescription | None) -> None:
    """What Kafka's tool says beside the table."""
    if group is None:
        note(f"group {name!r} is of a kind whose members and state are not shown: only its offsets are")
    elif group.state == EMPTY:
        note(f"group {name!r} has no active members")
    elif group.state.endswith("Rebalance"):
        note(f"group {name!r} is rebalancing")


def assignment_text(targets: Iterable[TopicPartition]) -> str:
    """Partitions as Kafka's tool writes them: `orders:0,1;payments:0`."""
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in _by_topic(targets).items())


def _by_topic(targets: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in targets:
        topics.setdefault(topic, []).append(partition)
    return topics


# --- JSON --------------------------------------------------------------------------------


def _as_json(name: str, group: GroupDescription | None, rows: list[Progress]) -> dict[str, object]:
    """The same keys for each group, null where there is nothing to tell."""
    at = None if group is None else group.coordinator
    return {
        "group": name,
        "type": group and group.type,
        "state": group and group.state,
        "protocol_type": group and (group.protocol_type or None),
        "assignment_strategy": group and (group.protocol or None),
        "group_epoch": group and group.epoch,
        "target_assignment_epoch": group and group.target_epoch,
        "coordinator": at and {"node_id": at.node_id, "host": at.host, "port": at.port},
        "members": group and [_member_json(member) for member in group.members],
        "lag": total_lag(rows),
        "offsets": [offset_json(row) for row in rows],
    }


def _member_json(member: MemberDescription) -> dict[str, object]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.host,
        "member_epoch": member.epoch,
        "partitions": _by_topic(member.assignment),
        "target_partitions": None if member.target is None else _by_topic(member.target),
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
        "member_id": None if member is None else member.member_id,
        "client_id": None if member is None else member.client_id,
        "client_host": None if member is None else member.host,
    }
