"""Threads: lent by Trio for any call, or one of our own for one purpose.

Trio's threads are for anybody: each call goes through locks, a context, and a queue that wakes
the loop. A disk is synced thousands of times a second, and the way there and back took longer than
the sync. In a thread of our own a call is two writes: the thread sleeps on one
eventfd, and the loop waits for another.
"""

from __future__ import annotations

import os
import sys
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
    """One life of it. Its two bells are read and written as files: that goes on after a signal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: Callable[[], Any] | None = None
        self._outcome: tuple[Any, BaseException | None] | None = None
        self._asked = os.eventfd(0, os.EFD_CLOEXEC)
        self._done = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._calling = self._ending = False
        self._ended_by: BaseException | None = None  # where nobody told it to
        # A daemon: a disk that hangs must not keep the process from ending.
        threading.Thread(target=self._live, name=name, daemon=True).start()

    async def call(self, fn: Callable[[], T]) -> T:
        """RuntimeError where the thread is no more: whoever calls is shielded, and must not wait for it."""
        if self._ended_by is not None:
            raise self._ended()
        self._work = fn
        self._calling = True
        try:
            os.write(self._asked, _RING)
            with trio.CancelScope(shield=True):
                await trio.lowlevel.wait_readable(self._done)
            os.read(self._done, len(_RING))
        finally:
            self._calling = False
            if self._ending:
                self._let_go()
        outcome, self._outcome = self._outcome, None
        if outcome is None:
            raise self._ended()
        result, error = outcome
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def end(self) -> None:
        """Once nothing runs: the bells of a call must outlive it."""
        self._ending = True
        if not self._calling:
            self._let_go()

    def _let_go(self) -> None:
        if self._ended_by is None:
            os.write(self._asked, _RING)
        else:
            self._close()

    def _ended(self) -> RuntimeError:
        ended = RuntimeError(f"the thread {self._name!r} has ended")
        ended.__cause__ = self._ended_by
        return ended

    def _close(self) -> None:
        os.close(self._asked)
        os.close(self._done)

    # --- in the thread --------------------------------------------------------------------

    def _live(self) -> None:
        try:
            self._serve()
        except BaseException as error:  # raised where the next call is made, or has been
            self._ended_by = error
            os.write(self._done, _RING)
        else:
            self._close()

    def _serve(self) -> None:
        while True:
            os.read(self._asked, len(_RING))
            work, self._work = self._work, None
            if work is None:
                break
            try:
                self._outcome = work(), None
            except BaseException as error:  # whatever it is: it is raised where the call was made
                self._outcome = None, error
            os.write(self._done, _RING)


_RING: Final = (1).to_bytes(8, sys.byteorder)  # what an eventfd is written, and read: a number of eight bytes
