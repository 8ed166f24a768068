"""What commands share: how they print, how they fail, and how they are told where the broker is."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, TextIO

from ..text import plain
from .table import lines_of

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
    """Columns under their names. What is wider than the terminal goes on in the next line, none is lost."""
    for line in lines_of(headers, rows):
        print(line, file=file or sys.stdout)


def print_json(value: object, *, file: TextIO | None = None) -> None:
    """Indented on a terminal, one line elsewhere."""
    import json

    file = file or sys.stdout
    unicode = "utf" in (file.encoding or "utf").lower()
    indent = 2 if file.isatty() else None
    print(json.dumps(value, indent=indent, ensure_ascii=not unicode), file=file)
