"""Group commit: all files that were written to are made durable together, round after round.

While one round is in its thread, the next one gathers. A log notes itself when it gets
its first unsynced byte; a round takes what each log has by then, syncs files and then
folders, and tells each log on the event loop how far it is durable now.

Durable mode begins a round as soon as anything is dirty. Page-cache mode begins one
only for who asks (`want`) and for `flush.ms`; rolling, `flush.messages` and
checkpoints ask.

A sync that failed is never tried again: the kernel has marked the lost pages clean, and
the second attempt would succeed. So the flusher dies with `StorageFailed`, nothing is
acknowledged any more, and the process has to end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import inf
from typing import NoReturn, Protocol

import trio

from ...env import Disk, Env, File
from ..backend import FOREVER, LogSettings, StorageFailed
from .marks import SegmentMark
from .segment import SegmentFile

_log = logging.getLogger("rafka.storage")


class Work:
    """What one log has to be synced in a round, and how far that takes it."""

    def __init__(self, segments: list[SegmentFile], point: SegmentMark) -> None:
        self.segments = segments
        self.point = point


class Flushable(Protocol):
    settings: LogSettings

    def take_work(self) -> Work | None: ...
    def work_done(self, work: Work) -> None: ...


class Flusher:
    """The dirty logs and the rounds over them."""

    def __init__(
        self,
        env: Env,
        *,
        durable: bool,
        in_use: Callable[[str], bool],
        on_failure: Callable[[str], None],
    ) -> None:
        self._env = env
        self._in_use = in_use  # whether a folder is that of a log, or above one
        self._on_failure = on_failure
        self._durable = durable
        self._thread = env.thread_for("rafka sync")
        self._dirty: dict[Flushable, float] = {}  # -> when it has to be flushed at the latest
        self._wanted: dict[Flushable, None] = {}
        self._folders: dict[str, None] = {}  # whose names have changed; any round syncs all of them
        self._next_due = inf
        self._wake = trio.Event()
        self._one_round = trio.Lock()
        self.failure: StorageFailed | None = None

    def note(self, log: Flushable) -> None:
        """The log has something unsynced."""
        if self._durable:
            self._dirty[log] = inf
            self._wake.set()
            return
        flush_ms = log.settings.flush_ms
        due = inf if flush_ms >= FOREVER else trio.current_time() + flush_ms / 1000
        self._dirty[log] = due
        if due < self._next_due:
            self._next_due = due
            self._wake.set()

    def want(self, log: Flushable) -> None:
        """Somebody waits for the log to be durable."""
        self._wanted[log] = None
        self._wake.set()

    def note_folder(self, path: str) -> None:
        """Names in the folder have changed. The caller notes a log as well, or waits for the next round."""
        self._folders[path] = None

    def forget(self, log: Flushable) -> None:
        self._dirty.pop(log, None)
        self._wanted.pop(log, None)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        """Rounds, for ever. Raises StorageFailed."""
        task_status.started()
        while True:
            with trio.move_on_at(self._next_due):
                await self._wake.wait()
            self._wake = trio.Event()
            if self.failure is not None:
                raise self.failure
            await self._round(self._chosen())

    async def flush_all(self) -> None:
        """One round over all that is dirty now. Raises StorageFailed."""
        await self._round(list(self._dirty))

    def _chosen(self) -> list[Flushable]:
        if self._durable:
            return list(self._dirty)
        now = trio.current_time()
        chosen = [log for log, due in self._dirty.items() if due <= now or log in self._wanted]
        self._next_due = min((due for due in self._dirty.values() if due > now), default=inf)
        return chosen

    async def _round(self, logs: Iterable[Flushable]) -> None:
        async with self._one_round:
            if self.failure is not None:
                raise self.failure
            works = self._take(logs)
            folders, self._folders = list(self._folders), {}
            if works or folders:
                await self._sync([work for _, work in works], folders)
            for log, work in works:
                log.work_done(work)

    def _take(self, logs: Iterable[Flushable]) -> list[tuple[Flushable, Work]]:
        works = []
        try:
            for log in logs:
                work = log.take_work()
                self.forget(log)
                if work is not None:
                    works.append((log, work))
        except StorageFailed as failure:
            self.fail(failure)
            raise
        return works

    async def _sync(self, works: Sequence[Work], folders: Sequence[str]) -> None:
        segments = [segment for work in works for segment in work.segments]
        files = [(segment.path, segment.file) for segment in segments if segment.file is not None]
        for segment in segments:
            segment.pins += 1
        try:
            await self.sync_now(files, folders)
        finally:
            for segment in segments:
                segment.pins -= 1

    async def sync_now(self, files: Sequence[tuple[str, File]], folders: Sequence[str]) -> None:
        """Also beside the rounds, for what waits for nothing else. Raises StorageFailed."""
        try:
            with trio.CancelScope(shield=True):  # half a round would be nobody's
                missing = await self._thread.run(partial(sync, self._env.disk, files, folders))
            for folder in missing:
                # Else it was deleted with all that is in it, and perhaps made anew, and noted again.
                if self._in_use(folder) and not self._env.disk.exists(folder):
                    raise StorageFailed(f"{folder} has vanished with what is in it")
        except StorageFailed as failure:
            self.fail(failure)
            raise

    def close(self) -> None:
        """Nothing is synced any more."""
        self._thread.close()

    def fail(self, failure: StorageFailed) -> None:
        """From now on nothing is durable any more; whoever waits has to learn it."""
        if self.failure is None:
            self.failure = failure
            _log.critical("%s", failure)
            self._on_failure(str(failure))
            self._wake.set()


def sync(disk: Disk, files: Sequence[tuple[str, File]], folders: Sequence[str]) -> list[str]:
    """Make files and then names durable; in a thread. Tells which folders are not there.

    StorageFailed names the first that would not be synced.
    """
    path, missing = "", []
    try:
        for name, file in files:
            path = name
            file.sync()
        for name in folders:
            path = name
            try:
                disk.sync_dir(path)
            except FileNotFoundError:
                missing.append(path)
    except OSError as error:
        raise StorageFailed(
            f"sync of {path} failed: {error.strerror or error} (errno {error.errno}); "
            "what was written to it may be lost, so nothing more is acknowledged"
        ) from error
    return missing
