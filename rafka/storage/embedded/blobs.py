"""Small files that are replaced as a whole: `blobs/<name>`, a checksum before the bytes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from ...records.checksum import checksum
from ..backend import StorageFailed
from . import names
from .marks import replace_file
from .segment import read_whole

if TYPE_CHECKING:
    from .shared import Shared

_log = logging.getLogger("rafka.storage")
_FOLDER = "blobs"


class EmbeddedBlobs:
    """As `backend.Blobs`. Always durable, in page-cache mode too: it is asked for seldom."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._disk = shared.env.disk
        self._folder = f"{shared.root}/{_FOLDER}"
        self._one_at_a_time = trio.Lock()

    def names(self) -> list[str]:
        return [name for name in self._disk.list(self._folder) if not name.endswith(names.TEMPORARY)]

    def load(self, name: str) -> bytes | None:
        path = self._path(name)
        try:
            data = read_whole(self._disk, path)
        except FileNotFoundError:
            return None
        if len(data) < 4 or checksum(data[4:]) != int.from_bytes(data[:4], "big"):
            _log.warning("%s is damaged", path)
            return None
        return data[4:]

    async def save(self, name: str, blob: bytes) -> None:
        self._path(name)
        async with self._one_at_a_time:
            await self._shared.in_thread(self._save, name, blob)

    def _save(self, name: str, blob: bytes) -> None:
        try:
            if not self._disk.exists(self._folder):
                self._disk.make_dir(self._folder)
                self._disk.sync_dir(self._shared.root)
            replace_file(self._disk, self._folder, name, checksum(blob).to_bytes(4, "big") + bytes(blob))
        except OSError as error:
            raise StorageFailed(f"{self._folder}/{name} cannot be saved: {error}") from error

    async def remove(self, name: str) -> None:
        path = self._path(name)
        async with self._one_at_a_time:
            if self._disk.exists(path):
                self._disk.remove(path)
                await self._shared.flusher.sync_now([], [self._folder])

    def _path(self, name: str) -> str:
        assert "/" not in name, name
        assert not name.endswith(names.TEMPORARY), name
        return f"{self._folder}/{name}"
