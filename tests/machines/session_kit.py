"""Requests, results and replies of fetch sessions, in short."""

from __future__ import annotations

from itertools import count

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.fetch_sessions import Asked, FetchSessions
from rafka.ops.log import (
    Fetch,
    FetchPartition,
    FetchReply,
    FetchTopic,
    ForgottenTopic,
    PartitionFetchReply,
)
from rafka.types import NO_TOPIC_ID, OrgId, TopicId

US, THEM = OrgId("us"), OrgId("them")
ID = TopicId(b"a topic's id....")

Named = tuple[str, int]


def cache(slots: int = 100) -> FetchSessions:
    numbers = count()
    return FetchSessions(slots, lambda: next(numbers))


def ask(
    session_id: int,
    epoch: int,
    *partitions: Named,
    forget: tuple[Named, ...] = (),
    by_id: bool = False,
    offset: int = 0,
) -> Fetch:
    """Partitions as (topic, number)."""
    return Fetch(
        max_wait_ms=0,
        min_bytes=0,
        session_id=session_id,
        session_epoch=epoch,
        by_id=by_id,
        topics=[
            FetchTopic(
                topic="" if by_id else topic,
                topic_id=ID if by_id else NO_TOPIC_ID,
                partitions=[FetchPartition(partition=n, fetch_offset=offset, partition_max_bytes=1)],
            )
            for topic, n in partitions
        ],
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=[n]) for topic, n in forget],
    )


def wanted(asked: Asked) -> list[Named]:
    return [(w.topic, w.asked.partition) for w in asked.wanted]


def result(n: int, hw: int = 5, start: int = 0, records: bytes = b"", code: int = 0) -> PartitionFetchReply:
    return PartitionFetchReply(
        partition_index=n,
        error_code=ErrorCode(code),  # type: ignore[call-arg]
        high_watermark=hw,
        log_start_offset=start,
        records=records,
    )


def told(reply: FetchReply) -> list[Named]:
    return [(t.topic, p.partition_index) for t in reply.responses for p in t.partitions]


def same(asked: Asked) -> FetchReply:
    """The reply where nothing has changed."""
    return asked.reply([result(w.asked.partition) for w in asked.wanted])


def opened(sessions: FetchSessions, *partitions: Named, now: float = 0) -> int:
    """The id of a session over these."""
    return same(sessions.open(ask(0, 0, *partitions), US, now)).session_id


def refused(sessions: FetchSessions, op: Fetch, org: OrgId = US) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        sessions.open(op, org, 0)
    return error.value.code


A, B, C = ("a", 0), ("b", 0), ("b", 1)
