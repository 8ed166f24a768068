"""Finding brokers and leaders, and trying again what failed for a passing reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rafka.client import (
    Address,
    Client,
    NewTopic,
    NoBroker,
    NotReachable,
    TopicPartition,
    UnknownTopic,
    connect,
)
from rafka.client.errors import BrokerRefused, ConnectionLost
from rafka.errors import ErrorCode
from rafka.wire.apis.create_topics import CREATE_TOPICS
from rafka.wire.apis.list_offsets import LIST_OFFSETS

from .scripted import Network, ScriptedBroker


async def test_the_second_address_is_tried_when_the_first_is_dead(
    network: Network, autojump_clock: MockClock
) -> None:
    async with connect("dead:1,broker:9092", dial=network.dial) as client:
        topics = await client.admin.list_topics()

    assert [topic.name for topic in topics] == ["orders"]
    assert network.dialled[:2] == [Address("dead", 1), Address("broker", 9092)]


async def test_when_none_can_be_reached_each_is_named_with_its_reason(
    network: Network, autojump_clock: MockClock
) -> None:
    with pytest.raises(NotReachable) as caught:
        async with connect(["dead:1", "gone:2"], dial=network.dial):
            pass

    assert "dead:1: connection refused; gone:2: connection refused" in str(caught.value)
    assert "\n" not in str(caught.value)


ASKED_OF_BROKERS: dict[str, Callable[[Client], Awaitable[object]]] = {
    "groups": lambda client: client.groups.list_all(),
    "topics": lambda client: client.admin.list_topics(),
    "topic": lambda client: client.admin.describe_topic("orders"),
    "transactions": lambda client: client.transactions.list_all(),
}


@pytest.mark.parametrize("ask", ASKED_OF_BROKERS.values(), ids=ASKED_OF_BROKERS)
async def test_where_no_broker_is_behind_the_address_there_is_not_nothing(
    network: Network,
    autojump_clock: MockClock,
    broker: ScriptedBroker,
    ask: Callable[[Client], Awaitable[object]],
) -> None:
    """As with a gateway whose broker is away."""
    broker.nodes = {}

    async with connect("broker", dial=network.dial) as client:
        began = trio.current_time()
        with pytest.raises(NoBroker, match="no broker is available"):
            await ask(client)

    assert 28 < trio.current_time() - began <= 30


async def test_a_broker_that_comes_in_time_is_asked(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker, nursery: trio.Nursery
) -> None:
    nodes, broker.nodes = broker.nodes, {}

    async def come() -> None:
        await trio.sleep(5)
        broker.nodes = nodes

    async with connect("broker", dial=network.dial) as client:
        nursery.start_soon(come)
        topics = await client.admin.list_topics()

    assert [topic.name for topic in topics] == ["orders"]


async def test_what_a_block_raises_comes_out_as_it_was(network: Network, autojump_clock: MockClock) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with connect("broker", dial=network.dial):
            raise KeyError("mine")


async def test_a_topic_that_is_not_there_is_told_soon(network: Network, autojump_clock: MockClock) -> None:
    async with connect("broker", dial=network.dial) as client:
        with pytest.raises(UnknownTopic, match=r"'nope'.*does not exist"):
            await client.admin.describe_topic("nope")

    assert trio.current_time() < 3


async def test_a_leader_that_has_moved_is_found_again(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    second = ScriptedBroker(topics=broker.topics, node_id=2, address=Address("second", 9092))
    network.brokers[second.address] = second
    broker.nodes = second.nodes = {1: broker.address, 2: second.address}
    second.leader = 2
    second.logs["orders", 0].end = 42

    def moved(request: Any, version: int) -> Any:
        broker.leader = 2
        response: Any = LIST_OFFSETS.Response
        entry = response.Topics.Partitions(
            partition_index=0, error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER), offset=-1
        )
        return response(topics=[response.Topics(name="orders", partitions=[entry])])

    broker.answers["ListOffsets"] = moved

    async with connect("broker", dial=network.dial) as client:
        target = TopicPartition("orders", 0)
        found = await client.admin.list_offsets({target: -1})

    assert found[target].offset == 42


async def test_a_connection_that_breaks_is_opened_again(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with connect("broker", dial=network.dial) as client:
        broker.close_on.append("ListOffsets")
        found = await client.admin.list_offsets({TopicPartition("orders", 1): -1})

    assert found[TopicPartition("orders", 1)].offset == 0
    assert broker.names().count("ListOffsets") == 2


async def test_trying_again_has_an_end(network: Network, autojump_clock: MockClock) -> None:
    async with connect("broker", dial=network.dial, retry_timeout=5) as client:
        network.brokers.clear()
        await client.cluster.refresh(["orders"])  # on the connection that is open
        with pytest.raises(ConnectionLost, match=r"broker 1 \(broker:9092\) cannot be reached"):
            await client.admin.list_offsets({TopicPartition("orders", 0): -1})

    assert 3 < trio.current_time() < 6


async def test_two_callers_open_one_connection(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    async with connect("broker", dial=network.dial) as client, trio.open_nursery() as nursery:
        for partition in (0, 1):
            nursery.start_soon(client.admin.list_offsets, {TopicPartition("orders", partition): -1})

    assert broker.connections == 2  # the entrance, and the one to broker 1


async def test_what_the_controller_refuses_is_told_for_each_topic(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    def create(request: Any, version: int) -> Any:
        response: Any = CREATE_TOPICS.Response
        codes = {"orders": ErrorCode.TOPIC_ALREADY_EXISTS}
        return response(
            topics=[
                response.Topics(name=topic.name, error_code=int(codes.get(topic.name, ErrorCode.NONE)))
                for topic in request.topics
            ]
        )

    broker.answers["CreateTopics"] = create

    async with connect("broker", dial=network.dial) as client:
        old, new = await client.admin.create_topics([NewTopic(name="orders"), NewTopic(name="new")])

    assert new.check() is new
    with pytest.raises(BrokerRefused, match="topic 'orders': TOPIC_ALREADY_EXISTS"):
        old.check()
