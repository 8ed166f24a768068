"""A gateway and a broker that are processes of their own, with a socket between them: one trace."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

pytest.importorskip("opentelemetry.sdk", reason="the otel extra is not installed")

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rafka import apart, server
from rafka.config import load
from rafka.observe.spans import Spans
from rafka.ops.base import Envelope

from ..gateway.kit import Client, cluster


async def test_each_request_of_a_connection_is_a_trace_that_crosses_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {server: InMemorySpanExporter(), apart: InMemorySpanExporter()}
    for end, exporter in ends.items():
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        spans = Spans(provider.get_tracer("test"))
        monkeypatch.setattr(end, "current_spans", lambda spans=spans: spans)
    config = load(flags=[("storage", "memory:", ""), ("link", f"unix:{tmp_path}/link", "")])

    async with (
        server.open_broker(config, listen=False),
        apart.open_gateway(config, listen=False) as gateway,
        trio.open_nursery() as nursery,
    ):
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(gateway.serve_stream, theirs, Envelope(client_id="app"))
        client = Client(ours)
        for number in range(3):
            await client.send(cluster(number))
            assert await client.correlation_id() == number
        await ours.aclose()

    above, below = (ends[end].get_finished_spans() for end in (apart, server))
    assert [span.name for span in above] == ["rafka.gateway.kafka.describe-cluster"] * 3
    assert [span.name for span in below] == ["rafka.broker.cluster.describe-cluster"] * 3
    traces = []
    for gateway_span, broker_span in zip(above, below, strict=True):
        root = gateway_span.get_span_context()
        assert root is not None
        assert broker_span.parent is not None
        assert (broker_span.parent.trace_id, broker_span.parent.span_id) == (root.trace_id, root.span_id)
        traces.append(root.trace_id)
    assert len(set(traces)) == 3
