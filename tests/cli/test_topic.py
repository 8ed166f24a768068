"""The commands against a real broker: RAFKA_TEST_BOOTSTRAP=host:port says which."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator

import pytest

from rafka.cli import main

BOOTSTRAP = os.environ.get("RAFKA_TEST_BOOTSTRAP", "")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not BOOTSTRAP, reason="RAFKA_TEST_BOOTSTRAP names no broker"),
]


class Shell:
    """Runs `rafka` in this process."""

    def __init__(self, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capture = capfdbinary
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: bytes = b"", code: int = 0) -> str:
        """What it prints; the exit code is checked."""
        self._monkeypatch.setenv("RAFKA_BOOTSTRAP", BOOTSTRAP)
        with tempfile.TemporaryFile() as typed:
            typed.write(stdin)
            typed.seek(0)
            self._monkeypatch.setattr(sys, "stdin", typed)
            found = main(words)
        sys.stdout.flush()
        out, err = self._capture.readouterr()
        assert found == code, err.decode()
        return (out or err).decode()


@pytest.fixture
def rafka(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capfdbinary, monkeypatch)


@pytest.fixture
def topic(rafka: Shell) -> Iterator[str]:
    name = f"cli-{uuid.uuid4().hex[:12]}"
    rafka("topic", "create", name, "-p", "2")
    yield name
    rafka("topic", "delete", name, "--if-exists")


def test_a_topic_is_made_shown_altered_and_deleted(rafka: Shell, topic: str) -> None:
    assert topic in rafka("topic", "list").splitlines()
    assert "TOPIC_ALREADY_EXISTS" in rafka("topic", "create", topic, code=1)
    assert rafka("topic", "create", topic, "--if-not-exists") == f"{topic}: there already\n"

    rafka("topic", "alter", topic, "-p", "3", "-c", "retention.ms=3600000")
    [shown] = json.loads(rafka("topic", "describe", topic, "--json"))
    assert (shown["name"], len(shown["partitions"])) == (topic, 3)
    assert shown["configs"] == {"retention.ms": "3600000"}
    assert "PARTITION  LEADER" in rafka("topic", "describe", topic)

    rafka("topic", "alter", topic, "--delete-config", "retention.ms")
    assert json.loads(rafka("topic", "describe", topic, "--json"))[0]["configs"] == {}

    assert rafka("topic", "delete", topic) == f"{topic}: deleted\n"
    assert "does not exist" in rafka("topic", "delete", topic, code=1)


def test_validating_makes_nothing(rafka: Shell) -> None:
    name = f"cli-{uuid.uuid4().hex[:12]}"

    assert rafka("topic", "create", name, "--validate-only") == f"{name}: could be created\n"
    assert "INVALID_CONFIG" in rafka("topic", "create", name, "-c", "no.such=1", code=1)
    assert name not in rafka("topic", "list").splitlines()


def test_records_go_in_and_come_out(rafka: Shell, topic: str) -> None:
    rafka("produce", topic, "-K", ":", "-H", "h=x", "-p", "1", "-Z", stdin=b"a:1\nb:2\nc:\n")

    assert (
        rafka("consume", topic, "-f", "%p %o %k %s %S %h\\n")
        == "1 0 a 1 1 h=x\n1 1 b 2 1 h=x\n1 2 c  -1 h=x\n"
    )
    assert rafka("consume", topic, "-o", "-1", "-K", "=") == "c=\n"
    assert rafka("consume", topic, "-o", "1", "-c", "1") == "2\n"
    assert rafka("consume", topic, "-o", "end") == ""
    assert rafka("topic", "offsets", topic).split()[3:] == [topic, "0", "0", topic, "1", "3"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_json_goes_round_in_every_codec(rafka: Shell, topic: str, codec: str) -> None:
    rafka("produce", topic, "-k", "k", stdin=b"1\n2\n")
    first = rafka("consume", topic, "--json")

    rafka("produce", topic, "--json", "-z", codec, stdin=first.encode())
    both = [json.loads(line) for line in rafka("consume", topic, "--json").splitlines()]

    assert [one["value"] for one in both] == ["1", "2", "1", "2"]
    assert both[0]["timestamp"] == both[2]["timestamp"]


def test_records_are_deleted_up_to_an_offset(rafka: Shell, topic: str) -> None:
    rafka("produce", topic, "-p", "0", stdin=b"1\n2\n3\n")

    rafka("topic", "delete-records", topic, "--before", "2", "-p", "0")

    assert rafka("consume", topic) == "3\n"
    earliest = json.loads(rafka("topic", "offsets", topic, "--time", "earliest", "--json"))
    assert [one["offset"] for one in earliest] == [2, 0]


def test_a_topic_or_partition_that_is_not_there(rafka: Shell, topic: str) -> None:
    assert "does not exist" in rafka("consume", f"{topic}-no", code=1)
    assert "has 2 partitions, there is no partition 7" in rafka("consume", topic, "-p", "7", code=1)
    assert "has 2 partitions" in rafka("produce", topic, "-p", "7", stdin=b"x\n", code=1)


def test_the_cluster(rafka: Shell) -> None:
    info = json.loads(rafka("cluster", "info", "--json"))
    apis = json.loads(rafka("cluster", "api-versions", "--json"))["apis"]

    assert info["brokers"]
    assert {"key": 18, "name": "ApiVersions"}.items() <= next(one for one in apis if one["key"] == 18).items()
    assert all(one["name"] for one in apis)


def test_benches_print_kafkas_sentences(rafka: Shell, topic: str) -> None:
    produced = rafka("bench", "produce", "--topic", topic, "--num-records", "2000", "--progress", "0")
    consumed = rafka("bench", "consume", "--topic", topic, "--num-records", "2000", "--progress", "0")
    there_and_back = rafka("bench", "e2e", "--topic", topic, "--num-records", "20", "--progress", "0")

    assert produced.startswith("2000 records sent, ")
    assert produced.endswith(" ms 99.9th.\n")
    assert consumed.splitlines()[1].split(", ")[4] == "2000"
    assert "Percentiles: 50th = " in there_and_back
