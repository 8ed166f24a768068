"""A data directory: whose it is, what format it has, which logs are in it.

lock         held by the process that uses it, with its pid inside
meta         the format, as JSON
checkpoint   see `marks`
blobs/       see `blobs`
<log name>/  one folder per log, e.g. topics/<32 hex digits>/0 or journal
"""

from __future__ import annotations

import contextlib
import json

from ...env import Disk
from ...env.disk import Lock
from ..backend import LogName
from . import names
from .config import FORMAT, DataDirLocked, UnknownFormat
from .marks import replace_file
from .segment import read_whole

LOCK = "lock"
META = "meta"


def take(disk: Disk, root: str) -> Lock:
    """Make the folder if need be, lock it, and look whether it is ours to open."""
    disk.make_dir(root)
    lock = disk.lock(f"{root}/{LOCK}")
    if lock is None:
        raise DataDirLocked(root, read_whole(disk, f"{root}/{LOCK}").decode(errors="replace").strip())
    try:
        _check_format(disk, root)
        # Made just now, or by a life that was killed in between: from here on the names are durable.
        disk.sync_dir(root)
        with contextlib.suppress(PermissionError):  # a folder above that we may pass through but not read
            disk.sync_dir(root.rpartition("/")[0] or ("/" if root.startswith("/") else "."))
    except BaseException:
        lock.release()
        raise
    return lock


def _check_format(disk: Disk, root: str) -> None:
    path = f"{root}/{META}"
    if not disk.exists(path):
        if disk.exists(f"{root}/meta.properties"):
            raise UnknownFormat(f"{root} is a data directory of Apache Kafka, which rafka does not take over")
        replace_file(disk, root, META, json.dumps({"rafka": FORMAT}).encode() + b"\n")
        return
    text = read_whole(disk, path)
    try:
        form = int(json.loads(text)["rafka"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnknownFormat(f"{path} cannot be read: {text[:100]!r}") from error
    if form > FORMAT:
        raise UnknownFormat(
            f"{root} has format {form}; this rafka knows formats up to {FORMAT}: use a newer one"
        )


def find_logs(disk: Disk, root: str) -> list[LogName]:
    """All folders that hold segments. Folders on their way out are removed."""
    found: list[LogName] = []
    _find(disk, root, "", found)
    return sorted(found)


def _find(disk: Disk, root: str, prefix: str, found: list[LogName]) -> None:
    for name in disk.list(f"{root}/{prefix}" if prefix else root):
        path = f"{prefix}/{name}" if prefix else name
        if name.endswith(names.DELETED):
            remove_tree(disk, f"{root}/{path}")
        elif "." not in name:
            try:
                inside = disk.list(f"{root}/{path}")
            except NotADirectoryError:
                continue
            if any(names.segment_base(file) is not None or names.swap_range(file) for file in inside):
                found.append(LogName(path))
            else:
                _find(disk, root, path, found)


def remove_tree(disk: Disk, path: str) -> None:
    """Remove a folder of files, or a file."""
    try:
        inside = disk.list(path)
    except NotADirectoryError:
        disk.remove(path)
        return
    for name in inside:
        remove_tree(disk, f"{path}/{name}")
    disk.remove_dir(path)
