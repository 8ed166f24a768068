"""One edge-triggered epoll for all client sockets, nested inside Trio's own.

Trio arms its epoll anew for every wait, and to switch to a task costs as much as to
answer a small request. Here a socket is registered once for its life, and one task
waits for the nested epoll and calls whoever has something to read: a plain call,
which must not raise, must not wait, and leaves what takes time to a task of its own.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Final, TypeAlias

from trio.lowlevel import wait_readable

HAS_EPOLL: Final = hasattr(select, "epoll")
EVENTS_AT_ONCE: Final = 512
ROUNDS: Final = 4  # looks at who has become ready meanwhile, before other tasks get their turn

# Called with whether the other side has closed: from there on a read never blocks.
OnEdge: TypeAlias = Callable[[bool], None]


class Readiness:
    """The nested epoll. `run` has to be running for anybody to be called."""

    def __init__(self) -> None:
        self._called: dict[int, OnEdge] = {}
        self._epoll = select.epoll()
        self._edges = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
        self._gone = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR

    def register(self, fd: int, on_edge: OnEdge) -> None:
        """Call `on_edge` when there is something to read: once for what is there, once for what comes."""
        self._called[fd] = on_edge
        self._epoll.register(fd, self._edges)

    def again(self, fd: int) -> None:
        """Call once more, and soon, if there is something to read."""
        self._epoll.modify(fd, self._edges)

    def unregister(self, fd: int) -> None:
        """Before the socket is closed: a number may come back as another socket at once."""
        if self._called.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    async def run(self) -> None:
        poll, called, gone = self._epoll.poll, self._called, self._gone
        while True:
            await wait_readable(self._epoll.fileno())
            for _ in range(ROUNDS):
                edges = poll(0, EVENTS_AT_ONCE)
                if not edges:
                    break
                for fd, events in edges:
                    if (on_edge := called.get(fd)) is not None:
                        on_edge(bool(events & gone))

    def close(self) -> None:
        self._epoll.close()
