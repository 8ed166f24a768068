"""Where a consumer may begin, and what it sees while others go on writing."""

from __future__ import annotations

import threading
import time

import pytest

from tests.brokers import Broker

from .vocabulary import Client, Rec, contents, numbered, read_all

SECOND = 1000


def test_reading_from_the_middle_gives_the_rest(broker: Broker, client: Client, topic: str) -> None:
    sent = numbered(500)
    client.produce(broker.bootstrap, topic, sent, codec="gzip")  # few batches: the middle lies inside one

    read = read_all(client, broker.bootstrap, topic, 123, start=377)

    assert [record.offset for record in read] == list(range(377, 500))
    assert list(contents(read)) == list(contents(sent[377:]))


def test_reading_from_the_end_gives_only_what_comes_later(
    broker: Broker, client: Client, other: Client, topic: str
) -> None:
    client.produce(broker.bootstrap, topic, numbered(10))

    with other.reader(broker.bootstrap, topic, start="end") as reader:
        assert reader.read(1, timeout=0.5) == []
        client.produce(broker.bootstrap, topic, [Rec(value=b"new")])
        read = reader.read(1)

    assert [(record.offset, record.value) for record in read] == [(10, b"new")]


def test_a_timestamp_finds_the_first_record_not_older(broker: Broker, client: Client, topic: str) -> None:
    base = int(time.time() * 1000) - 100 * SECOND
    for batch in range(4):
        sent = [Rec(value=b"%d" % i, timestamp=base + i * SECOND) for i in range(batch * 10, batch * 10 + 10)]
        client.produce(broker.bootstrap, topic, sent)

    found = [client.offset_at(broker.bootstrap, topic, base + ms) for ms in (-5_000, 0, 1, 14_000, 38_500)]

    assert found == [0, 0, 1, 14, 39]
    # Past the last record Kafka says -1; clients make of it "none" or the log's end.
    assert client.offset_at(broker.bootstrap, topic, base + 40_000) in (None, 40)


def test_a_reader_follows_a_writer(broker: Broker, client: Client, other: Client, topic: str) -> None:
    rounds, each = 10, 50

    def write() -> None:
        for i in range(rounds):
            client.produce(broker.bootstrap, topic, numbered(each, start=i * each), acks="1")

    with other.reader(broker.bootstrap, topic) as reader:
        writer = threading.Thread(target=write)
        writer.start()
        read = reader.read(rounds * each)
        writer.join()

    assert [record.offset for record in read] == list(range(rounds * each))
    assert list(contents(read)) == list(contents(numbered(rounds * each)))


@pytest.mark.parametrize("size", [10, 1000])
def test_thousands_of_small_messages_arrive_in_order(
    broker: Broker, client: Client, topic: str, size: int
) -> None:
    sent = numbered(10_000, size=size)

    offsets = client.produce(broker.bootstrap, topic, sent)

    assert offsets == list(range(len(sent)))
    read = read_all(client, broker.bootstrap, topic, len(sent))
    assert list(contents(read)) == list(contents(sent))


def test_partitions_keep_to_themselves(broker: Broker, client: Client, name: str) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=3)

    for partition in (2, 0):
        client.produce(broker.bootstrap, name, [Rec(value=b"in %d" % partition)], partition=partition)

    with client.admin(broker.bootstrap) as admin:
        assert [admin.offsets(name, partition) for partition in range(3)] == [(0, 1), (0, 0), (0, 1)]
    read = read_all(client, broker.bootstrap, name, 1, partition=2)
    assert [record.value for record in read] == [b"in 2"]
