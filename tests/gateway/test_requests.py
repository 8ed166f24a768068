"""One request: what closes the connection, what is answered all the same, and what is never answered."""

from __future__ import annotations

import logging

import pytest
import trio

from rafka.errors import ErrorCode
from rafka.gateway.routes import bound_route, bound_routes
from rafka.ops import log, topics
from rafka.ops.base import Envelope, Later
from rafka.ops.log import ProduceReply
from rafka.wire.apis.api_versions import API_VERSIONS
from rafka.wire.apis.metadata import METADATA
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.apis.sasl_handshake import SASL_HANDSHAKE
from rafka.wire.errors import WireError

from .kit import ScriptedLink, World, api_versions, cluster, metadata, produce, raw, request, written

NULL_ID = b"\xff\xff"


def failed(op: log.Produce) -> ProduceReply:
    return op.refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"\0\0\0\0", id="a size of 0"),
        pytest.param(b"\xff\xff\xff\xff", id="a size of -1"),
        pytest.param((104_857_601).to_bytes(4, "big"), id="a size above the largest, before the rest"),
        pytest.param(b"\x7f\xff\xff\xff", id="the largest size there is"),
        pytest.param(b"\0\0\0\x09" + bytes(9), id="too short for a header"),
        pytest.param(raw(999, 0, b""), id="an API nobody knows"),
        pytest.param(raw(-1, 0, b""), id="a negative API key"),
        pytest.param(raw(4, 0, b""), id="an API between brokers"),
        pytest.param(raw(0, 99, b""), id="Produce v99"),
        pytest.param(raw(0, 2, b""), id="Produce v2, which is listed and not served"),
        pytest.param(raw(3, -1, b""), id="version -1"),
        pytest.param(raw(3, 1, b""), id="a body that is not there"),
        pytest.param(raw(3, 1, b"\0\0\0\x05"), id="an array cut short"),
        pytest.param(raw(3, 1, b"\x7f\xff\xff\xff"), id="an array of two thousand million"),
        pytest.param(raw(3, 12, b"\0", client_id=b"\0\0"), id="a body cut short after the header's tags"),
        pytest.param(raw(3, 12, b"", client_id=b"\0\0"), id="a flexible header without its tags"),
        pytest.param(raw(3, 12, b"\x80\x80\x80\x80\x80\x80", client_id=b"\0\0"), id="too long a varint"),
        pytest.param(raw(3, 12, b"\xff\xff\xff\xff\x07", client_id=b"\0\0"), id="millions of tags in it"),
        pytest.param(raw(18, 99, b"", client_id=b"\0\0"), id="a later ApiVersions, its header cut short"),
        pytest.param(raw(3, 12, b"\x01\x00\x7f", client_id=b"\0\0"), id="a tag of it longer than the frame"),
        pytest.param(raw(3, 1, b"", client_id=b"\x7f\xff"), id="a client id longer than the frame"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="a TLS greeting"),
    ],
)
async def test_nonsense_closes_its_own_connection_and_no_other(
    world: World, link: ScriptedLink, frame: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """N1 to N4, and rows 1 to 38 of the bad inputs."""
    caplog.set_level(logging.INFO, "rafka")
    honest, other = world.connect(), world.connect()

    await other.send(metadata(1), frame)

    assert await other.correlation_id() == 1, "what came before it is answered"
    assert await other.closed()
    await honest.send(metadata(7))
    assert await honest.correlation_id() == 7
    [line] = caplog.records
    assert line.levelno == logging.INFO, "one line, and no traceback: it is the client's mistake"
    assert "closed" in line.getMessage()


@pytest.mark.parametrize(
    ("greeting", "said"), [(b"GET / HTTP/1.1\r\n\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00\x01", "TLS")]
)
async def test_other_protocols_are_named_in_the_log(
    world: World, greeting: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rafka")
    client = world.connect()

    await client.send(greeting)

    assert await client.closed()
    assert said in caplog.text


async def test_half_a_request_of_a_client_that_goes_is_not_done(world: World, link: ScriptedLink) -> None:
    """N14; bad input 6."""
    client = world.connect()

    await client.send(produce(b"x")[:-1])
    await client.stream.send_stream.aclose()  # type: ignore[attr-defined]

    assert await client.closed()
    assert not link.asked


async def test_a_whole_request_of_a_client_that_has_gone_is_done(world: World, link: ScriptedLink) -> None:
    """N14."""
    client = world.connect()

    await client.send(produce(b"x"))
    await client.stream.aclose()
    await trio.testing.wait_all_tasks_blocked()

    assert len(link.asked) == 1


async def test_bytes_left_over_after_a_body_are_passed_over(world: World) -> None:
    """N9, LF-073."""
    client = world.connect()
    frame = bytearray(metadata(5) + b"junk")
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")

    await client.send(bytes(frame), metadata(6))

    assert [await client.correlation_id() for _ in range(2)] == [5, 6]


@pytest.mark.parametrize("correlation_id", [0, -1, -(2**31), 2**31 - 1])
async def test_a_correlation_id_comes_back_as_it_was(world: World, correlation_id: int) -> None:
    """N15."""
    client = world.connect()

    await client.send(metadata(correlation_id), metadata(correlation_id))

    assert [await client.correlation_id() for _ in range(2)] == [correlation_id] * 2


@pytest.mark.parametrize(
    ("client_id", "read"),
    [
        (b"\xff\xff", ""),
        (b"\xff\xfe", ""),
        (b"\x80\x00", ""),
        (b"\0\0", ""),
        (b"\0\x03abc", "abc"),
        (b"\0\x02\xff\xfe", "\ufffd\ufffd"),
        (b"\x7f\xff" + b"x" * 32_767, "x" * 256),
    ],
)
async def test_any_client_id_will_do(world: World, link: ScriptedLink, client_id: bytes, read: str) -> None:
    """N10, N13; bad input 19."""
    client = world.connect()

    await client.send(raw(3, 1, b"\0\0\0\0", client_id=client_id))

    assert await client.correlation_id() == 1
    assert link.client_ids == [read]


async def test_a_client_id_may_change_on_the_way(world: World, link: ScriptedLink) -> None:
    client = world.connect()

    for client_id in ("a", "b", None, "a"):
        await client.send(request(METADATA, 1, client_id=client_id))
        await client.frame()

    assert link.client_ids == ["a", "b", "", "a"]


async def test_unknown_tags_in_a_header_are_passed_over(world: World) -> None:
    """N11, LF-008, LF-072: a thousand of them, one twice, out of order."""
    client = world.connect()
    tags = bytes((0x80 | 1000 & 0x7F, 1000 >> 7)) + b"".join(bytes((n % 100, 2)) + b"xy" for n in range(1000))
    body = b"\x01" + b"\0\0\0" + b"\0"  # no topics, three times false, no tags

    await client.send(raw(3, 12, tags + body))

    assert await client.correlation_id() == 1


# --- ApiVersions -------------------------------------------------------------------------


@pytest.mark.parametrize("version", [5, 99, -1, 32767, -32768])
async def test_an_unknown_version_of_apiversions_is_answered_in_version_0(world: World, version: int) -> None:
    """N5, LF-003: with nothing listed but itself, the body unread, and the connection stays open."""
    client = world.connect()

    tags = b"\0" if version > 4 else b""  # as the header of any later version ends
    await client.send(raw(18, version, tags + b"\xff\xff\xff\xff garbage"))

    reply = await client.reply(API_VERSIONS, 0)
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(a.api_key, a.min_version, a.max_version) for a in reply.api_keys] == [(18, 0, 4)]
    await client.send(api_versions(version=0))
    assert (await client.reply(API_VERSIONS, 0)).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "taken"), [("", False), ("-a", False), ("a b", False), ('"><script>', False), ("a-b.c1", True)]
)
async def test_the_name_of_a_clients_software_has_a_form(
    world: World, version: int, name: str, taken: bool
) -> None:
    """N6, LF-004."""
    client = world.connect()
    asked = API_VERSIONS.Request(client_software_name=name, client_software_version="1.0")

    await client.send(request(API_VERSIONS, version, asked))

    reply = await client.reply(API_VERSIONS, version)
    assert reply.error_code == (ErrorCode.NONE if taken else ErrorCode.INVALID_REQUEST)
    assert bool(reply.api_keys) is taken


async def test_the_header_of_an_apiversions_reply_has_no_tags(world: World) -> None:
    """LF-005."""
    client = world.connect()
    asked = API_VERSIONS.Request(client_software_name="a", client_software_version="1")

    await client.send(request(API_VERSIONS, 4, asked, correlation_id=9))

    frame = await client.frame()
    assert frame[:6] == (9).to_bytes(4, "big") + b"\0\0", "the error code follows the correlation id at once"


async def test_apis_are_listed_in_order_and_are_those_with_a_route(world: World) -> None:
    from rafka.gateway.routes import ROUTES

    client = world.connect()

    await client.send(api_versions())

    listed = (await client.reply(API_VERSIONS, 0)).api_keys
    assert [api.api_key for api in listed] == sorted(key for key, route in ROUTES.items() if not route.own)
    assert {a.api_key: a.min_version for a in listed}[PRODUCE.key] == 0, "as librdkafka wants to see it"


# --- acks=0 --------------------------------------------------------------------------------


async def test_acks_0_is_never_answered(world: World, link: ScriptedLink) -> None:
    """LF-025."""
    client = world.connect()

    await client.send(produce(b"x", acks=0, correlation_id=1), metadata(2))

    assert await client.correlation_id() == 2
    assert len(link.asked) == 2


async def test_acks_0_that_fails_closes_the_connection(world: World, link: ScriptedLink) -> None:
    """LF-025; bad input 61."""
    link.answers[log.Produce] = lambda _, op: failed(op)
    client = world.connect()

    await client.send(metadata(1), produce(b"x", acks=0, correlation_id=2), metadata(3))

    assert await client.correlation_id() == 1
    assert await client.closed()


@pytest.mark.parametrize("bad", [b"", raw(999, 0, b"")], ids=["and nothing else", "and a bad request"])
async def test_several_failures_behind_a_write_close_the_connection_and_nothing_else(
    world: World, link: ScriptedLink, bad: bytes
) -> None:
    gate = trio.Event()

    async def wait(reply: ProduceReply) -> ProduceReply:
        await gate.wait()
        return reply

    def answer(_: Envelope, op: log.Produce) -> object:
        return Later(wait, written(op), overlaps=True) if op.acks else failed(op)

    link.answers[log.Produce] = answer
    client, honest = world.connect(), world.connect()

    await client.send(
        produce(b"x", correlation_id=1),
        produce(b"x", acks=0, correlation_id=2),
        produce(b"x", acks=0, correlation_id=3),
        metadata(4),
        bad,
    )
    await trio.testing.wait_all_tasks_blocked()
    gate.set()

    assert await client.correlation_id() == 1
    assert await client.closed(), "what follows a failure is lost with the connection"
    await honest.send(metadata(1))
    assert await honest.correlation_id() == 1


async def test_acks_0_that_makes_us_stumble_closes_the_connection(world: World, link: ScriptedLink) -> None:
    """N7."""
    link.answers[log.Produce] = stumble
    client = world.connect()

    await client.send(produce(b"x", acks=0))

    assert await client.closed()


# --- our own mistakes --------------------------------------------------------------------


def stumble(_: Envelope, op: object) -> object:
    raise RuntimeError("a mistake of ours")


async def stumble_later() -> object:
    await trio.lowlevel.checkpoint()
    raise OSError("a mistake of ours, which is no word from the client's socket")


@pytest.mark.parametrize("answer", [stumble, lambda _, op: Later(stumble_later)], ids=["at once", "later"])
async def test_a_mistake_of_ours_is_told_and_logged_and_the_connection_goes_on(
    world: World, link: ScriptedLink, answer: object, caplog: pytest.LogCaptureFixture
) -> None:
    """N7."""
    link.answers[topics.Metadata] = answer  # type: ignore[assignment]
    client = world.connect()

    await client.send(request(METADATA, 1, METADATA.Request(topics=[METADATA.Request.Topics(name="t")])))
    await client.send(cluster(2))

    [topic] = (await client.reply(METADATA, 1)).topics
    assert topic.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert await client.correlation_id() == 2
    [record] = caplog.records
    assert record.exc_info is not None
    assert "a mistake of ours" in caplog.text


async def test_a_reply_that_has_no_form_on_the_wire_is_a_mistake_of_ours(
    world: World, link: ScriptedLink, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of the half-written reply is sent."""
    link.answers[topics.Metadata] = lambda _, op: topics.MetadataReply(
        topics=[topics.TopicMetadata(name="x" * 40_000)]
    )
    client = world.connect()

    await client.send(metadata(1), cluster(2))

    assert [await client.correlation_id() for _ in range(2)] == [1, 2]
    assert caplog.records[0].exc_info is not None


async def test_names_that_only_grow_too_long_by_our_reading_them_harm_nobody_else(
    world: World, link: ScriptedLink
) -> None:
    """20,000 bytes that are no UTF-8 are read as 60,000 bytes of U+FFFD, which no reply can hold."""
    link.answers[topics.Metadata] = lambda _, op: op.refusal(ErrorCode.INVALID_TOPIC_EXCEPTION)
    client, honest = world.connect(), world.connect()

    await client.send(raw(3, 1, b"\0\0\0\x01" + (20_000).to_bytes(2, "big") + b"\xff" * 20_000))

    assert await client.closed()
    await honest.send(metadata(1))
    assert await honest.correlation_id() == 1


# --- what only a version says ----------------------------------------------------------------


async def test_metadata_v0_means_all_by_no_topics(world: World, link: ScriptedLink) -> None:
    """LF-057."""
    client = world.connect()

    for version in (0, 1):
        await client.send(request(METADATA, version, METADATA.Request(topics=[])))
        await client.frame()

    assert [op.topics for op in link.asked] == [None, []]  # type: ignore[attr-defined]


async def test_metadata_before_v12_cannot_ask_by_id(world: World, link: ScriptedLink) -> None:
    """M5, LF-091: the whole request is refused, with no brokers."""
    client = world.connect()
    by_id = METADATA.Request(topics=[METADATA.Request.Topics(topic_id=b"i" * 16, name=None)])

    await client.send(request(METADATA, 10, by_id))

    reply = await client.reply(METADATA, 10)
    assert [(t.error_code, t.name, t.topic_id) for t in reply.topics] == [(42, "", b"i" * 16)]
    assert (reply.brokers, reply.cluster_id, reply.controller_id) == ([], None, -1)
    assert not link.asked


async def test_metadata_with_neither_name_nor_id_is_refused(world: World, link: ScriptedLink) -> None:
    """M5, LF-091."""
    client = world.connect()
    neither = METADATA.Request(topics=[METADATA.Request.Topics(name=None)])

    await client.send(request(METADATA, 12, neither))

    reply = await client.reply(METADATA, 12)
    assert [t.error_code for t in reply.topics] == [-1]
    assert reply.brokers == []


async def test_produce_learns_from_its_version_how_topics_are_named(world: World, link: ScriptedLink) -> None:
    client = world.connect()

    for version in (6, 7, 12, 13):
        await client.send(produce(b"x", version=version))
        await client.frame()

    assert [(op.by_id, op.zstd_allowed) for op in link.asked] == [  # type: ignore[attr-defined]
        (False, False),
        (False, True),
        (False, True),
        (True, True),
    ]


async def test_sasl_is_out_of_place_on_a_plain_listener(world: World) -> None:
    """LF-067, SASL A9: said, and the connection stays."""
    client = world.connect()

    await client.send(request(SASL_HANDSHAKE, 1, SASL_HANDSHAKE.Request(mechanism="PLAIN")), metadata(2))

    assert (await client.reply(SASL_HANDSHAKE, 1)).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert await client.correlation_id() == 2


def test_what_is_not_served_leaves_nothing_behind() -> None:
    """Whoever asks for every version there may be shall not fill our memory with them."""
    before = dict(bound_routes)

    for version in range(-50, 50):
        with pytest.raises(WireError):
            bound_route(999, version)
        bound_route(18, 1000 + version)  # ApiVersions is answered all the same

    assert bound_routes == before
