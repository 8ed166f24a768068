"""How promises are noted, and the log that most of them are about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from rafka.storage.backend import Log, LogBackend, LogName, LogSettings

from .batches import START, put

Promise: TypeAlias = Callable[[LogBackend], Awaitable[None]]

NAME = LogName("topics/0123456789abcdef0123456789abcdef/0")
SMALL = LogSettings(segment_bytes=1000, index_interval_bytes=150, file_delete_delay_ms=1000)
NOW_MS = int(START * 1000)

PROMISES: list[Promise] = []


def promise(check: Promise) -> Promise:
    """This is one more thing that every backend promises."""
    PROMISES.append(check)
    return check


def filled(backend: LogBackend, batches: int = 20, settings: LogSettings = SMALL) -> tuple[Log, list[bytes]]:
    """A log of small batches of three records each, in several segments; and the batches."""
    log = backend.open(NAME, settings)
    return log, [
        put(log, times=[1000 + 10 * i, 1001 + 10 * i, 1002 + 10 * i], value=bytes([i]) * (20 + i))
        for i in range(batches)
    ]
