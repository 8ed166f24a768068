"""Room on the disk that appends may not take, so that the broker never meets a full disk.

While less than the reserve is free, appends are refused with a retriable error; reads,
deletes and checkpoints go on, and so do appends of *essential* logs (the journal: without
it no topic could be deleted to make room). The disk is asked at most once a second, and
after every sixteen megabytes appended.
"""

from __future__ import annotations

import logging

import trio

from ...env import Disk
from ...errors import ErrorCode, KafkaError
from .config import EmbeddedConfig

_log = logging.getLogger("rafka.storage")

_EVERY_SECONDS = 1.0
_EVERY_BYTES = 16 << 20


class Reserve:
    """Counts down what may be appended before the disk is asked again."""

    def __init__(self, disk: Disk, path: str, config: EmbeddedConfig) -> None:
        self._disk = disk
        self._path = path
        self._config = config
        self._left = 0
        self._ask_again = -1.0
        self._clock = trio.current_time
        self.refusing = False

    def take(self, size: int, *, essential: bool) -> None:
        """Count an append. KafkaError(KAFKA_STORAGE_ERROR) if there is no room for it."""
        self._left -= size
        if self._clock() >= self._ask_again or (self._left < 0 and not self.refusing):
            self._ask(size)
        if self.refusing and not essential:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self._path} is nearly full")

    def full(self) -> None:
        """The disk said so itself."""
        self._left = 0
        self._tell(True, 0)
        self._ask_again = trio.current_time() + _EVERY_SECONDS

    def _ask(self, size: int) -> None:
        self._clock = trio.lowlevel.current_clock().current_time  # the same, by a shorter way
        total, free = self._disk.room(self._path)
        reserve = min(self._config.reserve_bytes, int(total * self._config.reserve_percent / 100))
        self._ask_again = trio.current_time() + _EVERY_SECONDS
        self._left = min(_EVERY_BYTES, free - reserve - size)
        self._tell(free - size < reserve, free)

    def _tell(self, refusing: bool, free: int) -> None:
        if refusing and not self.refusing:
            _log.error("the disk of %s has %d bytes left: appends are refused", self._path, free)
        elif self.refusing and not refusing:
            _log.warning("the disk of %s has room again: %d bytes", self._path, free)
        self.refusing = refusing
