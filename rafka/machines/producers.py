"""Who has written to a partition: the state that makes a resent batch harmless, and transactions whole.

A producer numbers its batches. The partition remembers, for each producer, the last
five batches and the epoch, and from that alone decides whether a batch is the next
one, one it has already, or out of order. It remembers where a producer's open
transaction began, which a marker ends. Nothing here is journaled: every batch header
carries its producer's id, epoch and sequence, every marker what it decides, so that the
state is a fold over the log, shortened by snapshots (`dump`, `load`) that storage keeps
beside the segments.

The first batch of a transaction in a partition is *verified*: whoever keeps transactions
is asked whether it belongs to one. While that goes on, `verifying` has an entry, which
is also the pass with which the batch is let in; the end of a transaction takes it away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import attrs

from ..errors import ErrorCode, KafkaError
from ..records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from ..records.control import Marker
from ..types import message
from .unstable import Unstable

REMEMBERED: Final = 5  # batches a producer: as many as an idempotent client may have in flight
SEQUENCES: Final = 2**31  # after 2147483647 comes 0
NO_EPOCH: Final = -1  # what a producer that nobody knows counts as having
RAISES_EPOCHS: Final = 2  # from this transaction.version on, each end of a transaction raises the epoch


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

    @property
    def last_data_offset(self) -> int | None:
        """Of what it wrote in this epoch."""
        return self.batches[-1].last_offset if self.batches else None


@attrs.define(eq=False)
class Verification:
    """A producer that is about to begin a transaction.

    The lowest sequence that it has tried to begin with is the one to begin with: what was
    sent after it may come first, where it had to be sent again.
    """

    epoch: int
    lowest_sequence: int
    adds: bool  # by Produce 12 or later, whose producers begin every epoch at sequence 0
    since_ms: int


@message
class Ended:
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    marker: int  # its offset
    committed: bool
    last_stable_offset: int  # after it, where no marker can be lost


@attrs.define
class Producers:
    """The producers of one partition, by id."""

    by_id: dict[int, Producer] = attrs.Factory(dict)
    unstable: Unstable = attrs.Factory(Unstable)
    verifying: dict[int, Verification] = attrs.field(factory=dict, eq=False)

    # --- before writing ------------------------------------------------------------------

    def has_open(self, producer_id: int, epoch: int) -> bool:
        """Whether a transaction of this producer and epoch is open here."""
        producer = self.by_id.get(producer_id)
        return producer is not None and producer.first_open_offset >= 0 and producer.epoch == epoch

    def is_past(self, producer_id: int, epoch: int) -> bool:
        """Whether a later epoch of this producer has been here."""
        producer = self.by_id.get(producer_id)
        return producer is not None and epoch < producer.epoch

    def verify(self, header: BatchHeader, *, adds: bool, now_ms: int) -> Verification:
        """Note that the first batch of a transaction is to be verified; the pass that lets it in. Rule Q7."""
        epoch, sequence = header.producer_epoch, header.base_sequence
        entry = self.verifying.get(header.producer_id)
        if entry is None:
            entry = self.verifying[header.producer_id] = Verification(epoch, sequence, adds, now_ms)
        elif epoch > entry.epoch:
            entry.epoch, entry.lowest_sequence = epoch, sequence
        elif epoch == entry.epoch and sequence < entry.lowest_sequence:
            entry.lowest_sequence = sequence
        return entry

    def check(self, header: BatchHeader, verified: Verification | None = None) -> WrittenBatch | None:
        """None if the batch is the next of its producer; the batch it repeats, if it is a duplicate.

        Raises KafkaError where it is neither. Rules Q1 to Q8, in that order.
        """
        producer = self.by_id.get(header.producer_id)
        transactional = header.attributes & TRANSACTIONAL_BIT != 0
        if producer is None:
            if transactional:
                self._check_verified(header, verified)
            if header.producer_epoch < NO_EPOCH:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, f"epoch {header.producer_epoch}")
            if transactional:
                self._check_beginning(header, unknown=True)
            return None  # never seen here, or forgotten: any sequence will do
        first = header.base_sequence
        same = header.producer_epoch == producer.epoch
        if same:
            batches = producer.batches
            if (
                batches
                and first == (batches[-1].last_sequence + 1) % SEQUENCES
                and transactional == (producer.first_open_offset >= 0)
            ):
                return None  # nearly always: the next one, of no transaction or of the one that is open
            last = (first + header.last_offset_delta) % SEQUENCES
            for batch in batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        begins = transactional and not (same and producer.first_open_offset >= 0)
        if begins:
            self._check_verified(header, verified)
        if header.producer_epoch < producer.epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"epoch {header.producer_epoch}, and the partition knows {producer.epoch}",
            )
        if begins:
            self._check_beginning(header, unknown=False)
        if same:
            if first != (producer.last_sequence + 1) % SEQUENCES:
                raise KafkaError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"sequence {first} after {producer.last_sequence}",
                )
        elif first != 0 and producer.epoch != NO_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"a new epoch begins with sequence 0, not {first}"
            )
        if producer.first_open_offset >= 0 and not transactional:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "a plain batch while a transaction is open")
        return None

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Raise KafkaError where a marker of a newer epoch, or of a newer coordinator, has been here."""
        producer = self.by_id.get(producer_id)
        known = NO_EPOCH if producer is None else producer.epoch
        # Where each end raises the epoch, a marker without that is one of an earlier end that comes late.
        is_open = producer is not None and producer.first_open_offset >= 0
        lowest = known + 1 if is_open and transaction_version >= RAISES_EPOCHS else known
        if epoch < lowest:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"a marker of epoch {epoch}, and the partition knows {known}",
            )
        if producer is not None and coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a marker of coordinator epoch {coordinator_epoch} after {producer.coordinator_epoch}",
            )

    def _check_verified(self, header: BatchHeader, verified: Verification | None) -> None:
        """Rule Q2: the pass has to be there, and still good."""
        if verified is None or self.verifying.get(header.producer_id) is not verified:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "the batch is not part of an open transaction")

    def _check_beginning(self, header: BatchHeader, *, unknown: bool) -> None:
        """Rules Q7 and Q5: what a transaction may begin with."""
        entry = self.verifying[header.producer_id]
        first = header.base_sequence
        if first > entry.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"a transaction begins with sequence {first}, and {entry.lowest_sequence} was tried before",
            )
        if unknown and entry.adds and first != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"a producer that is not known here begins with sequence 0, not {first}",
            )

    # --- after writing -------------------------------------------------------------------

    def apply(self, header: BatchHeader, marker: Marker | None = None) -> Ended | None:
        """Remember a batch that is in the log. The same for a live write and for a replay.

        Of a control batch `marker` tells what it says. The transaction that it ended, if any.
        """
        if header.producer_id < 0:
            return None
        attributes = header.attributes
        if attributes & CONTROL_BIT:
            return None if marker is None else self._apply_marker(header, marker)
        producer = self.by_id.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            producer = self._in_epoch(header)
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
        if attributes & TRANSACTIONAL_BIT:
            if producer.first_open_offset < 0:
                producer.first_open_offset = header.base_offset
                self.unstable.begin(header.producer_id, header.base_offset)
            self.verifying.pop(header.producer_id, None)
        return None

    def _apply_marker(self, header: BatchHeader, marker: Marker) -> Ended | None:
        producer_id = header.producer_id
        producer = self._in_epoch(header)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        self.verifying.pop(producer_id, None)
        first, producer.first_open_offset = producer.first_open_offset, -1
        if first < 0:
            return None  # nothing was written here, or it is a marker sent again
        return Ended(
            producer_id=producer_id,
            first_offset=first,
            marker=header.base_offset,
            committed=marker.committed,
            last_stable_offset=self.unstable.end(producer_id, header.base_offset),
        )

    def _in_epoch(self, header: BatchHeader) -> Producer:
        """The producer, which from here on has this epoch. What it wrote in another is of no use."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            producer = self.by_id[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches.clear()
        return producer

    def forget_idle(self, now_ms: int, idle_ms: int) -> int:
        """Forget producers that have written nothing for so long, and have no open transaction."""
        idle = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if producer.first_open_offset < 0 and now_ms - producer.last_timestamp >= idle_ms
        ]
        for producer_id in idle:
            del self.by_id[producer_id]
        self.verifying = {
            producer_id: entry
            for producer_id, entry in self.verifying.items()
            if now_ms - entry.since_ms < idle_ms
        }
        return len(idle)

    # --- snapshots -----------------------------------------------------------------------

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
        opened = [(p.first_open_offset, i) for i, p in self.by_id.items() if p.first_open_offset >= 0]
        for offset, producer_id in sorted(opened):
            self.unstable.begin(producer_id, offset)
