"""A gateway without its broker: clients are told to try again, and it comes back to the broker by itself."""

from __future__ import annotations

import logging
from typing import Any, Final

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode
from rafka.link import refusals
from rafka.link.frames import Framed, Kind
from rafka.link.hello import Limits, greet
from rafka.link.packed import FETCH_WAITS_S, PackedLink, Patience
from rafka.link.serving import FAREWELL_S
from rafka.ops import group, log, topics
from rafka.ops.base import Envelope, KafkaOp
from rafka.ops.packing import _ops, envelope_fields, packing_of

from ..ops.test_ops import SAMPLES, codes_in
from .kit import (
    METADATA,
    NOTHING_THERE,
    Gate,
    ask,
    asks,
    fetch,
    heartbeat,
    join,
    open_world,
    produce,
    written,
)

NOT_FOR_CLIENTS: Final = {KafkaOp.WRITE_TXN_MARKERS}


# --- what clients are told ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", sorted(_ops()), ids=lambda code: KafkaOp(code).name)
def test_every_op_has_an_error_that_makes_clients_try_again(code: KafkaOp) -> None:
    assert refusals.unsent_code(code).retriable


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: type(op).__name__)
def test_what_was_under_way_is_refused_with_an_error_that_makes_clients_try_again(op: Any) -> None:
    codes = codes_in(refusals.unknown(op))

    assert codes
    assert all({int(each): each for each in ErrorCode}[code].retriable for code in codes)


@pytest.mark.parametrize(
    ("op", "code"),
    [
        (heartbeat(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (join(), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (log.InitProducerId(transaction_timeout_ms=1), ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (produce(), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (fetch(0), ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (
            topics.Metadata(topics=[topics.MetadataTopic(name="t")]),
            ErrorCode.LEADER_NOT_AVAILABLE,
        ),
        (
            topics.CreateTopics(topics=[topics.NewTopic(name="t", num_partitions=1, replication_factor=1)]),
            ErrorCode.NOT_CONTROLLER,
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, ErrorCode) else value.name,
)
async def test_without_a_broker_ops_are_refused_at_once(
    op: Any, code: ErrorCode, autojump_clock: MockClock
) -> None:
    async with open_world() as world:
        link = await world.gateway()
        await world.lose()

        reply = link.ask(Envelope(), op)

        assert not link.connected
        assert set(codes_in(reply)) == {code}


async def test_a_fetch_without_a_broker_waits_as_it_would_for_records(autojump_clock: MockClock) -> None:
    """Consumers try again at once, and would do nothing else until there is a broker."""
    async with open_world() as world:
        link = await world.gateway()
        await world.lose()
        began = trio.current_time()

        codes = codes_in(await ask(link, fetch()))
        waited = trio.current_time() - began
        codes += codes_in(await ask(link, fetch(60_000)))

    assert set(codes) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert waited == pytest.approx(0.5)
    assert trio.current_time() - began == pytest.approx(0.5 + FETCH_WAITS_S)


async def test_a_fetch_that_waits_is_answered_when_the_broker_is_back(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        link = await world.gateway()
        await world.lose()
        codes = set()

        async def consumer() -> None:
            codes.update(codes_in(await ask(link, fetch(60_000))))

        world.nursery.start_soon(consumer)
        await trio.sleep(0.01)
        world.reachable = True
        await trio.sleep(1)

        assert link.connected
        assert codes == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_metadata_without_a_broker_names_no_brokers_so_that_clients_keep_what_they_know() -> None:
    reply = refusals.unsent(METADATA)

    assert (reply.brokers, reply.topics) == ((), [])


async def test_what_was_under_way_may_have_been_done_and_is_refused_so(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        gate = Gate()
        world.broker.answers[log.Produce] = lambda e, op: gate.later(written(op), overlaps=True)
        world.broker.answers[group.JoinGroup] = lambda e, op: gate.later(None, overlaps=False)
        link = await world.gateway()
        envelopes = Envelope(), Envelope()
        write, member = asks(link, produce(), envelopes[0]), asks(link, join(), envelopes[1])
        told = {}

        async def wait(name: str, later: Any) -> None:
            told[name] = codes_in(await later.wait())

        world.nursery.start_soon(wait, "produce", write)
        await wait_all_tasks_blocked()
        await world.lose()
        await wait("join", member)
        await wait_all_tasks_blocked()

    assert told == {
        "produce": [ErrorCode.REQUEST_TIMED_OUT],
        "join": [ErrorCode.COORDINATOR_NOT_AVAILABLE],
    }


async def test_what_waits_for_its_turn_when_the_broker_goes_was_never_sent(autojump_clock: MockClock) -> None:
    async with open_world(Limits(ops=1)) as world:
        gate = Gate()
        world.broker.answers[log.Produce] = lambda e, op: gate.later(written(op), overlaps=True)
        link = await world.gateway()
        envelopes = Envelope(), Envelope()
        asks(link, produce(), envelopes[0])
        waiting = asks(link, produce(), envelopes[1])
        told = []

        async def connection() -> None:
            told.extend(codes_in(await waiting.wait()))

        world.nursery.start_soon(connection)
        await wait_all_tasks_blocked()
        await world.lose()

    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


async def test_whoever_goes_while_the_broker_goes_is_no_trouble(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        gate = Gate()
        world.broker.answers[log.Fetch] = lambda e, op: gate.later(None, overlaps=False)
        link = await world.gateway()
        connection = trio.CancelScope()

        async def wait() -> None:
            with connection:
                await ask(link, fetch())

        world.nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        connection.cancel()
        await world.lose()
        world.reachable = True
        await trio.sleep(1)

        assert await ask(link, METADATA) == NOTHING_THERE


# --- coming back ----------------------------------------------------------------------------------------


async def test_it_tries_again_less_and_less_often_and_says_so_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with open_world() as world:
        await world.gateway(patience=Patience(first_s=0.1, most_s=0.4, chance=lambda: 0.5))
        await world.lose()
        began = trio.current_time()
        await trio.sleep(2)
        world.reachable = True
        await trio.sleep(0.5)

    tried = [round(at - began, 3) for at in world.attempts[1:]]
    assert tried == [0.1, 0.3, 0.7, 1.1, 1.5, 1.9, 2.3]
    lines = [(r.levelname, r.message) for r in caplog.records if r.name == "rafka.link.packed"]
    assert lines == [
        ("INFO", "connected to the broker at memory: cluster c1"),
        (
            "WARNING",
            "the broker at memory has gone: it closed the connection; "
            "clients are told to try again until it is back",
        ),
        ("INFO", "connected to the broker at memory: cluster c1"),
    ]


async def test_a_broker_that_is_not_there_yet_is_waited_for_with_one_line(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world() as world:
        world.reachable = False
        link = PackedLink(world.connect, to="memory", patience=Patience(chance=lambda: 0.0))
        started = trio.Event()

        async def start() -> None:
            welcome = await world.nursery.start(link.run)
            assert welcome.cluster_id == "c1"
            started.set()

        world.nursery.start_soon(start)
        await trio.sleep(30)
        assert not started.is_set()
        world.reachable = True
        with trio.fail_after(1):
            await started.wait()

    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == [
        "no broker at memory: Connection refused; trying again until there is one"
    ]


async def test_after_coming_back_ops_pass_and_the_broker_is_told_again_who_asks(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        link, envelope = await world.gateway(), Envelope(client_id="me")
        await ask(link, METADATA, envelope)
        await world.lose()
        world.reachable = True
        await trio.sleep(1)

        assert link.connected
        assert await ask(link, METADATA, envelope) == NOTHING_THERE

    assert world.broker.client_ids == ["me", "me"]


# --- silence ----------------------------------------------------------------------------------------------


async def test_a_broker_that_is_silent_is_given_up(autojump_clock: MockClock) -> None:
    """As when its machine loses power, or the way to it is cut: nobody closes the connection."""
    frozen: list[Framed] = []

    async def freeze(stream: trio.abc.Stream) -> None:
        framed = Framed(stream, 1 << 20)
        frozen.append(framed)
        await framed.receive_one()
        framed.put(Kind.WELCOME, attrs.asdict(world.welcome))
        await framed.flush()
        await trio.sleep_forever()

    async with open_world() as world:
        world.server.serve_stream = freeze  # type: ignore[method-assign]
        link = await world.gateway(patience=Patience(ping_s=5))
        waiting = asks(link, heartbeat(), Envelope())

        began = trio.current_time()
        reply = await waiting.wait()

    assert reply.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert 15 <= trio.current_time() - began <= 21


async def test_a_gateway_that_is_silent_is_given_up(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        framed = await world.bare_gateway()
        await greet(framed, "silent")
        await wait_all_tasks_blocked()
        assert world.server._peers

        await trio.sleep(25)

        assert not world.server._peers


async def test_two_that_have_nothing_to_say_to_each_other_stay_together(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        link = await world.gateway()

        await trio.sleep(3600)

        assert len(world.attempts) == 1
        assert await ask(link, METADATA) == NOTHING_THERE


async def test_an_answer_may_take_as_long_as_it_takes(autojump_clock: MockClock) -> None:
    """There is no cap on the time of a JoinGroup."""
    async with open_world() as world:
        gate = Gate()
        reply = group.JoinGroupReply(generation_id=7)
        world.broker.answers[group.JoinGroup] = lambda e, op: gate.later(reply, overlaps=False)
        link, envelope = await world.gateway(), Envelope()
        waiting = asks(link, join(), envelope)

        await trio.sleep(3600)
        gate.opened.set()

        assert await waiting.wait() == reply


# --- a broker that stops ------------------------------------------------------------------------------------


async def test_a_broker_that_stops_answers_what_it_has_taken_and_takes_no_more(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        disk = Gate()
        world.broker.answers[log.Produce] = lambda e, op: disk.later(written(op), overlaps=True)
        link, envelope = await world.gateway(), Envelope()
        taken = asks(link, produce(), envelope)
        await wait_all_tasks_blocked()

        world.server.close()
        await wait_all_tasks_blocked()
        refused = link.ask(envelope, heartbeat())
        disk.opened.set()
        reply = await taken.wait()
        await wait_all_tasks_blocked()

    assert codes_in(refused) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert codes_in(reply) == [ErrorCode.NONE]
    assert not world.server._peers


async def test_a_broker_that_stops_does_not_wait_for_whoever_has_not_said_who_it_is(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world() as world, trio.open_nursery() as attached:
        _silent, theirs = trio.testing.memory_stream_pair()
        attached.start_soon(world.server.serve_stream, theirs)
        await wait_all_tasks_blocked()

        world.server.close()

    assert trio.current_time() == 0
    assert not caplog.records


async def test_a_broker_that_stops_begins_nothing_with_whoever_comes_now(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        world.server.close()
        _silent, theirs = trio.testing.memory_stream_pair()

        await world.server.serve_stream(theirs)

    assert trio.current_time() == 0


async def test_a_broker_that_stops_does_not_wait_long_for_a_gateway_that_hangs(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """As one whose process is stopped: its end of the connection is there, and nobody reads what comes."""
    async with open_world() as world, trio.open_nursery() as attached:
        ours, theirs = trio.testing.memory_stream_pair()
        attached.start_soon(world.server.serve_stream, theirs)
        await greet(Framed(ours, 1 << 20), "hanging")
        await trio.sleep(3)

        world.server.close()
        began = trio.current_time()

    assert trio.current_time() - began == pytest.approx(FAREWELL_S)
    assert "gateway hanging is given up: it did not hear that the broker stops" in caplog.text


async def test_a_gateway_that_is_only_slow_is_waited_for(autojump_clock: MockClock) -> None:
    """What it has sent before it heard of the end is taken up, and answered."""
    async with open_world() as world, trio.open_nursery() as attached:
        ours, theirs = trio.testing.memory_stream_pair()
        attached.start_soon(world.server.serve_stream, theirs)
        framed = Framed(ours, 1 << 20)
        await greet(framed, "slow")
        framed.put(Kind.OPEN, 1, envelope_fields(Envelope()))
        await wait_all_tasks_blocked()

        world.server.close()
        for id in range(5):
            await trio.sleep(0.8 * FAREWELL_S)
            framed.put(Kind.ASK, id, 1, METADATA.code, packing_of(METADATA.code).op_fields(METADATA))
            await framed.flush()
        framed.put(Kind.BYE)
        await framed.flush()

    assert world.asked() == ["Metadata"] * 5


async def test_answers_that_take_their_time_are_waited_for_when_the_gateway_knows_of_the_end(
    autojump_clock: MockClock,
) -> None:
    async with open_world() as world:
        disk = Gate()
        world.broker.answers[log.Produce] = lambda e, op: disk.later(written(op), overlaps=True)
        link, envelope = await world.gateway(), Envelope()
        taken = asks(link, produce(), envelope)
        await wait_all_tasks_blocked()

        world.server.close()
        await trio.sleep(10 * FAREWELL_S)
        disk.opened.set()

        assert codes_in(await taken.wait()) == [ErrorCode.NONE]
