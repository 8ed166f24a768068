"""Transactions of real clients: what is committed is read, what is aborted never; pipelines lose nothing."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest

from tests.brokers import ROOT, Broker, RafkaProcess

from .conftest import CHOSEN, client_called
from .transacting.pipeline import Stage, fill, run_pipeline
from .transacting.vocabulary import Fenced, Library, library_called, transformed
from .vocabulary import Client

PARTITIONS = 3
JAVA_TOOL = ROOT.parent / "shared" / "peer" / "apache-kafka"


@pytest.fixture(params=CHOSEN)
def library(request: pytest.FixtureRequest) -> Library:
    return library_called(request.param)


@pytest.fixture(params=CHOSEN)
def library_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    library_called(name)
    return name


@pytest.fixture
def maker() -> Client:
    """Whoever is there makes the topics."""
    return client_called(CHOSEN[0])


@pytest.fixture
def topic_of_three(broker: Broker, maker: Client, name: str) -> str:
    with maker.admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=PARTITIONS)
    return name


def settled(library: Library, broker: Broker, topic: str, count: int) -> list[bytes]:
    """What is read once it is there: a commit is answered when it is decided, and seen a moment later."""
    deadline = time.monotonic() + 10
    while True:
        read = library.read_committed(broker.bootstrap, topic, PARTITIONS)
        if len(read) >= count or time.monotonic() > deadline:
            return sorted(read)
        time.sleep(0.05)


@pytest.mark.parametrize("reading", CHOSEN)
def test_what_one_client_commits_any_other_reads_and_what_it_aborts_none(
    broker: Broker, library: Library, reading: str, topic_of_three: str
) -> None:
    topic = topic_of_three
    sent: list[bytes] = []
    with library.producer(broker.bootstrap, f"x-{topic}") as producer:
        for number in range(12):
            producer.begin()
            values = [b"%d-%d" % (number, p) for p in range(PARTITIONS)]
            for partition, value in enumerate(values):
                producer.send(topic, value, partition)
            if number % 3 == 2:
                producer.abort()
            else:
                producer.commit()
                sent += values

    assert settled(library_called(reading), broker, topic, len(sent)) == sorted(sent)


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    broker: Broker, library: Library, topic_of_three: str
) -> None:
    topic, group = topic_of_three, f"g-{topic_of_three}"
    with library.producer(broker.bootstrap, f"x-{topic}") as producer:
        producer.begin()
        producer.send(topic, b"a", 0)
        producer.send_offsets(topic, {0: 7, 1: 8}, group)
        producer.commit()
        producer.begin()
        producer.send(topic, b"b", 0)
        producer.send_offsets(topic, {0: 70}, group)
        producer.abort()

    assert library.committed_offset(broker.bootstrap, group, topic, 0) == 7
    assert library.committed_offset(broker.bootstrap, group, topic, 1) == 8
    assert library.committed_offset(broker.bootstrap, group, topic, 2) is None


def test_who_takes_an_id_over_ends_the_transaction_of_who_had_it(
    broker: Broker, library: Library, topic_of_three: str
) -> None:
    topic = topic_of_three
    with library.producer(broker.bootstrap, f"x-{topic}") as old:
        old.begin()
        old.send(topic, b"old", 0)
        with library.producer(broker.bootstrap, f"x-{topic}") as new:
            new.begin()
            new.send(topic, b"new", 0)
            new.commit()
        with pytest.raises(Fenced):
            old.commit()

    assert settled(library, broker, topic, 1) == [b"new"]


def test_a_broker_that_is_killed_keeps_what_it_committed_and_finishes_what_it_decided(
    own_broker: RafkaProcess, library: Library, maker: Client, name: str
) -> None:
    with maker.admin(own_broker.bootstrap) as admin:
        admin.create_topic(name, partitions=PARTITIONS)
    with library.producer(own_broker.bootstrap, f"x-{name}") as producer:
        for number in range(10):
            producer.begin()
            for partition in range(PARTITIONS):
                producer.send(name, b"%d" % number, partition)
            producer.commit()
            if number == 4:
                own_broker.kill()
                own_broker.start()

    sent = sorted(b"%d" % number for number in range(10) for _ in range(PARTITIONS))
    assert settled(library, own_broker, name, len(sent)) == sent


def test_a_pipeline_whose_workers_are_killed_writes_everything_once(
    broker: Broker, library_name: str, maker: Client, name: str
) -> None:
    """Through three topics, by two stages of workers that are killed without a word."""
    _through_three_topics(broker, library_name, maker, name, records=3_000, kills=4)


@pytest.mark.slow
def test_a_long_pipeline_whose_workers_are_killed_writes_everything_once(
    broker: Broker, maker: Client, name: str
) -> None:
    _through_three_topics(broker, "confluent_kafka", maker, name, records=100_000, kills=25)


def _through_three_topics(
    broker: Broker, library_name: str, maker: Client, name: str, *, records: int, kills: int
) -> None:
    topics = [f"{name}-{letter}" for letter in "abc"]
    with maker.admin(broker.bootstrap) as admin:
        for topic in topics:
            admin.create_topic(topic, partitions=PARTITIONS)
    library = library_called(library_name)
    filling = threading.Thread(target=fill, args=(library, broker.bootstrap, topics[0], PARTITIONS, records))
    filling.start()
    stages = [
        Stage(library_name, source, target, f"{name}-{target}", 2 if library.KNOWS_GENERATIONS else 1)
        for source, target in itertools.pairwise(topics)
    ]

    def arrived() -> list[bytes]:
        return library.read_committed(broker.bootstrap, topics[-1], PARTITIONS)

    out = run_pipeline(broker.bootstrap, stages, arrived, records, kills)
    filling.join(60)

    assert not filling.is_alive()
    assert sorted(out) == sorted(transformed(transformed(b"%d" % n)) for n in range(records))


def test_the_java_client_speaks_the_later_generation(broker: Broker, topic_of_three: str) -> None:
    if not JAVA_TOOL.exists() or shutil.which("java") is None:
        pytest.skip(f"no java, or no Kafka tools at {JAVA_TOOL}")
    command = [
        *(str(JAVA_TOOL), "tool", "org.apache.kafka.tools.ProducerPerformance"),
        *("--topic", topic_of_three, "--num-records", "2000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", f"java-{topic_of_three}"),
        *("--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap}"),
    ]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=Path("/tmp"))

    assert ran.returncode == 0, ran.stdout + ran.stderr
    library = library_called(CHOSEN[0])
    assert len(settled(library, broker, topic_of_three, 2000)) == 2000
