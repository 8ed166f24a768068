"""`rafka log`: look into segment files, with no broker needed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from .connected import add_command, add_json
from .output import DONE, FAILED, CommandError, print_json
from .segments import Dump, dump_index, dump_log, dump_time_index, dump_txn_index

DESCRIPTION = "Look into the segment files of a partition, rafka's or Kafka's. No broker is needed."

EXAMPLES = """\
  rafka log dump data/topics/*/0/00000000000000000000.log
  rafka log dump 00000000000000000000.log --records
"""

READERS: Final = {
    ".log": dump_log,
    ".index": dump_index,
    ".timeindex": dump_time_index,
    ".txnindex": dump_txn_index,
}


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    dump = add_command(
        commands,
        "dump",
        _dump,
        "print the batches of .log files and the entries of .index, .timeindex and .txnindex files",
        """\
  rafka log dump 00000000000000000000.log               a line for each batch, checksums verified
  rafka log dump 00000000000000000000.log --records     and its records
  rafka log dump *.log --deep                           read every record, and check that all adds up
  rafka log dump 00000000000000000000.index --deep      check it against the .log beside it
  rafka log dump 00000000000000000000.log --json | jq .base_offset

Exits with 1 where something is damaged. The end of a segment that is being written may be zeros,
which are room that a broker has reserved, or a batch cut short, which it removes when it starts.
""",
    )
    dump.add_argument("files", nargs="+", type=Path, metavar="FILE")
    dump.add_argument("-r", "--records", action="store_true", help="print the records of .log files")
    dump.add_argument(
        "--deep", action="store_true", help="check records, times, offsets, and indexes against logs"
    )
    add_json(dump)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code


def _dump(args: argparse.Namespace) -> int:
    bad = 0
    for path in args.files:
        reader = READERS.get(path.suffix)
        if reader is None:
            raise CommandError(f"{path}: not a .log, .index, .timeindex or .txnindex file")
        if not args.json:
            print(f"Dumping {path}")
        dump = Dump(records=args.records, deep=args.deep)
        try:
            for line in reader(path, dump):
                if args.json:
                    print_json({"file": str(path), **line})
                else:
                    print(_text(line))
        except BrokenPipeError:  # nobody reads the output any more
            raise
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        bad += dump.faults
    return FAILED if bad else DONE


def _text(line: dict[str, object]) -> str:
    """`name: value` as in Kafka's own tool, records set in."""
    shown = " ".join(f"{name}: {_value(value)}" for name, value in line.items())
    return f"| {shown}" if "record_offset" in line else shown


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
