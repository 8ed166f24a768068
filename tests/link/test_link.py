"""The link between gateway and broker: whatever has a route has somebody to answer it."""

from __future__ import annotations

import pytest

from rafka.broker.broker import Broker
from rafka.errors import ErrorCode, KafkaError
from rafka.gateway.routes import ROUTES
from rafka.link import Link
from rafka.ops import cluster, topics
from rafka.ops.base import Envelope, Later

from ..broker.kit import open_world


async def test_a_broker_is_a_link() -> None:
    async with open_world() as world:
        link: Link = world.broker

        reply = link.ask(Envelope(), cluster.DescribeCluster())

        assert not isinstance(reply, Later)
        assert reply.cluster_id == world.topics.catalog.cluster_id


async def test_every_op_that_has_a_route_has_a_handler_and_no_handler_is_without_a_route() -> None:
    async with open_world() as world:
        handled = set(world.broker._handlers)

    assert handled == {route.op for route in ROUTES.values() if route.op is not None}


async def test_what_is_refused_is_a_reply() -> None:
    """`ask` never raises for what a client did."""
    async with open_world() as world:
        answer_with(world.broker, KafkaError(ErrorCode.POLICY_VIOLATION, "not that"))

        reply = await world.ask(cluster.DescribeCluster())

    assert (reply.error_code, reply.error_message) == (ErrorCode.POLICY_VIOLATION, "not that")


async def test_a_mistake_of_ours_is_a_reply_and_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with open_world() as world:
        answer_with(world.broker, RuntimeError("a mistake of ours"))

        reply = await world.ask(cluster.DescribeCluster())

    assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert caplog.records[0].exc_info is not None


async def test_what_the_keeper_decides_comes_later_and_holds_up_what_follows() -> None:
    async with open_world() as world:
        op = topics.CreateTopics(topics=[topics.NewTopic(name="t", num_partitions=1, replication_factor=1)])

        answer = world.answer(op)

        assert isinstance(answer, Later)
        assert not answer.overlaps
        assert (await answer.wait()).topics[0].error_code == 0


def answer_with(broker: Broker, error: Exception) -> None:
    """Have the broker stumble when it describes the cluster."""

    def stumble(*_: object) -> object:
        raise error

    broker._handlers[cluster.DescribeCluster] = stumble
