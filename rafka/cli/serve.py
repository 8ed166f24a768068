"""`rafka serve`: put the settings together, say what is unusual about them, and run a broker and its
gateway in one process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from .. import __version__
from ..config import Config
from . import starting

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


def configure(parser: argparse.ArgumentParser) -> None:
    starting.add_listeners(parser)
    starting.add_storage(parser)
    starting.add_settings(parser)
    starting.add_readiness(parser)


def run(args: argparse.Namespace) -> int:
    config = starting.settled(args)

    def ready(running: RunningBroker) -> None:
        announce(running, port_file=args.port_file, ready_fd=args.ready_fd)

    return starting.run("serve", args, config, _opened, remarks(config), ready)


def _opened() -> Callable[[Config], AbstractAsyncContextManager[RunningBroker]]:
    from ..server import open_broker

    return open_broker


def remarks(config: Config) -> list[tuple[str, str]]:
    """What should be said before the broker starts: level and line."""
    return [
        *starting.about_storage(config),
        *starting.about_codecs(),
        *starting.about_settings(config),
        *starting.about_listeners(config),
        *starting.about_link(config),
    ]


def announce(running: RunningBroker, *, port_file: str | None, ready_fd: int | None) -> None:
    """Tell everybody who waits for it that the broker is ready."""
    listeners = [bound.listener for bound in running.bound]
    where = ", ".join(map(str, listeners))
    if running.link_address is not None:
        where += f", gateways at {running.link_address}"
    starting.announce(
        f"Rafka node {running.config.broker.node_id} started, listening on {where}"
        f" (version {__version__}, {starting.storage_line(running.config)})",
        ports=[listener.port for listener in listeners],
        where=running.bootstrap,
        port_file=port_file,
        ready_fd=ready_fd,
    )
