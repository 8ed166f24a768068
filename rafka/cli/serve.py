"""`rafka serve`: put the settings together, say what is unusual about them, and run the broker.

It also tells those who wait that the broker is ready: a line on stdout, the port in a file, a
line on a file descriptor, and systemd's notification.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from .. import __version__
from ..config import Config, ConfigError, load
from .output import ASKED_WRONGLY, DONE, CommandError, complain, print_table

if TYPE_CHECKING:
    from ..server import RunningBroker

DESCRIPTION = """\
Run a broker that Kafka's clients can talk to.

Settings come from flags, from RAFKA_* and KAFKA_* environment variables, and from a file, in this
order of weight; their names are Kafka's wherever Kafka has one. Nothing has to be set: the broker
then listens on 127.0.0.1:9092 and keeps its records under ~/.local/state/rafka.
"""

EXAMPLES = """\
  rafka serve                                        on 127.0.0.1:9092, records are kept
  rafka serve --storage memory: --listen :0          for a test: any free port, nothing is kept
  rafka serve --data-dir /srv/rafka --listen :9092 --advertise kafka.example.com:9092
  rafka serve --set num.partitions=3 --set log.retention.hours=24
  rafka serve -c server.properties                   a file made for Kafka
  RAFKA_NUM_PARTITIONS=3 rafka serve --print-config  what would count, and who said so
"""

LOOPBACK: Final = ("127.", "::1", "localhost")


def configure(parser: argparse.ArgumentParser) -> None:
    place = parser.add_mutually_exclusive_group()
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
    parser.add_argument("--port-file", metavar="FILE", help="when ready, write the ports here, a line each")
    parser.add_argument(
        "--ready-fd",
        type=int,
        metavar="N",
        help="when ready, write HOST:PORT to this descriptor and close it",
    )


def run(args: argparse.Namespace) -> int:
    try:
        config = load(
            flags=list(given(args)), environ=os.environ, file=args.config or os.environ.get("RAFKA_CONFIG")
        )
    except ConfigError as error:
        raise CommandError(str(error), ASKED_WRONGLY) from None
    if args.print_config:
        print_config(config)
        for line in config.warnings:
            complain("rafka serve", line, DONE)
        return DONE

    import logging

    from .. import daemon, logs

    logs.set_up(config.logging.format, config.logging.level, node_id=config.broker.node_id)
    for level, line in remarks(config):
        logging.getLogger("rafka").log(getattr(logging, level), "%s", line)

    def ready(running: RunningBroker) -> None:
        announce(running, port_file=args.port_file, ready_fd=args.ready_fd)

    return daemon.main(config, ready)


def given(args: argparse.Namespace) -> list[tuple[str, str, str]]:
    """The settings among the flags: key, value, flag."""
    flags: list[tuple[str, str, str]] = []
    for pair in args.set:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"--set takes KEY=VALUE, not {pair!r}", ASKED_WRONGLY)
        flags.append((key.strip(), value, "--set"))
    for flag, key, value in (
        ("--listen", "listen", args.listen),
        ("--advertise", "advertise", args.advertise),
        ("--data-dir", "data.dir", args.data_dir),
        ("--storage", "storage", args.storage),
        ("--durability", "durability", args.durability),
        ("--log-format", "log.format", args.log_format),
        ("--log-level", "log.level", args.log_level),
    ):
        if value is not None:
            flags.append((key, ",".join(value) if isinstance(value, list) else value, flag))
    return flags


def print_config(config: Config) -> None:
    rows = [(row.key, row.value, row.source, row.doc) for row in config.explain()]
    print_table(("SETTING", "VALUE", "FROM", "WHAT IT IS"), rows)


def remarks(config: Config) -> list[tuple[str, str]]:
    """What should be said before the broker starts: level and line."""
    place = config.storage.place
    if place.in_memory:
        said = [("INFO", "records are kept in memory and end with this process")]
    else:
        kept = "a loss of power" if config.storage.durability == "fsync" else "the end of this process"
        said = [("INFO", f"records are kept in {place.path}; what is acknowledged survives {kept}")]
    if told := [f"{r.key}={r.value} ({r.source})" for r in config.explain() if r.source != "default"]:
        said.append(("INFO", f"settings: {', '.join(told)}"))
    said += [("WARNING", line) for line in config.warnings]
    said += [
        ("WARNING", f"{listener} is open to the network, without encryption or passwords")
        for listener in config.network.listen
        if not listener.host.startswith(LOOPBACK)
    ]
    return said


def announce(running: RunningBroker, *, port_file: str | None, ready_fd: int | None) -> None:
    """Tell everybody who waits for it that the broker is ready."""
    listeners = [bound.listener for bound in running.bound]
    if port_file is not None:
        _write_whole(port_file, "".join(f"{listener.port}\n" for listener in listeners))
    if ready_fd is not None:
        with os.fdopen(ready_fd, "w") as pipe:
            pipe.write(f"{running.bootstrap}\n")
    _notify_systemd(os.environ)
    where = ", ".join(map(str, listeners))
    storage = running.config.storage
    kept = "" if storage.place.in_memory else f", durability {storage.durability}"
    print(
        f"Rafka node {running.config.broker.node_id} started, listening on {where}"
        f" (version {__version__}, storage {storage.place}{kept})",
        flush=True,
    )


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
