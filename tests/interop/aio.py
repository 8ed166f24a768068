"""aiokafka in the words of vocabulary.py: its coroutines are run to their end by an event loop of our own."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from .vocabulary import READ_TIMEOUT, Acks, CannotAsk, Rec, Refused, Start

T = TypeVar("T")

name = "aiokafka"
ACKS: Final[dict[Acks, int | str]] = {"0": 0, "1": 1, "all": "all"}


def check_codec(codec: str) -> None:
    if codec in ("snappy", "lz4", "zstd") and importlib.util.find_spec("cramjam") is None:
        raise CannotAsk(f"aiokafka needs cramjam for {codec}")


def produce(
    bootstrap: str,
    topic: str,
    records: Sequence[Rec],
    *,
    partition: int = 0,
    codec: str = "none",
    acks: Acks = "all",
    idempotent: bool = False,
) -> list[int]:
    async def send_all() -> list[int]:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            acks=ACKS[acks],
            compression_type=None if codec == "none" else codec,
            enable_idempotence=idempotent,
            max_request_size=16 << 20,
            linger_ms=5,
        )
        await producer.start()
        try:
            futures = [
                await producer.send(
                    topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp,
                    partition=partition,
                )
                for record in records
            ]
            told = await asyncio.wait_for(asyncio.gather(*futures), READ_TIMEOUT)
            return [-1 if one is None else one.offset for one in told]
        finally:
            await producer.stop()

    try:
        return asyncio.run(send_all())
    except KafkaError as error:
        raise Refused(getattr(error, "errno", -1), error) from error


class ConsumerReader:
    def __init__(self, runner: asyncio.Runner, consumer: Any) -> None:
        self.runner = runner
        self.consumer = consumer

    def read(self, count: int, timeout: float = READ_TIMEOUT) -> list[Rec]:
        return self.runner.run(self._read(count, timeout))

    async def _read(self, count: int, within: float) -> list[Rec]:
        found: list[Rec] = []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within
        while len(found) < count and loop.time() < deadline:
            polled = await self.consumer.getmany(timeout_ms=200, max_records=count - len(found))
            found += [as_rec(message) for messages in polled.values() for message in messages]
        return found


def as_rec(message: Any) -> Rec:
    return Rec(
        key=message.key,
        value=message.value,
        headers=tuple((key, value) for key, value in message.headers),
        timestamp=message.timestamp,
        offset=message.offset,
    )


@contextmanager
def consumer(bootstrap: str) -> Iterator[tuple[asyncio.Runner, Any]]:
    async def make() -> Any:
        made = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            max_partition_fetch_bytes=16 << 20,
            fetch_max_wait_ms=100,
        )
        await made.start()
        return made

    with asyncio.Runner() as runner:
        made = runner.run(make())
        try:
            yield runner, made
        finally:
            runner.run(made.stop())


@contextmanager
def reader(
    bootstrap: str, topic: str, *, partition: int = 0, start: Start = "beginning"
) -> Iterator[ConsumerReader]:
    at = TopicPartition(topic, partition)

    async def take_position(made: Any) -> None:
        made.assign([at])
        if start == "beginning":
            await made.seek_to_beginning(at)
        elif start == "end":
            await made.seek_to_end(at)
        else:
            made.seek(at, start)

    with consumer(bootstrap) as (runner, made):
        runner.run(take_position(made))
        yield ConsumerReader(runner, made)


def offset_at(bootstrap: str, topic: str, timestamp: int, *, partition: int = 0) -> int | None:
    at = TopicPartition(topic, partition)
    with consumer(bootstrap) as (runner, made):
        found = runner.run(made.offsets_for_times({at: timestamp}))[at]
        return None if found is None else int(found.offset)


@contextmanager
def admin(bootstrap: str) -> Iterator[AioAdmin]:
    async def make() -> Any:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        return client

    with asyncio.Runner() as runner:
        client = runner.run(make())
        try:
            yield AioAdmin(runner, client, bootstrap)
        finally:
            runner.run(client.close())


class AioAdmin:
    def __init__(self, runner: asyncio.Runner, client: Any, bootstrap: str) -> None:
        self.runner = runner
        self.client = client
        self.bootstrap = bootstrap

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(name, partitions, 1, topic_configs=dict(config or {}))
        answer = self._ask(self.client.create_topics([wanted]))
        told(answer.topic_errors[0][1:])

    def delete_topic(self, name: str) -> None:
        told(self._ask(self.client.delete_topics([name])).topic_error_codes[0][1:])

    def topics(self) -> set[str]:
        return set(self._ask(self.client.list_topics()))

    def create_partitions(self, name: str, total: int) -> None:
        answer = self._ask(self.client.create_partitions({name: NewPartitions(total)}))
        told(answer.topic_errors[0][1:])

    def partitions(self, name: str) -> int:
        (topic,) = self._ask(self.client.describe_topics([name]))
        return len(topic["partitions"])

    def config(self, name: str) -> dict[str, str]:
        (answer,) = self._ask(self.client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)]))
        (resource,) = answer.resources
        told(resource[:2])
        return {entry[0]: entry[1] for entry in resource[-1]}

    def alter_config(self, name: str, config: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, name, dict(config))
        answer = self._ask(self.client.alter_configs([resource]))
        told(answer[0].resources[0][:2] if isinstance(answer, list) else answer.resources[0][:2])

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        at = {TopicPartition(name, partition): RecordsToDelete(before_offset=before)}
        self._ask(self.client.delete_records(at))

    def offsets(self, name: str, partition: int = 0) -> tuple[int, int]:
        at = TopicPartition(name, partition)
        with consumer(self.bootstrap) as (runner, made):
            return runner.run(made.beginning_offsets([at]))[at], runner.run(made.end_offsets([at]))[at]

    def cluster(self) -> list[tuple[str, int]]:
        answer = self._ask(self.client.describe_cluster())
        return [(broker["host"], broker["port"]) for broker in answer["brokers"]]

    def _ask(self, question: Coroutine[Any, Any, T]) -> T:
        try:
            return self.runner.run(question)
        except KafkaError as error:
            raise Refused(getattr(error, "errno", -1), error) from error


def told(answer: Sequence[Any]) -> None:
    """An answer that begins with an error code, and perhaps a message."""
    if answer[0]:
        raise Refused(answer[0], answer[1:])
