"""Worlds: one whose logs forget nothing while it lives, one whose logs are slow to promise anything."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rafka.broker.partition import Partition
from rafka.storage.memory import MemoryBackend

from .kit import SlowBackend, World, make_env, open_world
from .producing import Home, Refusing


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Over memory, with the topic t of one partition."""
    async with open_world() as world:
        await world.create()
        yield world


@pytest.fixture
async def slow() -> AsyncIterator[World]:
    """Durable, and flushed by hand. The topic t is there; what is written to it waits."""
    env = make_env()
    backend = SlowBackend(env, at_once=True)
    async with open_world(backend=backend, env=env) as world:
        await world.create()
        backend.at_once = False
        yield world


@pytest.fixture
async def home() -> Home:
    env = make_env()
    return Home(env, MemoryBackend(env))


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    refusing = Refusing()
    monkeypatch.setattr(Partition, "write_marker", refusing.write_marker)
    return refusing
