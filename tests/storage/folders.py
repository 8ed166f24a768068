"""One log in one data directory, opened, ended and opened again: for tests of what lies in the files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from rafka.env import Env
from rafka.env.sim_disk import SimDisk
from rafka.storage.backend import LogName, LogSettings
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig
from rafka.storage.embedded.log import EmbeddedLog

from .batches import put, sim_env

ROOT = "data"
NAME = LogName("topics/ab/0")
FOLDER = f"{ROOT}/{NAME}"
SETTINGS = LogSettings(segment_bytes=1000, index_interval_bytes=150, file_delete_delay_ms=1000)
ONE_SEGMENT = LogSettings(index_interval_bytes=150)


@asynccontextmanager
async def opened(
    disk: SimDisk,
    config: EmbeddedConfig | None = None,
    *,
    env: Env | None = None,
    clean: bool = True,
) -> AsyncIterator[EmbeddedBackend]:
    """A backend at work; closed in the end, or, if not `clean`, killed."""
    backend = EmbeddedBackend(env or sim_env(disk), ROOT, config)
    await backend.start()
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run)
        yield backend
        nursery.cancel_scope.cancel()
    if clean:
        await backend.close()
    else:
        disk.kill()


def the_log(backend: EmbeddedBackend, settings: LogSettings = SETTINGS) -> EmbeddedLog:
    return backend.open(NAME, settings)


def path(base_offset: int, suffix: str = ".log") -> str:
    return f"{FOLDER}/{base_offset:020}{suffix}"


async def written(disk: SimDisk, batches: int = 6, *, clean: bool = False) -> list[bytes]:
    """A log of one segment whose end no checkpoint knows, unless the stop is clean."""
    async with opened(disk, clean=clean) as backend:
        log = the_log(backend, ONE_SEGMENT)
        data = [put(log, times=[1000 + i], value=b"%d" % i * 20) for i in range(batches)]
        await log.wait_flushed(log.end_offset)
        return data


def cut_to(size: int) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        del data[size:]

    return change
