"""Listening sockets: taken before anything else is touched, so that a port in use costs nothing."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from typing import Final

import attrs

from ..config import ConfigError, Listener
from ..config.listeners import address
from ..config.sections import Network

BACKLOG: Final = 1024


@attrs.frozen
class Bound:
    """A listener that is bound, and what its clients are told to connect to."""

    sockets: tuple[socket.socket, ...]
    listener: Listener  # the address listened on, with the true port
    advertised: Listener | None  # None: the address on which the client came


def bind_listeners(network: Network) -> list[Bound]:
    """Take all addresses. ConfigError names the one that is taken or not ours."""
    bound: list[Bound] = []
    try:
        for index, listener in enumerate(network.listen):
            sockets = _bind(listener)
            port = sockets[0].getsockname()[1]
            bound.append(Bound(sockets, attrs.evolve(listener, port=port), network.advertised(index, port)))
    except ConfigError:
        close_listeners(bound)
        raise
    return bound


def close_listeners(bound: Sequence[Bound]) -> None:
    for each in bound:
        for sock in each.sockets:
            sock.close()


def bootstrap(bound: Sequence[Bound]) -> str:
    """HOST:PORT of the first listener, for clients on this machine."""
    listener = bound[0].listener
    return address("127.0.0.1" if listener.everywhere else listener.host, listener.port)


def _bind(listener: Listener) -> tuple[socket.socket, ...]:
    """All sockets of one listener: one, or one per address family where it is every interface."""
    host = listener.host or None
    try:
        found = socket.getaddrinfo(
            host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
        )
    except socket.gaierror as error:
        raise ConfigError("listen", str(listener), f"no such address: {error.strerror}") from None
    sockets: list[socket.socket] = []
    port = listener.port
    try:
        for family, kind, protocol, _, address in found if host is None else found[:1]:
            sock = socket.socket(family, kind, protocol)
            sockets.append(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((address[0], port, *address[2:]))
            sock.listen(BACKLOG)
            sock.setblocking(False)
            port = sock.getsockname()[1]
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise ConfigError("listen", str(listener), _why_not(error, listener)) from None
    return tuple(sockets)


def _why_not(error: OSError, listener: Listener) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {listener.port} is in use: stop what listens there, or choose another with --listen"
    if error.errno == errno.EACCES:
        return f"port {listener.port} needs more rights: use one above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine does not have that address"
    return error.strerror or str(error)
