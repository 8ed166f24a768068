"""Offsets in few words: what is committed as a dict, what is fetched as a dict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rafka.errors import ErrorCode
from rafka.machines.facts import FactRegistry
from rafka.machines.groups.expiry import no_topic
from rafka.machines.groups.offset_facts import OFFSET_FACTS, OffsetFact
from rafka.machines.groups.offsets import Offsets
from rafka.ops.offsets import (
    CommitPartition,
    CommittedTopic,
    CommitTopic,
    DeleteOffsetsPartition,
    DeleteOffsetsTopic,
    FetchedTopic,
    FetchOffsetsTopic,
)
from rafka.types import DEFAULT_ORG, TopicId

NOW = 1_700_000_000_000
METADATA_MAX = 4096
REGISTRY = FactRegistry(OFFSET_FACTS)

Place: TypeAlias = tuple[str, int]  # a topic's name and a partition
NONE = ErrorCode.NONE


def topic_id(name: str) -> TopicId:
    return TopicId(name.encode().rjust(16, b"\0"))


def new() -> Offsets:
    return Offsets(DEFAULT_ORG, "g")


def commit_topics(wanted: Mapping[Place, int | tuple[Any, ...]]) -> list[CommitTopic]:
    """An offset, or (offset, metadata), or (offset, metadata, leader epoch); a heading for each partition."""
    topics = []
    for (name, index), what in wanted.items():
        told: list[Any] = list(what) if isinstance(what, tuple) else [what]
        offset, metadata, epoch = told + [None, "", -1][len(told) :]
        partition = CommitPartition(
            partition_index=index,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=epoch,
        )
        topics.append(CommitTopic(name=name, topic_id=topic_id(name), partitions=[partition]))
    return topics


def codes(topics: Iterable[CommittedTopic]) -> list[ErrorCode]:
    return [partition.error_code for topic in topics for partition in topic.partitions]


def kept(offsets: Offsets, fact: OffsetFact | None) -> None:
    """Apply a fact as it comes back from the journal."""
    if fact is not None:
        back: Any = REGISTRY.unpack(*REGISTRY.pack(fact))
        assert back == fact
        offsets.apply(back)


def commit(
    offsets: Offsets,
    wanted: Mapping[Place, int | tuple[Any, ...]],
    *,
    at: int = NOW,
    retention_ms: int = -1,
) -> list[ErrorCode]:
    fact, answer = offsets.commit(commit_topics(wanted), at, METADATA_MAX, retention_ms)
    kept(offsets, fact)
    return codes(answer)


def commit_pending(
    offsets: Offsets,
    producer: int,
    wanted: Mapping[Place, int | tuple[Any, ...]],
    *,
    epoch: int = 0,
    at: int = NOW,
) -> list[ErrorCode]:
    fact, answer = offsets.commit_pending(commit_topics(wanted), producer, epoch, at, METADATA_MAX)
    kept(offsets, fact)
    return codes(answer)


def settle(offsets: Offsets, producer: int, committed: bool) -> None:
    kept(offsets, offsets.settle(producer, committed))


def delete(offsets: Offsets, *places: Place, subscribed_to: Any = no_topic) -> list[ErrorCode]:
    topics = [
        DeleteOffsetsTopic(
            name=name, topic_id=topic_id(name), partitions=[DeleteOffsetsPartition(partition_index=index)]
        )
        for name, index in places
    ]
    fact, answer = offsets.delete(topics, subscribed_to)
    kept(offsets, fact)
    return codes(answer)


def fetch_topics(*places: Place) -> list[FetchOffsetsTopic]:
    return [
        FetchOffsetsTopic(name=name, topic_id=topic_id(name), partition_indexes=[index])
        for name, index in places
    ]


def fetch(offsets: Offsets, *places: Place, stable: bool = False) -> list[Any]:
    """For each place its offset, or the code of its error."""
    return [told for _, told in shown(offsets.fetch(fetch_topics(*places), require_stable=stable))]


def everything(offsets: Offsets, *, stable: bool = False) -> dict[Place, Any]:
    """All that is committed: an offset, or the code of an error, by place."""
    return dict(shown(offsets.fetch(None, require_stable=stable)))


def shown(topics: Iterable[FetchedTopic]) -> list[tuple[Place, Any]]:
    found = []
    for topic in topics:
        for p in topic.partitions:
            if p.error_code != NONE:
                assert (p.committed_offset, p.committed_leader_epoch, p.metadata) == (-1, -1, "")
            found.append(((topic.name, p.partition_index), p.error_code or p.committed_offset))
    return found


def replayed(offsets: Offsets) -> Offsets:
    """The same after a snapshot and a restart."""
    again = new()
    for fact in offsets.facts():
        kept(again, fact)
    return again
