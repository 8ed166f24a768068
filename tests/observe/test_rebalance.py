"""What is seen of a group that forms: its member waits, and a generation is complete."""

from __future__ import annotations

import pytest
import trio
import trio.testing

pytest.importorskip("opentelemetry.sdk", reason="the otel extra is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rafka import server
from rafka.config import load
from rafka.observe.spans import Spans
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.sync_group import SYNC_GROUP

from ..gateway.group_kit import ask, joining, syncing
from ..gateway.kit import Client


async def test_a_group_that_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(server, "current_spans", lambda: Spans(provider.get_tracer("test")))
    config = load(flags=[("storage", "memory:", "")])

    async with server.open_broker(config, listen=False) as broker, trio.open_nursery() as nursery:
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(broker.serve_stream, theirs)
        client = Client(ours)
        joined = await ask(client, JOIN_GROUP, 3, joining(rebalance_timeout_ms=60_000))
        part = SYNC_GROUP.Request.Assignments(member_id=joined.member_id, assignment=b"all")
        await ask(client, SYNC_GROUP, 3, syncing(member_id=joined.member_id, assignments=[part]))
        await ours.aclose()

    assert joined.error_code == 0
    found = {span.name: span for span in exporter.get_finished_spans()}
    assert set(found) == {
        *(f"rafka.{side}.group.{what}" for side in ("gateway", "broker") for what in ("join", "sync")),
        "rafka.broker.coordinator.rebalance-complete",
    }
    complete = found["rafka.broker.coordinator.rebalance-complete"].attributes or {}
    assert (complete["group"], complete["members"], complete["generation_id"]) == ("g", 1, 1)
    assert complete["leader_id"] == joined.member_id
