"""The machine's own disk, behind `disk.Disk`.

System calls only, positioned (pread, pwrite), so that threads and the event loop may
use one file at a time without a common file pointer.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence

from ..types import Buffer

__all__ = ["RealDisk", "RealFile"]

_IOV_MAX = os.sysconf("SC_IOV_MAX")
_NOWAIT: int = getattr(os, "RWF_NOWAIT", 0)  # Linux only
# What this process wrote last is in memory. Asking costs a copy, so it is not asked about so much of it:
_SURELY_CACHED = 8 << 20
_PROBE_EVERY = 128 * 1024  # what the kernel reads ahead, and forgets, at a time
_CLOSED = 2**31 - 1  # no file has this number: every call on it is an OSError
_CANNOT_TELL = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)  # tmpfs and some network file systems


class RealFile:
    """An open file descriptor."""

    __slots__ = ("_cached_from", "_fd", "_path", "_tells")

    def __init__(self, path: str, fd: int) -> None:
        self._path = path
        self._fd = fd
        self._tells = bool(_NOWAIT)  # whether the file system knows what is cached
        self._cached_from = 1 << 63

    def write(self, pieces: Sequence[Buffer], at: int) -> None:
        written = os.pwritev(self._fd, pieces if len(pieces) <= _IOV_MAX else pieces[:_IOV_MAX], at)
        size = sum(map(len, pieces))
        if written != size:
            self._write_rest(pieces, at, written)
        surely = at + size - _SURELY_CACHED
        if at < self._cached_from:
            self._cached_from = at
        if surely > self._cached_from:
            self._cached_from = surely

    def _write_rest(self, pieces: Sequence[Buffer], at: int, written: int) -> None:
        """Go on after a short write: a nearly full disk, a signal, or more than IOV_MAX pieces."""
        rest = [memoryview(piece).cast("B") for piece in pieces]
        while True:
            at += written
            while rest and written >= len(rest[0]):
                written -= len(rest.pop(0))
            if not rest:
                return
            rest[0] = rest[0][written:]
            written = os.pwritev(self._fd, rest[:_IOV_MAX], at)
            if written == 0:
                raise OSError(errno.EIO, "the disk takes nothing more", self._path)

    def read(self, size: int, at: int) -> bytes:
        data = os.pread(self._fd, size, at)
        if len(data) == size or not data:
            return data
        parts = [data]  # a signal, or the 2 GB that one call reads at most; or the end of the file
        while len(data) and (size := size - len(data)) > 0:
            at += len(data)
            data = os.pread(self._fd, size, at)
            parts.append(data)
        return b"".join(parts)

    def read_cached(self, size: int, at: int) -> bytes | None:
        if at >= self._cached_from or not self._tells:
            return self.read(size, at)
        # A byte here and there tells whether the range is cached. Reading all of it this way would
        # need a buffer that is filled with zeros first and copied afterwards, which costs more.
        byte = bytearray(1)
        try:
            for probe in (*range(at, at + size, _PROBE_EVERY), at + size - 1):
                if not os.preadv(self._fd, [byte], probe, _NOWAIT) and probe < self.size():
                    return None
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno not in _CANNOT_TELL:
                raise
            self._tells = False
        return self.read(size, at)

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def allocate(self, size: int) -> None:
        os.posix_fallocate(self._fd, 0, size)

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        fd, self._fd = self._fd, _CLOSED
        if fd != _CLOSED:
            os.close(fd)

    def __repr__(self) -> str:
        return f"<RealFile {self._path}>"


class RealLock:
    """An exclusive flock, let go of by the kernel however the process ends."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class RealDisk:
    """Files by their paths."""

    def open(self, path: str, *, create: bool = False) -> RealFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(path, os.open(path, flags, 0o640))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except FileNotFoundError:
            return []

    def make_dir(self, path: str) -> None:
        os.makedirs(path, mode=0o750, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_dir(self, path: str) -> None:
        os.rmdir(path)

    def modified(self, path: str) -> float:
        return os.stat(path).st_mtime

    def sync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def room(self, path: str) -> tuple[int, int]:
        stat = os.statvfs(path)
        return stat.f_frsize * stat.f_blocks, stat.f_frsize * stat.f_bavail

    def lock(self, path: str) -> RealLock | None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)  # for whoever finds it locked
        return RealLock(fd)
