"""A disk in memory that loses what a real one may lose, by the dice of a seed.

`kill()` is the death of the process: the page cache survives, handles and locks die.
`power_loss()` is the death of the machine. Of each file, what was written since its
last `sync` is kept, lost, cut short, holed with zeros or damaged by a bit; of each
folder, what was created, renamed or removed since its last `sync_dir` is done or not.
What was synced is never touched.

Faults can be asked for: room (`capacity`), a chance of EIO (`p_sync_error`,
`p_read_error`), reads that are not in the page cache (`p_cold`), and the end of all
power at the n-th call that changes anything (`cut_power_after`), which lets a test
walk through every crash point of a scenario. How long a sync takes is the affair of
`Env.spawn_thread`: nothing here waits.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from ..types import Buffer

__all__ = ["PowerCut", "SimDisk"]

Entry: TypeAlias = "_Content | _Folder"
_ENDLESS = 1 << 40

Rename: TypeAlias = "list[tuple[str, Entry | None]]"  # names of one folder that change at one moment


class PowerCut(BaseException):
    """The machine has no power. Not an OSError: nobody may handle it."""


class _Content:
    """What is in a file: as everybody sees it, as it is on the platters, and the writes between."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # (at, bytes), or (size, None) for a truncation
        self.modified = 0.0

    def settle(self) -> None:
        for at, data in self.pending:
            _apply(self.durable, at, data)
        self.pending.clear()

    def lose(self, rng: Random) -> None:
        """Settle as much of the pending writes as the dice say."""
        pending = self.pending
        if not pending:
            self.data = bytearray(self.durable)  # what a failed sync dropped was in the page cache until now
            return
        how = rng.random()
        if how < 0.25:
            kept = pending
        elif how < 0.4:
            kept = []
        elif how < 0.6:  # blocks went out in any order: some are zeros
            kept = [
                (at, data if data is None or rng.random() < 0.6 else bytes(len(data))) for at, data in pending
            ]
        else:
            kept = pending[: rng.randint(0, len(pending))]
            if len(kept) < len(pending) and (torn := pending[len(kept)])[1]:
                kept = [*kept, (torn[0], torn[1][: rng.randint(0, len(torn[1]))])]
        if kept and kept[-1][1] and rng.random() < 0.2:  # one bit of the last of them is wrong
            at, data = kept[-1][0], bytearray(kept[-1][1])
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            kept = [*kept[:-1], (at, bytes(data))]
        self.pending = list(kept)
        self.settle()
        self.data = bytearray(self.durable)


def _apply(target: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del target[at:]
    if len(target) < at:
        target.extend(bytes(at - len(target)))
    if data is not None:
        target[at : at + len(data)] = data


class _Folder:
    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.durable: dict[str, Entry] = {}
        self.pending: list[Rename] = []

    def change(self, *names: tuple[str, Entry | None]) -> None:
        self.pending.append(list(names))
        _rename(self.entries, self.pending[-1])

    def settle(self) -> None:
        self.durable = dict(self.entries)
        self.pending.clear()

    def lose(self, rng: Random) -> None:
        """Settle some of the pending changes of names, then the same for all that is in the folder."""
        how = rng.random()
        share = 0.0 if how < 0.25 else 1.0 if how < 0.5 else 0.5
        for change in self.pending:
            if rng.random() < share:
                _rename(self.durable, change)
        self.pending.clear()
        self.entries = dict(self.durable)
        for _, entry in sorted(self.entries.items()):
            entry.lose(rng)


def _rename(entries: dict[str, Entry], change: Rename) -> None:
    for name, entry in change:
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


class SimFile:
    """An open file. After a kill or a loss of power every call raises OSError."""

    def __init__(self, disk: SimDisk, path: str, content: _Content) -> None:
        self._disk = disk
        self._path = path
        self._content = content
        self._life: int | None = disk.lives

    def write(self, pieces: Sequence[Buffer], at: int) -> None:
        self._alive(changing=True)
        data = b"".join(pieces)
        content = self._content
        room = self._disk.free() - max(0, at + len(data) - len(content.data))
        taken = data if room >= 0 else data[: max(0, len(data) + room)]
        content.pending.append((at, taken))
        _apply(content.data, at, taken)
        content.modified = self._disk.now()
        if taken is not data:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)

    def read(self, size: int, at: int) -> bytes:
        self._alive()
        if self._disk.dice(self._disk.p_read_error):
            raise OSError(errno.EIO, os.strerror(errno.EIO), self._path)
        return bytes(self._content.data[at : at + size])

    def read_cached(self, size: int, at: int) -> bytes | None:
        self._alive()
        return None if self._disk.dice(self._disk.p_cold) else self.read(size, at)

    def size(self) -> int:
        self._alive()
        return len(self._content.data)

    def truncate(self, size: int) -> None:
        self._alive(changing=True)
        self._content.pending.append((size, None))
        _apply(self._content.data, size, None)
        self._content.modified = self._disk.now()

    def allocate(self, size: int) -> None:
        self._alive(changing=True)
        if self._disk.free() < size - len(self._content.data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        if size > len(self._content.data):
            self.truncate(size)

    def sync(self) -> None:
        self._alive(changing=True)
        self._disk.syncs += 1
        if self._disk.dice(self._disk.p_sync_error):
            self._content.pending.clear()  # as Linux does: marked clean, and never written
            raise OSError(errno.EIO, os.strerror(errno.EIO), self._path)
        self._content.settle()

    def close(self) -> None:
        self._life = None

    def _alive(self, *, changing: bool = False) -> None:
        self._disk.power(changing=changing)
        if self._life != self._disk.lives:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)


class SimLock:
    def __init__(self, disk: SimDisk, path: str) -> None:
        self._disk = disk
        self._path = path

    def release(self) -> None:
        self._disk.locks.discard(self._path)


class SimDisk:
    """A tree of folders and files in memory."""

    def __init__(
        self,
        rng: Random,
        *,
        now: Callable[[], float] = lambda: 0.0,
        capacity: int | None = None,
        p_sync_error: float = 0.0,
        p_read_error: float = 0.0,
        p_cold: float = 0.0,
    ) -> None:
        self.rng = rng
        self.now = now
        self.capacity = capacity
        self.p_sync_error = p_sync_error
        self.p_read_error = p_read_error
        self.p_cold = p_cold
        self.lives = 0  # of the process; a handle belongs to one of them
        self.changes = 0  # calls that changed anything
        self.syncs = 0
        self.locks: set[str] = set()
        self._cut_at: int | None = None
        self._root = _Folder()

    # What may happen to it

    def kill(self) -> None:
        """The process dies; the page cache stays."""
        self.lives += 1
        self.locks.clear()
        self._cut_at = None

    def power_loss(self) -> None:
        """The machine stops, and starts again with what the disk had."""
        self.kill()
        self._root.lose(self.rng)

    def cut_power_after(self, changes: int) -> None:
        """Let so many more changing calls pass; the next raises PowerCut, and so does all after it.

        Until `power_loss()` or `kill()`, which begin another life.
        """
        self._cut_at = self.changes + changes

    def damage(self, path: str, change: Callable[[bytearray], None]) -> None:
        """Change the bytes of a file behind everybody's back, durably."""
        content = self._content(path)
        content.settle()
        change(content.data)
        content.durable = bytearray(content.data)

    def contents(self, path: str) -> bytes:
        """The bytes of a file, whatever faults are asked for."""
        return bytes(self._content(path).data)

    # As `disk.Disk`

    def open(self, path: str, *, create: bool = False) -> SimFile:
        folder, name = self._place(path)
        entry = folder.entries.get(name)
        if entry is None and create:
            self.power(changing=True)
            entry = _Content()
            entry.modified = self.now()
            folder.change((name, entry))
        self.power()
        return SimFile(self, path, self._content(path))

    def exists(self, path: str) -> bool:
        self.power()
        try:
            return self._find(path) is not None
        except OSError:
            return False

    def list(self, path: str) -> list[str]:
        self.power()
        entry = self._find(path) if self.exists(path) else None
        if isinstance(entry, _Content):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return sorted(entry.entries) if entry is not None else []

    def make_dir(self, path: str) -> None:
        self.power()
        folder = self._root
        for name in _parts(path):
            entry = folder.entries.get(name)
            if entry is None:
                self.power(changing=True)
                entry = _Folder()
                folder.change((name, entry))
            if isinstance(entry, _Content):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            folder = entry

    def rename(self, old: str, new: str) -> None:
        self.power(changing=True)
        folder, name = self._place(old)
        target, new_name = self._place(new)
        if folder is not target:
            raise OSError(errno.EXDEV, "names move within their folder only", old)
        entry = self._entry(folder, name, old)
        folder.change((name, None), (new_name, entry))

    def remove(self, path: str) -> None:
        self.power(changing=True)
        folder, name = self._place(path)
        if isinstance(self._entry(folder, name, path), _Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        folder.change((name, None))

    def remove_dir(self, path: str) -> None:
        self.power(changing=True)
        folder, name = self._place(path)
        entry = self._entry(folder, name, path)
        if isinstance(entry, _Content):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        if entry.entries:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        folder.change((name, None))

    def modified(self, path: str) -> float:
        self.power()
        return self._content(path).modified

    def sync_dir(self, path: str) -> None:
        self.power(changing=True)
        entry = self._find(path)
        if not isinstance(entry, _Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        self.syncs += 1
        if self.dice(self.p_sync_error):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        entry.settle()

    def room(self, path: str) -> tuple[int, int]:
        self.power()
        return self.capacity or _ENDLESS, max(0, self.free())

    def lock(self, path: str) -> SimLock | None:
        if path in self.locks:
            return None
        file = self.open(path, create=True)
        file.write([b"1\n"], 0)
        self.locks.add(path)
        return SimLock(self, path)

    # For the handles

    def power(self, *, changing: bool = False) -> None:
        """Count a call; raise PowerCut from the one on that the test chose."""
        if (
            self._cut_at is not None
            and self.changes >= self._cut_at
            and (changing or self.changes > self._cut_at)
        ):
            self.changes += changing
            raise PowerCut
        self.changes += changing

    def dice(self, chance: float) -> bool:
        return chance > 0 and self.rng.random() < chance

    def free(self) -> int:
        return _ENDLESS if self.capacity is None else self.capacity - _size(self._root)

    # Private

    def _place(self, path: str) -> tuple[_Folder, str]:
        """The folder that the last part of a path is, or would be, in."""
        *above, name = _parts(path)
        folder: Entry | None = self._root
        for part in above:
            folder = folder.entries.get(part) if isinstance(folder, _Folder) else None
        if not isinstance(folder, _Folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return folder, name

    def _find(self, path: str) -> Entry | None:
        if not _parts(path):
            return self._root
        folder, name = self._place(path)
        return folder.entries.get(name)

    def _entry(self, folder: _Folder, name: str, path: str) -> Entry:
        if (entry := folder.entries.get(name)) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return entry

    def _content(self, path: str) -> _Content:
        folder, name = self._place(path)
        entry = self._entry(folder, name, path)
        if isinstance(entry, _Folder):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return entry


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _size(folder: _Folder) -> int:
    return sum(
        _size(entry) if isinstance(entry, _Folder) else len(entry.data) for entry in folder.entries.values()
    )
