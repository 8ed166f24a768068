"""Offsets that producers have committed within transactions which are still open, in one group.

Nobody sees them before their transaction commits; until then whoever asks for stable offsets is
told to come again. Each remembers its place in the order of the group's facts: when it
counts at last, a plain commit that came after it stands (row T8 of the rules that we follow).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import attrs

from ...errors import ErrorCode, KafkaError
from ...types import TopicId
from .offset_facts import PendingOffsets

Place: TypeAlias = tuple[bytes, int]  # (topic id, partition)


@attrs.define
class Committed:
    """How far the group has read a partition."""

    offset: int
    leader_epoch: int
    metadata: str
    at_ms: int
    expire_ms: int | None
    order: int  # of the fact that it came by: later ones are greater


@attrs.define
class PendingOffset:
    topic_id: TopicId
    name: str
    partition: int
    producer_id: int
    value: Committed

    @property
    def place(self) -> Place:
        return self.topic_id, self.partition


@attrs.define
class _Transaction:
    epoch: int
    places: dict[Place, None] = attrs.Factory(dict)  # in the order in which they came


class Pending:
    """By partition, and by producer."""

    __slots__ = ("_by_place", "_by_producer")

    def __init__(self) -> None:
        self._by_place: dict[Place, dict[int, PendingOffset]] = {}
        self._by_producer: dict[int, _Transaction] = {}

    def __len__(self) -> int:
        """How many partitions have any."""
        return len(self._by_place)

    def __contains__(self, place: Place) -> bool:
        return place in self._by_place

    def __iter__(self) -> Iterator[PendingOffset]:
        return (pending for producers in self._by_place.values() for pending in producers.values())

    def has(self, producer_id: int) -> bool:
        return producer_id in self._by_producer

    def epoch_of(self, producer_id: int) -> int | None:
        """That of the producer's open transaction; None where it has nothing pending."""
        transaction = self._by_producer.get(producer_id)
        return None if transaction is None else transaction.epoch

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """A producer that was replaced by a newer one of its name cannot add to that one's transaction."""
        open_one = self._by_producer.get(producer_id)
        if open_one is not None and epoch < open_one.epoch:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)

    def add(self, fact: PendingOffsets, order: int) -> None:
        producer = fact.producer_id
        transaction = self._by_producer.setdefault(producer, _Transaction(fact.producer_epoch))
        transaction.epoch = fact.producer_epoch
        for topic_id, name, entries in fact.topics:
            for partition, offset, leader_epoch, metadata in entries:
                value = Committed(offset, leader_epoch, metadata, fact.at_ms, None, order)
                pending = PendingOffset(TopicId(topic_id), name, partition, producer, value)
                self._by_place.setdefault(pending.place, {})[producer] = pending
                transaction.places[pending.place] = None

    def settle(self, producer_id: int) -> list[PendingOffset]:
        """Take out what a producer had pending, oldest first. Nothing is not a mistake (row T11)."""
        transaction = self._by_producer.pop(producer_id, None)
        if transaction is None:
            return []
        settled = []
        for place in transaction.places:
            producers = self._by_place[place]
            settled.append(producers.pop(producer_id))
            if not producers:
                del self._by_place[place]
        return settled

    def drop(self, place: Place) -> None:
        """Forget what all producers have pending there (row T10)."""
        for producer_id in self._by_place.pop(place, ()):
            transaction = self._by_producer[producer_id]
            del transaction.places[place]
            if not transaction.places:
                del self._by_producer[producer_id]

    def drop_topic(self, topic_id: TopicId) -> None:
        for place in [place for place in self._by_place if place[0] == topic_id]:
            self.drop(place)

    def as_facts(self, org: str, group_id: str, some: Iterable[PendingOffset]) -> Iterator[PendingOffsets]:
        """The facts by which these came, oldest first: each place in the order has a fact of its own."""
        by_order: dict[int, list[PendingOffset]] = {}
        for pending in some:
            by_order.setdefault(pending.value.order, []).append(pending)
        for order in sorted(by_order):
            first = by_order[order][0]
            yield PendingOffsets(
                org,
                group_id,
                first.producer_id,
                self._by_producer[first.producer_id].epoch,
                first.value.at_ms,
                tuple(
                    (
                        p.topic_id,
                        p.name,
                        ((p.partition, p.value.offset, p.value.leader_epoch, p.value.metadata),),
                    )
                    for p in by_order[order]
                ),
            )
