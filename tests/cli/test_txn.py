"""`rafka txn`: what an operator sees of transactions, and how they end those that do not end.

The broker lets in transactional batches unasked, as brokers did before Kafka 3.6: that is how
transactions come to hang.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

from rafka.cli import main
from rafka.errors import ErrorCode

from ..brokers import RafkaProcess
from ..wire_producer import WireProducer

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RafkaProcess]:
    env = {"RAFKA_TRANSACTION_PARTITION_VERIFICATION_ENABLE": "false", "RAFKA_STORAGE": "memory:"}
    with RafkaProcess(tmp_path_factory.mktemp("txn"), durability="page-cache", env=env) as process:
        yield process


class Rafka:
    """Runs `rafka` in this process, and producers beside it."""

    def __init__(
        self, broker: RafkaProcess, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._port = broker.port
        self._capfd = capfd
        monkeypatch.setenv("RAFKA_BOOTSTRAP", broker.bootstrap)

    def __call__(self, *words: str, code: int = 0) -> str:
        """What it prints; the exit code is checked."""
        found = main(words)
        sys.stdout.flush()
        out, err = self._capfd.readouterr()
        assert found == code, err
        return out or err

    def producing(self, name: str, act: Callable[[WireProducer], Awaitable[object]]) -> WireProducer:
        async def connect() -> trio.abc.Stream:
            return await trio.open_tcp_stream("127.0.0.1", self._port)

        async def whole() -> WireProducer:
            producer = WireProducer(connect, name)
            assert await producer.init() is ErrorCode.NONE
            await act(producer)
            await producer.wire.hang_up()
            return producer

        return trio.run(whole)


@pytest.fixture
def rafka(broker: RafkaProcess, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Rafka:
    return Rafka(broker, capfd, monkeypatch)


@pytest.fixture
def topic(rafka: Rafka, tmp_path: Path) -> str:
    name = tmp_path.name.replace("[", "-").replace("]", "")
    rafka("topic", "create", name, "-p", "2")
    return name


def open_in(topic: str) -> Callable[[WireProducer], Awaitable[object]]:
    async def act(producer: WireProducer) -> None:
        assert await producer.begin(topic, 0) is ErrorCode.NONE
        assert await producer.write(topic, b"a", b"b") is ErrorCode.NONE

    return act


def lost_in(topic: str) -> Callable[[WireProducer], Awaitable[object]]:
    """A batch of a transaction that its coordinator has not heard of."""

    async def act(producer: WireProducer) -> None:
        assert await producer.write(topic, b"lost") is ErrorCode.NONE

    return act


def test_transactions_are_listed_and_described(rafka: Rafka, topic: str) -> None:
    producer = rafka.producing(f"open-{topic}", open_in(topic))

    table = rafka("txn", "list", "--pattern", f".*{topic}", "--state", "Ongoing")
    [listed] = json.loads(rafka("txn", "list", "--producer-id", str(producer.producer_id), "--json"))
    described = rafka("txn", "describe", f"open-{topic}")
    [facts] = json.loads(rafka("txn", "describe", f"open-{topic}", "--json"))

    assert table.splitlines()[1].split()[0] == f"open-{topic}"
    assert (listed["state"], listed["transactional_id"]) == ("Ongoing", f"open-{topic}")
    assert f"{topic}-0" in described
    assert facts["partitions"] == [{"topic": topic, "partition": 0}]
    assert facts["timeout_ms"] == 60_000


def test_what_is_not_there_is_said(rafka: Rafka) -> None:
    assert "TRANSACTIONAL_ID_NOT_FOUND" in rafka("txn", "describe", "nobody", code=1)
    assert "Bogus" in rafka("txn", "list", "--state", "Bogus", code=2)
    assert "TRANSACTIONAL_ID_NOT_FOUND" in rafka("txn", "abort", "nobody", code=1)
    assert "name a transactional id" in rafka("txn", "abort", code=2)
    assert "name a transactional id" in rafka("txn", "abort", "x", "--topic", "t", code=2)


def test_producers_are_shown_with_what_they_have_open(rafka: Rafka, topic: str) -> None:
    producer = rafka.producing(f"open-{topic}", open_in(topic))

    table = rafka("txn", "producers", topic)
    [one] = json.loads(rafka("txn", "producers", topic, "--partition", "0", "--json"))

    assert str(producer.producer_id) in table
    assert (one["open_since_offset"], one["last_sequence"]) == (0, 1)
    assert json.loads(rafka("txn", "producers", topic, "--partition", "1", "--json")) == []


def test_an_id_is_taken_over_and_its_transaction_aborted(rafka: Rafka, topic: str) -> None:
    rafka.producing(f"open-{topic}", open_in(topic))

    said = rafka("txn", "abort", f"open-{topic}")

    assert "fenced" in said
    [facts] = json.loads(rafka("txn", "describe", f"open-{topic}", "--json"))
    assert (facts["state"], facts["producer_epoch"]) == ("Empty", 2)
    assert rafka("consume", topic, "-o", "beginning", "-e", "-q") == ""


def test_what_hangs_is_found_and_ended(rafka: Rafka, topic: str) -> None:
    producer = rafka.producing(f"lost-{topic}", lost_in(topic))
    quiet = rafka("txn", "hanging", "--topic", topic)

    found = rafka("txn", "hanging", "--topic", topic, "--longer-than", "0", code=1)
    missed = rafka("txn", "abort", "--topic", topic, "--partition", "0", "--start-offset", "9", code=1)
    ended = rafka("txn", "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")

    assert "no transaction hangs" in quiet, "it may be ended yet"
    assert str(producer.producer_id) in found
    assert "no open transaction" in missed
    assert "is aborted" in ended
    assert "no transaction hangs" in rafka("txn", "hanging", "--topic", topic, "--longer-than", "0")
