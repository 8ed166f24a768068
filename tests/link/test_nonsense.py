"""Whatever one end says, the other gives up that link with one line, and nothing else suffers.

Random conversations from seeds: all kinds of frames as they should be, but for some field that holds
something else; it is msgpack all the same. A failing seed fails again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import Any, Final

import attrs
import cattrs
import msgpack
import pytest
import trio
from trio.testing import MockClock

from rafka.config import MEMORY, Config
from rafka.errors import ErrorCode
from rafka.gateway.routes import ROUTES
from rafka.link import LinkMismatch
from rafka.link.frames import Framed, Kind, LinkBroken
from rafka.link.hello import greet
from rafka.link.packed import PackedLink, Patience
from rafka.ops import group, packing
from rafka.ops.base import Envelope, KafkaOp
from rafka.ops.packing import VERSION, envelope_fields, packing_of, reply_class
from rafka.server import open_broker
from rafka.types import NO_TOPIC_ID
from rafka.wire.schema import BYTES, RECORDS, STRING, UUID, Field, Struct

from ..ops.test_ops import SAMPLES
from .kit import METADATA, NOTHING_THERE, Gate, World, ask, asks, join, open_world

SEEDS: Final = range(60)
CONVERSATIONS: Final = 8  # for each seed
NONSENSE: Final[Sequence[Any]] = (
    *(None, True, False, 0, 1, -1, 77, 2**31, 2**63 - 1, -(2**63), 2**64 - 1),
    *(0.5, -1e300, float("nan"), float("inf")),
    *("", "g", "\u202e\n", "x" * 300, b"", b"\0\xff", bytes(NO_TOPIC_ID)),
    *((), (None,), (1, "a", b"b"), ((((),),),), {}, {"version": 1}, {"a": {"b": ()}}, {b"k": 1.5}),
    *(msgpack.ExtType(5, b"x"), msgpack.Timestamp(1, 2)),
)

Frame = tuple[Any, ...]


def spoiled(chance: random.Random, value: Any) -> Any:
    """The value with something else somewhere in it, at whatever depth."""
    if isinstance(value, dict) and value and chance.random() < 0.8:
        key = chance.choice(list(value))
        return {**value, key: spoiled(chance, value[key])}
    if isinstance(value, (tuple, list)) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        changed = [*value[:at], spoiled(chance, value[at]), *value[at + 1 :]]
        if chance.random() < 0.1:
            changed += [chance.choice(NONSENSE)]
        elif chance.random() < 0.1:
            del changed[at]
        return tuple(changed)
    return chance.choice(NONSENSE)


def _frame(value: Any) -> Frame:
    return value if isinstance(value, tuple) else (value,)


# --- a broker and what gateways may say ------------------------------------------------------------------


def said_by_a_gateway(chance: random.Random) -> list[Frame]:
    """Some of each kind, most of it as it should be."""
    frames: list[Frame] = [(Kind.OPEN, number, envelope_fields(Envelope())) for number in (1, 2)]
    for id in range(1, 9):
        op = chance.choice(SAMPLES)
        code = op.code
        frames.append((Kind.ASK, id, chance.choice((1, 2)), code, packing_of(code).op_fields(op)))
    frames += [(Kind.CANCEL, 3), (Kind.CLOSE, 2), (Kind.PING,), (Kind.BYE,)]
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(frames))
        frames[at] = spoiled(chance, frames[at])
    if chance.random() < 0.2:
        nonsense = tuple(chance.choices(NONSENSE, k=chance.randrange(1, 5)))
        frames.insert(chance.randrange(len(frames)), nonsense)
    return [_frame(frame) for frame in frames]


async def tell(world: World, chance: random.Random) -> None:
    framed = await world.bare_gateway()
    if chance.random() < 0.1:
        framed.put(
            *_frame(spoiled(chance, (Kind.HELLO, {"version": VERSION, "name": "confused", "release": "1"})))
        )
    else:
        await greet(framed, "confused")
    for frame in said_by_a_gateway(chance):
        framed.put(*frame)
    try:
        await framed.flush()
        await framed._stream.send_eof()  # type: ignore[attr-defined]
        while await framed.receive() is not None:
            pass
    except (LinkBroken, trio.BrokenResourceError):
        pass


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_gateway_can_harm_the_broker_or_another_gateway(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    plain = Config()
    config = attrs.evolve(plain, storage=attrs.evolve(plain.storage, place=MEMORY))
    async with open_broker(config, listen=False) as broker, open_world(served=broker.link) as world:
        sane = await world.gateway()

        for _ in range(CONVERSATIONS):
            caplog.clear()
            with trio.fail_after(20):
                await tell(world, chance)
            complaints = [record for record in caplog.records if record.levelno >= logging.WARNING]
            assert len(complaints) <= 1
            assert all(len(record.getMessage()) < 500 for record in complaints)

        reply = await ask(sane, METADATA)
        members = await ask(sane, group.ListGroups())
        assert type(reply) is type(NOTHING_THERE)
        assert type(members) is group.ListGroupsReply


@pytest.mark.parametrize("id", [{}, {"a": 1}, (), "1", 1.0, None, True, ((((),),),)], ids=repr)
async def test_an_op_is_asked_by_a_number(id: Any) -> None:
    """It is kept by it as long as it is parked."""
    async with open_world() as world:
        link, gate = await world.gateway(), Gate()
        world.broker.answers[group.JoinGroup] = lambda e, op: gate.later(
            group.JoinGroupReply(), overlaps=False
        )
        framed = await world.bare_gateway()
        await greet(framed, "confused")

        framed.put(Kind.OPEN, 1, envelope_fields(Envelope()))
        framed.put(Kind.ASK, id, 1, KafkaOp.JOIN_GROUP, packing_of(KafkaOp.JOIN_GROUP).op_fields(join()))
        await framed.flush()

        assert await framed.receive() is None
        assert await ask(link, METADATA) == NOTHING_THERE


@pytest.mark.parametrize("senders", [(1, 2), (1, 1), (1, 2, 2, 1)], ids=str)
async def test_a_number_is_not_given_twice_while_the_first_is_parked(
    senders: Sequence[int], caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is parked itself, or waits behind what is."""
    async with open_world() as world:
        link, gate = await world.gateway(), Gate()
        world.broker.answers[group.JoinGroup] = lambda e, op: gate.later(
            group.JoinGroupReply(), overlaps=False
        )
        framed = await world.bare_gateway()
        await greet(framed, "confused")

        for number in (1, 2):
            framed.put(Kind.OPEN, number, envelope_fields(Envelope()))
        fields = packing_of(KafkaOp.JOIN_GROUP).op_fields(join())
        ids = [*range(1, len(senders)), len(senders) - 1]
        for id, sender in zip(ids, senders, strict=True):
            framed.put(Kind.ASK, id, sender, KafkaOp.JOIN_GROUP, fields)
        await framed.flush()
        assert await framed.receive() is None
        gate.opened.set()

        assert await ask(link, METADATA) == NOTHING_THERE
    assert [r.message for r in caplog.records if r.levelno >= logging.WARNING] == [
        "gateway confused is given up: what it says is not understood: "
        f"ValueError('the number {ids[-1]} is of an op that waits')"
    ]


# --- a gateway and what brokers may say ------------------------------------------------------------------


class Liar:
    """Answers as a broker would, but for something here and there."""

    def __init__(self, chance: random.Random, world: World) -> None:
        self.chance = chance
        self.world = world

    async def serve(self, stream: trio.abc.Stream) -> None:
        framed = Framed(stream, 1 << 20)
        try:
            await framed.receive_one()
            welcome: Frame = (Kind.WELCOME, cattrs.unstructure(self.world.welcome))
            framed.put(*_frame(spoiled(self.chance, welcome) if self.chance.random() < 0.2 else welcome))
            await framed.flush()
            while (frames := await framed.receive()) is not None:
                for _, frame in frames:
                    if frame[0] == Kind.ASK:
                        self.answer(framed, frame[1], frame[3])
                        await framed.flush()
        except LinkBroken:
            pass
        finally:
            await trio.aclose_forcefully(stream)

    def answer(self, framed: Framed, id: int, code: int) -> None:
        op = next(op for op in SAMPLES if op.code == code)
        ways = packing_of(code)
        replied = (Kind.REPLY, id, ways.reply_fields(op.refusal(ErrorCode.INVALID_REQUEST)))
        kinds: list[Frame] = [replied, (Kind.UNKNOWN, id), (Kind.SETTINGS, {"a": "b"}), (Kind.PING,)]
        if self.chance.random() < 0.7:
            framed.put(*_frame(spoiled(self.chance, self.chance.choice(kinds))))
        framed.put(*replied)


@pytest.mark.parametrize("seed", SEEDS)
async def test_no_broker_can_harm_a_gateway(
    seed: int, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked is told to try again, and the gateway goes on with a broker that comes back."""
    chance = random.Random(seed)
    async with open_world() as world:
        honest, world.server.serve_stream = world.server.serve_stream, Liar(chance, world).serve  # type: ignore[method-assign]
        link = PackedLink(world.connect, to="memory", patience=Patience())
        ended = False

        async def run() -> None:
            nonlocal ended
            try:
                await link.run()
            except LinkMismatch:  # the broker said REFUSED
                ended = True

        world.nursery.start_soon(run)
        for op in chance.choices(SAMPLES, k=CONVERSATIONS * 2):
            with trio.fail_after(100):
                reply = await ask(link, op)
            assert isinstance(reply, reply_class(type(op)))
            await trio.sleep(0.5)
        world.server.serve_stream = honest  # type: ignore[method-assign]
        await world.lose()
        world.reachable = True
        await trio.sleep(100)

        assert ended or await ask(link, METADATA) == NOTHING_THERE
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert all(len(record.getMessage()) < 500 for record in caplog.records)


async def test_an_answer_that_does_not_fit_is_told_as_a_lost_one(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """So with all that is under way: it is not known what else was misunderstood."""

    async def lie(stream: trio.abc.Stream) -> None:
        framed = Framed(stream, 1 << 20)
        await framed.receive_one()
        framed.put(Kind.WELCOME, cattrs.unstructure(world.welcome))
        await framed.flush()
        while (frames := await framed.receive()) is not None:
            for _, frame in frames:
                if frame[0] == Kind.ASK and frame[3] == KafkaOp.HEARTBEAT:
                    framed.put(Kind.REPLY, frame[1], ("none",))
                    await framed.flush()

    async with open_world() as world:
        world.server.serve_stream = lie  # type: ignore[method-assign]
        link, envelope = await world.gateway(), Envelope()
        parked = asks(link, join(), envelope)
        reply = await ask(link, group.Heartbeat(group_id="g", generation_id=1, member_id="m"))

        assert reply.error_code == (await parked.wait()).error_code == 15
    [told] = [r.message for r in caplog.records if r.levelno == logging.WARNING]
    assert "what came for HeartbeatReply.error_code is of another type" in told


# --- what clients may say --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "route", [route for route in ROUTES.values() if route.op is not None], ids=lambda route: route.api.name
)
def test_what_the_wire_lets_through_the_link_carries(route: Any) -> None:
    """Else a client could end the link of all others: where the wire takes null an op has to."""

    def look(struct: Struct, cls: type[Any]) -> None:
        fields = {field.name: field for field in attrs.fields(attrs.resolve_types(cls))}
        for declared in struct.fields:
            if declared.name in fields:
                wanted, optional = packing._bare(fields[declared.name].type)
                assert optional or not may_be_null(declared), declared.name
                inner = packing._bare(packing._element(wanted))[0] if declared.array else wanted
                if isinstance(declared.type, Struct):
                    look(declared.type, inner)
                else:
                    assert inner is PYTHONS.get(declared.type, type(declared.type.zero)), declared.name

    look(route.api.request, route.op)


PYTHONS: Final = {STRING: str, BYTES: bytes, UUID: bytes, RECORDS: memoryview}


def may_be_null(field: Field) -> bool:
    return field.nullable_since is not None or field.default is None
