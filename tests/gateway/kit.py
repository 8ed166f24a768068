"""A gateway for tests: a link that answers as the test says, and clients in real bytes.

Requests are written by `rafka.wire`, whose bytes are held against another implementation
in `tests/wire`. A `Client` reads whole reply frames off its stream, in order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import trio
import trio.testing

from rafka.config import Config
from rafka.gateway.server import Gateway
from rafka.ops.base import Envelope, Later, Op
from rafka.ops.log import (
    PartitionProduceReply,
    Produce,
    ProduceReply,
    TopicProduceReply,
)
from rafka.types import NO_TOPIC_ID
from rafka.wire.api import Api
from rafka.wire.apis.api_versions import API_VERSIONS
from rafka.wire.apis.describe_cluster import DESCRIBE_CLUSTER
from rafka.wire.apis.metadata import METADATA
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.frame import begin_frame, end_frame, pieces, read_response_header, write_request_header

Answer = Callable[[Envelope, Any], Any]


def request(
    api: Api, version: int, body: Any = None, *, correlation_id: int = 1, client_id: str | None = "test"
) -> bytes:
    """A whole frame. `body` is a request object of the API; by default one with the wire's defaults."""
    frame = bytearray()
    begin_frame(frame)
    write_request_header(frame, api.key, version, correlation_id, client_id, api.is_flexible(version))
    splices: list[tuple[int, Any]] = []
    encode = api.request_encoder(version)
    body = api.Request() if body is None else body
    if api.request_splices:
        encode(body, frame, splices)
    else:
        encode(body, frame)
    end_frame(frame, 0, sum(len(buffer) for _, buffer in splices))
    return b"".join(pieces(frame, splices))


def produce(
    records: bytes | None, *, acks: int = -1, topic: str = "t", version: int = 9, correlation_id: int = 1
) -> bytes:
    body = PRODUCE.Request(acks=acks, timeout_ms=30_000)
    data = PRODUCE.Request.TopicData(name=topic)
    data.partition_data = [PRODUCE.Request.TopicData.PartitionData(index=0, records=records)]
    body.topic_data = [data]
    return request(PRODUCE, version, body, correlation_id=correlation_id)


def api_versions(correlation_id: int = 1, version: int = 0) -> bytes:
    return request(API_VERSIONS, version, correlation_id=correlation_id)


def metadata(correlation_id: int = 1, version: int = 1) -> bytes:
    return request(METADATA, version, correlation_id=correlation_id)


def cluster(correlation_id: int = 1) -> bytes:
    return request(DESCRIBE_CLUSTER, 0, correlation_id=correlation_id)


def raw(key: int, version: int, body: bytes, *, correlation_id: int = 1, client_id: bytes = b"\0\0") -> bytes:
    """A frame of these very bytes; `client_id` with its length before it."""
    payload = struct.pack(">hhi", key, version, correlation_id) + client_id + body
    return struct.pack(">i", len(payload)) + payload


def written(op: Produce, base_offset: int = 0) -> ProduceReply:
    """As a broker that takes all."""
    return ProduceReply(
        responses=[
            TopicProduceReply(
                name=topic.name,
                topic_id=NO_TOPIC_ID,
                partition_responses=[
                    PartitionProduceReply(index=p.index, base_offset=base_offset)
                    for p in topic.partition_data
                ],
            )
            for topic in op.topic_data
        ]
    )


@attrs.define(eq=False)
class ScriptedLink:
    """As `link.Link`. Answers by `answers[type of op]`; keeps what it was asked."""

    answers: dict[type[Op[Any]], Answer] = attrs.Factory(dict)
    asked: list[Op[Any]] = attrs.Factory(list)
    client_ids: list[str] = attrs.Factory(list)
    on_keep: Callable[[], object] = lambda: None

    def ask(self, envelope: Envelope, op: Op[Any]) -> Any:
        self.asked.append(op)
        self.client_ids.append(envelope.client_id)
        return self.answers[type(op)](envelope, op)

    def keep(self) -> None:
        self.on_keep()


class Opening:
    """As a `trio.Event` that also rings bells."""

    def __init__(self) -> None:
        self.bells: list[Callable[[], None]] = []
        self._event = trio.Event()

    def is_set(self) -> bool:
        return self._event.is_set()

    def set(self) -> None:
        self._event.set()
        for bell in self.bells:
            bell()

    async def wait(self) -> None:
        await self._event.wait()


class Ringing(Later[Any]):
    """A reply that rings when its gate is opened."""

    def __init__(self, gate: Gate, reply: Any, *, overlaps: bool) -> None:
        self.overlaps = overlaps
        self._gate = gate
        self._reply = reply

    def ready(self) -> bool:
        return self._gate.opened.is_set()

    def wait(self) -> Any:
        raise AssertionError("who has left a bell does not wait")

    def ring(self, bell: Callable[[], None]) -> bool:
        self._gate.opened.bells.append(bell)
        return True

    def take(self) -> Any:
        if isinstance(self._reply, Exception):
            raise self._reply
        return self._reply

    def forget(self) -> None:
        self._gate.forgotten += 1


@attrs.define(eq=False)
class Gate:
    """Something that takes time: everybody waits in `later` until the gate is opened."""

    opened: Opening = attrs.Factory(Opening)
    waiting: int = 0
    most: int = 0
    forgotten: int = 0
    rings: ClassVar[bool] = False  # whether replies behind a gate ring, or have to be waited for

    def later(self, reply: Any, *, overlaps: bool) -> Later[Any]:
        if self.rings:
            return Ringing(self, reply, overlaps=overlaps)
        return Later(self._wait, reply, overlaps=overlaps, ready=self.opened.is_set)

    async def _wait(self, reply: Any) -> Any:
        if self.opened.is_set():
            return reply
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        try:
            await self.opened.wait()
        finally:
            self.waiting -= 1
        return reply


class Client:
    """One end of a stream, read by frames."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self.stream = stream
        self.reads = 0
        self._unread = bytearray()

    async def send(self, *frames: bytes) -> None:
        await self.stream.send_all(b"".join(frames))

    async def frame(self) -> bytes:
        """The next reply, without its length. EOFError where the gateway has closed."""
        (size,) = struct.unpack(">i", await self._exactly(4))
        return await self._exactly(size)

    async def correlation_id(self) -> int:
        (found,) = struct.unpack_from(">i", await self.frame())
        return int(found)

    async def reply(self, api: Api, version: int) -> Any:
        frame = memoryview(await self.frame())
        _, at = read_response_header(frame, 0, api.response_header_flexible(version))
        response, end = api.response_decoder(version)(frame, at)
        assert end == len(frame)
        return response

    async def closed(self) -> bool:
        """Whether nothing more comes, and the gateway has hung up."""
        if self._unread:
            return False
        try:
            return not await self.stream.receive_some(1)
        except trio.BrokenResourceError:
            return True

    async def _exactly(self, size: int) -> bytes:
        while len(self._unread) < size:
            data = await self.stream.receive_some(1 << 20)
            if not data:
                raise EOFError
            self.reads += 1
            self._unread += data
        taken = bytes(self._unread[:size])
        del self._unread[:size]
        return taken


@attrs.define(eq=False)
class World:
    """A gateway that runs, and clients of it on streams in memory."""

    gateway: Gateway
    link: ScriptedLink
    nursery: trio.Nursery

    def connect(self, envelope: Envelope | None = None) -> Client:
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.gateway.serve_stream, theirs, envelope)
        return Client(ours)

    def connect_slowly(self) -> Client:
        """Over a stream that passes nothing on before it is taken at the other end."""
        ours, theirs = trio.testing.lockstep_stream_pair()
        self.nursery.start_soon(self.gateway.serve_stream, theirs)
        return Client(ours)


def config(**network: Any) -> Config:
    plain = Config()
    return attrs.evolve(plain, network=attrs.evolve(plain.network, **network))
