"""A member in the words of confluent-kafka (librdkafka)."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import Consumer

from ..vocabulary import CannotAsk
from .diary import Pen, Plan


def check(plan: Plan) -> None:
    """CannotAsk where librdkafka has no such member."""
    if plan.assignor == "sticky":
        raise CannotAsk("librdkafka has no eager sticky assignor")


def consume(plan: Plan, pen: Pen, stop: threading.Event) -> None:
    static = {} if plan.instance_id is None else {"group.instance.id": plan.instance_id}
    consumer = Consumer(
        {
            "bootstrap.servers": plan.bootstrap,
            "group.id": plan.group,
            "client.id": plan.name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            "session.timeout.ms": plan.session_ms,
            "heartbeat.interval.ms": plan.heartbeat_ms,
            "fetch.wait.max.ms": 100,
            "partition.assignment.strategy": plan.assignor,
        }
        | static
    )

    def assigned(_: Any, partitions: list[Any]) -> None:
        pen.assigned(partitions)

    def revoked(_: Any, partitions: list[Any]) -> None:
        pen.revoked(partitions)

    def lost(_: Any, partitions: list[Any]) -> None:
        pen.lost(partitions)

    try:
        consumer.subscribe([plan.topic], on_assign=assigned, on_revoke=revoked, on_lost=lost)
        while not stop.is_set():
            # One by one: a helping could hold records of what is revoked while it is gathered.
            record = consumer.poll(0.1)
            if record is not None and record.error() is None:
                pen.read(record.partition(), record.offset(), record.value())
    finally:
        pen.left()
        consumer.close()
