"""A small broker for tests of the client: it speaks through `rafka.wire`, over memory streams.

It keeps batches as they come, numbers them, and checks sequence numbers as Kafka does. What a test
wants to go wrong it plants: `refuse` has codes for the next produce requests, `close_on` the names
of APIs at which it hangs up, `answers` an answer of the test's own for an API.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import attrs
import trio
import trio.testing

from rafka.client import Address
from rafka.errors import ErrorCode
from rafka.records.batch import place, read_header
from rafka.wire.api import Api
from rafka.wire.apis.api_versions import API_VERSIONS
from rafka.wire.apis.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from rafka.wire.apis.create_topics import CREATE_TOPICS
from rafka.wire.apis.delete_groups import DELETE_GROUPS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR
from rafka.wire.apis.group_history import GROUP_HISTORY
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.init_producer_id import INIT_PRODUCER_ID
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.list_groups import LIST_GROUPS
from rafka.wire.apis.list_offsets import LIST_OFFSETS
from rafka.wire.apis.metadata import METADATA
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_delete import OFFSET_DELETE
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.apis.sync_group import SYNC_GROUP
from rafka.wire.frame import (
    begin_frame,
    end_frame,
    end_of_header,
    pieces,
    read_request_header,
    write_response_header,
)

APIS = {
    api.key: api
    for api in (
        API_VERSIONS,
        CONSUMER_GROUP_DESCRIBE,
        CREATE_TOPICS,
        DELETE_GROUPS,
        DESCRIBE_GROUPS,
        FETCH,
        FIND_COORDINATOR,
        GROUP_HISTORY,
        HEARTBEAT,
        INIT_PRODUCER_ID,
        JOIN_GROUP,
        LEAVE_GROUP,
        LIST_GROUPS,
        LIST_OFFSETS,
        METADATA,
        OFFSET_COMMIT,
        OFFSET_DELETE,
        OFFSET_FETCH,
        PRODUCE,
        SYNC_GROUP,
    )
}
Handler = Callable[[Any, int], Any]

BROKER = Address("broker", 9092)


@attrs.define(eq=False)
class Log:
    """One partition: its batches, in order."""

    batches: list[bytearray] = attrs.field(factory=list)
    end: int = 0
    start: int = 0
    sequences: dict[int, tuple[int, int]] = attrs.field(factory=dict)  # producer id: next, last offset

    def append(self, batch: bytes) -> int:
        """The base offset that it was given."""
        header = read_header(batch)
        placed = bytearray(batch)
        place(placed, self.end, 0)
        self.batches.append(placed)
        base, self.end = self.end, self.end + header.last_offset_delta + 1
        return base


@attrs.define(eq=False)
class ScriptedBroker:
    topics: dict[str, int] = attrs.field(factory=dict)  # partitions of each
    node_id: int = 1
    address: Address = BROKER
    leader: int = 1
    nodes: dict[int, Address] = attrs.field(factory=lambda: {1: BROKER})
    versions: dict[int, tuple[int, int]] = attrs.field(factory=dict)  # in place of all the wire knows
    logs: dict[tuple[str, int], Log] = attrs.field(factory=lambda: defaultdict(Log))
    refuse: deque[ErrorCode] = attrs.field(factory=deque)
    close_on: list[str] = attrs.field(factory=list)
    swallow: list[str] = attrs.field(factory=list)  # APIs that are never answered
    answers: dict[str, Handler] = attrs.field(factory=dict)
    asked: list[tuple[str, int, Any]] = attrs.field(factory=list)  # API, version, request
    connections: int = 0
    producer_ids: int = 0

    def names(self) -> list[str]:
        return [name for name, _, _ in self.asked]

    # --- serving -----------------------------------------------------------------

    async def serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        buffer = bytearray()
        try:
            async with stream:
                async for data in stream:
                    buffer += data
                    while len(buffer) >= 4 and len(buffer) >= 4 + int.from_bytes(buffer[:4], "big"):
                        size = 4 + int.from_bytes(buffer[:4], "big")
                        frame = bytes(buffer[4:size])
                        del buffer[:size]
                        if not await self._answer(stream, frame):
                            return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _answer(self, stream: trio.abc.Stream, frame: bytes) -> bool:
        key, version, correlation_id, _, at = read_request_header(frame)
        api = APIS[key]
        if api is API_VERSIONS and version not in self._range(api):
            await self._send(
                stream, api, 0, correlation_id, self._api_versions(ErrorCode.UNSUPPORTED_VERSION)
            )
            return True
        at = end_of_header(frame, at, api.is_flexible(version))
        request, _ = api.request_decoder(version)(memoryview(frame), at)
        self.asked.append((api.name, version, request))
        if api.name in self.close_on:
            self.close_on.remove(api.name)
            return False
        if api.name in self.swallow:
            return True
        handler = self.answers.get(api.name) or getattr(self, f"on_{api.name}")
        reply = handler(request, version)
        if isinstance(reply, trio.Event):  # the test says when
            await reply.wait()
            reply = getattr(self, f"on_{api.name}")(request, version)
        if api is FETCH and not any(one.records for topic in reply.responses for one in topic.partitions):
            await trio.sleep(request.max_wait_ms / 1000)
            reply = handler(request, version)
        if reply is not None:
            await self._send(stream, api, version, correlation_id, reply)
        return True

    async def _send(
        self, stream: trio.abc.Stream, api: Api, version: int, correlation_id: int, reply: Any
    ) -> None:
        out = bytearray()
        start = begin_frame(out)
        write_response_header(out, correlation_id, api.response_header_flexible(version))
        splices: list[tuple[int, Any]] = []
        extra = (splices,) if api.response_splices else ()
        api.response_encoder(version)(reply, out, *extra)
        end_frame(out, start, sum(len(piece) for _, piece in splices))
        await stream.send_all(b"".join(pieces(out, splices)))

    def _range(self, api: Api) -> range:
        least, most = self.versions.get(api.key, (min(api.versions), max(api.versions)))
        return range(least, most + 1)

    # --- what it answers -----------------------------------------------------------

    def on_ApiVersions(self, request: Any, version: int) -> Any:
        return self._api_versions(ErrorCode.NONE)

    def _api_versions(self, code: ErrorCode) -> Any:
        entry = API_VERSIONS.Response.ApiKeys
        ranges = {api: self._range(api) for api in APIS.values()}
        keys = [
            entry(api_key=api.key, min_version=r[0], max_version=r[-1]) for api, r in ranges.items() if len(r)
        ]
        return API_VERSIONS.Response(error_code=int(code), api_keys=keys)

    def on_Metadata(self, request: Any, version: int) -> Any:
        response: Any = METADATA.Response
        names = sorted(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return response(
            brokers=[
                response.Brokers(node_id=node_id, host=address.host, port=address.port)
                for node_id, address in self.nodes.items()
            ],
            cluster_id="scripted",
            controller_id=self.leader,
            topics=[self._topic(response, name) for name in names],
        )

    def _topic(self, response: Any, name: str) -> Any:
        if name not in self.topics:
            return response.Topics(name=name, error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        partitions = [
            response.Topics.Partitions(partition_index=index, leader_id=self.leader)
            for index in range(self.topics[name])
        ]
        return response.Topics(name=name, partitions=partitions)

    def on_InitProducerId(self, request: Any, version: int) -> Any:
        self.producer_ids += 1
        return INIT_PRODUCER_ID.Response(producer_id=1000 + self.producer_ids, producer_epoch=0)

    def on_Produce(self, request: Any, version: int) -> Any:
        response: Any = PRODUCE.Response
        topics = []
        for topic in request.topic_data:
            answers = []
            for one in topic.partition_data:
                code, offset = self._append(topic.name, one.index, bytes(one.records))
                answers.append(
                    response.Responses.PartitionResponses(
                        index=one.index, error_code=int(code), base_offset=offset
                    )
                )
            topics.append(response.Responses(name=topic.name, partition_responses=answers))
        return response(responses=topics) if request.acks else None

    def _append(self, topic: str, partition: int, batch: bytes) -> tuple[ErrorCode, int]:
        code = self.refuse.popleft() if self.refuse else ErrorCode.NONE
        if code is not ErrorCode.NONE:
            return code, -1
        log, header = self.logs[topic, partition], read_header(batch)
        if header.producer_id >= 0:
            expected, last = log.sequences.get(header.producer_id, (0, -1))
            if header.base_sequence < expected:
                return ErrorCode.NONE, last
            if header.base_sequence > expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = log.append(batch)
        log.sequences[header.producer_id] = (header.base_sequence + header.count, offset)
        return ErrorCode.NONE, offset

    def on_ListOffsets(self, request: Any, version: int) -> Any:
        response: Any = LIST_OFFSETS.Response
        topics = []
        for topic in request.topics:
            answers = []
            for one in topic.partitions:
                log = self.logs[topic.name, one.partition_index]
                offset = {-1: log.end, -2: log.start}.get(one.timestamp, -1)
                answers.append(response.Topics.Partitions(partition_index=one.partition_index, offset=offset))
            topics.append(response.Topics(name=topic.name, partitions=answers))
        return response(topics=topics)

    def on_Fetch(self, request: Any, version: int) -> Any:
        response: Any = FETCH.Response
        topics = []
        for topic in request.topics:
            answers = [
                self._fetched(response.Responses.Partitions, topic.topic, one) for one in topic.partitions
            ]
            topics.append(response.Responses(topic=topic.topic, partitions=answers))
        return response(responses=topics)

    def _fetched(self, entry: Any, topic: str, wanted: Any) -> Any:
        log = self.logs[topic, wanted.partition]
        answer = entry(partition_index=wanted.partition, high_watermark=log.end, last_stable_offset=log.end)
        if not log.start <= wanted.fetch_offset <= log.end:
            answer.error_code = int(ErrorCode.OFFSET_OUT_OF_RANGE)
            answer.records = b""
            return answer
        rest = [b for b in log.batches if read_header(b).last_offset >= wanted.fetch_offset]
        answer.records = b"".join(rest)
        return answer


@attrs.define(eq=False)
class Network:
    """Dials scripted brokers by their addresses; whatever else is dialled refuses."""

    nursery: trio.Nursery
    brokers: dict[Address, ScriptedBroker]
    dialled: list[Address] = attrs.field(factory=list)

    async def dial(self, address: Address) -> trio.abc.Stream:
        self.dialled.append(address)
        await trio.lowlevel.checkpoint()
        if address not in self.brokers:
            raise ConnectionRefusedError(111, "Connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self.brokers[address].serve, theirs)
        return ours
