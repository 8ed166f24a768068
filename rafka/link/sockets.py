"""Where gateways and broker meet: Unix sockets and TCP, listening and connecting.

A Unix socket outlives a broker that was killed. Whoever holds the lock beside it
(`PATH.lock`) owns the path: so a stale one is taken over, and one in use never is, even
where two brokers start at the same moment. Only the user and the group of the broker
may connect to it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import trio

from .plain import PlainListener, PlainStream, plain

BACKLOG: Final = 128
FOR_USER_AND_GROUP: Final = 0o117  # an umask


class LinkTaken(OSError):
    """The address cannot be listened on. The message says why, and the way out."""


@contextmanager
def listen_unix(path: str) -> Iterator[PlainListener]:
    """Listen, and leave neither socket nor lock taken behind."""
    lock = _lock(path)
    try:
        _remove_stale(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(FOR_USER_AND_GROUP)
        try:
            sock.bind(path)
        except OSError as error:
            sock.close()
            raise LinkTaken(f"it cannot be made: {error.strerror}") from None
        finally:
            os.umask(mask)
        try:
            sock.listen(BACKLOG)
            yield PlainListener(sock)
        finally:
            with suppress(OSError):
                os.unlink(path)
            sock.close()
    finally:
        os.close(lock)


def _lock(path: str) -> int:
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        where = os.path.dirname(path)
        why = f"the directory {where} has to be there and writable for the broker: {error.strerror}"
        raise LinkTaken(why) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise LinkTaken("another broker listens there: stop it, or choose another path") from None
    return lock


def _remove_stale(path: str) -> None:
    """With the lock in hand a socket that lies there is nobody's, unless it is no broker's at all."""
    try:
        kind = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(kind):
        raise LinkTaken("it exists and is no socket: choose another path")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except OSError as error:
            if error.errno in (errno.ECONNREFUSED, errno.ENOENT):
                with suppress(FileNotFoundError):
                    os.unlink(path)
                return
    raise LinkTaken("another program listens there: choose another path")


@contextmanager
def listen_tcp(host: str, port: int) -> Iterator[tuple[PlainListener, int]]:
    """Listen; the port in use too, which is another one where 0 was asked for."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise LinkTaken(f"no such address: {error.strerror}") from None
    with sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(address)
            sock.listen(BACKLOG)
        except OSError as error:
            why = "the port is in use: stop what listens there, or choose another"
            if error.errno != errno.EADDRINUSE:
                why = error.strerror or str(error)
            raise LinkTaken(why) from None
        yield PlainListener(sock), sock.getsockname()[1]


async def connect_unix(path: str) -> PlainStream:
    return plain(await trio.open_unix_socket(path))


async def connect_tcp(host: str, port: int) -> PlainStream:
    """With keepalive: a machine that went without a word is noticed even while nobody asks."""
    stream = await trio.open_tcp_stream(host, port)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return plain(stream)
