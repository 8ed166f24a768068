"""Clients that go on through every crash, and write down what they were told.

All are librdkafka's, each in a thread of its own. What they do while the broker is away is what
they do in production: they reconnect, and the idempotent ones send again what was not answered.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from .history import History, value_of

confluent_kafka: Any = pytest.importorskip("confluent_kafka")
confluent_admin: Any = pytest.importorskip("confluent_kafka.admin")

RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "log_level": 0}


def consumer_of(bootstrap: str) -> Any:
    return confluent_kafka.Consumer(
        RECONNECT
        | {
            "bootstrap.servers": bootstrap,
            "group.id": f"unused-{uuid.uuid4().hex[:8]}",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
        }
    )


def create_topic(
    bootstrap: str,
    name: str,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    timeout: float = 20,
) -> None:
    wanted = confluent_admin.NewTopic(name, partitions, 1, config=dict(config or {}))
    client = admin(bootstrap)
    client.create_topics([wanted], request_timeout=timeout)[name].result(timeout + 1)


def delete_topic(bootstrap: str, name: str, timeout: float = 20) -> None:
    client = admin(bootstrap)
    client.delete_topics([name], request_timeout=timeout)[name].result(timeout + 1)


def topics_of(bootstrap: str) -> set[str]:
    return set(admin(bootstrap).list_topics(timeout=20).topics)


def admin(bootstrap: str) -> Any:
    """To be held on to until its futures have answered: it takes them with it."""
    return confluent_admin.AdminClient(RECONNECT | {"bootstrap.servers": bootstrap})


def send(bootstrap: str, topic: str, values: Sequence[bytes], timeout: float = 20) -> int:
    """Send to partition 0 with acks=all and no second attempt: 0, or the first error's code."""
    settings = {"bootstrap.servers": bootstrap, "acks": "all", "message.send.max.retries": 0}
    patience = {"message.timeout.ms": int(timeout * 1000)}
    client = confluent_kafka.Producer(RECONNECT | settings | patience)
    codes: list[int] = []
    for value in values:
        client.produce(topic, value, partition=0, on_delivery=lambda e, _: codes.append(e.code() if e else 0))
    client.flush(timeout + 5)
    assert len(codes) == len(values), "a record was neither taken nor refused"
    return next((code for code in codes if code), 0)


def send_and_wait(bootstrap: str, topic: str, count: int) -> int:
    """Send so many records to partition 0, each acknowledged by all: how many were."""
    return 0 if send(bootstrap, topic, [value_of("waited", i) for i in range(count)]) else count


@contextmanager
def in_background(work: Any) -> Iterator[None]:
    """Run `work(stop)` in a thread; leaving the block sets `stop` and raises what it raised."""
    stop = threading.Event()
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work(stop)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
    if failed:
        raise failed[0]
    assert not thread.is_alive(), "a client does not end"


def producer(
    bootstrap: str, topic: str, partitions: int, history: History, *, idempotent: bool, rate: float
) -> Any:
    """Idempotent with acks=all, or plain with acks=1 and never a second attempt."""
    name = ("once" if idempotent else "plain") + uuid.uuid4().hex[:6]
    if idempotent:
        history.once.add(name)
        how = {"enable.idempotence": True, "acks": "all", "retry.backoff.ms": 20}
    else:
        how = {"acks": "1", "message.send.max.retries": 0}
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 2, "message.timeout.ms": 120_000}

    def run(stop: threading.Event) -> None:
        client = confluent_kafka.Producer(RECONNECT | settings | how)
        due = time.monotonic()
        sequence = 0

        def on_delivery(error: Any, message: Any) -> None:
            if error is None:
                history.was_acked(message.value(), message.partition(), message.offset())

        while not stop.is_set():
            value = value_of(name, sequence)
            history.will_send(value)
            try:
                client.produce(topic, value, partition=sequence % partitions, on_delivery=on_delivery)
                sequence += 1
            except BufferError:
                pass  # a long outage: the client holds as much as it can
            due = max(due + 1 / rate, time.monotonic() - 0.1)
            client.poll(max(0.0, due - time.monotonic()))
        client.flush(20)

    return run


def reader(bootstrap: str, topic: str, partitions: int, history: History) -> Any:
    """Reads everything, from the beginning, and must see each partition's offsets grow by one."""

    def run(stop: threading.Event) -> None:
        client = consumer_of(bootstrap)
        places = [confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)]
        client.assign(places)
        following = dict.fromkeys(range(partitions), 0)
        try:
            while not stop.is_set():
                for message in client.consume(500, timeout=0.05):
                    if message.error() is None:
                        partition, offset = message.partition(), message.offset()
                        if offset != following[partition]:
                            told = f"L9 read {offset} where {following[partition]} comes next"
                            history.at_once.append(told)
                        following[partition] = offset + 1
                        history.was_read(partition, offset, message.value())
                    elif message.error().code() == confluent_kafka.KafkaError._AUTO_OFFSET_RESET:
                        history.at_once.append(f"L3 the reader's place is gone: {message.error()}")
                        return
        finally:
            client.close()

    return run


@contextmanager
def load(
    bootstrap: str, topic: str, partitions: int, history: History, *, plain: bool = True, rate: float = 400
) -> Iterator[None]:
    """Two idempotent producers, one plain one if asked for, one reader."""
    with ExitStack() as running:
        for idempotent in (True, True, False) if plain else (True, True):
            work = producer(bootstrap, topic, partitions, history, idempotent=idempotent, rate=rate)
            running.enter_context(in_background(work))
        running.enter_context(in_background(reader(bootstrap, topic, partitions, history)))
        yield


def log_of(
    bootstrap: str, topic: str, partition: int, start: int, until: int, timeout: float = 30
) -> list[tuple[int, bytes]]:
    """What a fresh consumer reads from `start` up to `until`, or as much of it as there is."""
    client = consumer_of(bootstrap)
    found: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + timeout
    try:
        client.assign([confluent_kafka.TopicPartition(topic, partition, start)])
        while (found[-1][0] + 1 if found else start) < until and time.monotonic() < deadline:
            for message in client.consume(1000, timeout=0.1):
                if message.error() is None:
                    found.append((message.offset(), message.value()))
                elif not message.error().retriable():
                    return found
    finally:
        client.close()
    return [(offset, value) for offset, value in found if offset < until]
