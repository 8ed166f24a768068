"""kafka-python's own command-line tools, as somebody at a prompt would use them.

Only what needs no group: `kafka.consumer` subscribes without one, which takes no coordinator.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import uuid
from typing import Any

import pytest

from tests.brokers import Broker

kafka = pytest.importorskip("kafka")
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("kafka.cli") is None,
    reason="this kafka-python has no command-line tools (2.3 and later have)",
)


def tool(module: str, broker: Broker, *args: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"kafka.{module}", "-b", broker.bootstrap, *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def admin(broker: Broker, *args: str) -> Any:
    return json.loads(tool("admin", broker, "--format", "json", *args))


@pytest.fixture
def name(broker: Broker) -> str:
    name = f"cli-{uuid.uuid4().hex[:8]}"
    shape = ("--num-partitions", "2", "--replication-factor", "1")
    tool("admin", broker, "topics", "create", "-t", name, *shape)
    return name


@pytest.mark.skipif(
    kafka.__version__ < "3", reason="the console consumer of kafka-python 2 insists on a group"
)
def test_what_is_typed_into_the_producer_comes_out_of_the_consumer(broker: Broker, name: str) -> None:
    tool("producer", broker, "-t", name, stdin="one\ntwo\nthree\n")

    options = ["-C", "auto_offset_reset=earliest", "-C", "consumer_timeout_ms=2000"]
    assert sorted(tool("consumer", broker, "-t", name, *options).split()) == ["one", "three", "two"]


def test_topics_are_listed_described_and_deleted(broker: Broker, name: str) -> None:
    assert name in str(admin(broker, "topics", "list"))
    (described,) = admin(broker, "topics", "describe", "-t", name)
    assert described.get("name", described.get("topic")) == name  # by that word in 2.3
    assert len(described["partitions"]) == 2

    tool("admin", broker, "topics", "delete", "-t", name)

    assert name not in str(admin(broker, "topics", "list"))


def test_the_cluster_is_described(broker: Broker) -> None:
    told = admin(broker, "cluster", "describe")

    assert [f"{node['host']}:{node['port']}" for node in told["brokers"]] == [broker.bootstrap]
    assert told["cluster_id"]
