"""Batches to append, and worlds to append them in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

import trio

from rafka.env import Disk, Env
from rafka.env.sim_disk import SimDisk
from rafka.records.batch import BatchHeader, placed, read_header, walk
from rafka.records.build import build
from rafka.records.record import Record
from rafka.storage.backend import Log

T = TypeVar("T")
START = 1_700_000_000.0  # the wall clock when a test begins


async def inline(fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
    """A thread that needs no thread: what it does is done at once, and then others have their turn."""
    async with limiter or trio.CapacityLimiter(1):
        result = fn(*args)
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
        return result


def sim_env(disk: Disk, seed: int = 0) -> Env:
    return Env(lambda: START + trio.current_time(), Random(seed), disk, inline)


def sim_disk(seed: int = 0, **faults: Any) -> SimDisk:
    return SimDisk(Random(seed), now=lambda: START + trio.current_time(), **faults)


def batch_of(
    timestamps: Sequence[int], *, value: bytes = b"value", codec: int = 0, key: bytes | None = None
) -> bytes:
    return build([Record(i, time, key, value) for i, time in enumerate(timestamps)], codec=codec)


def put(
    log: Log,
    batch: bytes | None = None,
    *,
    times: Sequence[int] = (1000,),
    value: bytes = b"value",
    codec: int = 0,
    epoch: int = 0,
) -> bytes:
    """Append one batch at the end of the log; the bytes that should be read back."""
    if batch is None:
        batch = batch_of(times, value=value, codec=codec)
    header = read_header(batch)
    head = placed(header, log.end_offset, epoch)
    log.append([head, memoryview(batch)[61:]], header)
    return bytes(head) + batch[61:]


def everything(log: Log) -> bytes:
    """All that can be read, without waiting."""
    offset = log.start_offset
    found: list[bytes] = []
    while True:
        data = log.read(offset, log.end_offset, 1 << 30)
        assert data is not None
        if not data:
            return b"".join(found)
        found.append(data)
        offset = headers_in(data)[-1].next_offset


async def everything_cold(log: Log) -> bytes:
    """The same, waiting for the disk."""
    offset = log.start_offset
    found: list[bytes] = []
    while data := await log.read_cold(offset, log.end_offset, 1 << 30):
        found.append(data)
        offset = headers_in(data)[-1].next_offset
    return b"".join(found)


def headers_in(data: bytes) -> list[BatchHeader]:
    return [header for _, header in walk(data)]


def span(header: BatchHeader) -> tuple[int, int]:
    return header.base_offset, header.next_offset
