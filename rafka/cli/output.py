"""What commands share: how they print, how they fail, and how they are told where the broker is."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from ..text import plain

DONE: Final = 0
FAILED: Final = 1
ASKED_WRONGLY: Final = 2

DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"
BOOTSTRAP_VARIABLES: Final = ("RAFKA_BOOTSTRAP", "KAFKA_BOOTSTRAP_SERVERS")


class CommandError(Exception):
    """Ends a command with one line that says what went wrong and, where there is one, the way out."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def complain(who: str, message: str, exit_code: int) -> int:
    """Say it on stderr, on one line; the exit code to end with."""
    print(f"{who}: {plain(message)}", file=sys.stderr)
    return exit_code


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    """-b, as kcat and kafka-python have it, and --bootstrap-server, as Kafka's scripts have it."""
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        "--bootstrap-servers",
        "--brokers",
        dest="bootstrap",
        metavar="HOST:PORT[,...]",
        help=f"brokers to ask first (${', $'.join(BOOTSTRAP_VARIABLES)}, else {DEFAULT_BOOTSTRAP})",
    )


def bootstrap(args: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> str:
    """The brokers to ask first."""
    for given in (args.bootstrap, *(environ.get(name) for name in BOOTSTRAP_VARIABLES)):
        if given:
            return str(given)
    return DEFAULT_BOOTSTRAP


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[object]], *, file: TextIO | None = None
) -> None:
    """Columns under their names. An empty cell is `-`, so that a script can count on the columns.

    On a terminal lines are cut at its edge; elsewhere nothing is.
    """
    file = file or sys.stdout
    lines = [list(headers), *([plain(_cell(value)) for value in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(headers))]
    edge = shutil.get_terminal_size().columns if file.isatty() else None
    for line in lines:
        padded = (text.ljust(width) for text, width in zip(line, widths, strict=True))
        print("  ".join(padded).rstrip()[:edge], file=file)


def print_json(value: object, *, file: TextIO | None = None) -> None:
    """Indented on a terminal, one line elsewhere."""
    import json

    file = file or sys.stdout
    print(json.dumps(value, indent=2 if file.isatty() else None, ensure_ascii=False), file=file)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "-" if value is None or value == "" else str(value)
