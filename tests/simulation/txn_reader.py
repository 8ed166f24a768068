"""A reader of committed records, as Kafka's own consumer is: told who was aborted, it leaves that out."""

from __future__ import annotations

import random
from typing import Any

import trio

from rafka.errors import ErrorCode
from rafka.records.batch import crc_of, walk
from rafka.records.control import read_marker
from rafka.records.record import iterate
from rafka.types import NO_TOPIC_ID
from rafka.wire.apis.fetch import FETCH
from rafka.wire.apis.list_offsets import LIST_OFFSETS

from .clients import BY_ID, CODES, Topic
from .history import Seen
from .txn_history import Ended, PipelineHistory, ReadCommitted
from .wire_client import GONE, Connect, WireClient

COMMITTED = 1
ABORTED_SINCE = 4  # the version of Fetch


class CommittedReader:
    def __init__(self, name: str, connect: Connect, dice: random.Random, history: PipelineHistory) -> None:
        self.name = name
        self.wire = WireClient(connect, name)
        self._dice = dice
        self._history = history
        self._version = dice.choice([v for v in FETCH.versions if v >= ABORTED_SINCE])

    async def follow(self, topic: Topic, ending: trio.Event) -> None:
        """Read all partitions from the beginning on, and write down what comes, until it is told to end."""
        positions = dict.fromkeys(range(topic.partitions), 0)
        while not ending.is_set():
            for partition, position in positions.items():
                found, positions[partition] = await self.records(topic, partition, position)
                now = trio.current_time()
                self._history.reads += [
                    ReadCommitted(self.name, partition, seen.offset, seen.value, now) for seen in found
                ]
            await trio.sleep(self._dice.uniform(0, 0.2))
        await self.wire.hang_up()

    async def read_through(self, topic: Topic) -> None:
        """Everything that is committed, and where it ends."""
        for partition in range(topic.partitions):
            end = await self.end(topic, partition)
            high = await self.end(topic, partition, isolation_level=0)
            self._history.ends.append(Ended(partition, end, high))
            position, all_found = 0, list[Seen]()
            while position < end:
                found, position = await self.records(topic, partition, position)
                all_found += found
            self._history.finals[partition] = [(seen.offset, seen.value) for seen in all_found]

    async def records(self, topic: Topic, partition: int, position: int) -> tuple[list[Seen], int]:
        """One fetch: what is committed of it, and the next position."""
        while True:
            reply = await self._ask(FETCH, self._version, self._fetch(topic, partition, position))
            for answered in reply.responses:
                for found in answered.partitions:
                    code = CODES[found.error_code]
                    if code is ErrorCode.NONE:
                        return self._committed(found, position)
                    self._astonished(code, f"at {position} of {partition}")
            await trio.sleep(self._dice.uniform(0.01, 0.2))

    async def end(self, topic: Topic, partition: int, isolation_level: int = COMMITTED) -> int:
        asked = LIST_OFFSETS.Request.Topics
        request = LIST_OFFSETS.Request(
            replica_id=-1,
            isolation_level=isolation_level,
            topics=[
                asked(
                    name=topic.name,
                    partitions=[asked.Partitions(partition_index=partition, timestamp=-1)],
                )
            ],
        )
        while True:
            reply = await self._ask(LIST_OFFSETS, 7, request)
            [answered] = reply.topics[0].partitions
            if answered.error_code == ErrorCode.NONE:
                return int(answered.offset)
            self._astonished(CODES[answered.error_code], f"for the end of {partition}")

    def _fetch(self, topic: Topic, partition: int, position: int) -> Any:
        by_id = self._version >= BY_ID
        named = FETCH.Request.Topics
        asked = named.Partitions(
            partition=partition,
            fetch_offset=position,
            partition_max_bytes=self._dice.choice((1, 500, 1 << 20)),
        )
        return FETCH.Request(
            max_wait_ms=self._dice.choice((0, 50, 500)),
            min_bytes=1,
            max_bytes=50_000_000,
            isolation_level=COMMITTED,
            topics=[
                named(
                    topic="" if by_id else topic.name,
                    topic_id=topic.topic_id if by_id else NO_TOPIC_ID,
                    partitions=[asked],
                )
            ],
        )

    def _committed(self, partition: Any, position: int) -> tuple[list[Seen], int]:
        aborted = sorted(
            ((one.first_offset, one.producer_id) for one in partition.aborted_transactions or ()),
            reverse=True,
        )
        skipped: set[int] = set()
        found: list[Seen] = []
        view = memoryview(partition.records or b"")
        start = position
        for at, header in walk(view):
            batch = view[at : at + header.size]
            if crc_of(view, at, header.size) != header.crc:
                self._history.surprises.append(f"{self.name}: a damaged batch at {header.base_offset}")
            while aborted and aborted[-1][0] <= header.last_offset:
                skipped.add(aborted.pop()[1])
            if header.control:
                marker = read_marker(batch)
                if marker is not None and not marker.committed:
                    skipped.discard(header.producer_id)
            elif not (header.transactional and header.producer_id in skipped):
                found += [
                    Seen(record.offset, bytes(record.value or b"").decode(), 0)
                    for record in iterate(batch)
                    if record.offset >= start
                ]
            position = max(position, header.next_offset)
        return found, position

    def _astonished(self, code: ErrorCode, where: str) -> None:
        if not code.retriable:
            self._history.surprises.append(f"{self.name} at {trio.current_time():.4f} s: {code.name} {where}")

    async def _ask(self, api: Any, version: int, request: Any) -> Any:
        while True:
            try:
                return await self.wire.ask(api, version, request)
            except GONE:
                await self.wire.hang_up()
            await trio.sleep(self._dice.uniform(0.01, 0.2))
