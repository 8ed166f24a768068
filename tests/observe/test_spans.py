"""Spans from gateway to broker: who is whose child, what they tell, and when they end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing

pytest.importorskip("opentelemetry.sdk", reason="the otel extra is not installed")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from rafka.errors import ErrorCode, KafkaError
from rafka.gateway.server import Gateway
from rafka.observe.names import BROKER
from rafka.observe.spans import Spans
from rafka.ops import cluster, group, log
from rafka.ops.base import Envelope, Later
from rafka.types import DEFAULT_ORG
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR

from ..gateway.kit import Gate, ScriptedLink, World, config, produce, request, written
from ..gateway.kit import cluster as cluster_request

BEAT = group.Heartbeat(group_id="g", generation_id=1, member_id="ann")


def here() -> Envelope:
    return Envelope(client_id="app", client_host="/10.0.0.9", host="broker", port=9092)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Spans:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Spans(provider.get_tracer("test"))


@pytest.fixture
def link() -> ScriptedLink:
    return ScriptedLink(
        {
            log.Produce: lambda _, op: written(op),
            group.Heartbeat: lambda _, op: group.HeartbeatReply(),
            cluster.DescribeCluster: lambda _, op: cluster.DescribeClusterReply(),
        }
    )


@pytest.fixture
def finished(exporter: InMemorySpanExporter) -> Callable[[], dict[str, ReadableSpan]]:
    return lambda: {span.name: span for span in exporter.get_finished_spans()}


Finished = Callable[[], dict[str, ReadableSpan]]


def identity(span: ReadableSpan) -> tuple[int, int]:
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


async def test_a_request_is_a_root_in_the_gateway_and_its_child_in_the_broker(
    spans: Spans, link: ScriptedLink, finished: Finished, nursery: trio.Nursery
) -> None:
    gateway = Gateway(config(), spans.around(link, BROKER), (), spans)
    client = World(gateway, link, nursery).connect(here())

    await client.send(produce(b"x"))
    await client.frame()

    [above, below] = [finished()[name] for name in ("rafka.gateway.kafka.produce", "rafka.broker.log.append")]
    assert above.parent is None
    assert below.parent is not None
    assert (below.parent.trace_id, below.parent.span_id) == identity(above)
    assert (above.kind, below.kind) == (SpanKind.SERVER, SpanKind.INTERNAL)
    nursery.cancel_scope.cancel()


async def test_what_a_request_is_about(spans: Spans, link: ScriptedLink, finished: Finished) -> None:
    spans.around(link, BROKER).ask(here(), BEAT)

    assert finished()["rafka.broker.group.heartbeat"].attributes == {
        "messaging.system": "kafka",
        "messaging.client.id": "app",
        "client.address": "10.0.0.9",
        "messaging.consumer.group.name": "g",
    }


async def test_a_trace_goes_on_from_a_gateway_in_another_process(
    spans: Spans, link: ScriptedLink, finished: Finished
) -> None:
    """The envelope has what W3C's header says, and nothing else crosses."""
    trace_id, span_id = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

    spans.around(link, BROKER).ask(Envelope(trace=f"00-{trace_id}-{span_id}-01"), BEAT)

    parent = finished()["rafka.broker.group.heartbeat"].parent
    assert parent is not None
    assert (f"{parent.trace_id:032x}", f"{parent.span_id:016x}", parent.is_remote) == (
        trace_id,
        span_id,
        True,
    )


async def test_a_trace_that_was_not_sampled_above_is_not_sampled_below(
    spans: Spans, link: ScriptedLink, finished: Finished
) -> None:
    spans.around(link, BROKER).ask(Envelope(trace=f"00-{'a' * 32}-{'b' * 16}-00"), BEAT)

    assert finished() == {}


async def test_the_envelope_names_the_span_while_the_op_is_asked_and_not_after(
    spans: Spans, link: ScriptedLink, finished: Finished
) -> None:
    seen = []
    link.answers[group.Heartbeat] = lambda envelope, _: seen.append(envelope.trace)
    envelope = Envelope()

    for _ in range(2):
        spans.around(link, BROKER).ask(envelope, BEAT)

    assert envelope.trace == ""
    assert len(set(seen)) == 2
    assert f"{identity(finished()['rafka.broker.group.heartbeat'])[1]:016x}" in seen[1]


@pytest.mark.parametrize("overlaps", [True, False])
async def test_waiting_is_part_of_it(
    spans: Spans, link: ScriptedLink, finished: Finished, nursery: trio.Nursery, overlaps: bool
) -> None:
    gate = Gate()
    link.answers[group.Heartbeat] = lambda *_: gate.later(group.HeartbeatReply(), overlaps=overlaps)

    answer = spans.around(link, BROKER).ask(here(), BEAT)

    assert isinstance(answer, Later)
    assert answer.overlaps is overlaps
    nursery.start_soon(answer.wait)
    await trio.testing.wait_all_tasks_blocked()
    assert finished() == {}, "still waiting"
    gate.opened.set()
    await trio.testing.wait_all_tasks_blocked()
    assert list(finished()) == ["rafka.broker.group.heartbeat"]


async def test_giving_up_ends_the_span(spans: Spans, link: ScriptedLink, finished: Finished) -> None:
    link.answers[group.Heartbeat] = lambda *_: Gate().later(None, overlaps=False)
    answer = spans.around(link, BROKER).ask(here(), BEAT)
    assert isinstance(answer, Later)

    with trio.CancelScope() as scope:
        scope.cancel()
        await answer.wait()

    [span] = finished().values()
    assert (span.attributes or {})["error.type"] == "Cancelled"
    assert span.status.status_code is StatusCode.UNSET, "nobody's mistake"


def replied(code: ErrorCode) -> Any:
    return lambda *_: group.HeartbeatReply(error_code=code)


def raised(error: Exception) -> Any:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("answer", "error_type", "failed"),
    [
        (replied(ErrorCode.NONE), None, False),
        (replied(ErrorCode.REBALANCE_IN_PROGRESS), "REBALANCE_IN_PROGRESS", False),
        (replied(ErrorCode.UNKNOWN_SERVER_ERROR), "UNKNOWN_SERVER_ERROR", True),
        (raised(KafkaError(ErrorCode.ILLEGAL_GENERATION)), "ILLEGAL_GENERATION", False),
        (raised(ValueError("a mistake of ours")), "ValueError", True),
    ],
)
@pytest.mark.parametrize("later", [False, True])
async def test_an_error_is_an_answer_and_only_our_mistakes_are_failures(
    spans: Spans,
    link: ScriptedLink,
    finished: Finished,
    answer: Any,
    error_type: str | None,
    failed: bool,
    later: bool,
) -> None:
    async def wait() -> Any:
        await trio.lowlevel.checkpoint()
        return answer()

    link.answers[group.Heartbeat] = (lambda *_: Later(wait)) if later else answer

    try:
        told: Any = spans.around(link, BROKER).ask(here(), BEAT)
        if later:
            await told.wait()
    except (KafkaError, ValueError):
        pass

    [span] = finished().values()
    assert (span.attributes or {}).get("error.type") == error_type
    assert (span.status.status_code is StatusCode.ERROR) is failed


async def test_the_gateway_alone_finds_the_coordinator(
    spans: Spans, link: ScriptedLink, finished: Finished, nursery: trio.Nursery
) -> None:
    client = World(Gateway(config(), link, (), spans), link, nursery).connect(here())

    await client.send(request(FIND_COORDINATOR, 4, FIND_COORDINATOR.Request(coordinator_keys=["g"])))
    reply = await client.reply(FIND_COORDINATOR, 4)

    assert [c.host for c in reply.coordinators] == ["broker"]
    [span] = finished().values()
    assert (span.name, span.parent) == ("rafka.gateway.kafka.find-coordinator", None)
    assert span.kind is SpanKind.SERVER
    nursery.cancel_scope.cancel()


def a_rebalance(generation_id: int) -> group.Rebalance:
    return group.Rebalance(
        number=1,
        began_ms=1_700_000_000_000,
        trigger="member joined",
        outcome="stable",
        generation_id=generation_id,
        leader="ann",
        join_ms=250,
        sync_ms=40,
        members_before=2,
        members_after=3,
    )


def test_a_rebalance_has_the_length_that_it_had(spans: Spans, finished: Finished) -> None:
    spans.rebalance_complete((DEFAULT_ORG, "g"), a_rebalance(4))

    span = finished()["rafka.broker.coordinator.rebalance-complete"]
    assert (span.start_time, span.end_time) == (1_700_000_000_000_000_000, 1_700_000_000_250_000_000)
    assert span.attributes == {
        "group": "g",
        "generation_id": 4,
        "leader_id": "ann",
        "members": 3,
        "took": 0.25,
        "trigger": "member joined",
        "outcome": "stable",
    }


def test_a_rebalance_that_formed_no_generation_has_no_span(spans: Spans, finished: Finished) -> None:
    spans.rebalance_complete((DEFAULT_ORG, "g"), a_rebalance(-1))

    assert finished() == {}


async def test_without_a_tracer_nothing_is_in_between(link: ScriptedLink, nursery: trio.Nursery) -> None:
    """The cost of what is off is nothing: the very link is asked, with an envelope that names no span."""
    gateway = Gateway(config(), link)
    client = World(gateway, link, nursery).connect(here())
    seen = []
    link.answers[cluster.DescribeCluster] = lambda envelope, op: (
        seen.append(envelope.trace) or cluster.DescribeClusterReply()  # type: ignore[func-returns-value]
    )

    await client.send(cluster_request())
    await client.frame()

    assert gateway.link is link
    assert seen == [""]
    nursery.cancel_scope.cancel()
