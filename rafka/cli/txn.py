"""`rafka txn`: which transactions there are, how they stand, and how to end one that does not end."""

from __future__ import annotations

import argparse
import time
from typing import Final

from ..client import Client, TopicPartition
from ..client.transactions import PartitionProducer, TransactionDescription
from .connected import add_command, add_json, run_connected, targets_of
from .output import ASKED_WRONGLY, DONE, FAILED, CommandError, add_bootstrap, print_json, print_table

DESCRIPTION = "Look at transactions and at who produces in them, and end those that do not end."

EXAMPLES = """\
  rafka txn list --state Ongoing
  rafka txn describe payments-1
  rafka txn producers orders --partition 0
  rafka txn hanging
  rafka txn abort payments-1                          take the id over: its producer is fenced
  rafka txn abort --topic orders --partition 0 --start-offset 4711      one that no coordinator knows
"""

LONGEST_MINUTES: Final = 15.0  # brokers let no transaction last longer, unless told otherwise


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = add_command(
        commands,
        "list",
        _list,
        "list transactional ids",
        "  rafka txn list\n  rafka txn list --state Ongoing --longer-than 60\n",
    )
    listing.add_argument("--state", action="append", default=[], metavar="STATE", help="only in this state")
    listing.add_argument(
        "--producer-id", action="append", type=int, default=[], metavar="ID", help="only of this producer"
    )
    listing.add_argument(
        "--longer-than", type=float, metavar="SECONDS", help="only those that began so long ago"
    )
    listing.add_argument("--pattern", metavar="REGEX", help="only ids that match this as a whole")

    describe = add_command(
        commands,
        "describe",
        _describe,
        "show how transactions stand",
        "  rafka txn describe payments-1 payments-2\n",
    )
    describe.add_argument("ids", nargs="+", metavar="ID")

    producers = add_command(
        commands,
        "producers",
        _producers,
        "show who writes to a topic, and whose transaction is open",
        "  rafka txn producers orders\n  rafka txn producers orders --partition 0\n",
    )
    producers.add_argument("topic", metavar="TOPIC")
    producers.add_argument("--partition", type=int, metavar="N", help="only this one")

    hanging = add_command(
        commands,
        "hanging",
        _hanging,
        "find open transactions that no coordinator knows: nobody will ever end them",
        "  rafka txn hanging\n  rafka txn hanging --topic orders --longer-than 60\n",
    )
    hanging.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="look only here")
    hanging.add_argument(
        "--longer-than",
        type=float,
        default=LONGEST_MINUTES,
        metavar="MINUTES",
        help=f"the broker's transaction.max.timeout.ms, in minutes ({LONGEST_MINUTES:g})",
    )

    abort = add_command(
        commands,
        "abort",
        _abort,
        "abort the transaction of an id, or one that hangs in a partition",
        "  rafka txn abort payments-1\n  rafka txn abort --topic orders --partition 0 --start-offset 4711\n",
    )
    abort.add_argument("id", nargs="?", metavar="ID", help="its producer is fenced")
    abort.add_argument("--topic", metavar="TOPIC", help="where a transaction hangs")
    abort.add_argument("--partition", type=int, metavar="N")
    abort.add_argument("--start-offset", type=int, metavar="OFFSET", help="where it began there")
    for parser in (listing, describe, producers, hanging):
        add_json(parser)
    for parser in (listing, describe, producers, hanging, abort):
        add_bootstrap(parser)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code


def _list(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        longer_than = -1 if args.longer_than is None else int(args.longer_than * 1000)
        try:
            found = await client.transactions.list_all(
                states=args.state,
                producer_ids=args.producer_id,
                longer_than_ms=longer_than,
                pattern=args.pattern,
            )
        except ValueError as unknown:
            raise CommandError(f"{unknown}; try Empty, Ongoing, CompleteCommit", ASKED_WRONGLY) from unknown
        if args.json:
            print_json(
                [
                    {
                        "transactional_id": one.transactional_id,
                        "coordinator": one.coordinator,
                        "producer_id": one.producer_id,
                        "state": one.state,
                    }
                    for one in found
                ]
            )
            return DONE
        print_table(
            ["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE"],
            [[one.transactional_id, one.coordinator, one.producer_id, one.state] for one in found],
        )
        return DONE

    return run_connected(args, show)


def _describe(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        found = [await client.transactions.describe(name) for name in args.ids]
        if args.json:
            print_json([_as_json(one) for one in found])
            return DONE
        now_ms = int(time.time() * 1000)
        print_table(
            [
                "TRANSACTIONAL-ID",
                "COORDINATOR",
                "PRODUCER-ID",
                "EPOCH",
                "STATE",
                "TIMEOUT",
                "OPEN-FOR",
                "PARTITIONS",
            ],
            [
                [
                    one.transactional_id,
                    one.coordinator,
                    one.producer_id,
                    one.producer_epoch,
                    one.state,
                    f"{one.timeout_ms / 1000:g} s",
                    _open_for(one, now_ms),
                    " ".join(map(str, one.partitions)),
                ]
                for one in found
            ],
        )
        return DONE

    return run_connected(args, show)


def _as_json(one: TransactionDescription) -> dict[str, object]:
    return {
        "transactional_id": one.transactional_id,
        "coordinator": one.coordinator,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "state": one.state,
        "timeout_ms": one.timeout_ms,
        "started_ms": one.started_ms,
        "partitions": [{"topic": p.topic, "partition": p.partition} for p in one.partitions],
    }


def _open_for(one: TransactionDescription, now_ms: int) -> str:
    if one.started_ms is None or one.state != "Ongoing":
        return ""
    return f"{max(0, now_ms - one.started_ms) / 1000:.1f} s"


def _producers(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        only = None if args.partition is None else [args.partition]
        found = []
        for target in await targets_of(client, args.topic, only):
            found += await client.transactions.producers(target)
        _show_producers(found, args.json)
        return DONE

    return run_connected(args, show)


def _show_producers(found: list[PartitionProducer], as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "topic": one.partition.topic,
                    "partition": one.partition.partition,
                    "producer_id": one.producer_id,
                    "producer_epoch": one.producer_epoch,
                    "last_sequence": one.last_sequence,
                    "last_timestamp_ms": one.last_timestamp_ms,
                    "coordinator_epoch": one.coordinator_epoch,
                    "open_since_offset": one.open_since,
                }
                for one in found
            ]
        )
        return
    print_table(
        ["TOPIC", "PARTITION", "PRODUCER-ID", "EPOCH", "LAST-SEQUENCE", "LAST-WRITE", "START-OFFSET"],
        [
            [
                one.partition.topic,
                one.partition.partition,
                one.producer_id,
                one.producer_epoch,
                one.last_sequence,
                _time(one.last_timestamp_ms),
                one.open_since,
            ]
            for one in found
        ],
    )


def _time(ms: int) -> str:
    return "" if ms < 0 else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms / 1000))


def _hanging(args: argparse.Namespace) -> int:
    """Exit code 1 where one was found, so that a monitor can tell."""

    async def find(client: Client) -> int:
        topics = args.topic or [one.name for one in await client.admin.list_topics() if not one.internal]
        targets = [target for name in topics for target in await targets_of(client, name)]
        found = await client.transactions.hanging(
            targets, longer_than_ms=int(args.longer_than * 60_000), now_ms=int(time.time() * 1000)
        )
        if found or args.json:
            _show_producers(found, args.json)
        else:
            print(f"no transaction hangs in {len(targets)} partitions")
        return FAILED if found else DONE

    return run_connected(args, find)


def _abort(args: argparse.Namespace) -> int:
    where = (args.topic, args.partition, args.start_offset)
    if (args.id is None) == (where == (None, None, None)) or (args.id is None and None in where):
        raise CommandError(
            "name a transactional id, or --topic, --partition and --start-offset", ASKED_WRONGLY
        )

    async def abort_one(client: Client) -> int:
        if args.id is not None:
            await client.transactions.describe(args.id)  # an id that is not there must not be made by this
            await client.transactions.terminate(args.id)
            print(f"transactional id {args.id!r}: what was open is aborted, its producer is fenced")
            return DONE
        target = TopicPartition(args.topic, args.partition)
        for one in await client.transactions.producers(target):
            if one.open_since == args.start_offset:
                await client.transactions.abort(one)
                print(f"{target}: the transaction of producer {one.producer_id} is aborted")
                return DONE
        raise CommandError(
            f"no open transaction of {target} began at offset {args.start_offset};"
            f" `rafka txn producers {args.topic}` shows those that are open"
        )

    return run_connected(args, abort_one)
