"""Logs in memory keep the promises of every backend."""

from __future__ import annotations

from trio.testing import MockClock

from rafka.storage.memory import MemoryBackend

from .batches import sim_disk, sim_env
from .conformance import Promise, check_log_backend, running


@check_log_backend
async def test_logs_in_memory(promise: Promise, autojump_clock: MockClock) -> None:
    async with running(MemoryBackend(sim_env(sim_disk()))) as backend:
        await promise(backend)
