"""Logs in segment files keep the promises of every backend, on a simulated and on a real disk."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import trio
from trio.testing import MockClock

from rafka.env import Env
from rafka.env.real_disk import RealDisk
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig

from .batches import START, inline, sim_disk, sim_env
from .conformance import Promise, check_log_backend, running

CONFIGS = {
    "durable": EmbeddedConfig(),
    "page-cache": EmbeddedConfig(durable=False),
    "scarce": EmbeddedConfig(max_open_files=1, max_loaded_indexes=1, checkpoint_bytes=500),
}


@check_log_backend
@pytest.mark.parametrize("config", CONFIGS)
async def test_logs_on_a_simulated_disk(promise: Promise, config: str, autojump_clock: MockClock) -> None:
    async with running(EmbeddedBackend(sim_env(sim_disk()), "data", CONFIGS[config])) as backend:
        await promise(backend)


@check_log_backend
async def test_logs_on_a_disk_that_has_nothing_cached(promise: Promise, autojump_clock: MockClock) -> None:
    async with running(EmbeddedBackend(sim_env(sim_disk(p_cold=0.5)), "data", CONFIGS["scarce"])) as backend:
        await promise(backend)


@check_log_backend
async def test_logs_on_a_real_disk(promise: Promise, tmp_path: Path, autojump_clock: MockClock) -> None:
    env = Env(lambda: START + trio.current_time(), Random(0), RealDisk(), inline)
    async with running(EmbeddedBackend(env, str(tmp_path / "data"))) as backend:
        await promise(backend)
