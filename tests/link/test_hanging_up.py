"""A connection that goes lets go of what it waited for, and of nothing that the broker has decided."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.link.packed import PackedLink
from rafka.ops import group, log, topics
from rafka.ops.base import Envelope

from .kit import (
    METADATA,
    NOTHING_THERE,
    Gate,
    World,
    ask,
    asks,
    fetch,
    heartbeat,
    join,
    open_world,
    produce,
    written,
)


def nothing_is_left(world: World, link: PackedLink) -> bool:
    """Neither end remembers an op, and the broker has no sender that has gone."""
    conversation = link._conversation
    assert conversation is not None
    [peer] = world.server._peers
    return not conversation._asked and not peer._holding and not peer._ops


async def parked(world: World, link: PackedLink, op: Any, gate: Gate, reply: Any) -> trio.CancelScope:
    """A connection that waits for an answer; cancelling the scope is its end."""
    world.broker.answers[type(op)] = lambda envelope, op: gate.later(reply, overlaps=False)
    scope = trio.CancelScope()

    async def connection() -> None:
        with scope:
            await ask(link, op)

    world.nursery.start_soon(connection)
    await wait_all_tasks_blocked()
    assert gate.waiting == 1
    return scope


async def test_a_parked_fetch_is_let_go_of(autojump_clock: MockClock) -> None:
    async with open_world() as world:
        link, gate = await world.gateway(), Gate()
        connection = await parked(world, link, fetch(), gate, None)

        connection.cancel()
        await wait_all_tasks_blocked()

        assert gate.waiting == 0
        assert nothing_is_left(world, link)
        assert world.server._peers.copy().pop()._senders == {}


async def test_a_member_whose_join_was_parked_is_not_taken_out_of_its_group() -> None:
    """A closed connection is not a leave: the broker is asked nothing more, and what it was asked stands."""
    async with open_world() as world:
        link, gate = await world.gateway(), Gate()
        connection = await parked(world, link, join(), gate, group.JoinGroupReply())

        connection.cancel()
        await wait_all_tasks_blocked()

        assert world.asked() == ["JoinGroup"]
        assert await ask(link, heartbeat()) == group.HeartbeatReply()


async def test_a_write_that_nobody_waits_for_is_finished() -> None:
    async with open_world() as world:
        link, disk = await world.gateway(), Gate()
        world.broker.answers[log.Produce] = lambda envelope, op: disk.later(written(op), overlaps=True)
        scope = trio.CancelScope()

        async def connection() -> None:
            with scope:
                await ask(link, produce())

        world.nursery.start_soon(connection)
        await wait_all_tasks_blocked()
        scope.cancel()
        await wait_all_tasks_blocked()
        assert disk.waiting == 1

        disk.opened.set()
        await wait_all_tasks_blocked()
        assert nothing_is_left(world, link)


async def test_what_is_behind_an_answer_that_nobody_waits_for_is_taken_up() -> None:
    """Its connection may be there still: it is one answer that was given up, not the connection."""
    async with open_world() as world:
        link, gate, envelope = await world.gateway(), Gate(), Envelope()
        world.broker.answers[log.Fetch] = lambda _, op: gate.later(None, overlaps=False)

        with trio.move_on_after(0):
            await asks(link, fetch(), envelope).wait()
        answer = asks(link, METADATA, envelope)

        assert await answer.wait() == NOTHING_THERE


async def test_answers_that_were_asked_for_and_never_waited_for_are_let_go_of_with_their_connection() -> None:
    async with open_world() as world:
        link, gate, envelope = await world.gateway(), Gate(), Envelope()
        world.broker.answers[log.Fetch] = lambda _, op: gate.later(None, overlaps=False)
        keeper = Gate()
        made = topics.CreateTopicsReply(topics=[])
        world.broker.answers[topics.CreateTopics] = lambda _, op: keeper.later(made, overlaps=False)
        other = Envelope()
        answers = [asks(link, fetch(), envelope), asks(link, topics.CreateTopics(topics=[]), other)]
        await wait_all_tasks_blocked()

        del answers, envelope, other
        await wait_all_tasks_blocked()
        assert (gate.waiting, keeper.waiting) == (0, 1)  # what changes something is always finished

        keeper.opened.set()
        await wait_all_tasks_blocked()
        assert nothing_is_left(world, link)
        assert world.server._peers.copy().pop()._senders == {}


async def test_an_answer_that_crosses_with_its_cancelling_is_dropped() -> None:
    async with open_world() as world:
        link, gate = await world.gateway(), Gate()
        connection = await parked(world, link, fetch(), gate, log.FetchReply(responses=[]))

        gate.opened.set()
        connection.cancel()
        await wait_all_tasks_blocked()

        assert await ask(link, METADATA) == NOTHING_THERE
        assert nothing_is_left(world, link)


async def test_a_gateway_that_goes_takes_its_waiting_along() -> None:
    async with open_world() as world:
        gate = Gate()
        async with trio.open_nursery() as nursery:
            link = PackedLink(world.connect, to="memory")
            await nursery.start(link.run)
            await parked(world, link, join(), gate, None)
            nursery.cancel_scope.cancel()
        await wait_all_tasks_blocked()

        assert gate.waiting == 0
        assert not world.server._peers
