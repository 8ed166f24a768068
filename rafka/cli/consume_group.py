"""`rafka consume --group`: as a member of a group, from where the group stands, committing as it goes."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from ..client import Beginning, Client, End, GroupConsumer, RebalanceListener, Start, TopicPartition
from ..client.assignors import ASSIGNORS
from ..client.nursery import background
from ..client.offsets import LATEST
from .connected import targets_of
from .consume_printer import COMMITTED, Printer, note
from .output import ASKED_WRONGLY, DONE, CommandError
from .starts import Span

LOOK: Final = 0.2  # seconds between two looks at whether the end was reached


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-g",
        "--group",
        metavar="GROUP",
        help="join this group: share the partitions with its members, go on where it stands, and commit",
    )
    parser.add_argument(
        "--from-beginning",
        action="store_true",
        help="start at the beginning: the default, but for a group, which starts at the end if it is new",
    )
    parser.add_argument(
        "--assignor",
        action="append",
        choices=list(ASSIGNORS),
        help="with --group: how to share partitions (may be given again, best first)",
    )
    parser.add_argument(
        "--group-instance-id",
        metavar="ID",
        help="with --group: be a static member, who may restart unnoticed",
    )


def check(args: argparse.Namespace, span: Span) -> None:
    """Some options make sense in a group only, and some only outside of one."""
    if args.group is None:
        for name in ("assignor", "group_instance_id"):
            if getattr(args, name) is not None:
                raise CommandError(
                    f"--{name.replace('_', '-')} is for members of a group: add --group", ASKED_WRONGLY
                )
    elif not args.group:
        raise CommandError("--group needs a name", ASKED_WRONGLY)
    elif args.partition is not None:
        raise CommandError(
            "a group shares out the partitions itself: leave out -p, or --group", ASKED_WRONGLY
        )
    elif span.until_time is not None or not isinstance(span.start, Beginning | End):
        raise CommandError(
            "with --group, -o is beginning or end, for partitions that the group has no offset of: "
            "`rafka group reset-offsets` puts a group elsewhere",
            ASKED_WRONGLY,
        )
    if args.from_beginning and args.offset and not isinstance(span.start, Beginning):
        raise CommandError("--from-beginning is -o beginning: leave out one of them", ASKED_WRONGLY)


async def consume(args: argparse.Namespace, client: Client, printer: Printer, span: Span) -> int:
    targets = await targets_of(client, args.topic)
    ends: dict[TopicPartition, int] = {}
    if not args.follow:
        found = await client.admin.list_offsets(dict.fromkeys(targets, LATEST))
        ends = {target: one.offset for target, one in found.items()}
    settings: dict[str, Any] = {"instance_id": args.group_instance_id}
    if args.assignor:
        settings["assignors"] = args.assignor
    start: Start = span.start if args.offset else Beginning() if args.from_beginning else End()
    told = Told(args)
    async with client.group_consumer(
        args.group,
        [args.topic],
        listener=told,
        start=start,
        read_committed=args.isolation == COMMITTED,
        **settings,
    ) as consumer:
        stopped = await _until_told_to_stop(_print_all, args, consumer, printer, ends)
        told.parting = True
    if stopped:
        return 128 + signal.SIGTERM
    if printer.printed == 0 and isinstance(start, End):
        note(
            args, f"nothing new for group {args.group!r} (a new one starts at the end; see --from-beginning)"
        )
    return DONE


async def _until_told_to_stop(work: Callable[..., Awaitable[None]], *words: Any) -> bool:
    """Whether SIGTERM came before the work was done. Either way there is time to commit and to leave."""
    stopped = False

    async def listen(scope: trio.CancelScope) -> None:
        nonlocal stopped
        with trio.open_signal_receiver(signal.SIGTERM) as signals:
            async for _ in signals:
                stopped = True
                scope.cancel()

    async with background() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(listen, scope)
            await work(*words)
    return stopped


async def _print_all(
    args: argparse.Namespace, consumer: GroupConsumer, printer: Printer, ends: dict[TopicPartition, int]
) -> None:
    patience = float("inf") if args.follow else LOOK
    while printer.left != 0 and not (ends and _at_the_end(consumer, ends)):
        with trio.move_on_after(patience):
            chunk = await consumer.next_chunk()
            following = printer.print(chunk)
            if following < chunk.next_offset:  # enough was printed: what was not is not to be committed
                consumer.seek(chunk.target, following)


def _at_the_end(consumer: GroupConsumer, ends: dict[TopicPartition, int]) -> bool:
    """Whether this member has read what there was when it started, of all that it is to read."""
    mine = consumer.assignment
    return bool(mine) and all(consumer.position(target) >= ends.get(target, 0) for target in mine)


class Told(RebalanceListener):
    """Says on standard error what this member reads."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.parting = False

    async def on_assigned(self, targets: frozenset[TopicPartition]) -> None:
        note(self._args, f"group {self._args.group!r}: reading {_listed(targets)}")

    async def on_revoked(self, targets: frozenset[TopicPartition]) -> None:
        if not self.parting:
            note(self._args, f"group {self._args.group!r}: gave up {_listed(targets)}")


def _listed(targets: frozenset[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(targets))) or "nothing more"
