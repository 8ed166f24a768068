"""Whatever connections ask, give up and lose, each answer comes once, and nothing is left behind.

Random stories from seeds: connections of two gateways ask, pipelined, what is answered at once, soon,
or when somebody else says so; some give up; links break and come back. A failing seed fails again.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from rafka.link.hello import Limits
from rafka.link.packed import PackedLink, Patience
from rafka.ops import group, log
from rafka.ops.base import Envelope, Later, Op
from rafka.types import NO_TOPIC_ID

from .kit import METADATA, NOTHING_THERE, World, heartbeat, join, open_world, produce

SEEDS = range(25)
CONNECTIONS = 12
LIMITS = Limits(ops=5, bytes=2000)
LOST = (15, 6, 7)  # what is said of an op that was under way, or could not be sent


@attrs.define(eq=False)
class Story:
    chance: random.Random
    world: World
    asked: Counter[str] = attrs.field(factory=Counter)  # what came to the broker, by the name it was given
    order: dict[str, list[int]] = attrs.field(factory=dict)  # by connection
    answered: int = 0
    lost: int = 0
    given_up: int = 0

    def broker(self) -> None:
        """Answers that take any time, and say whose they are."""

        async def soon(reply: Any, most: float) -> Any:
            await trio.sleep(self.chance.uniform(0, most))
            return reply

        def write(envelope: Envelope, op: log.Produce) -> Any:
            self.came(envelope, op.topic_data[0].name)
            reply = log.ProduceReply(
                responses=[
                    log.TopicProduceReply(
                        name=op.topic_data[0].name,
                        topic_id=NO_TOPIC_ID,
                        partition_responses=[log.PartitionProduceReply(index=0)],
                    )
                ]
            )
            return Later(soon, reply, 0.5, overlaps=True) if self.chance.random() < 0.7 else reply

        def beat(envelope: Envelope, op: group.Heartbeat) -> Any:
            self.came(envelope, op.member_id)
            reply = group.HeartbeatReply()
            return Later(soon, reply, 0.3) if self.chance.random() < 0.5 else reply

        def park(envelope: Envelope, op: group.JoinGroup) -> Any:
            self.came(envelope, op.member_id)
            return Later(soon, group.JoinGroupReply(member_id=op.member_id), 20)

        self.world.broker.answers |= {log.Produce: write, group.Heartbeat: beat, group.JoinGroup: park}

    def came(self, envelope: Envelope, name: str) -> None:
        self.asked[name] += 1
        connection, _, number = name.partition("/")
        assert envelope.client_id == connection
        self.order.setdefault(connection, []).append(int(number))

    async def connection(self, link: PackedLink, name: str) -> None:
        """Asks several at a time, as a client that pipelines, and waits for them in their order."""
        envelope = Envelope(client_id=name)
        number = 0
        for _ in range(self.chance.randrange(1, 8)):
            line: list[tuple[Op[Any], str, Any]] = []
            for _ in range(self.chance.randrange(1, 6)):
                number += 1
                op, told = self.some_op(f"{name}/{number}")
                answer = link.ask(envelope, op)
                line.append((op, told, answer))
                if isinstance(answer, Later) and not answer.overlaps:
                    break
            patience = self.chance.choice([0.05, 1, 60, 60, 60])
            with trio.move_on_after(patience) as waiting:
                for _, told, answer in line:
                    self.check(told, await answer.wait() if isinstance(answer, Later) else answer)
            if waiting.cancelled_caught:
                self.given_up += 1
                return  # the connection is gone
            await trio.sleep(self.chance.uniform(0, 0.2))

    def some_op(self, name: str) -> tuple[Op[Any], str]:
        kind = self.chance.randrange(4)
        if kind == 0:
            op = produce(bytes(self.chance.randrange(900)))
            op.topic_data[0].name = name  # type: ignore[misc]
            return op, name
        if kind == 1:
            return join(name), name
        return heartbeat(name), ""

    def check(self, name: str, reply: Any) -> None:
        """It is the answer to this op, or says that the broker was lost."""
        if isinstance(reply, log.ProduceReply):
            [topic] = reply.responses
            code, found = topic.partition_responses[0].error_code, topic.name
        else:
            code, found = reply.error_code, getattr(reply, "member_id", "")
        assert found == name
        assert code == 0 or code in LOST
        self.answered += 1
        self.lost += code != 0

    async def breaking(self) -> None:
        """Now and then every link breaks, and for a while there is no broker."""
        while True:
            await trio.sleep(self.chance.uniform(1, 6))
            await self.world.lose()
            await trio.sleep(self.chance.uniform(0, 1))
            self.world.reachable = True


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_answer_comes_once_and_nothing_is_left(seed: int, autojump_clock: MockClock) -> None:
    async with open_world(LIMITS) as world:
        story = Story(random.Random(seed), world)
        story.broker()
        links = [await world.gateway(patience=Patience(chance=story.chance.random)) for _ in range(2)]

        async with trio.open_nursery() as disturbance:
            disturbance.start_soon(story.breaking)
            async with trio.open_nursery() as connections:
                for number in range(CONNECTIONS):
                    connections.start_soon(story.connection, links[number % 2], f"c{number}")
            disturbance.cancel_scope.cancel()
        world.reachable = True
        await trio.sleep(60)

        assert story.answered
        assert max(story.asked.values()) == 1
        for numbers in story.order.values():
            assert numbers == sorted(numbers)
        assert len(world.server._peers) == 2
        for link in links:
            assert link.ask(Envelope(), METADATA) != NOTHING_THERE  # a Later: it is connected
            conversation = link._conversation
            assert conversation is not None
        await trio.sleep(1)
        for link in links:
            conversation = link._conversation
            assert conversation is not None
            assert (conversation._asked, conversation._senders) == ({}, {})
            assert (conversation._room._ops, conversation._room._bytes) == (0, 0)
        for peer in world.server._peers:
            assert (peer._senders, peer._holding, peer._ops, peer._bytes) == ({}, {}, 0, 0)


async def test_the_stories_tell_of_everything(autojump_clock: MockClock) -> None:
    """Or they would prove little: answers, losses and connections that give up are in them."""
    told: Counter[str] = Counter()
    for seed in range(5):
        async with open_world(LIMITS) as world:
            story = Story(random.Random(seed), world)
            story.broker()
            link = await world.gateway(patience=Patience(chance=story.chance.random))
            async with trio.open_nursery() as disturbance:
                disturbance.start_soon(story.breaking)
                async with trio.open_nursery() as connections:
                    for number in range(CONNECTIONS):
                        connections.start_soon(story.connection, link, f"c{number}")
                disturbance.cancel_scope.cancel()
            told += Counter(answered=story.answered, lost=story.lost, given_up=story.given_up)

    assert told["answered"] > 100
    assert told["lost"] > 5
    assert told["given_up"] > 5
