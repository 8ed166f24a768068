"""A connection matches answers to questions, stays in step, and fails with a reason."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from rafka.client.connection import Connection, open_connection
from rafka.client.errors import (
    ConnectionLost,
    NotWritable,
    ProtocolMismatch,
    RequestTimedOut,
    UnsupportedVersion,
)
from rafka.client.messages import ApiVersions, InitProducerId, Metadata
from rafka.client.messages.cluster import WantedTopic
from rafka.wire.apis.api_versions import API_VERSIONS
from rafka.wire.apis.init_producer_id import INIT_PRODUCER_ID
from rafka.wire.apis.metadata import METADATA

from .scripted import Network, ScriptedBroker


async def to(network: Network, broker: ScriptedBroker) -> Connection:
    stream = await network.dial(broker.address)
    return await open_connection(network.nursery, stream, "broker 1", client_id="test", within=10)


def about(topic: str) -> Metadata:
    return Metadata(topics=[WantedTopic(name=topic)])


async def test_the_newest_version_that_both_speak_is_sent(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.versions[METADATA.key] = (4, 9)

    connection = await to(network, broker)
    await connection.ask(about("orders"), within=10)

    assert broker.asked[-1][:2] == ("Metadata", 9)


async def test_a_broker_that_refuses_our_api_versions_is_asked_in_its_own_version(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.versions[API_VERSIONS.key] = (0, 2)

    connection = await to(network, broker)

    assert broker.asked == [("ApiVersions", 2, broker.asked[0][2])]
    assert connection.versions is not None
    assert connection.versions.choose(ApiVersions) == 2


async def test_a_broker_that_is_too_old_is_named_with_what_it_speaks(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.versions[METADATA.key] = (0, 3)
    broker.versions[INIT_PRODUCER_ID.key] = (0, -1)

    connection = await to(network, broker)

    with pytest.raises(UnsupportedVersion, match="versions 0 to 3 of Metadata, and 4 to 13 are needed"):
        await connection.ask(about("orders"), within=10, at_least=4)
    with pytest.raises(UnsupportedVersion, match="does not offer InitProducerId"):
        await connection.ask(InitProducerId(), within=10)


@pytest.mark.parametrize("name", ["\udcff", "x" * 40_000], ids=["no text", "too long"])
async def test_what_has_no_form_in_the_protocol_is_an_error_of_that_question_alone(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker, name: str
) -> None:
    broker.versions[METADATA.key] = (0, 8)  # where the length of a name has two bytes
    connection = await to(network, broker)

    with pytest.raises(NotWritable, match="Metadata request"):
        await connection.ask(about(name), within=10)
    reply = await connection.ask(about("orders"), within=10)

    assert [topic.name for topic in reply.topics] == ["orders"]


async def test_questions_are_pipelined_and_each_gets_its_own_answer(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.topics = {f"t{i}": i + 1 for i in range(20)}
    connection = await to(network, broker)
    found: dict[int, int] = {}

    async def ask(i: int) -> None:
        reply = await connection.ask(about(f"t{i}"), within=10)
        found[i] = len(reply.topics[0].partitions)

    async with trio.open_nursery() as nursery:
        for i in range(20):
            nursery.start_soon(ask, i)

    assert found == {i: i + 1 for i in range(20)}


async def test_who_gives_up_an_answer_leaves_the_connection_in_step(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    slow = trio.Event()
    broker.answers["InitProducerId"] = lambda request, version: slow
    connection = await to(network, broker)

    with trio.move_on_after(1) as given_up:
        await connection.ask(InitProducerId(), within=60)
    slow.set()
    reply = await connection.ask(about("orders"), within=10)

    assert given_up.cancelled_caught
    assert reply.topics[0].name == "orders"
    assert connection.error is None


async def test_an_answer_that_does_not_come_closes_the_connection(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.swallow.append("Metadata")
    connection = await to(network, broker)

    with pytest.raises(RequestTimedOut, match="broker 1 did not answer Metadata within 10 s"):
        await connection.ask(about("orders"), within=10)
    with pytest.raises(RequestTimedOut):
        await connection.ask(about("orders"), within=10)

    assert trio.current_time() == pytest.approx(10, abs=0.1)


async def test_all_who_wait_learn_that_the_broker_hung_up(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.close_on.append("Metadata")
    connection = await to(network, broker)
    reasons: list[str] = []

    async def ask() -> None:
        with pytest.raises(ConnectionLost) as caught:
            await connection.ask(about("orders"), within=10)
        reasons.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        nursery.start_soon(ask)

    assert reasons == ["broker 1 closed the connection"] * 2


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not seem to speak Kafka's protocol"),
        (b"\x15\x03\x03\0\x02\x02\x46", "it speaks TLS"),
        (b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (b"\0\0\0\x04\0\0\0\x63", "a question that was not asked"),
        (b"\0\0\0\x06\0\0\0\x01\0\0", "cannot be read"),
    ],
)
async def test_what_does_not_speak_kafka_is_called_so(sent: bytes, said: str, nursery: trio.Nursery) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(sent)
    await theirs.send_eof()

    with pytest.raises((ProtocolMismatch, ConnectionLost)) as caught:
        await open_connection(nursery, ours, "web:80", client_id="test", within=10)

    assert said in str(caught.value)


async def test_a_question_without_an_answer_is_done_when_it_is_sent(
    network: Network, autojump_clock: MockClock, broker: ScriptedBroker
) -> None:
    broker.answers["InitProducerId"] = lambda request, version: None
    connection = await to(network, broker)

    pending: Any = connection.post(InitProducerId(), answered=False)
    await pending.sent()
    await connection.ask(about("orders"), within=10)

    assert broker.names() == ["ApiVersions", "InitProducerId", "Metadata"]
