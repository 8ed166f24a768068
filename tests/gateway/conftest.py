"""The gateway that most tests of this room talk to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from rafka.gateway.readiness import Readiness
from rafka.gateway.server import Gateway
from rafka.ops import cluster, log, topics

from .kit import Gate, ScriptedLink, World, config, written


@pytest.fixture(params=["waited for", "ringing"])
def both_kinds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies behind a gate are of one kind, and then of the other."""
    monkeypatch.setattr(Gate, "rings", request.param == "ringing")


@pytest.fixture
def ringing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gate, "rings", True)


@pytest.fixture
def link() -> ScriptedLink:
    return ScriptedLink(
        {
            log.Produce: lambda _, op: written(op),
            topics.Metadata: lambda _, op: topics.MetadataReply(topics=[]),
            cluster.DescribeCluster: lambda _, op: cluster.DescribeClusterReply(),
        }
    )


@pytest.fixture
async def world(link: ScriptedLink) -> AsyncIterator[World]:
    gateway = Gateway(config(), link)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        yield World(gateway, link, nursery)
        nursery.cancel_scope.cancel()


@pytest.fixture
async def readiness() -> AsyncIterator[Readiness]:
    """Where there is epoll."""
    readiness = Readiness()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(readiness.run)
        yield readiness
        nursery.cancel_scope.cancel()
    readiness.close()
