"""What a record may hold: nothing, much, headers, and a time of its own."""

from __future__ import annotations

import time

import pytest

from tests.brokers import Broker

from .vocabulary import Client, Rec, Refused, contents, numbered, read_all

MINUTE = 60_000


def test_null_and_empty_keys_and_values_stay_what_they_are(
    broker: Broker, client: Client, other: Client, topic: str
) -> None:
    sent = [
        Rec(key=None, value=b"no key"),
        Rec(key=b"", value=b"an empty key"),
        Rec(key=b"no value", value=None),
        Rec(key=b"an empty value", value=b""),
        Rec(key=b"\0\xff", value=bytes(range(256))),
    ]

    client.produce(broker.bootstrap, topic, sent)

    read = read_all(other, broker.bootstrap, topic, len(sent))
    assert list(contents(read)) == list(contents(sent))


def test_headers_come_back_in_order_with_repeats_and_bytes(
    broker: Broker, client: Client, other: Client, topic: str
) -> None:
    headers = (
        ("trace", b"1"),
        ("trace", b"2"),
        ("empty", b""),
        ("näme", "wért".encode()),
        ("raw", b"\0\xfe"),
    )
    sent = [Rec(key=b"k", value=b"v", headers=headers), Rec(key=b"k", value=b"without")]

    client.produce(broker.bootstrap, topic, sent, codec="gzip")

    read = read_all(other, broker.bootstrap, topic, 2)
    assert [record.headers for record in read] == [headers, ()]


def test_create_time_is_the_producer_s(broker: Broker, client: Client, topic: str) -> None:
    now = int(time.time() * 1000)
    sent = [Rec(key=None, value=b"x", timestamp=now - age * MINUTE) for age in (5, 1, 3)]

    client.produce(broker.bootstrap, topic, sent)

    read = read_all(client, broker.bootstrap, topic, 3)
    assert [record.timestamp for record in read] == [record.timestamp for record in sent]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_append_time_is_the_broker_s(broker: Broker, client: Client, name: str, codec: str) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, config={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)

    client.produce(broker.bootstrap, name, [Rec(value=b"x", timestamp=before - MINUTE)] * 3, codec=codec)

    read = read_all(client, broker.bootstrap, name, 3)
    after = int(time.time() * 1000)
    assert all(record.timestamp is not None and before <= record.timestamp <= after for record in read)


def test_a_topic_with_a_codec_of_its_own_keeps_the_records(
    broker: Broker, client: Client, other: Client, name: str
) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, config={"compression.type": "gzip"})
    sent = numbered(50, size=200)

    client.produce(broker.bootstrap, name, sent, codec="lz4")

    read = read_all(other, broker.bootstrap, name, len(sent))
    assert list(contents(read)) == list(contents(sent))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_ten_megabytes_pass_where_the_topic_allows(
    broker: Broker, client: Client, name: str, codec: str
) -> None:
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, config={"max.message.bytes": str(12 << 20)})
    large = Rec(key=b"large", value=bytes(range(250)) * 40_000)

    client.produce(broker.bootstrap, name, [large, Rec(value=b"after")], codec=codec)

    read = read_all(client, broker.bootstrap, name, 2)
    assert [record.value for record in read] == [large.value, b"after"]


def test_a_message_larger_than_the_topic_allows_is_refused(
    broker: Broker, client: Client, topic: str
) -> None:
    with pytest.raises(Refused) as refused:
        client.produce(broker.bootstrap, topic, [Rec(value=bytes(2 << 20))])

    assert refused.value.code == 10  # MESSAGE_TOO_LARGE
    client.produce(broker.bootstrap, topic, [Rec(value=b"small")])
    assert [record.value for record in read_all(client, broker.bootstrap, topic, 1)] == [b"small"]
