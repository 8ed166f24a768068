"""How far one group has read: its committed offsets, and those that wait for a transaction to end.

    commit ──▶ OffsetsCommitted ──▶ committed ──▶ OffsetsDeleted     by request, by age
    commit_pending ──▶ PendingOffsets ──▶ pending ──▶ PendingSettled ──▶ committed, or nothing

Topics are told apart by their ids, so that one that is made again under an old name inherits
nothing. Ops come here resolved: each topic with its id and its name, and only partitions
that exist, but for fetches, where a topic without an id has no offsets. Whether the asker
may commit at all is the group's business (`group.check_commit`), and asked before.

Methods that decide change nothing; `apply` alone does, but for `forget_topic`: that a topic
is gone is a fact of the catalogue, in a replay as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import attrs

from ...errors import ErrorCode
from ...ops.offsets import (
    CommittedPartition,
    CommittedTopic,
    CommitTopic,
    DeleteOffsetsTopic,
    FetchedPartition,
    FetchedTopic,
    FetchOffsetsTopic,
)
from ...types import OrgId, TopicId
from ..room import EACH, Room, written
from .expiry import Ageing
from .offset_facts import (
    OffsetFact,
    OffsetsCommitted,
    OffsetsDeleted,
    OffsetsKept,
    PendingOffsets,
    PendingSettled,
    TopicEntries,
    TopicPartitions,
)
from .pending import Committed, Pending, PendingOffset

DEFAULT_RETENTION: Final = -1  # the broker's, not one of the request's own
_NEVER: Final = 1 << 80  # later than any time


@attrs.define
class TopicOffsets:
    name: str
    partitions: dict[int, Committed] = attrs.Factory(dict)


class Offsets:
    """The offsets of one group."""

    __slots__ = ("_oldest_ms", "_order", "_pending", "_timed", "_topics", "group_id", "org")

    def __init__(self, org: OrgId, group_id: str) -> None:
        self.org = org
        self.group_id = group_id
        self._topics: dict[bytes, TopicOffsets] = {}
        self._pending = Pending()
        self._order = 0
        # Whether any may be old enough to expire is asked often, and mostly the answer is no:
        # nothing here was committed before this, and nothing has a time of its own.
        self._oldest_ms = _NEVER
        self._timed = False

    def __len__(self) -> int:
        """How many partitions have a committed offset."""
        return sum(len(topic.partitions) for topic in self._topics.values())

    @property
    def unsettled(self) -> bool:
        """Whether an open transaction has offsets pending here: the group is not removed meanwhile."""
        return len(self._pending) > 0

    def topic_ids(self) -> set[TopicId]:
        """Of all topics that anything is kept of."""
        return {TopicId(topic_id) for topic_id in self._topics} | {p.topic_id for p in self._pending}

    # --- deciding: commit -----------------------------------------------------------------

    def commit(
        self,
        topics: Sequence[CommitTopic],
        now_ms: int,
        metadata_max: int,
        retention_ms: int = DEFAULT_RETENTION,
    ) -> tuple[OffsetsCommitted | None, list[CommittedTopic]]:
        """Take the offsets of one request; partitions whose metadata is too long are refused alone."""
        entries, answer = _taken(topics, metadata_max)
        if not entries:
            return None, answer
        expire_ms = None if retention_ms == DEFAULT_RETENTION else now_ms + retention_ms
        return OffsetsCommitted(self.org, self.group_id, now_ms, entries, expire_ms), answer

    def commit_pending(
        self,
        topics: Sequence[CommitTopic],
        producer_id: int,
        producer_epoch: int,
        now_ms: int,
        metadata_max: int,
    ) -> tuple[PendingOffsets | None, list[CommittedTopic]]:
        """The same within a transaction. KafkaError for a producer of an epoch that is over."""
        self._pending.check_epoch(producer_id, producer_epoch)
        entries, answer = _taken(topics, metadata_max)
        if not entries:
            return None, answer
        fact = PendingOffsets(self.org, self.group_id, producer_id, producer_epoch, now_ms, entries)
        return fact, answer

    def settle(self, producer_id: int, committed: bool) -> PendingSettled | None:
        """The producer's transaction has ended; None where it had nothing pending here."""
        if not self._pending.has(producer_id):
            return None
        return PendingSettled(self.org, self.group_id, producer_id, committed)

    def pending_epoch(self, producer_id: int) -> int | None:
        """The epoch with which the producer has offsets pending here; None where it has none."""
        return self._pending.epoch_of(producer_id)

    # --- reading ----------------------------------------------------------------------------

    def fetch(
        self,
        topics: Sequence[FetchOffsetsTopic] | None,
        require_stable: bool = False,
        room: Room | None = None,
    ) -> list[FetchedTopic]:
        """What is committed of these partitions, as they were asked for; of all there are for None.

        KafkaError where there is no room for all of it.
        """
        room = room or Room()
        unstable = self._pending if require_stable and self._pending else ()
        if topics is None:
            return [
                _fetched(TopicId(topic_id), topic.name, topic.partitions, topic, unstable, room)
                for topic_id, topic in self._topics.items()
            ]
        return [
            _fetched(
                topic.topic_id,
                topic.name,
                topic.partition_indexes,
                self._topics.get(topic.topic_id),
                unstable,
                room,
            )
            for topic in topics
        ]

    # --- deciding: delete -----------------------------------------------------------------------

    def delete(
        self, topics: Sequence[DeleteOffsetsTopic], subscribed_to: Callable[[str], bool | None]
    ) -> tuple[OffsetsDeleted | None, list[CommittedTopic]]:
        """Let go of what a request names, but for topics that members read, or may read."""
        gone: list[TopicPartitions] = []
        answer = []
        for topic in topics:
            code = ErrorCode.NONE
            if subscribed_to(topic.name) is not False:
                code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            else:
                indexes = dict.fromkeys(p.partition_index for p in topic.partitions)
                if known := tuple(index for index in indexes if self._has(topic.topic_id, index)):
                    gone.append((topic.topic_id, known))
            told = [
                CommittedPartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ]
            if told:
                answer.append(CommittedTopic(name=topic.name, topic_id=topic.topic_id, partitions=told))
        return self._deleted(gone), answer

    def expire(self, now_ms: int, retention_ms: int, ageing: Ageing) -> OffsetsDeleted | None:
        """What is too old to be kept, by the way in which the group's offsets grow old."""
        if not self._timed:
            since_ms = self._oldest_ms if ageing.since_ms is None else ageing.since_ms
            if now_ms - since_ms < retention_ms:
                return None
        self._look_again()
        gone: list[TopicPartitions] = []
        for topic_id, topic in self._topics.items():
            if ageing.subscribed_to(topic.name) is not False:
                continue
            old = tuple(
                index
                for index, committed in topic.partitions.items()
                if _too_old(committed, now_ms, retention_ms, ageing.since_ms)
                and (topic_id, index) not in self._pending
            )
            if old:
                gone.append((topic_id, old))
        return self._deleted(gone)

    def _look_again(self) -> None:
        """Of what has been removed or replaced, nothing needs to be remembered for `expire`."""
        kept = [committed for topic in self._topics.values() for committed in topic.partitions.values()]
        self._oldest_ms = min((committed.at_ms for committed in kept), default=_NEVER)
        self._timed = any(committed.expire_ms is not None for committed in kept)

    def _has(self, topic_id: TopicId, index: int) -> bool:
        topic = self._topics.get(topic_id)
        return (topic is not None and index in topic.partitions) or (topic_id, index) in self._pending

    def _deleted(self, gone: list[TopicPartitions]) -> OffsetsDeleted | None:
        return OffsetsDeleted(self.org, self.group_id, tuple(gone)) if gone else None

    # --- applying -----------------------------------------------------------------------------

    def apply(self, fact: OffsetFact) -> None:
        match fact:
            case OffsetsCommitted():
                self._put(fact)
            case PendingOffsets():
                self._order += 1
                self._pending.add(fact, self._order)
            case PendingSettled():
                settled = self._pending.settle(fact.producer_id)
                if fact.committed:
                    self._count(settled)
            case OffsetsDeleted():
                for topic_id, partitions in fact.topics:
                    self._remove(topic_id, partitions)
            case OffsetsKept():
                self._order += 1
                for index, offset, epoch, metadata, at_ms, expire_ms in fact.partitions:
                    value = Committed(offset, epoch, metadata, at_ms, expire_ms, self._order)
                    self._set(fact.topic_id, fact.name, index, value)

    def forget_topic(self, topic_id: TopicId) -> None:
        """The topic is no more: neither is anything that was committed of it."""
        self._topics.pop(topic_id, None)
        if self._pending:
            self._pending.drop_topic(topic_id)

    def _put(self, fact: OffsetsCommitted) -> None:
        """`_set` for each, written out: commits are what this is asked for most."""
        self._order = order = self._order + 1
        at_ms, expire_ms = fact.at_ms, fact.expire_ms
        if at_ms < self._oldest_ms:
            self._oldest_ms = at_ms
        if expire_ms is not None:
            self._timed = True
        for topic_id, name, entries in fact.topics:
            topic = self._topics.get(topic_id)
            if topic is None:
                topic = self._topics[topic_id] = TopicOffsets(name)
            partitions = topic.partitions
            for index, offset, epoch, metadata in entries:
                partitions[index] = Committed(offset, epoch, metadata, at_ms, expire_ms, order)

    def _set(self, topic_id: bytes, name: str, index: int, value: Committed) -> None:
        topic = self._topics.get(topic_id)
        if topic is None:
            topic = self._topics[topic_id] = TopicOffsets(name)
        topic.partitions[index] = value
        self._oldest_ms = min(self._oldest_ms, value.at_ms)
        self._timed = self._timed or value.expire_ms is not None

    def _count(self, settled: Iterable[PendingOffset]) -> None:
        """Offsets of a transaction that committed, but for those overtaken by a later commit (row T8)."""
        for pending in settled:
            if not self._overtaken(pending):
                self._set(pending.topic_id, pending.name, pending.partition, pending.value)

    def _overtaken(self, pending: PendingOffset) -> bool:
        topic = self._topics.get(pending.topic_id)
        committed = topic.partitions.get(pending.partition) if topic is not None else None
        return committed is not None and committed.order > pending.value.order

    def _remove(self, topic_id: bytes, partitions: Iterable[int]) -> None:
        topic = self._topics.get(topic_id)
        for index in partitions:
            if topic is not None:
                topic.partitions.pop(index, None)
            self._pending.drop((topic_id, index))
        if topic is not None and not topic.partitions:
            del self._topics[topic_id]

    # --- snapshot -------------------------------------------------------------------------------

    def facts(self) -> Iterator[OffsetFact]:
        """The shortest history that leads here. Its order tells which pending ones are overtaken."""
        overtaken: list[PendingOffset] = []
        waiting: list[PendingOffset] = []
        for pending in self._pending:
            (overtaken if self._overtaken(pending) else waiting).append(pending)
        yield from self._pending.as_facts(self.org, self.group_id, overtaken)
        for topic_id, topic in self._topics.items():
            yield OffsetsKept(
                self.org,
                self.group_id,
                topic_id,
                topic.name,
                tuple(
                    (index, c.offset, c.leader_epoch, c.metadata, c.at_ms, c.expire_ms)
                    for index, c in topic.partitions.items()
                ),
            )
        yield from self._pending.as_facts(self.org, self.group_id, waiting)


def _taken(
    topics: Sequence[CommitTopic], metadata_max: int
) -> tuple[tuple[TopicEntries, ...], list[CommittedTopic]]:
    """What of a request is to be kept, and the answer to all of it."""
    taken: list[TopicEntries] = []
    answer = []
    for topic in topics:
        entries = []
        told = []
        for wanted in topic.partitions:
            index = wanted.partition_index
            metadata = wanted.committed_metadata or ""
            if len(metadata) * 2 > metadata_max and utf16_units(metadata) > metadata_max:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                told.append(CommittedPartition(partition_index=index, error_code=code))
                continue
            entries.append((index, wanted.committed_offset, wanted.committed_leader_epoch, metadata))
            told.append(CommittedPartition(partition_index=index))
        if told:
            answer.append(CommittedTopic(name=topic.name, topic_id=topic.topic_id, partitions=told))
        if entries:
            taken.append((topic.topic_id, topic.name, tuple(entries)))
    return tuple(taken), answer


def utf16_units(text: str) -> int:
    """The length of a text as Kafka measures it: what lies beyond the basic plane counts twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _fetched(
    topic_id: TopicId,
    name: str,
    indexes: Collection[int],
    held: TopicOffsets | None,
    unstable: Pending | tuple[()],
    room: Room,
) -> FetchedTopic:
    room.take(EACH + written(name) + EACH * len(indexes))
    kept: dict[int, Committed] = held.partitions if held is not None else {}
    told = []
    for index in indexes:
        committed = kept.get(index)
        if unstable and (topic_id, index) in unstable:
            code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            told.append(FetchedPartition(partition_index=index, error_code=code))
        elif committed is None:
            told.append(FetchedPartition(partition_index=index))
        else:
            if committed.metadata:
                room.take(written(committed.metadata))
            told.append(
                FetchedPartition(
                    partition_index=index,
                    committed_offset=committed.offset,
                    committed_leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                )
            )
    return FetchedTopic(name=name, topic_id=topic_id, partitions=told)


def _too_old(committed: Committed, now_ms: int, retention_ms: int, since_ms: int | None) -> bool:
    if committed.expire_ms is not None:
        return now_ms >= committed.expire_ms
    return now_ms - (committed.at_ms if since_ms is None else since_ms) >= retention_ms
