"""The state of a partition's producers as of some offset: `<offset>.snapshot` beside the segments.

What is in it is the broker's affair; here it is bytes with a checksum. The state can
always be had by replaying the log, so these files are renamed into place but not
synced: a start takes the newest one that is whole, and replays from there. The last two
are kept.
"""

from __future__ import annotations

import contextlib
import logging

import msgpack

from ...env import Disk
from ...records.checksum import checksum
from . import names
from .segment import read_whole

_log = logging.getLogger("rafka.storage")
_FORMAT = 1
_KEPT = 2


def save(disk: Disk, folder: str, offset: int, state: bytes) -> None:
    """Write one and remove all but the last two. May block."""
    body: bytes = msgpack.packb((_FORMAT, offset, state))
    path = f"{folder}/{names.stem(offset)}{names.SNAPSHOT}"
    file = disk.open(path + names.TEMPORARY, create=True)
    try:
        file.truncate(0)
        file.write([checksum(body).to_bytes(4, "big"), body], 0)
    finally:
        file.close()
    disk.rename(path + names.TEMPORARY, path)
    for old in _offsets(disk.list(folder))[:-_KEPT]:
        disk.remove(f"{folder}/{names.stem(old)}{names.SNAPSHOT}")


def load(
    disk: Disk, folder: str, entries: list[str], lowest: int, highest: int
) -> tuple[tuple[int, bytes] | None, bool]:
    """The newest whole one of an offset between these. Those above are removed; whether there were any."""
    found: tuple[int, bytes] | None = None
    removed = False
    for offset in reversed(_offsets(entries)):
        path = f"{folder}/{names.stem(offset)}{names.SNAPSHOT}"
        if offset > highest:
            disk.remove(path)
            removed = True
        elif found is None and offset >= lowest:
            found = _read(disk, path, offset)
            if found is None:
                _log.warning("%s is damaged: an older state and a longer replay take its place", path)
    return found, removed


def _read(disk: Disk, path: str, offset: int) -> tuple[int, bytes] | None:
    with contextlib.suppress(OSError):
        data = read_whole(disk, path)
        if len(data) > 4 and checksum(data[4:]) == int.from_bytes(data[:4], "big"):
            form, of, state = msgpack.unpackb(data[4:], use_list=False)
            if form == _FORMAT and of == offset:
                return offset, state
    return None


def _offsets(entries: list[str]) -> list[int]:
    return sorted(offset for name in entries if (offset := names.snapshot_offset(name)) is not None)
