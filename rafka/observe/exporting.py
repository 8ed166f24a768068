"""Sending spans where the OTEL_* variables say, for a process that is rafka's own.

A program that has a broker inside configures OpenTelemetry as it likes, and so does
`opentelemetry-instrument`; only a process that nobody has configured does it here. The
variables mean what OpenTelemetry says they mean. Spans are sent if one of them names
where to: OTEL_TRACES_EXPORTER, or an endpoint of OTLP's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger(__name__)

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
OTLP: Final = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
EXPORTERS: Final = "opentelemetry_traces_exporter"  # where packages say which exporters they bring


class NoExporter(Exception):
    """What is missing, and what to do about it."""


@contextmanager
def exporting(environ: Mapping[str, str]) -> Iterator[None]:
    """Spans that are made inside the block are sent, the last ones at its end."""
    provider = _set_up(environ)
    try:
        yield
    finally:
        if provider is not None:
            provider.shutdown()


def _set_up(environ: Mapping[str, str]) -> TracerProvider | None:
    wanted = _wanted(environ)
    if not wanted:
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            return None  # somebody else has configured it
        exporters = [_exporter(name)() for name in wanted]
    except (ImportError, NoExporter) as missing:
        log.warning("spans are not sent, though OTEL_* variables ask for it: %s (try rafka[otel])", missing)
        return None
    named = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    provider = TracerProvider(resource=Resource.create({} if named else {"service.name": "rafka"}))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider


def _wanted(environ: Mapping[str, str]) -> list[str]:
    """The names of the exporters that the environment asks for."""
    if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return []
    named = environ.get("OTEL_TRACES_EXPORTER") or ("otlp" if _first(environ, ENDPOINTS) else "none")
    names = [name.strip() for name in named.split(",")]
    protocol = _first(environ, PROTOCOLS) or "http/protobuf"
    return [OTLP.get(protocol, protocol) if name == "otlp" else name for name in names if name != "none"]


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _exporter(name: str) -> Any:
    from importlib.metadata import entry_points

    for found in entry_points(group=EXPORTERS, name=name):
        return found.load()
    raise NoExporter(f"no package here has an exporter called {name!r}")
