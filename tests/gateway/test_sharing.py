"""All connections receive into one buffer. What one of them has yet to read, another must not write over."""

from __future__ import annotations

import random
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.gateway.server import Gateway
from rafka.ops import log, topics
from rafka.ops.base import Envelope, Later

from .kit import Gate, ScriptedLink, World, config, metadata, produce, written


class Recorder:
    """As `link.Link`: copies what it is given, and takes its time in a way that the records choose."""

    def __init__(self, seed: int) -> None:
        self.seen: dict[str, list[bytes]] = {}
        self._rng = random.Random(seed)

    def ask(self, envelope: Envelope, op: Any) -> Any:
        if isinstance(op, topics.Metadata):
            return topics.MetadataReply(topics=[])
        [topic] = op.topic_data
        [data] = topic.partition_data
        records = bytes(data.records)
        mine = self.seen.setdefault(topic.name, [])
        mine.append(records)
        reply = written(op, len(mine) - 1)
        match self._rng.randrange(4):
            case 0:
                return Later(self._wait, reply, overlaps=False)
            case 1:
                return Later(self._wait, reply, overlaps=True)
            case _:
                return reply

    def keep(self) -> None:
        """Nothing is owed."""

    async def _wait(self, reply: Any) -> Any:
        for _ in range(self._rng.randrange(4)):
            await trio.sleep(self._rng.random())
        return reply


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    clients=st.integers(2, 5),
    sizes=st.lists(
        st.one_of(st.integers(1, 300), st.integers(30_000, 120_000), st.just(300_000)),
        min_size=3,
        max_size=12,
    ),
)
def test_nobodys_bytes_are_mixed_up(seed: int, clients: int, sizes: list[int]) -> None:
    """Each client sends what only it would send, in bursts and in pieces; all that is asked is its own."""
    rng = random.Random(seed)
    recorder = Recorder(seed)
    sent: dict[str, list[bytes]] = {}

    async def client(name: str, world: World) -> None:
        connection = world.connect()
        records = [(f"{name}:{n}:".encode() * (size // 4 + 1))[:size] + b"!" for n, size in enumerate(sizes)]
        sent[name] = records
        stream = b"".join(
            produce(body, topic=name, correlation_id=n) + metadata(1000 + n) for n, body in enumerate(records)
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trickle, connection, stream)
            for n in range(len(records)):
                assert await connection.correlation_id() == n
                assert await connection.correlation_id() == 1000 + n

    async def trickle(connection: Any, stream: bytes) -> None:
        at = 0
        while at < len(stream):
            size = rng.choice((1, 3, 50, 5_000, 70_000, 400_000))
            await connection.send(stream[at : at + size])
            at += size
            await trio.sleep(rng.random() / 4)

    async def main() -> None:
        gateway = Gateway(config(), recorder)
        async with trio.open_nursery() as nursery:
            await nursery.start(gateway.run)
            world = World(gateway, ScriptedLink(), nursery)
            async with trio.open_nursery() as everybody:
                for n in range(clients):
                    everybody.start_soon(client, f"client-{n}", world)
            nursery.cancel_scope.cancel()

    trio.run(main, clock=MockClock(autojump_threshold=0))

    assert recorder.seen == sent


@pytest.mark.usefixtures("both_kinds")
@pytest.mark.parametrize("overlaps", [False, True])
async def test_what_is_left_of_a_burst_outlives_its_first_request_that_waits(
    world: World, link: ScriptedLink, overlaps: bool
) -> None:
    """The plainest case of it: A sends five, the first parks, and B's bytes come meanwhile."""
    gate = Gate()
    seen: dict[str, list[bytes]] = {}

    def answer(_: Envelope, op: log.Produce) -> Any:
        [topic] = op.topic_data
        seen.setdefault(topic.name, []).append(bytes(topic.partition_data[0].records or b""))
        reply = written(op)
        parks = topic.name == "a" and len(seen["a"]) == 1
        return gate.later(reply, overlaps=overlaps) if parks else reply

    link.answers[log.Produce] = answer
    a, b = world.connect(), world.connect()
    tail = produce(b"a5", topic="a", correlation_id=5)

    await a.send(*[produce(b"a%d" % n, topic="a", correlation_id=n) for n in range(5)], tail[:20])
    await wait_all_tasks_blocked()
    await b.send(*[produce(b"B" * 200, topic="b", correlation_id=n) for n in range(50)])
    for n in range(50):
        assert await b.correlation_id() == n
    gate.opened.set()
    await a.send(tail[20:])

    assert [await a.correlation_id() for _ in range(6)] == list(range(6))
    assert seen["a"] == [b"a%d" % n for n in range(6)]
    assert seen["b"] == [b"B" * 200] * 50


async def test_a_slow_reader_keeps_what_it_has_yet_to_ask(world: World, link: ScriptedLink) -> None:
    """A's replies do not go out; B writes over the buffer; then A reads on."""
    large = topics.MetadataReply(topics=[topics.TopicMetadata(name="x" * 30_000)])
    seen: list[bytes] = []

    def answer(_: Envelope, op: log.Produce) -> Any:
        seen.append(bytes(op.topic_data[0].partition_data[0].records or b""))
        return written(op)

    link.answers[topics.Metadata] = lambda _, op: large
    link.answers[log.Produce] = answer
    slow, other = world.connect_slowly(), world.connect()
    burst = [metadata(n) for n in range(20)] + [produce(b"mine", correlation_id=20)]

    async def send() -> None:
        await slow.send(*burst)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        assert not seen, "it is not asked on while its reader takes nothing"
        await other.send(*[produce(b"other" * 100, correlation_id=n) for n in range(100)])
        for n in range(100):
            assert await other.correlation_id() == n
        assert [await slow.correlation_id() for _ in range(21)] == list(range(21))

    assert seen[-1] == b"mine"
