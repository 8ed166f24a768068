"""One edge-triggered epoll for all client sockets, nested inside Trio's own.

Trio arms its epoll anew for every wait, which costs a system call and some bookkeeping
each time: as much as answering a small request. Here one task waits for the nested
epoll and wakes the connections' tasks; a socket is registered once for its life. Only
Trio's public `lowlevel` calls are used. Where there is no epoll, a slot waits with
`trio.lowlevel.wait_readable`, and nothing else changes.
"""

from __future__ import annotations

import select
from typing import Final

import trio
from trio.lowlevel import (
    Abort,
    Task,
    checkpoint,
    current_task,
    reschedule,
    wait_readable,
    wait_task_rescheduled,
)

HAS_EPOLL: Final = hasattr(select, "epoll")
EVENTS_AT_ONCE: Final = 512


class Slot:
    """One socket's place. At most one task waits on it."""

    __slots__ = ("fd", "gone", "ready", "task")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.task: Task | None = None
        self.ready = False  # an edge came while nobody was waiting
        self.gone = False  # the other side has closed: from here on reads never block

    async def wait(self) -> None:
        """Return once there may be something to read. An edge that came earlier counts."""
        if not HAS_EPOLL:
            await wait_readable(self.fd)
        elif self.ready or self.gone:
            self.ready = False
            await checkpoint()
        else:
            self.task = current_task()
            await wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> Abort:
        self.task = None
        return Abort.SUCCEEDED


class Readiness:
    """The nested epoll. `run` has to be running for slots to wake."""

    def __init__(self) -> None:
        self._slots: dict[int, Slot] = {}
        if HAS_EPOLL:
            self._epoll = select.epoll()
            self._edges = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET
            self._gone = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR

    def register(self, fd: int) -> Slot:
        slot = self._slots[fd] = Slot(fd)
        if HAS_EPOLL:
            self._epoll.register(fd, self._edges)
        return slot

    def unregister(self, slot: Slot) -> None:
        """Before the socket is closed: a number may come back as another socket at once."""
        if self._slots.pop(slot.fd, None) is not None and HAS_EPOLL:
            self._epoll.unregister(slot.fd)

    async def run(self) -> None:
        if not HAS_EPOLL:
            await trio.sleep_forever()
        poll, slots, gone = self._epoll.poll, self._slots, self._gone
        while True:
            await wait_readable(self._epoll.fileno())
            for fd, events in poll(0, EVENTS_AT_ONCE):
                slot = slots.get(fd)
                if slot is None:
                    continue
                if events & gone:
                    slot.gone = True
                task = slot.task
                if task is None:
                    slot.ready = True
                else:
                    slot.task = None
                    reschedule(task)

    def close(self) -> None:
        if HAS_EPOLL:
            self._epoll.close()
