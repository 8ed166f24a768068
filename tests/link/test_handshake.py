"""Before anything else the two ends find out whether they understand each other, and by what bounds."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka import __version__
from rafka.link import LinkMismatch
from rafka.link.frames import Framed, Kind, LinkBroken
from rafka.link.hello import Limits, greet
from rafka.link.packed import PackedLink

from .kit import METADATA, NOTHING_THERE, ask, open_world


async def test_a_gateway_is_told_of_its_broker() -> None:
    async with open_world(Limits(ops=7, group_op_bytes=99_999), settings={"max.connections": "5"}) as world:
        link = await world.gateway()

    assert link.welcome == world.welcome
    assert link.welcome is not None
    assert (link.welcome.cluster_id, link.welcome.node_id, link.welcome.limits.ops) == ("c1", 0, 7)


async def test_settings_come_with_the_welcome_and_whenever_they_change() -> None:
    told: list[Any] = []
    async with open_world(settings={"max.connections": "5"}) as world:
        await world.gateway(on_settings=told.append)
        await world.gateway()

        world.server.tell({"max.connections": "6"})
        await wait_all_tasks_blocked()

    assert told == [{"max.connections": "5"}, {"max.connections": "6"}]


async def test_another_version_of_the_link_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world() as world:
        framed = await world.bare_gateway()
        framed.put(Kind.HELLO, {"version": 2, "name": "of another day", "release": "9.9"})
        await framed.flush()

        assert await framed.receive_one() == (Kind.REFUSED, MISMATCH)
        assert await framed.receive() is None
    assert "speaks version 2" in caplog.text


MISMATCH = (
    f"the gateway (rafka 9.9) speaks version 2 of the link, "
    f"the broker (rafka {__version__}) version 1: run the same release of both"
)


async def test_a_gateway_that_was_refused_ends() -> None:
    """Trying again would change nothing."""

    async def refuse(stream: trio.abc.Stream) -> None:
        framed = Framed(stream, 1 << 16)
        await framed.receive_one()
        framed.put(Kind.REFUSED, MISMATCH)
        await framed.flush()
        await trio.aclose_forcefully(stream)

    async with open_world() as world:
        world.server.serve_stream = refuse  # type: ignore[method-assign]
        link = PackedLink(world.connect, to="memory")

        with pytest.raises(LinkMismatch, match="run the same release of both"):
            await link.run()

    assert len(world.attempts) == 1


async def test_a_newer_broker_may_tell_more() -> None:
    async def tell_more(stream: trio.abc.Stream) -> None:
        framed = Framed(stream, 1 << 16)
        await framed.receive_one()
        told = {**attrs.asdict(world.welcome), "what": "is this"}
        framed.put(Kind.WELCOME, told)
        await framed.flush()
        await trio.sleep_forever()

    async with open_world() as world:
        world.server.serve_stream = tell_more  # type: ignore[method-assign]
        link = await world.gateway()

        assert link.welcome == world.welcome


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "a frame of 1213486160 bytes came"),
        (b"\0\0\0\1\xc1", "a frame is not msgpack"),
        (b"\0\0\0\1\x01", "a frame is no array"),
        (b"\0\0\0\1\x90", "a frame is no array"),
        (b"\0\0\0\2\x91\x01", "the handshake is not understood"),
        (b"\0\0\0\3\x92\x07\x01", "what answers there is no broker of rafka"),
        (b"\0\0\0\3\x92\x01\x01", "the broker's welcome is not understood"),
        (b"\0\0\0\3\x92", "the connection ended within a frame"),
        (b"", "the connection was closed"),
    ],
)
async def test_what_is_no_broker_is_told_from_one(said: bytes, why: str) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(said)
    await theirs.send_eof()

    with pytest.raises(LinkBroken, match=why):
        await greet(Framed(ours, 65_536), "me")


async def test_whoever_says_nothing_is_not_waited_for(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_world() as world:
        framed = await world.bare_gateway()

        assert await framed.receive() is None

    assert trio.current_time() == pytest.approx(10)
    assert "nothing was said for 10 s" in caplog.text


@pytest.mark.parametrize(
    "frame",
    [
        (Kind.ASK, 1, 99, 8, ["g", 1, "m"]),
        (Kind.ASK, 1),
        (Kind.ASK, 1, 1, 8, 7),
        (Kind.OPEN, 1, 7),
        (Kind.CLOSE, 99),
        (Kind.CANCEL,),
        (Kind.REPLY, 1, ()),
        (77,),
        ("what",),
    ],
    ids=[
        "no such sender",
        "no fields",
        "odd fields",
        "odd envelope",
        "close",
        "cancel",
        "reply",
        "77",
        "text",
    ],
)
async def test_a_gateway_that_talks_nonsense_is_given_up_and_no_other(frame: tuple[Any, ...]) -> None:
    async with open_world() as world:
        link = await world.gateway()
        framed = await world.bare_gateway()
        await greet(framed, "confused")

        framed.put(*frame)
        await framed.flush()

        assert await framed.receive() is None
        assert await ask(link, METADATA) == NOTHING_THERE
