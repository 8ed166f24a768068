"""`rafka group`: what consumer groups there are, who is in them, how far they are, and moving them."""

from __future__ import annotations

import argparse

from . import delete, describe, history, lag, listing, members, offsets, reset

DESCRIPTION = """\
List, describe, move and delete consumer groups. Works with any Kafka-compatible broker, but for
`history`, which only rafka keeps.
"""

EXAMPLES = """\
  rafka group list                                        their names
  rafka group describe billing                            offsets, lag and who reads what
  rafka group lag billing --watch                         the lag as it changes
  rafka group reset-offsets billing --topic orders --to-earliest --dry-run
  rafka group history billing                             why did it rebalance
  rafka group delete billing

`rafka group COMMAND --help` tells more of each.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing.configure(commands)
    describe.configure(commands)
    lag.configure(commands)
    reset.configure(commands)
    offsets.configure(commands)
    members.configure(commands)
    delete.configure(commands)
    history.configure(commands)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code
