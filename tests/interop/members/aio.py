"""A member in the words of aiokafka."""

from __future__ import annotations

import asyncio
import importlib
import threading
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener

from ..vocabulary import CannotAsk
from .diary import Pen, Plan

HOME: Final = "aiokafka.coordinator.assignors."
ASSIGNORS: Final = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
}


def check(plan: Plan) -> None:
    """CannotAsk where aiokafka has no such member."""
    if plan.assignor not in ASSIGNORS:
        raise CannotAsk(f"aiokafka has no {plan.assignor} assignor")


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, pen: Pen) -> None:
        self.pen = pen

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.pen.revoked(revoked)

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.pen.assigned(assigned)


def consume(plan: Plan, pen: Pen, stop: threading.Event) -> None:
    asyncio.run(_consume(plan, pen, stop))


async def _consume(plan: Plan, pen: Pen, stop: threading.Event) -> None:
    module, kind = ASSIGNORS[plan.assignor]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=plan.bootstrap,
        group_id=plan.group,
        client_id=plan.name,
        group_instance_id=plan.instance_id,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=200,
        session_timeout_ms=plan.session_ms,
        heartbeat_interval_ms=plan.heartbeat_ms,
        fetch_max_wait_ms=100,
        partition_assignment_strategy=(getattr(importlib.import_module(HOME + module), kind),),
    )
    consumer.subscribe([plan.topic], listener=Listener(pen))
    await consumer.start()
    try:
        while not stop.is_set():
            for records in (await consumer.getmany(timeout_ms=100)).values():
                for record in records:
                    pen.read(record.partition, record.offset, record.value)
    finally:
        pen.left()
        await consumer.stop()
