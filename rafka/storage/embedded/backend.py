"""The embedded backend: all logs of one data directory, and the tasks that keep them.

`start` brings the folder in order (see `recovery`), `run` keeps two tasks: the flusher, and
one that takes checkpoints when a log asks for one or an interval is over. `close` takes a
last checkpoint and marks the stop as clean.
"""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NoReturn

import trio

from ...env import Disk, Env
from ...env.disk import Lock
from ...errors import ErrorCode, KafkaError
from ..backend import Blobs, DirRoom, LogName, LogSettings, StorageFailed
from . import datadir, marks, names, snapshots
from .blobs import EmbeddedBlobs
from .config import EmbeddedConfig
from .flusher import Flusher
from .log import CheckpointParts, EmbeddedLog
from .look import Blocking, Hot, LoadedIndexes, OpenFiles
from .recovery import Recovered, recover
from .reserve import Reserve
from .shared import Shared

_log = logging.getLogger("rafka.storage")
_AT_ONCE = 64  # logs recovered in one thread hop
_DEFAULTS = LogSettings()


class EmbeddedBackend:
    """As `backend.LogBackend`."""

    def __init__(self, env: Env, root: str, config: EmbeddedConfig | None = None) -> None:
        self.config = config or EmbeddedConfig()
        self.durable = self.config.durable
        files = OpenFiles(env.disk, self.config.max_open_files)
        indexes = LoadedIndexes(self.config.max_loaded_indexes)
        self._shared = Shared(
            root=root,
            env=env,
            config=self.config,
            files=files,
            indexes=indexes,
            hot=Hot(files),
            blocking=Blocking(files, indexes),
            flusher=Flusher(env, durable=self.config.durable, in_use=self._in_use, on_failure=self._fail_all),
            reserve=Reserve(env.disk, root, self.config),
            checkpoint=self.checkpoint,
            want_checkpoint=self._want_checkpoint,
            limiter=trio.CapacityLimiter(4),
        )
        self.blobs: Blobs = EmbeddedBlobs(self._shared)
        self._logs: dict[LogName, EmbeddedLog] = {}
        self._lock: Lock | None = None
        self._wanted = trio.Event()
        self._one_checkpoint = trio.Lock()
        self._asked = self._taken = (
            0  # checkpoints; one that was taken after several were asked for serves all
        )
        self._deleting: set[LogName] = set()
        self._saved: set[LogName] = set()  # logs that the checkpoint on disk knows

    # From start to close

    async def start(self) -> list[LogName]:
        shared = self._shared
        disk, root = shared.env.disk, shared.root
        began = trio.current_time()
        self._lock = await shared.in_thread(datadir.take, disk, root)
        saved = await shared.in_thread(marks.load, disk, root)
        found = await shared.in_thread(datadir.find_logs, disk, root)
        if saved is None and found:
            _log.warning(
                "%s has no checkpoint that can be read: every log is walked from its beginning", root
            )
        known = saved.logs if saved else {}
        clean = saved is not None and saved.clean
        lost = [name for name in set(known).difference(found) if disk.list(f"{root}/{name}")]
        todo = sorted([*found, *lost])
        walked = cut = 0
        for at in range(0, len(todo), _AT_ONCE):
            work = [
                partial(recover, disk, root, name, known.get(name), clean=clean, all_known=saved is not None)
                for name in todo[at : at + _AT_ONCE]
            ]
            for recovered in await shared.in_thread(_each, work):
                walked += recovered.walked
                cut += recovered.cut
                self._take_over(recovered, known.get(recovered.name))
        if not clean:
            if saved is None or not saved.durable:
                for log in self._logs.values():
                    if log.end_offset and log.failed is None:
                        log.bump_epoch()  # what was only in the page cache may have been read, and is lost
            if todo:
                seconds = trio.current_time() - began
                _log.info(
                    "recovered %d logs in %.2f s: %d bytes walked, %d cut", len(todo), seconds, walked, cut
                )
        await self._checkpoint(clean=False)
        return sorted(self._logs)

    def _take_over(self, found: Recovered, mark: marks.LogMark | None) -> None:
        if found.refused is None and not found.segments:
            return  # an empty folder
        log = EmbeddedLog(found.name, _DEFAULTS, self._shared)
        log.restore(found, mark)
        self._logs[found.name] = log

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._shared.flusher.run)
                nursery.start_soon(self._take_checkpoints)
                task_status.started()
        except BaseExceptionGroup:
            if (failure := self._shared.flusher.failure) is not None:
                raise failure from None
            raise
        raise AssertionError("unreachable: both tasks run for ever")

    async def _take_checkpoints(self) -> NoReturn:
        while True:
            with trio.move_on_after(self.config.checkpoint_interval):
                await self._wanted.wait()
            if self._wanted.is_set() or any(log.changed for log in self._logs.values()):
                self._wanted = trio.Event()
                await self.checkpoint()

    async def close(self) -> None:
        """Also after a failure, and then without touching the files any more."""
        try:
            if self._shared.flusher.failure is None and self._lock is not None:
                with trio.CancelScope(shield=True):
                    for log in self._logs.values():
                        log.trim()
                    await self._checkpoint(clean=True)
        finally:
            self.abandon()

    def abandon(self) -> None:
        self._shared.flusher.close()
        self._shared.files.close_all()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # Logs

    def open(self, name: LogName, settings: LogSettings) -> EmbeddedLog:
        if (log := self._logs.get(name)) is None:
            if name in self._deleting:  # the checkpoint would have the new one judged by the old one
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{name} is being deleted")
            log = self._logs[name] = EmbeddedLog(name, settings, self._shared)
        log.settings = settings
        return log

    async def delete(self, name: LogName) -> None:
        """Many at once share their checkpoints: delete a topic's partitions side by side."""
        log = self._logs.pop(name, None)
        if log is None:
            return
        log.gone()
        self._deleting.add(name)
        try:
            with trio.CancelScope(
                shield=True
            ):  # half deleted, the folder would be in the way of the next one
                await self._delete(name, log.folder)
        finally:
            self._deleting.remove(name)

    async def _delete(self, name: LogName, folder: str) -> None:
        shared = self._shared
        disk = shared.env.disk
        if disk.exists(folder):
            aside = folder + names.DELETED
            disk.rename(folder, aside)
            await shared.flusher.sync_now([], [folder.rpartition("/")[0]])
            if name in self._saved:
                await self.checkpoint()
            await shared.in_thread(_remove, disk, shared.root, aside)

    async def remove_deleted(self, now_ms: int) -> int:
        shared = self._shared
        if any(log.leftovers.waiting for log in self._logs.values()):
            await self.checkpoint()
        paths = [path for log in self._logs.values() for path in log.leftovers.due(now_ms)]
        if paths:
            await shared.in_thread(_remove_files, shared.env.disk, paths)
            await shared.flusher.sync_now([], sorted({path.rpartition("/")[0] for path in paths}))
        return len(paths)

    def room(self) -> DirRoom:
        total, usable = self._shared.env.disk.room(self._shared.root)
        return DirRoom(path=self._shared.root, total=total, usable=usable)

    # Checkpoints

    def _want_checkpoint(self) -> None:
        self._wanted.set()

    async def checkpoint(self) -> None:
        self._asked += 1
        mine = self._asked
        async with self._one_checkpoint:
            if self._taken < mine:
                taking = self._asked
                await self._checkpoint(clean=False)
                self._taken = taking

    async def _checkpoint(self, *, clean: bool) -> None:
        shared = self._shared
        states = [(log, *state) for log in self._logs.values() if (state := log.state_to_save()) is not None]
        await shared.flusher.flush_all()  # a state is never of an offset that could be lost
        parts = [log.checkpoint_parts() for log in self._logs.values()]
        with trio.CancelScope(shield=True):
            try:
                await shared.in_thread(self._save, states, parts, clean)
            except OSError as error:
                for part in parts:
                    part.log.unsettled(part)
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    failure = StorageFailed(f"the checkpoint of {shared.root} cannot be saved: {error}")
                    shared.flusher.fail(failure)
                    raise failure from error
                _log.error("no room for a checkpoint in %s: the one before stands", shared.root)
                return
        for log, offset, _ in states:
            log.saved_state_offset = offset
        self._saved = {part.log.name for part in parts if part.entry is not None}
        for part in parts:
            part.log.settle(part)

    def _save(
        self,
        states: Sequence[tuple[EmbeddedLog, int, bytes]],
        parts: Sequence[CheckpointParts],
        clean: bool,
    ) -> None:
        """In a thread. What is not synced is proven by the checkpoint, or else had from the batches again.

        A state stands for all before it, and so comes last: what belongs to it is durable by then.
        """
        disk = self._shared.env.disk
        for part in parts:
            with _unless_deleted(part.log):
                for path, at, data in part.indexes:
                    _write_over(disk, path, at, data)
                for path, at, data in part.aborted:
                    _write_over(disk, path, at, data, sync=True)
                if any(at == 0 for _, at, _ in part.aborted):
                    disk.sync_dir(part.log.folder)
                if part.epochs is not None:
                    _write_over(disk, f"{part.log.folder}/{names.EPOCHS}", 0, part.epochs)
        entries = [part.entry for part in parts if part.entry is not None]
        marks.save(disk, self._shared.root, entries, clean=clean, durable=self.durable)
        for log, offset, state in states:
            with _unless_deleted(log):
                snapshots.save(disk, log.folder, offset, state)

    def _in_use(self, folder: str) -> bool:
        return any(f"{log.folder}/".startswith(f"{folder}/") for log in self._logs.values() if log.size)

    def _fail_all(self, why: str) -> None:
        for log in self._logs.values():
            log.fail(why, tell=False)


def _each(work: Sequence[Callable[[], Recovered]]) -> list[Recovered]:
    return [recovery() for recovery in work]


@contextlib.contextmanager
def _unless_deleted(log: EmbeddedLog) -> Iterator[None]:
    """Its folder may vanish at any moment while a thread is at work on it."""
    try:
        yield
    except OSError:
        if log.failed is None:
            raise


def _write_over(disk: Disk, path: str, at: int, data: bytes, *, sync: bool = False) -> None:
    """Let the file end with `data` at `at`. In place: ext4 flushes what is renamed over another file."""
    file = disk.open(path, create=True)
    try:
        file.write([data], at)
        if file.size() > at + len(data):
            file.truncate(at + len(data))
        if sync:
            file.sync()
    finally:
        file.close()


def _remove_files(disk: Disk, paths: Sequence[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # its whole log was deleted meanwhile
            disk.remove(path)


def _remove(disk: Disk, root: str, path: str) -> None:
    """Remove a folder, and those above it that hold nothing else."""
    datadir.remove_tree(disk, path)
    above = path.rpartition("/")[0]
    while above != root:
        try:
            disk.remove_dir(above)
        except OSError:
            return
        above = above.rpartition("/")[0]
