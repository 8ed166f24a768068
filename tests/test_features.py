"""The levels of features, from an administrator's request to what clients are told, and after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from rafka.config import load
from rafka.errors import ErrorCode
from rafka.server import open_broker
from rafka.wire.apis.api_versions import API_VERSIONS
from rafka.wire.apis.update_features import UPDATE_FEATURES

from .simulation.wire_client import WireClient

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


@asynccontextmanager
async def connected(home: Path) -> AsyncIterator[WireClient]:
    """A client of a broker over this directory, for as long as the block lasts."""
    config = load(flags=[("storage", f"file:{home}", "a test")])
    async with open_broker(config, listen=False) as broker, trio.open_nursery() as nursery:
        near, far = trio.testing.memory_stream_pair()

        async def connect() -> trio.abc.Stream:
            return near

        nursery.start_soon(broker.serve_stream, far)
        client = WireClient(connect, "features", timeout=20)
        yield client
        await client.hang_up()
        nursery.cancel_scope.cancel()


async def levels(client: WireClient, version: int = 4) -> tuple[int, dict[str, int]]:
    """(epoch, level of each feature that is in force)."""
    request = API_VERSIONS.Request(client_software_name="test", client_software_version="1")
    reply = await client.ask(API_VERSIONS, version, request)
    assert all(f.max_version_level == f.min_version_level for f in reply.finalized_features)
    found = {f.name: f.max_version_level for f in reply.finalized_features}
    return reply.finalized_features_epoch, found


async def update(client: WireClient, level: int, kind: int = UPGRADE, version: int = 2, **more: Any) -> Any:
    wanted = UPDATE_FEATURES.Request.FeatureUpdates(
        feature="transaction.version",
        max_version_level=level,
        upgrade_type=kind,
        allow_downgrade=kind != UPGRADE,
    )
    return await client.ask(
        UPDATE_FEATURES, version, UPDATE_FEATURES.Request(feature_updates=[wanted], **more)
    )


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_level_is_lowered_told_to_everybody_and_kept(tmp_path: Path, version: int) -> None:
    async with connected(tmp_path) as client:
        epoch, before = await levels(client)
        lowered = await update(client, 1, SAFE_DOWNGRADE, version)
        after = await levels(client)

    async with connected(tmp_path) as client:
        restarted = await levels(client)
        raised = await update(client, 2, UPGRADE, version)
        at_last = await levels(client)

    assert (lowered.error_code, raised.error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert [r.error_code for r in lowered.results] == ([0] if version < 2 else [])
    assert before["transaction.version"] == 2
    assert after == restarted == (epoch + 1, before | {"transaction.version": 1})
    assert at_last == (epoch + 2, before)


async def test_nothing_is_lowered_by_mistake_or_for_trying(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        before = await levels(client)
        by_mistake = await update(client, 1)
        tried = await update(client, 1, UNSAFE_DOWNGRADE, validate_only=True)
        too_high = await update(client, 3)

        assert by_mistake.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert "without setting the upgrade type" in by_mistake.error_message
        assert tried.error_code == ErrorCode.NONE
        assert too_high.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert await levels(client) == before


async def test_old_clients_are_told_in_their_version(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        await update(client, 1, SAFE_DOWNGRADE)

        assert (await levels(client, version=3))[1]["transaction.version"] == 1
