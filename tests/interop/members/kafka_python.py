"""A member in the words of kafka-python 2.2, 2.3 and 3.0."""

from __future__ import annotations

import importlib
import threading
import time
from typing import Any, Final

import kafka
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaConnectionError

from ..kafka_python import VERSION
from ..vocabulary import CannotAsk
from .diary import Pen, Plan

# kafka-python 3.0 forgets an assignment whose SyncGroup is answered after the poll that asked for it has
# ended: then it is a member that reads nothing. So a poll of its is long enough for a rebalance, or for two
# where it has nothing yet: a poll ends with the first records.
POLL_MS: Final = 1000 if VERSION >= (3, 0) else 100
FIRST_POLL_MS: Final = 5000 if VERSION >= (3, 0) else 100
HOME: Final = "kafka.coordinator.assignors."
ASSIGNORS: Final = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}


def assignor_called(name: str) -> Any:
    module, kind = ASSIGNORS[name]
    try:
        return getattr(importlib.import_module(HOME + module), kind)
    except ImportError:
        raise CannotAsk(f"kafka-python {kafka.__version__} has no {name} assignor") from None


def check(plan: Plan) -> None:
    """CannotAsk where this release has no such member."""
    assignor_called(plan.assignor)
    if plan.instance_id is not None and "group_instance_id" not in KafkaConsumer.DEFAULT_CONFIG:
        raise CannotAsk(f"kafka-python {kafka.__version__} has no static members")


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, pen: Pen) -> None:
        self.pen = pen

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.pen.revoked(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.pen.assigned(assigned)

    def on_partitions_lost(self, lost: Any) -> None:
        self.pen.lost(lost)


def consume(plan: Plan, pen: Pen, stop: threading.Event) -> None:
    static = {} if plan.instance_id is None else {"group_instance_id": plan.instance_id}
    consumer = KafkaConsumer(
        bootstrap_servers=plan.bootstrap,
        group_id=plan.group,
        client_id=plan.name,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
        session_timeout_ms=plan.session_ms,
        heartbeat_interval_ms=plan.heartbeat_ms,
        fetch_max_wait_ms=100,
        partition_assignment_strategy=[assignor_called(plan.assignor)],
        **static,
    )
    try:
        consumer.subscribe([plan.topic], listener=Listener(pen))
        while not stop.is_set():
            for record in polled(consumer):
                pen.read(record.partition, record.offset, record.value)
    finally:
        pen.left()
        consumer.close()


def polled(consumer: Any) -> list[Any]:
    """The next records. Where nobody listens, kafka-python 3.0 may raise, and one tries again."""
    patience = POLL_MS if consumer.assignment() else FIRST_POLL_MS
    try:
        return [record for records in consumer.poll(timeout_ms=patience).values() for record in records]
    except KafkaConnectionError:
        time.sleep(0.1)
        return []
