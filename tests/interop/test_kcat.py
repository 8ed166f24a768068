"""kcat, the librdkafka of some years ago: its version levels are older than those of the Python clients."""

from __future__ import annotations

import json
import shutil
import subprocess
import uuid

import pytest

from tests.brokers import Broker

from .vocabulary import CODECS

pytestmark = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


def kcat(broker: Broker, *args: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["kcat", "-b", broker.bootstrap, *args], input=stdin, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture
def written(broker: Broker) -> str:
    """A topic that kcat itself brought about by writing to it."""
    name = f"kcat-{uuid.uuid4().hex[:8]}"
    kcat(broker, "-P", "-t", name, "-K:", stdin=b"a:1\nb:2\nc:3\n")
    return name


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("acks", ["1", "all"])
def test_keys_values_and_headers_come_back(broker: Broker, written: str, codec: str, acks: str) -> None:
    options = ["-K:", "-z", codec, "-X", f"acks={acks}", "-H", "from=kcat", "-Z"]

    kcat(broker, "-P", "-t", written, *options, stdin=b"x:10\ny:\n")

    read = kcat(broker, "-C", "-t", written, "-o", "3", "-e", "-q", "-Z", "-K:", "-f", "%o %k %s %h\n")
    assert read == b"3 x 10 from=kcat\n4 y NULL from=kcat\n"


@pytest.mark.parametrize(
    ("start", "values"), [("beginning", b"1\n2\n3\n"), ("1", b"2\n3\n"), ("-1", b"3\n"), ("end", b"")]
)
def test_reading_begins_where_it_is_told_to(broker: Broker, written: str, start: str, values: bytes) -> None:
    assert kcat(broker, "-C", "-t", written, "-p", "0", "-o", start, "-e", "-q") == values


def test_an_idempotent_kcat_writes_once(broker: Broker, written: str) -> None:
    kcat(broker, "-P", "-t", written, "-X", "enable.idempotence=true", stdin=b"4\n5\n")

    assert kcat(broker, "-C", "-t", written, "-o", "3", "-e", "-q") == b"4\n5\n"


def test_metadata_and_offsets_are_told(broker: Broker, written: str) -> None:
    told = json.loads(kcat(broker, "-L", "-J", "-t", written))

    assert [node["name"] for node in told["brokers"]] == [broker.bootstrap]
    assert [topic["topic"] for topic in told["topics"]] == [written]
    assert kcat(broker, "-Q", "-t", f"{written}:0:-1").strip() == f"{written} [0] offset 3".encode()
