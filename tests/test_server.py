"""A broker put together: how it stops while clients wait for something."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rafka.config import load
from rafka.errors import ErrorCode
from rafka.server import RunningBroker, open_broker
from rafka.wire.api import Api
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.sync_group import SYNC_GROUP

from .gateway.group_kit import joining, syncing
from .gateway.kit import Client, request

GRACE_S = 20
SYNC_THREAD = "rafka sync"
FILES = "/proc/self/fd"
HAS_FILES = os.path.isdir(FILES)
CONFIG = load(
    flags=[
        ("storage", "memory:", ""),
        ("listen", "127.0.0.1:0", ""),
        ("shutdown.grace.ms", str(GRACE_S * 1000), ""),
        ("group.initial.rebalance.delay.ms", "300", ""),
    ]
)


async def connect(broker: RunningBroker) -> Client:
    host, _, port = broker.bootstrap.rpartition(":")
    return Client(await trio.open_tcp_stream(host, int(port)))


async def parked(client: Client, api: Api, body: Any) -> None:
    await client.send(request(api, 3, body))


async def test_members_who_wait_for_others_are_let_go_at_once_when_the_broker_stops() -> None:
    """They look for another coordinator, and need not run into their timeouts."""
    long = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    began = trio.current_time()
    with trio.fail_after(GRACE_S):
        async with open_broker(CONFIG) as broker:
            ann, bob, cid = [await connect(broker) for _ in range(3)]
            for client in (ann, bob):
                await parked(client, JOIN_GROUP, joining(**long))
            joined = [(await client.reply(JOIN_GROUP, 3), client) for client in (ann, bob)]
            ((follower, syncs),) = [(j, client) for j, client in joined if j.leader != j.member_id]
            await parked(syncs, SYNC_GROUP, syncing(member_id=follower.member_id))  # the leader does not
            await parked(cid, JOIN_GROUP, joining(group_id="other", **long))
            await wait_all_tasks_blocked()
        took = trio.current_time() - began

        assert (await syncs.reply(SYNC_GROUP, 3)).error_code == ErrorCode.NOT_COORDINATOR
        assert (await cid.reply(JOIN_GROUP, 3)).error_code == ErrorCode.NOT_COORDINATOR
        for client in (ann, bob, cid):
            assert await client.closed()
            await client.stream.aclose()
    assert took < GRACE_S / 4, "grace is for those who work"


def open_files() -> int:
    """How many this process has; 0 where the system does not tell."""
    return len(os.listdir(FILES)) if HAS_FILES else 0


async def sync_thread_ended() -> None:
    """It closes what it has by itself, soon after it was told to end."""
    for thread in threading.enumerate():
        if thread.name == SYNC_THREAD:
            await trio.to_thread.run_sync(thread.join, 10)
            assert not thread.is_alive()


class Interrupted(Exception):
    """Whoever opened a broker was not able to go on."""


async def test_a_broker_that_was_left_by_an_error_can_be_opened_again_in_the_same_process(
    tmp_path: Path,
) -> None:
    """It holds nothing any more: not the data directory, not its files, not its thread."""
    config = load(flags=[("storage", str(tmp_path / "data"), ""), ("listen", "127.0.0.1:0", "")])
    files = open_files()
    with pytest.RaisesGroup(Interrupted, flatten_subgroups=True):
        async with open_broker(config):
            raise Interrupted
    await sync_thread_ended()
    assert open_files() <= files

    with trio.move_on_after(60) as scope:
        async with open_broker(config):
            scope.cancel()
            await trio.sleep_forever()

    async with open_broker(config) as broker:
        client = await connect(broker)
        await client.stream.aclose()
    await sync_thread_ended()
