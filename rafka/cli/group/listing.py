"""`rafka group list`."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from ...client import Client
from ..connected import add_command, add_json, checked
from ..output import DONE, add_bootstrap, print_json, print_table
from .shared import run_with_groups

STATES: Final = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Dead",
)


def configure(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "list",
        _list,
        "list groups: a table on a terminal or with --state, names alone elsewhere",
        """\
  rafka group list
  rafka group list --state                      with their states
  rafka group list --state stable,empty         only those
  rafka group list | xargs -d '\\n' -n1 rafka group describe --
""",
    )
    parser.add_argument(
        "--state",
        nargs="?",
        const="",
        metavar="STATE[,...]",
        help=f"show states, or only groups in these: {', '.join(STATES)}",
    )
    add_json(parser)
    add_bootstrap(parser)


def _list(args: argparse.Namespace) -> int:
    states = checked(parse_states, args.state) if args.state else []

    async def show(client: Client) -> int:
        groups = await client.groups.list_all(states)
        if args.json:
            print_json(
                [
                    {
                        "group": one.group_id,
                        "state": one.state or None,
                        "protocol_type": one.protocol_type or None,
                        "type": one.type or None,
                    }
                    for one in groups
                ]
            )
        elif args.state is not None or sys.stdout.isatty():
            print_table(["GROUP", "STATE", "TYPE"], [[one.group_id, one.state, one.type] for one in groups])
        else:
            for one in groups:
                print(one.group_id)
        return DONE

    return run_with_groups(args, show)


def parse_states(text: str) -> list[str]:
    """Kafka's names, in whatever case they were typed."""
    by_lower = {state.lower(): state for state in STATES}
    found = []
    for word in text.split(","):
        state = by_lower.get(word.strip().lower())
        if state is None:
            raise ValueError(f"not a state: {word!r} (there are {', '.join(STATES)})")
        found.append(state)
    return found
