"""Replies go out in the order of requests, whatever each of them takes."""

from __future__ import annotations

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rafka.errors import ErrorCode, KafkaError
from rafka.ops import log, topics
from rafka.ops.base import Later
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.metadata import METADATA

from .kit import Gate, ScriptedLink, World, api_versions, cluster, metadata, produce, raw, request, written

pytestmark = pytest.mark.usefixtures("both_kinds")


async def test_pipelined_requests_are_answered_in_order(world: World) -> None:
    client = world.connect()

    await client.send(*[cluster(n) if n % 2 else metadata(n) for n in range(20)])

    assert [await client.correlation_id() for _ in range(20)] == list(range(20))


async def test_replies_to_what_came_together_go_out_together(world: World) -> None:
    client = world.connect()

    await client.send(*[metadata(n) for n in range(50)])
    for _ in range(50):
        await client.frame()

    assert client.reads == 1


async def test_writes_that_wait_for_durability_wait_together(world: World, link: ScriptedLink) -> None:
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    client = world.connect()

    await client.send(*[produce(b"x", correlation_id=n) for n in range(5)])
    await wait_all_tasks_blocked()

    assert len(link.asked) == 5, "a write that is only to become durable holds up nobody"
    gate.opened.set()
    assert [await client.correlation_id() for _ in range(5)] == list(range(5))


async def test_what_comes_while_a_write_waits_is_taken_up_as_well(world: World, link: ScriptedLink) -> None:
    """So that all of it shares the next sync; frames too large for the shared buffer also."""
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    client = world.connect()

    for n in range(3):
        await client.send(produce(bytes(300_000), correlation_id=2 * n))
        await client.send(metadata(2 * n + 1))
        await wait_all_tasks_blocked()
        assert len(link.asked) == 2 * n + 2

    gate.opened.set()
    assert [await client.correlation_id() for _ in range(6)] == list(range(6))


async def test_a_reply_does_not_wait_for_the_writes_behind_its_own(world: World, link: ScriptedLink) -> None:
    """Where new requests come all the time, the line of replies never ends."""
    gates: list[Gate] = []

    def answer(_: object, op: log.Produce) -> Later[log.ProduceReply]:
        gates.append(Gate())
        return gates[-1].later(written(op), overlaps=True)

    link.answers[log.Produce] = answer
    client = world.connect()
    await client.send(*[produce(b"x", correlation_id=n) for n in range(3)])
    await wait_all_tasks_blocked()

    gates[0].opened.set()

    with trio.fail_after(1):
        assert await client.correlation_id() == 0
    gates[1].opened.set()
    gates[2].opened.set()
    assert [await client.correlation_id() for _ in range(2)] == [1, 2]


async def test_replies_that_are_ready_together_go_out_together(world: World, link: ScriptedLink) -> None:
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    client = world.connect()
    await client.send(*[produce(b"x", correlation_id=n) for n in range(20)])
    await wait_all_tasks_blocked()

    gate.opened.set()

    assert [await client.correlation_id() for _ in range(20)] == list(range(20))
    assert client.reads == 1


async def test_at_most_one_reply_with_records_lies_behind_a_write(world: World, link: ScriptedLink) -> None:
    """Such a reply may take many megabytes."""
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    link.answers[log.Fetch] = lambda _, op: log.FetchReply(responses=[])
    client = world.connect()

    await client.send(
        produce(b"x", correlation_id=0), *[request(FETCH, 12, correlation_id=n) for n in range(1, 4)]
    )
    await wait_all_tasks_blocked()

    assert len(link.asked) == 2
    gate.opened.set()
    assert [await client.correlation_id() for _ in range(4)] == list(range(4))


async def test_what_is_ready_at_once_waits_behind_a_write_that_is_not(
    world: World, link: ScriptedLink
) -> None:
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    client = world.connect()

    await client.send(produce(b"x", correlation_id=1), metadata(2), cluster(3))
    await wait_all_tasks_blocked()
    gate.opened.set()

    assert [await client.correlation_id() for _ in range(3)] == [1, 2, 3]


async def test_the_gateways_own_answer_does_not_overtake_a_write(world: World, link: ScriptedLink) -> None:
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    client = world.connect()

    await client.send(produce(b"x", correlation_id=1), api_versions(2), produce(b"y", correlation_id=3))
    await wait_all_tasks_blocked()
    gate.opened.set()

    assert [await client.correlation_id() for _ in range(3)] == [1, 2, 3]


async def test_a_parked_fetch_holds_up_what_follows_it(world: World, link: ScriptedLink) -> None:
    """N8, LF-099."""
    gate = Gate()
    parked = topics.MetadataReply(topics=[])
    link.answers[topics.Metadata] = lambda _, op: gate.later(parked, overlaps=False)
    client = world.connect()

    await client.send(cluster(1), metadata(2), cluster(3))

    assert await client.correlation_id() == 1, "what was ready before it need not wait"
    await wait_all_tasks_blocked()
    assert len(link.asked) == 2, "what follows is not even taken up"
    gate.opened.set()
    assert await client.correlation_id() == 2
    assert await client.correlation_id() == 3


async def test_no_more_requests_are_taken_up_than_may_be_in_flight(world: World, link: ScriptedLink) -> None:
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    world.gateway.in_flight = 4
    client = world.connect()

    await client.send(
        produce(b"x", correlation_id=0),
        *[metadata(n) if n % 2 else produce(b"x", correlation_id=n) for n in range(1, 12)],
    )
    await wait_all_tasks_blocked()

    assert len(link.asked) == 4, "those that are ready count as well: they lie in memory behind the write"
    gate.opened.set()
    assert [await client.correlation_id() for _ in range(12)] == list(range(12))


async def test_many_replies_go_out_in_parts_and_in_order(world: World, link: ScriptedLink) -> None:
    large = topics.TopicMetadata(name="x" * 30_000)
    link.answers[topics.Metadata] = lambda _, op: topics.MetadataReply(topics=[large])
    client = world.connect()

    await client.send(*[metadata(n) for n in range(40)])

    for n in range(40):
        frame = await client.frame()
        assert frame[:4] == n.to_bytes(4, "big")
        assert len(frame) > 30_000


async def test_a_later_that_is_refused_is_answered_with_the_refusal(world: World, link: ScriptedLink) -> None:
    async def refuse() -> object:
        await trio.lowlevel.checkpoint()
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

    link.answers[topics.Metadata] = lambda _, op: Later(refuse)
    client = world.connect()
    asked = METADATA.Request(topics=[METADATA.Request.Topics(name="t")])

    await client.send(request(METADATA, 1, asked))

    [topic] = (await client.reply(METADATA, 1)).topics
    assert topic.error_code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_what_came_before_a_bad_request_is_answered_and_then_it_closes(
    world: World, link: ScriptedLink
) -> None:
    """N8, LF-073: also what still has to become durable."""
    gate = Gate()
    link.answers[log.Produce] = lambda _, op: gate.later(written(op), overlaps=True)
    client = world.connect()

    await client.send(metadata(1), produce(b"x", correlation_id=2), raw(999, 0, b""), metadata(3))
    await wait_all_tasks_blocked()
    gate.opened.set()

    assert await client.correlation_id() == 1
    assert await client.correlation_id() == 2
    assert await client.closed()
    assert len(link.asked) == 2
