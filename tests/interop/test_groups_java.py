"""Kafka's own console consumer as a member of groups, and its own group command looking after them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest

from tests.brokers import Broker

from . import java
from .conftest import client_called
from .members.admin import group_admin
from .members.group import Company
from .members.load import Load
from .vocabulary import numbered

PARTITIONS = 4
ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


@pytest.fixture
def topic(broker: Broker, name: str) -> str:
    java.script()
    with client_called("kafka").admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=PARTITIONS)
    return name


def options(company: Company) -> list[str]:
    properties = {
        "group.protocol": "classic",
        "client.id": "java",
        "auto.commit.interval.ms": "200",
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "150",
        "partition.assignment.strategy": ASSIGNORS[company.plan.assignor],
    }
    words = ["--bootstrap-server", company.plan.bootstrap, "--topic", company.plan.topic]
    words += ["--group", company.plan.group, "--from-beginning"]
    return words + [
        word for key, value in properties.items() for word in ("--command-property", f"{key}={value}")
    ]


class Printed:
    """What a process printed so far, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self.process = process
        threading.Thread(target=self._copy, daemon=True).start()

    def _copy(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))


@pytest.mark.parametrize(
    "assignor",
    [one if one == "cooperative-sticky" else pytest.param(one, marks=pytest.mark.slow) for one in ASSIGNORS],
)
def test_kafkas_console_consumer_shares_a_group_with_other_clients(
    broker: Broker, topic: str, assignor: str
) -> None:
    company = Company(broker.bootstrap, f"of {topic}", topic, assignor=assignor)
    with (
        company,
        Load(broker.bootstrap, topic, PARTITIONS) as load,
        group_admin("kafka", broker.bootstrap) as admin,
        java.running(java.CONSOLE_CONSUMER, *options(company)) as process,
    ):
        javas = Printed(process)
        company.until("java to read", lambda: bool(javas.lines), within=java.PATIENCE)
        company.join("rafka")

        def shared() -> bool:
            shares = admin.describe(company.plan.group).shares
            everything = sorted(at for share in shares.values() for at in share)
            return len(shares) == 2 and all(shares.values()) and everything == list(range(PARTITIONS))

        company.until("java to share", shared)
        company.until("java to have told the other", lambda: bool(company.diary.values()))
        process.terminate()
        company.until_shared(PARTITIONS)
        written = load.stop()
        company.until("all to be read", lambda: written <= company.diary.values() | set(javas.lines))
        company.leave()

    company.diary.check()
    assert company.diary.values() | set(javas.lines) == written
    if assignor != "cooperative-sticky":  # by which java reads on after its last commit, with any broker
        assert not company.diary.values() & set(javas.lines)


@pytest.fixture
def company(broker: Broker, topic: str) -> Iterator[Company]:
    """Two members who have read ten records of each partition, and committed them."""
    client = client_called("kafka")
    for partition in range(PARTITIONS):
        client.produce(broker.bootstrap, topic, numbered(10), partition=partition)
    # A name without a blank: the tables are read word by word.
    with Company(broker.bootstrap, f"of-{topic}", topic) as company:
        company.join("kafka")
        company.join("rafka")
        company.until_shared(PARTITIONS)
        company.until("all to be read", lambda: len(company.diary.read_places()) == PARTITIONS * 10)
        with group_admin("kafka", broker.bootstrap) as admin:
            company.until(
                "all to be committed",
                lambda: sum(admin.offsets(company.plan.group).values()) == PARTITIONS * 10,
            )
        yield company


def command(company: Company, *words: str) -> tuple[str, ...]:
    return (java.GROUP_COMMAND, "--bootstrap-server", company.plan.bootstrap, *words)


def test_kafkas_group_command_shows_members_and_offsets(company: Company) -> None:
    describe = ("--describe", "--group", company.plan.group)
    members, offsets = java.run(
        command(company, *describe, "--members", "--verbose"), command(company, *describe, "--offsets")
    )

    shares = company.diary.shares()
    assert {row[3]: row[4] for row in rows(members)} == {name: str(len(own)) for name, own in shares.items()}
    owners = {int(row[2]): row[8] for row in rows(offsets)}
    assert owners == {partition: name for name, own in shares.items() for partition in own}
    assert {tuple(row[3:6]) for row in rows(offsets)} == {("10", "10", "0")}


@pytest.mark.slow
def test_kafkas_group_command_lists_moves_and_deletes_groups(broker: Broker, company: Company) -> None:
    group, topic = company.plan.group, company.plan.topic
    listed, states = java.run(
        command(company, "--list", "--state", "--type"),
        command(company, "--describe", "--group", group, "--state"),
    )
    assert [group, "Classic", "Stable"] in rows(listed)
    ((named, where, _node, assignor, state, count),) = rows(states)
    assert (named, where, assignor, state, count) == (group, broker.bootstrap, "range", "Stable", "2")

    company.leave()
    reset = ("--reset-offsets", "--group", group, "--to-offset", "3", "--execute")
    java.run(
        command(company, *reset, "--topic", f"{topic}:1,2,3"),
        command(company, "--delete-offsets", "--group", group, "--topic", f"{topic}:0"),
    )
    with group_admin("kafka", broker.bootstrap) as admin:
        assert admin.offsets(group) == {1: 3, 2: 3, 3: 3}
        java.run(command(company, "--delete", "--group", group))
        assert group not in admin.groups()


def rows(table: str) -> list[list[str]]:
    """What stands below the head of a table of Kafka's, word by word."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    return lines[next(at for at, words in enumerate(lines) if words[0] == "GROUP") + 1 :]
