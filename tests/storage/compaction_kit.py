"""A log to compact, a hand that writes to it, and what a reader then finds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import attrs
import trio

from rafka.env import Env
from rafka.env.sim_disk import SimDisk
from rafka.records.batch import BatchHeader, read_header, walk
from rafka.records.build import build
from rafka.records.control import build_marker
from rafka.records.record import Record, iterate
from rafka.storage.backend import Log, LogBackend, LogName, LogSettings
from rafka.storage.compaction import (
    CompactionPolicy,
    CompactionResult,
    compact,
)
from rafka.storage.embedded import EmbeddedBackend
from rafka.storage.memory import MemoryBackend

T = TypeVar("T")
Pair: TypeAlias = tuple[str | None, str | None]

NOW = 1_700_000_000_000
DAY = 86_400_000


async def in_place(fn: Callable[..., T], *args: Any, limiter: trio.CapacityLimiter | None = None) -> T:
    """A thread that is none; the loop gets its turn."""
    await trio.lowlevel.checkpoint()
    return fn(*args)


@attrs.define
class Bench:
    """A log, and a hand that writes to it."""

    log: Log
    env: Env
    now_ms: int = NOW

    def write(self, *pairs: Pair, **fields: Any) -> int:
        """Append one batch of these keys and values; its base offset."""
        records = [Record(0, self.now_ms, raw(key), raw(value)) for key, value in pairs]
        return self.put(build(records, base_offset=self.log.end_offset, leader_epoch=0, **fields))

    def mark(self, producer_id: int, *, committed: bool, epoch: int = 0) -> int:
        """Append the marker that ends a transaction."""
        return self.put(
            build_marker(
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=committed,
                coordinator_epoch=0,
                timestamp=self.now_ms,
                base_offset=self.log.end_offset,
                leader_epoch=0,
            )
        )

    def put(self, batch: bytes) -> int:
        header = read_header(batch)
        self.log.append([batch], header)
        return header.base_offset

    async def compact(
        self,
        policy: CompactionPolicy | None = None,
        *,
        upto: int | None = None,
        roll: bool = True,
        **known: Any,
    ) -> CompactionResult:
        if roll:
            self.log.roll()
        upto = self.log.end_offset if upto is None else upto
        return await compact(self.log, policy or eager(), self.now_ms, upto, self.env, **known)

    async def batches(self) -> list[bytes]:
        """As a reader gets them."""
        found, at = [], self.log.start_offset
        while data := await self.log.read_cold(at, self.log.end_offset, 1 << 20):
            for position, header in walk(data):
                found.append(data[position : position + header.size])
                at = header.next_offset
        return found

    async def records(self) -> list[tuple[int, str | None, str | None]]:
        return [
            (record.offset, text(record.key), text(record.value))
            for batch in await self.batches()
            if not read_header(batch).control
            for record in iterate(batch)
        ]

    async def headers(self) -> list[BatchHeader]:
        return [read_header(batch) for batch in await self.batches()]


def raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()


def eager(*, min_lag_ms: int = 0, max_map_entries: int = 1000) -> CompactionPolicy:
    """Compacts whatever is dirty."""
    return CompactionPolicy(min_dirty_ratio=-1.0, min_lag_ms=min_lag_ms, max_map_entries=max_map_entries)


async def make_bench(nursery: trio.Nursery, kind: str, segment_bytes: int = 1 << 30) -> Bench:
    dice = random.Random(1)
    env = Env(lambda: NOW / 1000, dice, SimDisk(dice), in_place)
    backend: LogBackend = MemoryBackend(env) if kind == "memory" else EmbeddedBackend(env, "/data")
    await backend.start()
    await nursery.start(backend.run)
    return Bench(backend.open(LogName("topics/t/0"), LogSettings(segment_bytes=segment_bytes)), env)
