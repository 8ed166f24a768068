"""Room on the disk that appends may not take, so that the broker never meets a full disk.

While less than the reserve is free, appends are refused with a retriable error; reads,
deletes and checkpoints go on, and so do appends of *essential* logs (the journal: without
it no topic could be deleted to make room). The disk is asked at most once a second, and
after every sixteen megabytes appended.
"""

from __future__ import annotations

import logging

from ...env import Disk
from ...errors import ErrorCode, KafkaError
from .config import EmbeddedConfig

_log = logging.getLogger("rafka.storage")

_EVERY_MS = 1000
_EVERY_BYTES = 16 << 20


class Reserve:
    """Counts down what may be appended before the disk is asked again."""

    def __init__(self, disk: Disk, path: str, config: EmbeddedConfig) -> None:
        self._disk = disk
        self._path = path
        self._config = config
        self._left = 0
        self._asked_ms = -_EVERY_MS
        self.refusing = False

    def take(self, size: int, now_ms: int, *, essential: bool) -> None:
        """Count an append. KafkaError(KAFKA_STORAGE_ERROR) if there is no room for it."""
        self._left -= size
        # By the calendar, which whoever appends has at hand: where it goes back, the disk is asked sooner.
        since_ms = now_ms - self._asked_ms
        if not 0 <= since_ms < _EVERY_MS or (self._left < 0 and not self.refusing):
            self._ask(size, now_ms)
        if self.refusing and not essential:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the disk of {self._path} is nearly full")

    def full(self, now_ms: int) -> None:
        """The disk said so itself."""
        self._left = 0
        self._tell(True, 0)
        self._asked_ms = now_ms

    def _ask(self, size: int, now_ms: int) -> None:
        total, free = self._disk.room(self._path)
        reserve = min(self._config.reserve_bytes, int(total * self._config.reserve_percent / 100))
        self._asked_ms = now_ms
        self._left = min(_EVERY_BYTES, free - reserve - size)
        self._tell(free - size < reserve, free)

    def _tell(self, refusing: bool, free: int) -> None:
        if refusing and not self.refusing:
            _log.error("the disk of %s has %d bytes left: appends are refused", self._path, free)
        elif self.refusing and not refusing:
            _log.warning("the disk of %s has room again: %d bytes", self._path, free)
        self.refusing = refusing
