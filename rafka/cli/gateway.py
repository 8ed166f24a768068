"""`rafka gateway`: takes clients, and passes on what they ask to a broker that is a process of its own."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from .. import __version__
from ..config import Config
from . import starting
from .output import ASKED_WRONGLY, CommandError

if TYPE_CHECKING:
    from ..apart import RunningGateway

DESCRIPTION = """\
Run a gateway: it takes Kafka's clients and passes on what they ask to the broker at --link
(`rafka broker`). It keeps nothing but connections; any number of gateways may serve one broker.

It begins to take clients when it has reached its broker. While it has lost it, clients are told
to try again.
"""

EXAMPLES = """\
  rafka gateway --link unix:/run/rafka/link
  rafka gateway --link tcp:10.0.0.5:9090 --listen :9092 --advertise kafka-1.example.com:9092
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--link", metavar="ADDRESS", help="the broker's: unix:PATH or tcp:HOST:PORT")
    starting.add_listeners(parser)
    starting.add_settings(parser)
    starting.add_readiness(parser)


def run(args: argparse.Namespace) -> int:
    config = starting.settled(args)
    link = config.link.address
    if link is None and not args.print_config:
        raise CommandError("say with --link where the broker is: unix:PATH or tcp:HOST:PORT", ASKED_WRONGLY)

    def ready(running: RunningGateway) -> None:
        listeners = [bound.listener for bound in running.bound]
        starting.announce(
            f"Rafka gateway started, listening on {', '.join(map(str, listeners))}"
            f" (version {__version__}, broker at {link})",
            ports=[listener.port for listener in listeners],
            where=running.bootstrap,
            port_file=args.port_file,
            ready_fd=args.ready_fd,
        )

    remarks = [*starting.about_settings(config), *starting.about_listeners(config)]
    return starting.run("gateway", args, config, _opened, remarks, ready)


def _opened() -> Callable[[Config], AbstractAsyncContextManager[RunningGateway]]:
    from ..apart import open_gateway

    return open_gateway
