"""A member in the words of rafka's own client."""

from __future__ import annotations

import threading

import trio

from rafka.client import Beginning, GroupConsumer, RebalanceListener, TopicPartition, connect

from ..vocabulary import CannotAsk
from .diary import Pen, Plan


def check(plan: Plan) -> None:
    """CannotAsk where rafka's client has no such member."""
    if plan.assignor not in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        raise CannotAsk(f"rafka's client has no {plan.assignor} assignor")


class Listener(RebalanceListener):
    def __init__(self, pen: Pen) -> None:
        self.pen = pen

    async def on_assigned(self, targets: frozenset[TopicPartition]) -> None:
        self.pen.assigned(targets)

    async def on_revoked(self, targets: frozenset[TopicPartition]) -> None:
        self.pen.revoked(targets)

    async def on_lost(self, targets: frozenset[TopicPartition]) -> None:
        self.pen.lost(targets)


def consume(plan: Plan, pen: Pen, stop: threading.Event) -> None:
    trio.run(_consume, plan, pen, stop)


async def _consume(plan: Plan, pen: Pen, stop: threading.Event) -> None:
    async with (
        connect(plan.bootstrap, client_id=plan.name) as client,
        client.group_consumer(
            plan.group,
            [plan.topic],
            listener=Listener(pen),
            instance_id=plan.instance_id,
            assignors=[plan.assignor],
            session_timeout=plan.session_timeout,
            heartbeat_interval=plan.heartbeat_interval,
            auto_commit_interval=0.2,
            start=Beginning(),
        ) as consumer,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_read, consumer, pen)
        try:
            while not stop.is_set():  # noqa: ASYNC110  another thread sets it
                await trio.sleep(0.05)
        finally:
            nursery.cancel_scope.cancel()
            pen.left()


async def _read(consumer: GroupConsumer, pen: Pen) -> None:
    async for record in consumer:
        pen.read(record.partition, record.offset, record.value or b"")
