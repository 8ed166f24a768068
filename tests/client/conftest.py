"""A scripted broker, and the way to it."""

from __future__ import annotations

import pytest
import trio

from .scripted import Network, ScriptedBroker


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker(topics={"orders": 2})


@pytest.fixture
async def network(broker: ScriptedBroker, nursery: trio.Nursery) -> Network:
    return Network(nursery, {broker.address: broker})
