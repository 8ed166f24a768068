"""`rafka group history --follow`, on a broker that tells what the test has it tell."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rafka.cli.group import history
from rafka.client import Client, connect
from rafka.wire.apis.group_history import GROUP_HISTORY
from tests.client.group_broker import GroupBroker
from tests.client.scripted import Network

RESPONSE: Any = GROUP_HISTORY.Response
WITH_MEMBERS = argparse.Namespace(group="billing", members=True, json=False)
WITHOUT = argparse.Namespace(group="billing", members=False, json=False)


@pytest.fixture
def told() -> list[Any]:
    """The rebalances that the broker keeps."""
    return []


@pytest.fixture
async def client(told: list[Any], nursery: trio.Nursery) -> AsyncIterator[Client]:
    broker = GroupBroker()
    broker.answers["GroupHistory"] = lambda request, version: RESPONSE(
        rebalances=[one for one in told if one.told_ms > request.after]
    )
    async with connect("broker", dial=Network(nursery, {broker.address: broker}).dial) as client:
        yield client


def rebalance(told_ms: int, *pauses_ms: int, outcome: str = "stable") -> Any:
    entry = RESPONSE.Rebalances
    members = [entry.Members(joined=True, pause_ms=pause_ms) for pause_ms in pauses_ms]
    return entry(number=told_ms, told_ms=told_ms, outcome=outcome, members=members)


async def pauses(client: Client, args: argparse.Namespace, after: int) -> list[list[int]]:
    found = await history.news(args, client, after)
    return [[member.pause_ms for member in one.members] for one in found]


async def test_a_member_that_comes_late_is_waited_for(
    client: Client, told: list[Any], autojump_clock: MockClock
) -> None:
    told += [rebalance(1, 5), rebalance(2, 5, -1)]

    async def come_late() -> None:
        await trio.sleep(1)
        told[1] = rebalance(2, 5, 1000)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_late)
        found = await pauses(client, WITH_MEMBERS, 1)

    assert found == [[5, 1000]]
    assert trio.current_time() < 1.2


async def test_a_member_that_does_not_come_holds_nothing_up_for_long(
    client: Client, told: list[Any], autojump_clock: MockClock
) -> None:
    told.append(rebalance(1, 5, -1))

    assert await pauses(client, WITH_MEMBERS, 0) == [[5, -1]]
    assert trio.current_time() < history.LATE + 2 * history.LOOK


async def test_once_the_next_one_is_told_the_last_one_will_not_change(
    client: Client, told: list[Any], autojump_clock: MockClock
) -> None:
    told += [rebalance(1, 5, -1), rebalance(2, 7), rebalance(3, outcome="empty")]

    assert await pauses(client, WITH_MEMBERS, 0) == [[5, -1], [7], []]
    assert trio.current_time() < history.LOOK


async def test_where_no_members_are_shown_none_are_waited_for(
    client: Client, told: list[Any], autojump_clock: MockClock
) -> None:
    told.append(rebalance(1, 5, -1))

    assert await pauses(client, WITHOUT, 0) == [[5, -1]]
    assert trio.current_time() < history.LOOK
