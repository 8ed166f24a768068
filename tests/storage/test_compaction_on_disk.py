"""The power goes at every change that compaction makes to the disk: no old value comes back.

Compaction replaces segments group by group. If a group with a tombstone were replaced
for good before an earlier group with the deleted value, that value would rise again.
"""

from __future__ import annotations

from functools import partial

import pytest
import trio

from rafka.env import Env
from rafka.records.batch import read_header, walk
from rafka.records.build import build
from rafka.records.record import Record, iterate
from rafka.storage.backend import Log, LogName, LogSettings
from rafka.storage.compaction import CompactionPolicy, compact
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig

from ..simulation.kit.machine import Machine
from ..simulation.kit.runner import Chance, run, wall_clock

POLICY = CompactionPolicy(min_dirty_ratio=-1.0, delete_retention_ms=0)
WRITTEN: list[tuple[str, str | None]] = [
    ("gone", "1"),
    ("kept", "1"),
    ("gone", "2"),
    ("kept", "2"),
    ("gone", None),
    ("kept", "3"),
    ("other", "1"),
]
NEWEST = {"kept": "3", "other": "1"}


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_no_deleted_value_comes_back(step: int) -> None:
    change = 0
    while run(change, partial(cut_at, change=change)).value:
        change += step

    assert change > 100


async def cut_at(chance: Chance, change: int) -> bool:
    """Compact until the tombstone is gone; the power goes at this change. Whether there were so many."""
    machine = Machine(chance)
    done = False

    async def write_and_compact(env: Env) -> None:
        nonlocal done
        async with trio.open_nursery() as nursery:
            log = await open_log(env, nursery)
            for key, value in WRITTEN:
                put(log, key, value)
                log.roll()
            await log.wait_flushed(log.end_offset)
            machine.cut_power_at_change(change)
            for _ in range(3):
                await trio.sleep(1)  # what was marked in the pass before may go in this one
                await compact(log, POLICY, int(wall_clock() * 1000), log.end_offset, env)
                put(log, "other", "1")
                log.roll()
            done = True
            nursery.cancel_scope.cancel()

    async def look(env: Env) -> None:
        async with trio.open_nursery() as nursery:
            found = await newest_values(await open_log(env, nursery))
            assert found == NEWEST, f"power cut at change {change}"
            nursery.cancel_scope.cancel()

    assert await machine.live(write_and_compact) is None
    machine.disk.power_loss()
    if cause := await machine.live(look):
        raise cause
    return not done


async def open_log(env: Env, nursery: trio.Nursery) -> Log:
    config = EmbeddedConfig(reserve_bytes=0, reserve_percent=0.0)
    backend = EmbeddedBackend(env, "/data", config)
    await backend.start()
    await nursery.start(backend.run)
    # Two batches to a segment after compaction: so that there are several groups.
    return backend.open(LogName("topics/t/0"), LogSettings(segment_bytes=150, file_delete_delay_ms=0))


def put(log: Log, key: str, value: str | None) -> None:
    record = Record(0, int(wall_clock() * 1000), key.encode(), None if value is None else value.encode(), [])
    batch = build([record], base_offset=log.end_offset, leader_epoch=0)
    log.append([batch], read_header(batch))


async def newest_values(log: Log) -> dict[str, str]:
    """What somebody who reads the log from its start believes at its end."""
    table: dict[str, str] = {}
    at = log.start_offset
    while data := await log.read_cold(at, log.end_offset, 1 << 20):
        for position, header in walk(data):
            at = header.next_offset
            for record in iterate(memoryview(data)[position : position + header.size]):
                key = (record.key or b"").decode()
                table.pop(key, None)
                if record.value is not None:
                    table[key] = record.value.decode()
    return table
