"""What `serve`, `broker` and `gateway` share: their options, settings, first lines, and how they tell
that they are ready: a line on stdout, ports in a file, a line on a file descriptor, systemd's notification.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

from ..config import Config, ConfigError, load
from .output import ASKED_WRONGLY, DONE, CommandError, complain, print_table

T = TypeVar("T")

LOOPBACK: Final = ("127.", "::1", "localhost")
# Flags that are settings: the flag, the setting, where argparse puts it.
FLAGS: Final = (
    ("--listen", "listen", "listen"),
    ("--advertise", "advertise", "advertise"),
    ("--link", "link", "link"),
    ("--data-dir", "data.dir", "data_dir"),
    ("--storage", "storage", "storage"),
    ("--durability", "durability", "durability"),
    ("--log-format", "log.format", "log_format"),
    ("--log-level", "log.level", "log_level"),
)


# --- options ------------------------------------------------------------------------------


def add_listeners(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        action="append",
        metavar="HOST:PORT",
        help="listen here; :PORT is every interface, port 0 any free one (127.0.0.1:9092; repeatable)",
    )
    parser.add_argument(
        "--advertise",
        action="append",
        metavar="HOST:PORT",
        help="tell clients to connect here: one for all listeners, or one for each (repeatable)",
    )


def add_storage(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--data-dir", metavar="DIR", help="keep records in this directory")
    place.add_argument(
        "--storage",
        metavar="URL",
        help="keep records in memory: or in file:DIR, which is the same as --data-dir",
    )
    parser.add_argument(
        "--durability",
        metavar="HOW",
        help="fsync: acknowledged records survive a loss of power (default);"
        " page-cache: they survive the end of the process",
    )


def add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="read settings from a TOML file or a properties file ($RAFKA_CONFIG)",
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting by its key (repeatable)"
    )
    parser.add_argument(
        "--print-config", action="store_true", help="print every setting and where it comes from, and stop"
    )
    parser.add_argument("--log-format", metavar="FORMAT", help="text as Kafka's lines (default), or json")
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info (default), warning or error")


def add_readiness(parser: argparse.ArgumentParser, *, ready: str = "HOST:PORT") -> None:
    parser.add_argument("--port-file", metavar="FILE", help="when ready, write the ports here, a line each")
    parser.add_argument(
        "--ready-fd",
        type=int,
        metavar="N",
        help=f"when ready, write {ready} to this descriptor and close it",
    )


# --- settings -----------------------------------------------------------------------------


def given(args: argparse.Namespace) -> list[tuple[str, str, str]]:
    """The settings among the flags: key, value, flag."""
    flags: list[tuple[str, str, str]] = []
    for pair in args.set:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"--set takes KEY=VALUE, not {pair!r}", ASKED_WRONGLY)
        flags.append((key.strip(), value, "--set"))
    for flag, key, name in FLAGS:
        value = getattr(args, name, None)
        if value is not None:
            flags.append((key, ",".join(value) if isinstance(value, list) else value, flag))
    return flags


def settled(args: argparse.Namespace) -> Config:
    """The configuration that the flags, the environment and the file add up to."""
    try:
        return load(flags=given(args), environ=os.environ, file=args.config or os.environ.get("RAFKA_CONFIG"))
    except ConfigError as error:
        raise CommandError(str(error), ASKED_WRONGLY) from None


def run(
    command: str,
    args: argparse.Namespace,
    config: Config,
    opened: Callable[[], Callable[[Config], AbstractAsyncContextManager[T]]],
    remarks: Sequence[tuple[str, str]],
    ready: Callable[[T], None],
) -> int:
    """Print the settings if that is all that is wanted; else run until a signal comes. The exit code.

    `opened` imports what is to be run: who only asks for the settings does not wait for that.
    """
    if args.print_config:
        print_table(
            ("SETTING", "VALUE", "FROM", "WHAT IT IS"),
            [(row.key, row.value, row.source, row.doc) for row in config.explain()],
        )
        for line in config.warnings:
            complain(f"rafka {command}", line, DONE)
        return DONE

    import logging

    from .. import daemon, logs

    logs.set_up(config.logging.format, config.logging.level, node_id=config.broker.node_id)
    for level, line in remarks:
        logging.getLogger("rafka").log(getattr(logging, level), "%s", line)
    return daemon.main(config, opened(), ready)


# --- what is said first -------------------------------------------------------------------


def about_storage(config: Config) -> list[tuple[str, str]]:
    """Level and line, as all of these."""
    place = config.storage.place
    if place.in_memory:
        return [("INFO", "records are kept in memory and end with this process")]
    kept = "a loss of power" if config.storage.durability == "fsync" else "the end of this process"
    return [("INFO", f"records are kept in {place.path}; what is acknowledged survives {kept}")]


def about_settings(config: Config) -> list[tuple[str, str]]:
    told = [f"{r.key}={r.value} ({r.source})" for r in config.explain() if r.source != "default"]
    said = [("INFO", f"settings: {', '.join(told)}")] if told else []
    return said + [("WARNING", line) for line in config.warnings]


def about_listeners(config: Config) -> list[tuple[str, str]]:
    return [
        ("WARNING", f"{listener} is open to the network, without encryption or passwords")
        for listener in config.network.listen
        if not listener.host.startswith(LOOPBACK)
    ]


def about_codecs() -> list[tuple[str, str]]:
    """Records in them pass through unread, unless a topic has them read: whoever does so should know."""
    from ..records.compress import missing_codecs

    missing = missing_codecs()
    if not missing:
        return []
    return [
        (
            "INFO",
            f"not installed: {', '.join(missing)}. Records so compressed pass through as they are, and are"
            " refused where they have to be read: pip install 'rafka[compression]'",
        )
    ]


def about_link(config: Config) -> list[tuple[str, str]]:
    """Whoever reaches the link is believed."""
    link = config.link.address
    if link is None or link.path is not None or link.host.startswith(LOOPBACK):
        return []
    return [("WARNING", f"{link} is open to the network, and whoever reaches it may do everything")]


# --- being ready --------------------------------------------------------------------------


def announce(
    line: str, *, ports: Sequence[int], where: str, port_file: str | None, ready_fd: int | None
) -> None:
    """Tell everybody who waits for it. `where` is what clients or gateways connect to."""
    if port_file is not None:
        _write_whole(port_file, "".join(f"{port}\n" for port in ports))
    if ready_fd is not None:
        with os.fdopen(ready_fd, "w") as pipe:
            pipe.write(f"{where}\n")
    _notify_systemd(os.environ)
    print(line, flush=True)


def storage_line(config: Config) -> str:
    storage = config.storage
    kept = "" if storage.place.in_memory else f", durability {storage.durability}"
    return f"storage {storage.place}{kept}"


def _write_whole(path: str, text: str) -> None:
    """Write it so that whoever waits for the file never reads half of it."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)


def _notify_systemd(environ: Mapping[str, str]) -> None:
    address = environ.get("NOTIFY_SOCKET")
    if not address:
        return
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.connect("\0" + address[1:] if address.startswith("@") else address)
        notify.sendall(b"READY=1")
