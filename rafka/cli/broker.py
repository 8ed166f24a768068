"""`rafka broker`: a broker whose clients come through gateways, which are processes of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING

from .. import __version__
from ..config import Config
from . import starting
from .output import ASKED_WRONGLY, CommandError

if TYPE_CHECKING:
    from ..server import RunningBroker

DESCRIPTION = """\
Run a broker without listeners for clients: they come through gateways (`rafka gateway`), which
attach at --link. Records, topics and groups are here; a gateway may come and go without a loss.

Whoever can connect to the link may do everything: let it be a Unix socket, or an address that
only gateways can reach.
"""

EXAMPLES = """\
  rafka broker --link unix:/run/rafka/link --data-dir /srv/rafka
  rafka broker --link tcp:10.0.0.5:9090 --data-dir /srv/rafka
  rafka gateway --link unix:/run/rafka/link --listen :9092     and a gateway for it
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--link", metavar="ADDRESS", help="take gateways here: unix:PATH or tcp:HOST:PORT")
    starting.add_storage(parser)
    starting.add_settings(parser)
    starting.add_readiness(parser, ready="the address of the link")


def run(args: argparse.Namespace) -> int:
    config = starting.settled(args)
    if config.link.address is None and not args.print_config:
        raise CommandError("say with --link where gateways attach: unix:PATH or tcp:HOST:PORT", ASKED_WRONGLY)

    def ready(running: RunningBroker) -> None:
        address = running.link_address
        assert address is not None
        starting.announce(
            f"Rafka broker {config.broker.node_id} started, gateways attach at {address}"
            f" (version {__version__}, {starting.storage_line(config)})",
            ports=[] if address.path is not None else [address.port],
            where=str(address),
            port_file=args.port_file,
            ready_fd=args.ready_fd,
        )

    return starting.run("broker", args, config, _opened, remarks(config), ready)


def _opened() -> Callable[[Config], AbstractAsyncContextManager[RunningBroker]]:
    from ..server import open_broker

    return partial(open_broker, listen=False)


def remarks(config: Config) -> list[tuple[str, str]]:
    """What should be said before the broker starts: level and line."""
    said = [
        *starting.about_storage(config),
        *starting.about_codecs(),
        *starting.about_settings(config),
        *starting.about_link(config),
    ]
    if "listen" in config.sources:
        said.append(("WARNING", "listen counts for gateways, not for this broker: it has no listeners"))
    return said
