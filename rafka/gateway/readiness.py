"""One edge-triggered epoll for all client sockets, nested inside Trio's own.

Trio arms its epoll anew for every wait, and to switch to a task costs as much as to
answer a small request. Here a socket is registered once for its life, and one task
waits for the nested epoll and calls whoever has something to read: a plain call,
which must not raise, must not wait, and leaves what takes time to a task of its own.

Where requests come one by one and soon after each other, even that is much: the loop wakes for each
only to sleep again. So when Trio says that it has nothing to do and is about to sleep, we sleep in its
place for a moment, on its own epoll, and serve what comes; whatever is not ours wakes Trio. And where
they come at once, as from a client that only waits for our reply, to sleep and be woken would take longer
than to look out for the next.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from time import monotonic
from typing import Final, TypeAlias

import trio
from trio.lowlevel import add_instrument, current_trio_token, remove_instrument, wait_readable

from .inside_trio import Inside, look_inside

HAS_EPOLL: Final = hasattr(select, "epoll")
EVENTS_AT_ONCE: Final = 512
ROUNDS: Final = 4  # looks at who has become ready meanwhile, before other tasks get their turn
STAY_MS: Final = 2  # requests that come within this time of each other find us awake
BRISK_MS: Final = 0.06  # those that come within this are worth looking for: to be woken takes as long
LOOKS: Final = 40  # without sleeping: some 25 us
IN_A_ROW: Final = 16  # times that we are served before Trio's loop looks around

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
        inside = look_inside()
        if inside is None:
            await self._run(_nothing)
            return
        staying = Staying(inside, self.serve)
        add_instrument(staying)
        try:
            await self._run(staying.on_served)
        finally:
            remove_instrument(staying)

    async def _run(self, on_served: Callable[[], None]) -> None:
        fd = self._epoll.fileno()
        while True:
            await wait_readable(fd)
            self.serve()
            on_served()

    def serve(self) -> bool:
        """Call whoever has something to read. Whether there was anybody."""
        poll, called, gone = self._epoll.poll, self._called, self._gone
        for turn in range(ROUNDS):
            edges = poll(0, EVENTS_AT_ONCE)
            if not edges:
                return turn > 0
            for fd, events in edges:
                if (on_edge := called.get(fd)) is not None:
                    on_edge(bool(events & gone))
        return True

    def close(self) -> None:
        self._epoll.close()


class Staying(trio.abc.Instrument):
    """Awake between requests that come one by one, as long as nobody else has anything to do."""

    def __init__(self, inside: Inside, serve: Callable[[], bool]) -> None:
        self._inside = inside
        self._serve = serve
        self._poll = select.poll()
        self._poll.register(inside.epoll_fd, select.POLLIN)
        self._wake_trio = current_trio_token().run_sync_soon
        self._served_at = -1.0
        self._lively = False
        self._brisk = False
        self._may_look = cpus() > 1  # else whoever is to send would have to wait for us

    def on_served(self) -> None:
        now = monotonic()
        # Where what came was for other tasks, the next is likely to be, too.
        self._lively = now - self._served_at < STAY_MS / 1000 and not self._inside.runnable
        self._served_at = now

    def before_io_wait(self, timeout: float) -> None:
        """No task can run, and no deadline is nearer than `timeout`."""
        if not self._lively:
            return
        until = monotonic() + timeout
        for _ in range(IN_A_ROW):
            if monotonic() + STAY_MS / 1000 > until:
                return
            if not (self._brisk and self._look_out()):
                if not self._something_comes():
                    self._lively = False
                    return
                if not self._serve():
                    return  # what has come is Trio's
            if self._inside.runnable:
                self._lively = False
                self._wake_trio(_nothing)  # else it would sleep for as long as it meant to
                return
        self._served_at = monotonic()

    def _look_out(self) -> bool:
        """For a request that comes at once. Whether one came, and was served."""
        serve = self._serve
        for _ in range(LOOKS):  # noqa: SIM110  # `any` would take longer than to look
            if serve():
                return True
        return False

    def _something_comes(self) -> bool:
        """Within `STAY_MS`."""
        began = monotonic()
        came = bool(self._poll.poll(STAY_MS))
        self._brisk = came and self._may_look and monotonic() - began < BRISK_MS / 1000
        return came


def cpus() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _nothing() -> None:
    """What there is to do."""
