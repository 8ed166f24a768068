"""A process of its own: whether it sends spans is for the OTEL_* variables to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

import pytest

from rafka.observe.exporting import _wanted
from tests.brokers import ROOT

# A broker that is asked for its cluster by a client in the same process. It tells, as its last line,
# whether it came across OpenTelemetry.
SERVING = """
import logging, os, sys, trio
logging.basicConfig(stream=sys.stderr)
from rafka.config import load
from rafka.observe.exporting import exporting
from rafka.ops.base import Envelope
from rafka.server import open_broker
from tests.gateway.kit import Client, cluster

async def main():
    config = load(flags=[("storage", "memory:", "")])
    async with open_broker(config, listen=False) as broker, trio.open_nursery() as nursery:
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(broker.serve_stream, theirs, Envelope(client_id="app"))
        client = Client(ours)
        await client.send(cluster())
        await client.frame()
        await ours.aclose()

import trio.testing
with exporting(os.environ):
    trio.run(main)
print("opentelemetry" in sys.modules)
"""


def serve(variables: Mapping[str, str], script: str = SERVING) -> tuple[list[str], str]:
    """The names of the spans that were written to the console, and what was said of it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    env |= {"PYTHONPATH": str(ROOT), **variables}
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=60)
    assert ran.returncode == 0, ran.stderr
    *spans, imported = ran.stdout.rstrip().rsplit("\n", 1)
    names = []
    at, text = 0, "".join(spans)
    while at < len(text):
        span, at = json.JSONDecoder().raw_decode(text, at)
        names.append(span["name"])
        assert span["resource"]["attributes"]["service.name"] == variables.get("OTEL_SERVICE_NAME", "rafka")
        at += len(text[at:]) - len(text[at:].lstrip())
    return names, f"{imported}\n{ran.stderr}"


def test_without_a_variable_opentelemetry_is_not_even_imported() -> None:
    names, said = serve({})

    assert (names, said) == ([], "False\n")


@pytest.mark.parametrize("service", [{}, {"OTEL_SERVICE_NAME": "orders"}], ids=["rafka", "a name of its own"])
def test_spans_go_where_the_variable_says(service: dict[str, str]) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the otel extra is not installed")

    names, _ = serve({"OTEL_TRACES_EXPORTER": "console", **service})

    assert sorted(names) == [
        "rafka.broker.cluster.describe-cluster",
        "rafka.gateway.kafka.describe-cluster",
    ]


def test_an_exporter_that_is_not_there_is_told_of_and_the_broker_serves() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the otel extra is not installed")

    names, said = serve({"OTEL_TRACES_EXPORTER": "carrier-pigeon"})

    assert names == []
    assert "carrier-pigeon" in said
    assert "rafka[otel]" in said


def test_without_the_extra_it_is_told_how_to_get_it() -> None:
    """As on a machine where nobody has installed OpenTelemetry."""
    hidden = "import sys; sys.modules['opentelemetry'] = None\n" + SERVING

    names, said = serve({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, hidden)

    assert names == []
    assert "rafka[otel]" in said


def test_a_tracer_that_the_program_configured_is_used_and_left_alone() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the otel extra is not installed")
    configured = """
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider(resource=Resource.create({"service.name": "rafka"}))
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
trace.set_tracer_provider(provider)
"""

    names, _ = serve({"OTEL_TRACES_EXPORTER": "carrier-pigeon"}, configured + SERVING)

    assert len(names) == 2


@pytest.mark.parametrize(
    ("variables", "exporters"),
    [
        ({}, []),
        ({"OTEL_TRACES_EXPORTER": "none"}, []),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, []),
        ({"OTEL_TRACES_EXPORTER": ""}, []),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ["otlp_proto_http"]),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ["console", "otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ["otlp_proto_http"]),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ["otlp_proto_http"]),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            ["otlp_proto_grpc"],
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"}, []),
        ({"OTEL_SERVICE_NAME": "rafka"}, []),
    ],
)
def test_variables_mean_what_opentelemetry_says(variables: dict[str, str], exporters: list[str]) -> None:
    assert _wanted(variables) == exporters
