"""Clients of gateways whose broker is another process: they notice nothing, or that they have to try again.

A part of what the other files ask, always in this shape; RAFKA_TEST_SHAPE=apart runs all of them so.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import EXTERNAL, RafkaApart, knows_a_broker

from .conftest import client_called
from .vocabulary import Client, contents, numbered, read_all


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RafkaApart]:
    if EXTERNAL:
        pytest.skip(f"{EXTERNAL} has no gateways")
    with RafkaApart(tmp_path_factory.mktemp("apart")) as processes:
        yield processes


def test_records_and_configs_pass_through_a_gateway(apart: RafkaApart, client: Client, name: str) -> None:
    with client.admin(apart.bootstrap) as admin:
        admin.create_topic(name, partitions=3, config={"retention.ms": "3600000"})
        sent = numbered(500, size=2000)

        offsets = client.produce(apart.bootstrap, name, sent, partition=2, idempotent=True)

        assert offsets == list(range(500))
        with client.reader(apart.bootstrap, name, partition=2) as reader:
            assert list(contents(reader.read(500))) == list(contents(sent))
        assert admin.partitions(name) == 3
        assert admin.config(name)["retention.ms"] == "3600000"
        assert admin.offsets(name, 2) == (0, 500)


def test_a_reader_goes_on_after_its_gateway_has_lost_the_broker(
    apart: RafkaApart, client: Client, name: str
) -> None:
    """kill -9 of the broker: the gateway stays, and nobody's connection to it breaks."""
    with client.admin(apart.bootstrap) as admin:
        admin.create_topic(name)
    sent = numbered(40)
    client.produce(apart.bootstrap, name, sent[:20])

    with client.reader(apart.bootstrap, name) as reader:
        before = reader.read(20)
        apart.kill()
        apart.start()
        client.produce(apart.bootstrap, name, sent[20:])
        after = reader.read(20)

    assert list(contents(before + after)) == list(contents(sent))


@pytest.fixture
def second_gateway(apart: RafkaApart, tmp_path: Path) -> Iterator[str]:
    """Where a second gateway of the same broker listens."""
    command = [sys.executable, "-m", "rafka", "gateway", "--link", apart.link, "--listen", "127.0.0.1:0"]
    port_file = tmp_path / "port"
    with apart.launched(*command, "--port-file", str(port_file)) as gateway:
        while not port_file.exists():
            with pytest.raises(subprocess.TimeoutExpired):  # it is there still
                gateway.wait(0.05)
        port = int(port_file.read_text())
        assert knows_a_broker(port)
        yield f"127.0.0.1:{port}"


def test_what_came_through_one_gateway_is_read_through_another(
    apart: RafkaApart, second_gateway: str, client: Client, name: str
) -> None:
    with client.admin(apart.bootstrap) as admin, client.admin(second_gateway) as elsewhere:
        admin.create_topic(name)
        sent = numbered(100)
        client.produce(apart.bootstrap, name, sent)

        assert list(contents(read_all(client, second_gateway, name, 100))) == list(contents(sent))
        assert name in elsewhere.topics()
        # Each gateway tells its clients its own address: so they stay with it.
        assert [f"{host}:{port}" for host, port in elsewhere.cluster()] == [second_gateway]
        assert [f"{host}:{port}" for host, port in admin.cluster()] == [apart.bootstrap]


@pytest.mark.parametrize("dies", ["the broker", "the gateway"])
def test_members_of_a_group_go_on_without_a_rebalance(apart: RafkaApart, name: str, dies: str) -> None:
    """kill -9 of either: the group is in the journal, and its members come back in time."""
    kafka = pytest.importorskip("kafka")
    client = client_called("kafka")
    with client.admin(apart.bootstrap) as admin:
        admin.create_topic(name, partitions=2)
    client.produce(apart.bootstrap, name, numbered(20))
    options = {
        "bootstrap_servers": apart.bootstrap,
        "group_id": f"group of {name}",
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 15_000,
        "heartbeat_interval_ms": 500,
    }
    with contextlib.ExitStack() as closing:
        members = [kafka.KafkaConsumer(name, **options) for _ in range(2)]
        for member in members:
            closing.callback(member.close)
        read = poll_until(members, lambda read: len(read) == 20 and all(m.assignment() for m in members))
        before = [generation(member) for member in members]

        if dies == "the broker":
            apart.kill()
            apart.start()
        else:
            apart.replace_gateway()
        client.produce(apart.bootstrap, name, numbered(20, start=20))
        read += poll_until(members, lambda read: len(read) == 20)
        for member in members:
            member.commit()
        after = [generation(member) for member in members]

    assert sorted(read) == sorted(record.value for record in numbered(40) if record.value)
    assert after == before
    assert before[0] == before[1]


def generation(member: Any) -> int:
    number: int = member._coordinator._generation.generation_id
    return number


def poll_until(members: list[Any], enough: Callable[[list[bytes]], bool]) -> list[bytes]:
    """The values that the members read, in whatever order."""
    read: list[bytes] = []
    deadline = time.monotonic() + 30
    while not enough(read):
        assert time.monotonic() < deadline, f"only {len(read)} records came"
        for member in members:
            # Not shorter: kafka-python 3 may forget an assignment that comes after its poll has ended.
            for records in member.poll(timeout_ms=1000).values():
                read += [record.value for record in records]
    return read
