"""Spans around ops, in the gateway and in the broker, and for a rebalance that is done.

A link is put into another one that makes a span around each op: from its being asked to
its reply, the waiting included. The gateway's span is the root, since Kafka's requests
carry no context; it crosses to the broker in the envelope, where the broker's becomes
its child, in whichever process that is.

What an op is about stands in attributes that OpenTelemetry has names for. An error that
Kafka has a code for is an answer like any other: its name is `error.type`, and only
mistakes of our own make a span one that failed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from ..errors import ErrorCode, KafkaError
from ..link import Link
from ..ops.base import Envelope, Later, Op, R
from ..ops.group import Rebalance
from ..types import OrgId
from .names import BROKER, GATEWAY, REBALANCE_COMPLETE, span_name

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, Tracer

SCOPE: Final = "rafka"
_NS_PER_MS: Final = 1_000_000
_ERRORS: Final = {int(code): code.name for code in ErrorCode}


class Spans:
    """Makes spans with a tracer. Where there is none there is no `Spans` either."""

    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import SpanKind

        self._tracer = tracer
        self._no_context = Context()
        self._kinds = {GATEWAY: SpanKind.SERVER, BROKER: SpanKind.INTERNAL}

    def around(self, link: Link, side: str) -> Link:
        """The same link with a span around each op. `side` is GATEWAY or BROKER."""
        return _SpannedLink(self._tracer, link, side, self._kinds[side], self._no_context)

    def local(self, name: str, envelope: Envelope) -> AbstractContextManager[Span]:
        """A span around what the gateway answers alone."""
        kind = self._kinds[GATEWAY]
        return self._tracer.start_as_current_span(name, self._no_context, kind, _about(envelope))

    def rebalance_complete(self, group: tuple[OrgId, str], rebalance: Rebalance) -> None:
        """A generation has formed: a span from when the rebalance began until then."""
        if rebalance.generation_id < 0:
            return  # overtaken by another before it came so far
        began_ms, took_ms = rebalance.began_ms, rebalance.join_ms
        span = self._tracer.start_span(
            REBALANCE_COMPLETE,
            self._no_context,
            self._kinds[BROKER],
            {
                "group": group[1],
                "generation_id": rebalance.generation_id,
                "leader_id": rebalance.leader,
                "members": rebalance.members_after,
                "took": took_ms / 1000,
                "trigger": rebalance.trigger,
                "outcome": rebalance.outcome,
            },
            start_time=began_ms * _NS_PER_MS,
        )
        span.end((began_ms + took_ms) * _NS_PER_MS)


def current_spans() -> Spans | None:
    """With the tracer that this process is configured with; None where it has none.

    A process that nobody has brought OpenTelemetry into has no tracer, and is not made
    to import it for the sake of finding that out.
    """
    if "opentelemetry.trace" not in sys.modules and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
        return None
    return Spans(provider.get_tracer(SCOPE))


class _SpannedLink:
    """As `link.Link`."""

    def __init__(self, tracer: Tracer, inner: Link, side: str, kind: SpanKind, no_context: Context) -> None:
        self._start = tracer.start_span
        self._inner = inner
        self._side = side
        self._kind = kind
        self._no_context = no_context
        self._names: dict[type[Op[Any]], str] = {}

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        above = envelope.trace
        parent = _context_of(above) if above else self._no_context
        span = self._start(self._name(type(op)), parent, self._kind, _about(envelope, op))
        envelope.trace = _traceparent(span)
        try:
            answer = self._inner.ask(envelope, op)
        except BaseException as error:
            _end(span, error=error)
            raise
        finally:
            envelope.trace = above
        if isinstance(answer, Later):
            return _Spanned(span, answer)
        _end(span, answer)
        return answer

    def keep(self) -> None:
        self._inner.keep()

    def _name(self, op: type[Op[Any]]) -> str:
        name = self._names.get(op)
        if name is None:
            name = self._names[op] = span_name(self._side, op)
        return name


class _Spanned(Later[R]):
    """The span ends when the reply comes."""

    __slots__ = ("_later", "_span")

    def __init__(self, span: Span, later: Later[R]) -> None:
        self._span = span
        self._later = later
        self.overlaps = later.overlaps

    def ready(self) -> bool:
        return self._later.ready()

    async def wait(self) -> R:
        try:
            reply = await self._later.wait()
        except BaseException as error:
            _end(self._span, error=error)
            raise
        _end(self._span, reply)
        return reply

    def ring(self, bell: Callable[[], None]) -> bool:
        return self._later.ring(bell)

    def take(self) -> R:
        try:
            reply = self._later.take()
        except BaseException as error:
            _end(self._span, error=error)
            raise
        _end(self._span, reply)
        return reply

    def forget(self) -> None:
        self._later.forget()
        self._span.set_attribute("error.type", "Cancelled")
        self._span.end()


def _about(envelope: Envelope, op: Op[Any] | None = None) -> dict[str, str]:
    about = {
        "messaging.system": "kafka",
        "messaging.client.id": envelope.client_id,
        "client.address": envelope.client_host.removeprefix("/"),
    }
    if group := getattr(op, "group_id", ""):
        about["messaging.consumer.group.name"] = group
    return about


def _end(span: Span, reply: object = None, error: BaseException | None = None) -> None:
    code = error.code if isinstance(error, KafkaError) else getattr(reply, "error_code", ErrorCode.NONE)
    if code:
        span.set_attribute("error.type", _ERRORS.get(code, str(code)))
    elif error is not None:
        span.set_attribute("error.type", type(error).__name__)
    if code == ErrorCode.UNKNOWN_SERVER_ERROR or (isinstance(error, Exception) and not code):
        from opentelemetry.trace import StatusCode

        span.set_status(StatusCode.ERROR)
    span.end()


# --- context ------------------------------------------------------------------------------


def _traceparent(span: Span) -> str:
    """As W3C's Trace Context writes it."""
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def _context_of(traceparent: str) -> Context:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})
