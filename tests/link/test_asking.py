"""Ops over a link between two processes are answered as the broker answers, in the order that counts."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode, KafkaError
from rafka.ops import group, log, topics
from rafka.ops.base import Envelope, Later
from rafka.ops.log import ProduceReply

from .kit import (
    METADATA,
    NOTHING_THERE,
    Gate,
    always,
    ask,
    asks,
    fetch,
    heartbeat,
    join,
    open_world,
    produce,
    written,
)


async def test_what_a_reply_rests_on_is_kept_before_it_leaves() -> None:
    async with open_world() as world:
        link = await world.gateway()
        asked_when_kept: list[int] = []
        world.broker.on_keep = lambda: asked_when_kept.append(len(world.broker.asked))

        await ask(link, METADATA)

    assert asked_when_kept == [1]


async def test_an_op_is_answered_as_the_broker_answers() -> None:
    async with open_world() as world:
        link = await world.gateway()

        reply = await ask(link, METADATA)

    assert reply == NOTHING_THERE
    assert world.broker.asked == [METADATA]


async def test_ops_of_a_connection_reach_the_broker_in_their_order() -> None:
    async with open_world() as world:
        link, envelope = await world.gateway(), Envelope()
        members = [f"m-{n}" for n in range(200)]

        answers = [asks(link, heartbeat(member), envelope) for member in members]
        for answer in reversed(answers):
            await answer.wait()

    assert [op.member_id for op in world.broker.asked if isinstance(op, group.Heartbeat)] == members


async def test_answers_come_in_whatever_order_they_are_ready(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        slow = Gate()
        world.broker.answers[log.Fetch] = lambda envelope, op: slow.later("never", overlaps=False)
        link = await world.gateway()
        world.nursery.start_soon(ask, link, fetch(), Envelope(client_id="other"))
        await wait_all_tasks_blocked()

        assert await ask(link, METADATA) == NOTHING_THERE

    assert world.asked() == ["Fetch", "Metadata"]


async def test_writes_of_one_connection_are_made_durable_together() -> None:
    async with open_world() as world:
        disk = Gate()
        world.broker.answers[log.Produce] = lambda envelope, op: disk.later(written(op), overlaps=True)
        link, envelope = await world.gateway(), Envelope()
        answers = [asks(link, produce(), envelope) for _ in range(5)]
        await wait_all_tasks_blocked()

        waiting = disk.waiting
        disk.opened.set()
        replies = [await answer.wait() for answer in answers]

    assert waiting == 5
    assert all(answer.overlaps for answer in answers)
    assert all(isinstance(reply, ProduceReply) for reply in replies)


@pytest.mark.parametrize("op", [fetch(), join()], ids=["Fetch", "JoinGroup"])
async def test_what_may_be_held_for_long_does_not_let_its_connection_go_on(op: Any) -> None:
    async with open_world() as world:
        link = await world.gateway()

        assert not asks(link, op, Envelope()).overlaps
        assert asks(link, METADATA, Envelope()).overlaps


async def test_the_broker_takes_up_nothing_behind_an_op_that_holds_up_its_connection() -> None:
    """CreateTopics, then Metadata that wants to see the topic: one after the other, and nobody else waits."""
    async with open_world() as world:
        keeper = Gate()
        made = topics.CreateTopicsReply(topics=[])
        world.broker.answers[topics.CreateTopics] = lambda envelope, op: keeper.later(made, overlaps=False)
        link, one, other = await world.gateway(), Envelope(), Envelope()
        first = asks(link, topics.CreateTopics(topics=[]), one)
        behind = [asks(link, METADATA, one), asks(link, heartbeat(), one)]
        elsewhere = asks(link, heartbeat("elsewhere"), other)

        await elsewhere.wait()
        before = world.asked()
        keeper.opened.set()
        assert await first.wait() == made
        for answer in behind:
            await answer.wait()

    assert before == ["CreateTopics", "Heartbeat"]
    assert world.asked() == ["CreateTopics", "Heartbeat", "Metadata", "Heartbeat"]


async def test_what_the_broker_refuses_while_it_is_waited_for_is_a_reply() -> None:
    async def refuse(op: Any) -> Any:
        await trio.lowlevel.checkpoint()
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not that")

    async with open_world() as world:
        world.broker.answers[topics.CreateTopics] = lambda envelope, op: Later(refuse, op)
        link = await world.gateway()
        new = topics.NewTopic(name="t", num_partitions=1, replication_factor=1)

        reply = await ask(link, topics.CreateTopics(topics=[new]))

    [topic] = reply.topics
    assert (topic.error_code, topic.error_message) == (ErrorCode.POLICY_VIOLATION, "not that")


async def test_a_mistake_of_ours_is_a_reply_and_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async def stumble() -> Any:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a mistake of ours")

    async with open_world() as world:
        world.broker.answers[group.Heartbeat] = lambda envelope, op: Later(stumble)
        world.broker.answers[topics.Metadata] = always("no reply at all")
        link = await world.gateway()

        waited = await ask(link, heartbeat())
        unpackable = await ask(link, METADATA)

    assert waited.error_code == unpackable.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert [record.exc_info is not None for record in caplog.records if record.levelname == "ERROR"] == [
        True,
        True,
    ]


async def test_an_op_that_an_older_broker_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from rafka.link import serving
    from rafka.ops.packing import UnknownOp

    def unknown(code: int) -> Any:
        raise UnknownOp(f"no op has the code {code}")

    async with open_world() as world:
        link = await world.gateway()
        monkeypatch.setattr(serving, "packing_of", unknown)

        reply = await ask(link, heartbeat())

    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert world.asked() == []


# --- who asks -------------------------------------------------------------------------------------


async def test_the_broker_is_told_once_who_asks_and_again_when_that_changes() -> None:
    async with open_world() as world:
        told: list[Envelope] = []

        def note(envelope: Envelope, op: topics.Metadata) -> topics.MetadataReply:
            told.append(envelope)
            return NOTHING_THERE

        world.broker.answers[topics.Metadata] = note
        link = await world.gateway()
        envelope = Envelope(client_id="one", client_host="/10.0.0.1", host="kafka", port=9092)

        await ask(link, METADATA, envelope)
        await ask(link, METADATA, envelope)
        envelope.client_id = "two"
        await ask(link, METADATA, envelope)

    assert told[0] is told[1]
    assert [each.client_id for each in told] == ["one", "one", "two"]
    assert (told[2].client_host, told[2].host, told[2].port) == ("/10.0.0.1", "kafka", 9092)


async def test_what_the_broker_keeps_of_a_sender_is_kept_when_it_is_told_anew() -> None:
    async with open_world() as world:
        counted: list[int] = []

        def count(envelope: Envelope, op: log.Produce) -> ProduceReply:
            envelope.batches += 1
            counted.append(envelope.batches)
            return written(op)

        world.broker.answers[log.Produce] = count
        link, envelope = await world.gateway(), Envelope(client_id="one")

        await ask(link, produce(), envelope)
        envelope.client_id = "two"
        await ask(link, produce(), envelope)

    assert counted == [1, 2]


async def test_each_op_keeps_the_trace_that_it_was_asked_in_also_when_it_has_to_wait() -> None:
    async with open_world() as world:
        keeper = Gate()
        traces: list[str] = []
        made = topics.CreateTopicsReply(topics=[])
        world.broker.answers[topics.CreateTopics] = lambda envelope, op: keeper.later(made, overlaps=False)

        def note(envelope: Envelope, op: group.Heartbeat) -> group.HeartbeatReply:
            traces.append(envelope.trace)
            return group.HeartbeatReply()

        world.broker.answers[group.Heartbeat] = note
        link, envelope = await world.gateway(), Envelope()

        answers = [asks(link, topics.CreateTopics(topics=[]), envelope)]
        for trace in ("first", "second"):
            envelope.trace = trace
            answers.append(asks(link, heartbeat(), envelope))
        await wait_all_tasks_blocked()
        keeper.opened.set()
        for answer in answers:
            await answer.wait()

    assert traces == ["first", "second"]


async def test_several_gateways_serve_one_broker() -> None:
    async with open_world() as world:
        links = [await world.gateway() for _ in range(3)]

        replies = [await ask(link, METADATA, Envelope(client_id=str(n))) for n, link in enumerate(links)]

    assert replies == [NOTHING_THERE] * 3
    assert world.broker.client_ids == ["0", "1", "2"]
