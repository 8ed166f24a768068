"""What a broker needs of a disk: files that are appended to, read anywhere, made durable.

Two things implement it: `real_disk.RealDisk`, and `sim_disk.SimDisk`, which keeps
files in memory and loses on `power_loss()` what a real disk may lose. All calls
block; storage decides which of them are run in a thread.

Rules that callers rely on, as POSIX gives them:

* `write` puts all pieces at `at` in order, or raises OSError; after an error any
  part of them may be there.
* What was written is seen by every later `read`, durable or not.
* A file is durable up to the last `sync` that returned; its *name* (created,
  renamed, removed) is durable once `sync_dir` of its folder returned.
* A `sync` that failed must not be tried again: the pages it lost are marked clean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..types import Buffer


class File(Protocol):
    """An open file."""

    def write(self, pieces: Sequence[Buffer], at: int) -> None:
        """Put the pieces one after another at `at`."""

    def read(self, size: int, at: int) -> bytes:
        """Up to `size` bytes from `at`; fewer only at the end of the file."""

    def read_cached(self, size: int, at: int) -> bytes | None:
        """As `read`, if it can be done without waiting for the disk; else None."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None:
        """Cut to `size`, or lengthen with zeros."""

    def allocate(self, size: int) -> None:
        """Lengthen with zeros to `size`, taking the room now. Never shortens."""

    def sync(self) -> None:
        """Return once the contents would survive a loss of power."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A tree of files. Paths are strings with `/`; folders must exist before what is in them."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing. FileNotFoundError unless it exists or `create`."""

    def exists(self, path: str) -> bool: ...

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted. A folder that is not there has none; a file is an OSError."""

    def make_dir(self, path: str) -> None:
        """Make the folder and those above it. No error where it exists."""

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces `new`, which is in the same folder."""

    def remove(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """Remove an empty folder."""

    def modified(self, path: str) -> float:
        """When the file was last written to, seconds since 1970."""

    def sync_dir(self, path: str) -> None:
        """Return once the names in the folder would survive a loss of power."""

    def room(self, path: str) -> tuple[int, int]:
        """Bytes that the file system holds in all, and that are still free for us."""

    def lock(self, path: str) -> Lock | None:
        """Take the lock file for this process; None where another process holds it."""


class Lock(Protocol):
    def release(self) -> None: ...
