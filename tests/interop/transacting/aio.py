"""aiokafka, whose coroutines are run one by one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from .vocabulary import TIMEOUT_S, Fenced, transformed

T = TypeVar("T")
KNOWS_GENERATIONS: Final = False


class _Loop:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()

    def run(self, doing: Coroutine[Any, Any, T], timeout: float = TIMEOUT_S) -> T:
        try:
            return self.loop.run_until_complete(asyncio.wait_for(doing, timeout))
        except KafkaError as failed:
            told = f"{type(failed).__name__} {failed}"
            if "Fenced" in told or "InvalidProducerEpoch" in told:
                raise Fenced(told) from failed
            raise


class _Transactional:
    def __init__(self, loop: _Loop, producer: AIOKafkaProducer) -> None:
        self._loop = loop
        self._producer = producer

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self._loop.run(self._producer.send(topic, value=value, partition=partition))

    def send_offsets(self, topic: str, offsets: Mapping[int, int], group: str) -> None:
        self.send_positions({TopicPartition(topic, p): offset for p, offset in offsets.items()}, group)

    def send_positions(self, positions: Mapping[TopicPartition, int], group: str) -> None:
        self._loop.run(self._producer.send_offsets_to_transaction(positions, group))

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())


@contextmanager
def producer(bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> Iterator[_Transactional]:
    loop = _Loop()

    async def make() -> AIOKafkaProducer:
        made = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            request_timeout_ms=20_000,
        )
        await made.start()
        return made

    made = loop.run(make())
    try:
        yield _Transactional(loop, made)
    finally:
        with suppress(KafkaError, TimeoutError):
            loop.loop.run_until_complete(asyncio.wait_for(made.stop(), 5))
        loop.loop.close()


def read_committed(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    async def read() -> list[bytes]:
        places = [TopicPartition(topic, p) for p in range(partitions)]
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed")
        await consumer.start()
        consumer.assign(places)
        await consumer.seek_to_beginning()
        ends = await consumer.end_offsets(places)
        found: dict[TopicPartition, list[bytes]] = {place: [] for place in places}
        deadline = time.monotonic() + TIMEOUT_S
        while any([await consumer.position(place) < ends[place] for place in places]):
            assert time.monotonic() < deadline, "the partitions did not come to their end"
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                found[place] += [record.value for record in records]
        await consumer.stop()
        return [value for values in found.values() for value in values]

    return asyncio.run(read())


def committed_offset(bootstrap: str, group: str, topic: str, partition: int) -> int | None:
    async def ask() -> int | None:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
        await consumer.start()
        offset: int | None = await consumer.committed(TopicPartition(topic, partition))
        await consumer.stop()
        return offset

    return asyncio.run(ask())


def work(bootstrap: str, source: str, target: str, group: str, name: str) -> Iterator[int]:
    with producer(bootstrap, name, timeout_ms=8000) as writer:
        loop = writer._loop

        async def join() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                source,
                bootstrap_servers=bootstrap,
                group_id=group,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
                session_timeout_ms=6000,
                heartbeat_interval_ms=500,
            )
            await consumer.start()
            return consumer

        consumer = loop.run(join())
        while True:
            polled = loop.run(consumer.getmany(timeout_ms=200, max_records=200))
            if not polled:
                continue
            writer.begin()
            for records in polled.values():
                for record in records:
                    writer.send(target, transformed(record.value), record.partition)
            writer.send_positions({p: records[-1].offset + 1 for p, records in polled.items()}, group)
            writer.commit()
            yield sum(map(len, polled.values()))
