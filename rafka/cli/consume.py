"""`rafka consume`: records of a topic on standard output."""

from __future__ import annotations

import argparse
import sys

from ..client import AtOffset, Client, Consumer, TopicPartition
from ..client.offsets import EARLIEST, LATEST, resolve
from . import consume_group
from .connected import checked, run_connected, targets_of
from .consume_printer import COMMITTED, UNCOMMITTED, Printer, note
from .format import DEFAULT, Formatter, as_json, compile_format
from .output import ASKED_WRONGLY, DONE, CommandError, add_bootstrap
from .starts import Span, parse_partitions, parse_span

DESCRIPTION = """\
Print records of a topic, from the beginning to the end as it is when the command starts.

The letters are kcat's, but that this command exits at the end unless --follow is given. Without
--group it joins no group and commits nothing; with it, it goes on where the group stands, and
commits as it goes. Formats: %t topic, %p partition, %o offset, %k key, %s value, %K and %S their
sizes (-1 is null), %R size of the value as four bytes, %T timestamp in milliseconds, %h headers,
%% a percent sign; \\n \\t \\r \\0 \\xHH as in C.
"""

EXAMPLES = """\
  rafka consume orders                              all there is
  rafka consume orders -o end --follow              what comes from now on, until Ctrl-C
  rafka consume orders -o -10                       the last ten of each partition
  rafka consume orders -o 1000 -c 1 -p 0            one record at offset 1000 of partition 0
  rafka consume orders -o s@2026-11-18 -o e@2026-11-19     of one day (UTC)
  rafka consume orders -f '%p %o %k %s\\n'
  rafka consume orders --json | jq .value
  rafka consume orders --group billing --from-beginning --follow     as a member of a group
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "-o",
        "--offset",
        action="append",
        default=[],
        metavar="WHERE",
        help="beginning (default), end, an offset, -N before the end, s@TIME or @TIME; e@TIME to stop",
    )
    parser.add_argument("-p", "--partition", action="append", metavar="N", help="only these: 0 or 0,2 or 0-3")
    parser.add_argument("-c", "--count", type=int, metavar="N", help="stop after so many records")
    parser.add_argument(
        "-F", "--follow", action="store_true", help="at the end, wait for more", dest="follow"
    )
    parser.add_argument(
        "-e", "--exit", action="store_false", help="exit at the end: the default", dest="follow"
    )
    parser.add_argument("-f", "--format", metavar="FORMAT", help=r"how to print a record (default '%%s\n')")
    parser.add_argument("-J", "--json", action="store_true", help="print each record as a line of JSON")
    parser.add_argument("-K", "--key-separator", metavar="SEP", help="print the key and SEP before the value")
    parser.add_argument("-Z", "--null", action="store_true", help="print null as NULL, not as nothing")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing on standard error")
    parser.add_argument("-u", "--unbuffered", action="store_true", help="hand on each record at once")
    parser.add_argument(
        "--isolation",
        choices=(COMMITTED, UNCOMMITTED),
        default=COMMITTED,
        help="whether to leave out what transactions have not committed (the default)",
    )
    consume_group.add_options(parser)
    add_bootstrap(parser)


def run(args: argparse.Namespace) -> int:
    span: Span = checked(parse_span, args.offset)
    consume_group.check(args, span)
    partitions = None if args.partition is None else checked(parse_partitions, args.partition)
    write = _formatter(args)
    if args.count is not None and args.count < 1:
        raise CommandError(f"-c is how many records to print, not {args.count}", ASKED_WRONGLY)

    async def consume(client: Client) -> int:
        if args.group is not None:
            everything = Printer(sys.stdout.buffer, write, {}, args.count, args.unbuffered)
            return await consume_group.consume(args, client, everything, span)
        targets = await targets_of(client, args.topic, partitions)
        starts = await _starts(args, client, targets, span)
        ends = await _ends(args, client, targets, span)
        reading = {
            target: AtOffset(offset)
            for target, offset in starts.items()
            if target not in ends or offset < ends[target]
        }
        printer = Printer(sys.stdout.buffer, write, ends, args.count, args.unbuffered)
        async with client.consumer(reading, read_committed=args.isolation == COMMITTED) as consumer:
            await _print_all(args, consumer, printer)
        return DONE

    return run_connected(args, consume)


def _formatter(args: argparse.Namespace) -> Formatter:
    if args.json:
        if args.format is not None or args.key_separator is not None:
            raise CommandError("--json is a format of its own: leave out -f and -K", ASKED_WRONGLY)
        return as_json
    if args.format is not None and args.key_separator is not None:
        raise CommandError("-f says where the key goes: leave out -K", ASKED_WRONGLY)
    text = args.format or DEFAULT
    if args.key_separator is not None:
        text = f"%k{args.key_separator.replace('%', '%%')}{DEFAULT}"
    formatter: Formatter = checked(lambda given: compile_format(given, b"NULL" if args.null else b""), text)
    return formatter


async def _starts(
    args: argparse.Namespace, client: Client, targets: list[TopicPartition], span: Span
) -> dict[TopicPartition, int]:
    committed = args.isolation == COMMITTED
    starts = await resolve(client.cluster, dict.fromkeys(targets, span.start), read_committed=committed)
    if not isinstance(span.start, AtOffset):
        return starts
    oldest = await client.admin.list_offsets(dict.fromkeys(targets, EARLIEST))
    for target, offset in starts.items():
        if offset < oldest[target].offset:
            note(args, f"{target} begins at offset {oldest[target].offset} by now: starting there")
            starts[target] = oldest[target].offset
    return starts


async def _ends(
    args: argparse.Namespace, client: Client, targets: list[TopicPartition], span: Span
) -> dict[TopicPartition, int]:
    """Where each partition stops: at its present end, unless it is followed, or at a time before that."""
    committed = args.isolation == COMMITTED
    ends: dict[TopicPartition, int] = {}
    if not args.follow:
        found = await client.admin.list_offsets(dict.fromkeys(targets, LATEST), read_committed=committed)
        ends = {target: one.offset for target, one in found.items()}
    if span.until_time is not None:
        found = await client.admin.list_offsets(
            dict.fromkeys(targets, span.until_time), read_committed=committed
        )
        ends |= {target: one.offset for target, one in found.items() if one.offset >= 0}
    return ends


async def _print_all(args: argparse.Namespace, consumer: Consumer, printer: Printer) -> None:
    told: set[TopicPartition] = set()
    while consumer.assignment and printer.left != 0:
        chunk = await consumer.next_chunk()
        printer.print(chunk)
        if chunk.target in printer.ends and chunk.next_offset >= printer.ends[chunk.target]:
            consumer.drop(chunk.target)
        elif chunk.next_offset >= chunk.end_offset and chunk.target not in told:
            told.add(chunk.target)
            note(args, f"{chunk.target}: reached the end at offset {chunk.next_offset}, waiting for more")
