"""`rafka group lag --watch`, while the broker answers and while it does not."""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from rafka.cli.group import lag
from rafka.client import Client, TopicPartition, connect
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from tests.client.group_broker import GroupBroker
from tests.client.scripted import Network

ARGS = argparse.Namespace(group="billing", interval=2.0, json=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def broker() -> GroupBroker:
    broker = GroupBroker(topics={"orders": 1}, offsets={TopicPartition("orders", 0): 5})
    entry = DESCRIBE_GROUPS.Response.Groups(group_id="billing", group_state="Empty")
    broker.answers["DescribeGroups"] = lambda request, version: DESCRIBE_GROUPS.Response(groups=[entry])
    return broker


@pytest.fixture
async def client(broker: GroupBroker, nursery: trio.Nursery) -> AsyncIterator[Client]:
    async with connect("broker", dial=Network(nursery, {broker.address: broker}).dial) as client:
        yield client


async def watched(client: Client, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await lag.watch(ARGS, client)


def heads(screen: io.StringIO) -> list[str]:
    """The first lines of what was drawn."""
    drawn = screen.getvalue().split(lag.HOME)[1:]
    return [re.sub(r"\d\d:\d\d:\d\d", "TIME", one.partition(lag.CLEAR_LINE)[0]) for one in drawn]


async def test_it_is_drawn_in_place(
    client: Client, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", screen := Terminal())

    await watched(client, 5)

    assert heads(screen) == ["billing: Empty, members 0, lag 0, TIME"] * 3
    assert screen.getvalue().startswith(lag.CLEAR)


async def test_a_broker_that_does_not_answer_is_said_soon_and_not_waited_for_in_silence(
    client: Client, broker: GroupBroker, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", screen := Terminal())

    async def fall_silent() -> None:
        await trio.sleep(1)
        broker.swallow.append("OffsetFetch")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fall_silent)
        await watched(client, 4.5)

    assert heads(screen) == ["billing: Empty, members 0, lag 0, TIME", "billing: no answer since TIME"]
    assert "orders" in screen.getvalue().split(lag.HOME)[2], "what was last seen stays"


async def test_it_goes_on_when_the_broker_is_back(
    client: Client, broker: GroupBroker, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", screen := Terminal())

    async def be_away() -> None:
        await trio.sleep(1)
        broker.swallow.append("OffsetFetch")
        await trio.sleep(40)
        broker.swallow.clear()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_away)
        await watched(client, 80)

    silent = [drawn for drawn in screen.getvalue().split(lag.HOME) if "no answer since" in drawn]
    assert len(silent) >= 3
    assert "did not answer" not in silent[0]
    assert all("did not answer" in drawn for drawn in silent[1:]), "why stays while it is tried again"
    told = heads(screen)
    assert "billing: no answer since TIME" in told
    assert told[-1] == "billing: Empty, members 0, lag 0, TIME"


async def test_elsewhere_silence_is_a_line_on_stderr(
    client: Client,
    broker: GroupBroker,
    autojump_clock: MockClock,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def fall_silent() -> None:
        await trio.sleep(1)
        broker.swallow.append("OffsetFetch")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fall_silent)
        await watched(client, 4.5)

    told = capsys.readouterr()
    assert re.fullmatch(r"% no answer since \d\d:\d\d:\d\d\n", told.err)
    assert told.out.count("LAG") == 1
