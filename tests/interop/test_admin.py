"""Topics, partitions, configurations and records, administered by every client."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.brokers import Broker

from .vocabulary import Client, Rec, Refused, numbered, read_all

UNKNOWN_TOPIC_OR_PARTITION, TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS, INVALID_CONFIG = 3, 36, 37, 40


def soon(what: Callable[[], bool], timeout: float = 10) -> bool:
    """Clients cache metadata, and Kafka itself tells it late: what was asked shows soon, not at once."""
    deadline = time.monotonic() + timeout
    while not (seen := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return seen


def test_a_topic_is_there_once_created_and_gone_once_deleted(
    broker: Broker, client: Client, name: str
) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=3)
        assert soon(lambda: name in admin.topics())
        assert admin.partitions(name) == 3

        admin.delete_topic(name)
        assert soon(lambda: name not in admin.topics())


def test_a_topic_cannot_be_created_twice(broker: Broker, client: Client, topic: str) -> None:
    with client.admin(broker.bootstrap) as admin, pytest.raises(Refused) as refused:
        admin.create_topic(topic)

    assert refused.value.code == TOPIC_ALREADY_EXISTS


def test_a_configuration_that_makes_no_sense_is_refused(broker: Broker, client: Client, name: str) -> None:
    with client.admin(broker.bootstrap) as admin, pytest.raises(Refused) as refused:
        admin.create_topic(name, config={"retention.ms": "soon"})

    assert refused.value.code == INVALID_CONFIG


def test_what_is_not_there_cannot_be_deleted(broker: Broker, client: Client, name: str) -> None:
    with client.admin(broker.bootstrap) as admin, pytest.raises(Refused) as refused:
        admin.delete_topic(name)

    assert refused.value.code == UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_topic_s_records_do_not_return_with_its_name(
    broker: Broker, client: Client, topic: str
) -> None:
    client.produce(broker.bootstrap, topic, numbered(5))

    with client.admin(broker.bootstrap) as admin:
        admin.delete_topic(topic)
        assert soon(lambda: topic not in admin.topics())
        admin.create_topic(topic)
        assert soon(lambda: topic in admin.topics())

    assert client.produce(broker.bootstrap, topic, [Rec(value=b"new")]) == [0]
    assert [record.value for record in read_all(client, broker.bootstrap, topic, 1)] == [b"new"]


def test_configurations_are_told_and_changed(broker: Broker, client: Client, name: str) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, config={"retention.ms": "3600000"})
        assert soon(lambda: name in admin.topics())
        told = admin.config(name)
        assert told["retention.ms"] == "3600000"
        assert told["cleanup.policy"] == "delete"

        admin.alter_config(name, {"retention.ms": "7200000", "max.message.bytes": "2000000"})

        assert soon(lambda: admin.config(name)["retention.ms"] == "7200000")
        assert admin.config(name)["max.message.bytes"] == "2000000"


def test_a_changed_limit_holds_for_the_next_message(broker: Broker, client: Client, topic: str) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.alter_config(topic, {"max.message.bytes": "1000"})
        assert soon(lambda: admin.config(topic)["max.message.bytes"] == "1000")

    with pytest.raises(Refused) as refused:
        client.produce(broker.bootstrap, topic, [Rec(value=bytes(2000))])

    assert refused.value.code == 10  # MESSAGE_TOO_LARGE


def test_partitions_are_added_and_never_taken_away(broker: Broker, client: Client, topic: str) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_partitions(topic, 4)
        assert soon(lambda: admin.partitions(topic) == 4)
        with pytest.raises(Refused) as refused:
            admin.create_partitions(topic, 2)

    assert refused.value.code == INVALID_PARTITIONS
    assert client.produce(broker.bootstrap, topic, [Rec(value=b"x")], partition=3) == [0]


def test_deleted_records_are_gone_and_the_rest_keeps_its_offsets(
    broker: Broker, client: Client, topic: str
) -> None:
    client.produce(broker.bootstrap, topic, numbered(100))

    with client.admin(broker.bootstrap) as admin:
        admin.delete_records(topic, before=40)
        assert admin.offsets(topic) == (40, 100)

    read = read_all(client, broker.bootstrap, topic, 60)
    assert [record.offset for record in read] == list(range(40, 100))


def test_the_cluster_tells_where_it_is(broker: Broker, client: Client) -> None:
    with client.admin(broker.bootstrap) as admin:
        brokers = admin.cluster()

    assert [f"{host}:{port}" for host, port in brokers] == [broker.bootstrap]
