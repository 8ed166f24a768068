"""The broker ends between two requests, kindly or not: data, offsets and ids survive it."""

from __future__ import annotations

import pytest

from tests.brokers import RafkaProcess

from .vocabulary import Client, contents, numbered, read_all


@pytest.fixture(params=["a kind stop", "kill -9"])
def broken(request: pytest.FixtureRequest, own_broker: RafkaProcess) -> object:
    """What ends the broker and brings it back."""
    if request.param == "a kind stop":
        return own_broker.restart

    def kill_and_start() -> None:
        own_broker.kill()
        own_broker.start()

    return kill_and_start


def test_records_configs_and_offsets_are_there_after(
    own_broker: RafkaProcess, client: Client, broken: object, name: str
) -> None:
    assert callable(broken)
    with client.admin(own_broker.bootstrap) as admin:
        admin.create_topic(name, partitions=2, config={"retention.ms": "3600000"})
    sent = numbered(300)
    client.produce(own_broker.bootstrap, name, sent[:200], codec="lz4")

    broken()

    assert client.produce(own_broker.bootstrap, name, sent[200:], idempotent=True) == list(range(200, 300))
    read = read_all(client, own_broker.bootstrap, name, 300)
    assert list(contents(read)) == list(contents(sent))
    with client.admin(own_broker.bootstrap) as admin:
        assert admin.partitions(name) == 2
        assert admin.config(name)["retention.ms"] == "3600000"
        assert admin.offsets(name) == (0, 300)


def test_deleted_records_and_topics_do_not_come_back(
    own_broker: RafkaProcess, client: Client, broken: object, name: str
) -> None:
    assert callable(broken)
    with client.admin(own_broker.bootstrap) as admin:
        admin.create_topic(name)
        admin.create_topic(f"{name}-gone")
    client.produce(own_broker.bootstrap, name, numbered(50))
    client.produce(own_broker.bootstrap, f"{name}-gone", numbered(5))
    with client.admin(own_broker.bootstrap) as admin:
        admin.delete_records(name, before=20)
        admin.delete_topic(f"{name}-gone")

    broken()

    with client.admin(own_broker.bootstrap) as admin:
        assert admin.offsets(name) == (20, 50)
        assert f"{name}-gone" not in admin.topics()


def test_an_open_reader_goes_on_after_the_broker_is_back(
    own_broker: RafkaProcess, client: Client, broken: object, name: str
) -> None:
    assert callable(broken)
    with client.admin(own_broker.bootstrap) as admin:
        admin.create_topic(name)
    sent = numbered(40)
    client.produce(own_broker.bootstrap, name, sent[:20])

    with client.reader(own_broker.bootstrap, name) as reader:
        before = reader.read(20)
        broken()
        client.produce(own_broker.bootstrap, name, sent[20:])
        after = reader.read(20)

    assert list(contents(before + after)) == list(contents(sent))
