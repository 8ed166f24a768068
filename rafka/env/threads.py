"""Threads: lent by Trio for any call, or one of our own for one purpose.

Trio's threads are for anybody: each call goes through locks, a context, and a queue that wakes
the loop. A disk is synced thousands of times a second, and the way there and back took longer than
the sync. In a thread of our own a call is two writes: the thread sleeps on one
eventfd, and the loop waits for another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol, TypeVar

import trio

T = TypeVar("T")

HAS_EVENTFD: Final = hasattr(os, "eventfd")


class ThreadRunner(Protocol):
    """Runs `fn(*args)` where blocking harms nobody. Never abandoned: cancelling waits for its end."""

    def __call__(
        self, fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None
    ) -> Awaitable[T]: ...


class OneThread(Protocol):
    """A thread for one purpose: its calls run one after the other."""

    async def run(self, fn: Callable[[], T]) -> T:
        """Never abandoned: cancelling waits for its end."""

    def close(self) -> None:
        """Let the thread end, once nothing runs. A later `run` begins another."""


class LentThread:
    """What stands in where there is no thread of our own: simulations, and systems without eventfd."""

    def __init__(self, runner: ThreadRunner) -> None:
        self._runner = runner
        self._limiter = trio.CapacityLimiter(1)  # its own: no other purpose may keep a call waiting

    async def run(self, fn: Callable[[], T]) -> T:
        return await self._runner(fn, limiter=self._limiter)

    def close(self) -> None:
        """Nothing is kept."""


class OwnThread:
    """The thread begins with the first call and ends with `close`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._one = trio.Lock()
        self._thread: _Thread | None = None

    async def run(self, fn: Callable[[], T]) -> T:
        async with self._one:
            thread = self._thread
            if thread is None:
                thread = self._thread = _Thread(self._name)
            return await thread.call(fn)

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.end()


class _Thread:
    """One life of it."""

    def __init__(self, name: str) -> None:
        self._work: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        self._asked = os.eventfd(0, os.EFD_CLOEXEC)
        self._done = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        # A daemon: a disk that hangs must not keep the process from ending.
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    async def call(self, fn: Callable[[], T]) -> T:
        self._work = fn
        os.eventfd_write(self._asked, 1)
        with trio.CancelScope(shield=True):
            await trio.lowlevel.wait_readable(self._done)
        os.eventfd_read(self._done)
        result: T = self._result
        error, self._result, self._error = self._error, None, None
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        os.eventfd_write(self._asked, 1)

    def _serve(self) -> None:
        while True:
            os.eventfd_read(self._asked)
            work, self._work = self._work, None
            if work is None:
                break
            try:
                self._result = work()
            except BaseException as error:  # whatever it is: it is raised where the call was made
                self._error = error
            os.eventfd_write(self._done, 1)
        os.close(self._asked)
        os.close(self._done)
