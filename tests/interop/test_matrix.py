"""Every client, every codec, every acks: what one writes, all can read."""

from __future__ import annotations

import pytest

from tests.brokers import Broker

from .vocabulary import ACKS, CODECS, Client, contents, numbered, read_all


@pytest.mark.parametrize("codec", CODECS)
def test_what_one_client_writes_the_other_reads(
    broker: Broker, client: Client, other: Client, codec: str, name: str
) -> None:
    client.check_codec(codec)
    other.check_codec(codec)
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=len(ACKS))
    sent = numbered(60, size=300)

    for partition, acks in enumerate(ACKS):
        offsets = client.produce(broker.bootstrap, name, sent, partition=partition, codec=codec, acks=acks)

        read = read_all(other, broker.bootstrap, name, len(sent), partition=partition)
        assert list(contents(read)) == list(contents(sent)), f"acks={acks}"
        assert [record.offset for record in read] == list(range(len(sent)))
        if acks != "0":
            assert offsets == list(range(len(sent)))


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_an_idempotent_producer_writes_each_record_once(
    broker: Broker, client: Client, topic: str, codec: str
) -> None:
    sent = numbered(2_000)

    first = client.produce(broker.bootstrap, topic, sent, codec=codec, idempotent=True)
    again = client.produce(broker.bootstrap, topic, sent, codec=codec, idempotent=True)

    assert first + again == list(range(4_000))
    read = read_all(client, broker.bootstrap, topic, 4_000)
    assert list(contents(read)) == list(contents(sent + sent))
