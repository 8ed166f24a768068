"""The `rafka` command: finds the subcommand, lets it run, and turns its failures into one line.

Each subcommand is a module of this package that is imported only when it is asked for. It offers

    DESCRIPTION: str                       what it does, in a few sentences, for its --help
    EXAMPLES: str                          lines that can be typed as they are
    def configure(parser: argparse.ArgumentParser) -> None      add its options
    def run(args: argparse.Namespace) -> int                    do it; 0 where all went well

and has its line in `COMMANDS`. What goes wrong it raises as `output.CommandError`. Exit codes:
0 done, 1 failed, 2 asked for wrongly; 130 after Ctrl-C, 141 where nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, NoReturn

from ..text import plain
from .output import ASKED_WRONGLY, FAILED, CommandError, complain

COMMANDS: Final[Mapping[str, str]] = {
    "serve": "run a broker",
    "broker": "run a broker whose gateways are processes of their own",
    "gateway": "run a gateway for such a broker",
    "topic": "create, list, describe, alter and delete topics",
    "produce": "write records to a topic, from a file or as you type",
    "consume": "read records of a topic",
    "group": "list, describe, move and delete consumer groups; how far behind they are",
    "cluster": "show brokers, APIs and settings of a cluster",
    "txn": "look at transactions, and end those that do not end",
    "log": "look into segment files",
    "bench": "measure producing and consuming",
}

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_EXAMPLES: Final = """\
examples:
  rafka serve                                   a broker on 127.0.0.1:9092
  rafka topic create orders --partitions 3      a topic
  echo hello | rafka produce orders             a record
  rafka consume orders -o beginning             and back again

`rafka COMMAND --help` tells more of each.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code. `argv` is without the program's name."""
    _mend_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words or words[0].startswith("-"):
        return _at_the_top(words)
    command, *rest = words
    if command not in COMMANDS:
        return complain("rafka", _unknown(command), ASKED_WRONGLY)
    return _run(command, rest)


def parser_of(command: str) -> argparse.ArgumentParser:
    """The options of a command. The documentation is drawn from this too."""
    return _parser(command, _module(command))


class Parser(argparse.ArgumentParser):
    """One line for a mistake, and where to read more."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A subcommand complains itself of what it does not know, so that it names its own help."""
        self._words: Sequence[str] = args or ()
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        told = f"{self.prog}: {message}{self._about_dashes(message)}; see `{self.prog} --help`"
        self.exit(ASKED_WRONGLY, f"{plain(told)}\n")

    def _about_dashes(self, message: str) -> str:
        """The way out where what looks like an option may be a name, as Kafka lets names begin with -."""
        names = [word for word in self._words if word.startswith("-") and not self._has_option(word)]
        if not names or not self._get_positional_actions():
            return ""
        if message.endswith("expected one argument"):
            return " (where it begins with -, write it after =, as in --option=-value)"
        return f" (a name that begins with - comes after --, as in `{self.prog} -- {names[0]}`)"

    def _has_option(self, word: str) -> bool:
        return any(word.partition("=")[0] in action.option_strings for action in self._actions)


def _mend_streams() -> None:
    """Where a stream was closed by whoever started us there is one that leads nowhere.

    What cannot be said in the locale's encoding is escaped, as Python does it on stderr.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115  # for as long as the process lives
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _run(command: str, words: Sequence[str]) -> int:
    module = _module(command)
    try:
        args = _parser(command, module).parse_args(words)
        code: int = module.run(args)
        sys.stdout.flush()  # here, where a reader who has gone can be told from a bug
    except CommandError as error:
        return complain(f"rafka {command}", str(error), error.exit_code)
    except SystemExit as leaving:  # argparse: --help, or a mistake that it has told
        return leaving.code if isinstance(leaving.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _say_no_more()
        return 141
    except OSError as error:
        if error.errno not in NO_ROOM:  # commands write nothing but their output
            raise
        _say_no_more()
        return complain(f"rafka {command}", f"the output cannot be written: {error.strerror}", FAILED)
    return code


def _say_no_more() -> None:
    """Python flushes stdout once more as it ends: let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _module(command: str) -> Any:
    return import_module(f"{__name__}.{command}")


def _parser(command: str, module: Any) -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"rafka {command}",
        description=module.DESCRIPTION,
        epilog=f"examples:\n{module.EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    return parser


def _at_the_top(words: Sequence[str]) -> int:
    lines = "\n".join(f"  {name:<9} {line}" for name, line in COMMANDS.items())
    parser = Parser(
        prog="rafka",
        usage="rafka COMMAND [OPTION]...",
        description=f"A Kafka-compatible broker, and what is needed to work with one.\n\ncommands:\n{lines}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    try:
        args = parser.parse_args(words)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    if args.version:
        from .. import __version__

        print(f"rafka {__version__}")
        return 0
    parser.print_help(sys.stderr)
    return ASKED_WRONGLY


def _unknown(command: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(command, COMMANDS, n=1)
    hint = f"did you mean `rafka {near[0]}`?" if near else "`rafka --help` lists them"
    return f"there is no command {command!r}; {hint}"
