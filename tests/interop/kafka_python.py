"""kafka-python 2.2, 2.3 and 3.0 in the words of vocabulary.py.

The three differ in what they are told about idempotence, in the shape of admin answers
(protocol objects, then dicts) and in how errors reach the caller. All of that is here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka import codec as kafka_codec
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import KafkaError

from .vocabulary import READ_TIMEOUT, Acks, CannotAsk, Rec, Refused, Start

VERSION: Final = tuple(int(part) for part in kafka.__version__.split(".")[:2])
name = "kafka-python"
ACKS: Final[dict[Acks, int | str]] = {"0": 0, "1": 1, "all": "all"}

# kafka-python 2 writes an unanswered request to its socket only along with the next one that is
# answered. A refresh of the metadata is such a one, and comes by itself where it is asked to be frequent.
UNANSWERED: Final = {"metadata_max_age_ms": 100}


def check_codec(codec: str) -> None:
    if codec != "none" and not getattr(kafka_codec, f"has_{codec}")():
        raise CannotAsk(f"kafka-python {kafka.__version__} finds no library for {codec}")


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
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        acks=ACKS[acks],
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        max_request_size=16 << 20,
        linger_ms=5,
        **(UNANSWERED if acks == "0" and VERSION < (3, 0) else {}),
    )
    with closing(producer):
        sent = [
            producer.send(
                topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
                timestamp_ms=record.timestamp,
                partition=partition,
            )
            for record in records
        ]
        producer.flush(READ_TIMEOUT)
        if acks == "0" and VERSION < (3, 0):
            time.sleep(0.4)
        try:
            return [future.get(READ_TIMEOUT).offset for future in sent]
        except KafkaError as error:
            raise refused(error) from error


class ConsumerReader:
    def __init__(self, consumer: Any) -> None:
        self.consumer = consumer

    def read(self, count: int, timeout: float = READ_TIMEOUT) -> list[Rec]:
        found: list[Rec] = []
        deadline = time.monotonic() + timeout
        while len(found) < count and time.monotonic() < deadline:
            polled = self.consumer.poll(timeout_ms=200, max_records=count - len(found))
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
def consumer(bootstrap: str) -> Iterator[Any]:
    made = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="none",
        max_partition_fetch_bytes=16 << 20,
        fetch_max_wait_ms=100,
    )
    with closing(made):
        yield made


@contextmanager
def reader(
    bootstrap: str, topic: str, *, partition: int = 0, start: Start = "beginning"
) -> Iterator[ConsumerReader]:
    at = TopicPartition(topic, partition)
    with consumer(bootstrap) as made:
        made.assign([at])
        if start == "beginning":
            made.seek_to_beginning(at)
        elif start == "end":
            made.seek_to_end(at)
            made.position(at)
        else:
            made.seek(at, start)
        yield ConsumerReader(made)


def offset_at(bootstrap: str, topic: str, timestamp: int, *, partition: int = 0) -> int | None:
    at = TopicPartition(topic, partition)
    with consumer(bootstrap) as made:
        found = made.offsets_for_times({at: timestamp})[at]
        return None if found is None else int(found.offset)


@contextmanager
def admin(bootstrap: str) -> Iterator[KafkaPythonAdmin]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        yield KafkaPythonAdmin(client, bootstrap)


class KafkaPythonAdmin:
    def __init__(self, client: Any, bootstrap: str) -> None:
        self.client = client
        self.bootstrap = bootstrap

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        self._ask("create_topics", [NewTopic(name, partitions, 1, topic_configs=dict(config or {}))])

    def delete_topic(self, name: str) -> None:
        self._ask("delete_topics", [name])

    def topics(self) -> set[str]:
        return set(self.client.list_topics())

    def create_partitions(self, name: str, total: int) -> None:
        self._ask("create_partitions", {name: NewPartitions(total) if VERSION < (3, 0) else total})

    def partitions(self, name: str) -> int:
        (topic,) = self.client.describe_topics([name])
        return len(topic["partitions"])

    def config(self, name: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        if VERSION >= (3, 0):
            told = self._ask("describe_configs", [resource], config_filter="all")["topic"][name]
            return {key: entry["value"] for key, entry in told.items()}
        (answer,) = self._ask("describe_configs", [resource])
        ((code, message, *_, entries),) = answer.resources
        if code:
            raise Refused(code, message)
        return {entry[0]: entry[1] for entry in entries}

    def alter_config(self, name: str, config: Mapping[str, str]) -> None:
        answer = self._ask("alter_configs", [ConfigResource(ConfigResourceType.TOPIC, name, dict(config))])
        if VERSION >= (3, 0):
            if (said := answer["topic"][name]) != "OK":
                raise Refused(-1, said)
        else:
            ((code, message, *_),) = answer.resources
            if code:
                raise Refused(code, message)

    def delete_records(self, name: str, before: int, partition: int = 0) -> None:
        self._ask("delete_records", {TopicPartition(name, partition): before})

    def offsets(self, name: str, partition: int = 0) -> tuple[int, int]:
        at = TopicPartition(name, partition)
        with consumer(self.bootstrap) as made:
            return made.beginning_offsets([at])[at], made.end_offsets([at])[at]

    def cluster(self) -> list[tuple[str, int]]:
        told = self.client.describe_cluster()
        return [(broker["host"], broker["port"]) for broker in told["brokers"]]

    def _ask(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(self.client, verb)(*args, **kwargs)
        except KafkaError as error:
            raise refused(error) from error


def refused(error: Any) -> Refused:
    return Refused(getattr(error, "errno", -1), error)
