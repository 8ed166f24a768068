"""Who has written to a partition: the state that makes a resent batch harmless.

A producer numbers its batches. The partition remembers, for each producer, the last
five batches and the epoch, and from that alone decides whether a batch is the next
one, one it has already, or out of order. Nothing here is journaled: every batch
header carries its producer's id, epoch and sequence, so that the state is a fold over
the log, shortened by snapshots (`dump`, `load`) that storage keeps beside the segments.

Transactions will live here as well: `first_open_offset` is where a producer's open
transaction began, and the partition's last stable offset is the least of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..errors import ErrorCode, KafkaError
from ..records.batch import BatchHeader

REMEMBERED: Final = 5  # batches a producer: as many as an idempotent client may have in flight
SEQUENCES: Final = 2**31  # after 2147483647 comes 0
NO_EPOCH: Final = -1  # what a producer that nobody knows counts as having


@attrs.define
class WrittenBatch:
    """What is remembered of a batch, to answer for it when it comes again."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


@attrs.define
class Producer:
    epoch: int
    coordinator_epoch: int = -1
    last_timestamp: int = -1
    first_open_offset: int = -1
    batches: list[WrittenBatch] = attrs.Factory(list)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1


@attrs.define
class Producers:
    """The producers of one partition, by id."""

    by_id: dict[int, Producer] = attrs.Factory(dict)

    def check(self, header: BatchHeader) -> WrittenBatch | None:
        """None if the batch is the next of its producer; the batch it repeats, if it is a duplicate.

        Raises KafkaError where it is neither. Rules Q1, Q3 to Q6.
        """
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            if header.producer_epoch < NO_EPOCH:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {header.producer_epoch}")
            return None  # never seen here, or forgotten: any sequence will do
        first = header.base_sequence
        if header.producer_epoch == producer.epoch:
            last = (first + header.last_offset_delta) % SEQUENCES
            for batch in producer.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
            if first != (producer.last_sequence + 1) % SEQUENCES:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"sequence {first} after {producer.last_sequence}",
                )
        elif header.producer_epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {header.producer_epoch}, and the partition knows {producer.epoch}",
            )
        elif first != 0 and producer.epoch != -1:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"a new epoch begins with sequence 0, not {first}"
            )
        return None

    def apply(self, header: BatchHeader) -> None:
        """Remember a batch that is in the log. The same for a live write and for a replay."""
        if header.producer_id < 0 or header.control:
            return
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            producer = self.by_id[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        delta = header.last_offset_delta
        producer.batches.append(
            WrittenBatch(
                header.base_sequence,
                (header.base_sequence + delta) % SEQUENCES,
                header.base_offset,
                header.base_offset + delta,
                header.max_timestamp,
            )
        )
        if len(producer.batches) > REMEMBERED:
            del producer.batches[0]
        producer.last_timestamp = header.max_timestamp

    def forget_idle(self, now_ms: int, idle_ms: int) -> int:
        """Forget producers that have written nothing for so long, and have no open transaction."""
        idle = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if producer.first_open_offset < 0 and now_ms - producer.last_timestamp >= idle_ms
        ]
        for producer_id in idle:
            del self.by_id[producer_id]
        return len(idle)

    def dump(self) -> list[list[object]]:
        """Plain values, for a snapshot."""
        return [
            [
                producer_id,
                producer.epoch,
                producer.coordinator_epoch,
                producer.last_timestamp,
                producer.first_open_offset,
                [list(attrs.astuple(batch)) for batch in producer.batches],
            ]
            for producer_id, producer in self.by_id.items()
        ]

    def load(self, rows: Iterator[list[object]] | list[list[object]]) -> None:
        """Take up what `dump` gave."""
        for row in rows:
            producer_id, epoch, coordinator_epoch, last_timestamp, first_open, batches = row
            assert isinstance(producer_id, int)
            assert isinstance(epoch, int)
            assert isinstance(coordinator_epoch, int)
            assert isinstance(last_timestamp, int)
            assert isinstance(first_open, int)
            assert isinstance(batches, list)
            self.by_id[producer_id] = Producer(
                epoch,
                coordinator_epoch,
                last_timestamp,
                first_open,
                [WrittenBatch(*batch) for batch in batches],
            )
