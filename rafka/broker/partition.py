"""One partition: its log, what of it may be read, who wrote to it, and who waits for it.

Partitions have no task. Code without an `await` is atomic on one thread, so writing
and reading are plain calls in the task of whoever asks, and need no lock.

    log start ─────────── last stable offset ── high watermark ── log end
              readable by all      readable uncommitted     written, not yet durable

Where durability means fsync, the high watermark is the durable offset: nobody reads
what a loss of power could take back. In page-cache mode it is the end of the log.
The last stable offset is the high watermark, or the first offset of a transaction that
is not decided yet. Which transactions were aborted is kept by the log, with its segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgpack
import trio

from ..errors import ErrorCode, KafkaError
from ..machines.producers import Ended, Producers, Verification
from ..ops.log import AbortedTransaction
from ..records.batch import BatchHeader, end_of, placed, read_header
from ..records.check import Accepted
from ..records.control import Marker, build_marker, read_marker
from ..storage.aborted import AbortedRange
from ..storage.backend import Log
from ..storage.cleaning import LastWrite
from ..types import Buffer, message

SETTLE_MAX_S: Final = 5.0  # a sync that takes longer than this is not waited for by readers
FEW_ABORTED: Final = 100  # as many are told without looking which of them concern the records that are read


class Watcher(Protocol):
    """Somebody who waits until there is more to read."""

    def poke(self) -> None: ...


@message
class Appended:
    """Where a batch went, or where it had gone when it was sent before."""

    base_offset: int
    next_offset: int  # durable once the log is flushed up to here
    log_append_time_ms: int = -1


class Partition:
    def __init__(self, name: str, index: int, log: Log) -> None:
        self.name = name
        self.index = index
        self.log = log
        self.producers = Producers()
        self.log_append_time = False  # of the topic's records, and so of markers
        self.watchers: set[Watcher] = set()
        self._last_append_ms = -1
        self._told = 0
        self._restore()
        # Restoring leaves the log's end as it was found: from here on this is the leader's epoch.
        self.leader_epoch = max(0, log.epoch_of(log.end_offset))
        log.state_source = self._dump
        log.on_flushed = self._flushed if log.durable else None

    # --- what may be read --------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        return self.log.flushed_offset if self.log.durable else self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        high_watermark = self.log.flushed_offset if self.log.durable else self.log.end_offset
        first = self.producers.unstable.first
        return high_watermark if first >= high_watermark else max(first, self.log.start_offset)

    @property
    def settled(self) -> bool:
        """Whether all that clients were told is written may be read. If not, a sync sees to it soon."""
        return self.high_watermark >= self._told

    def ceiling(self, isolation_level: int) -> int:
        """Readers at this isolation level see what lies below."""
        return self.last_stable_offset if isolation_level else self.high_watermark

    def aborted(self, offset: int, records: Buffer) -> Sequence[AbortedTransaction]:
        """Whose records a reader has to leave out, of these that begin at `offset`. May name more of them."""
        index = self.log.aborted
        if not index or not records:
            return ()
        few = index.count_from(offset) <= FEW_ABORTED
        found = index.collect(offset, self.log.end_offset if few else end_of(records))
        return [
            AbortedTransaction(producer_id=range_.producer_id, first_offset=range_.first_offset)
            for range_ in found
        ]

    def check_epoch(self, current: int) -> None:
        """Raise unless the client's idea of the leader epoch is ours. Rule F6."""
        if current == self.leader_epoch:
            return
        if current < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def epoch_end(self, asked: int) -> tuple[int, int]:
        """(epoch, its end offset) for a client that knows data of the epoch `asked`; (-1, -1): cannot tell.

        Section 5 of the rules: the largest epoch we know that is not above the one asked
        for, and where the next one begins.
        """
        if asked == self.leader_epoch:
            return asked, self.log.end_offset
        if asked > self.leader_epoch or asked == -1:
            return -1, -1
        known = self.log.epochs or [(self.leader_epoch, 0)]
        if asked < known[0][0]:
            return asked, known[0][1]
        starts = [*(start for _, start in known[1:]), self.log.end_offset]
        ends = [(epoch, end) for (epoch, _), end in zip(known, starts, strict=True) if epoch <= asked]
        return ends[-1]

    # --- writing -------------------------------------------------------------------------

    def append(
        self, accepted: Accepted, log_append_time: bool, verified: Verification | None = None
    ) -> Appended:
        """Write a checked batch, unless it is a duplicate. Raises KafkaError where it is out of order.

        The first batch of a transaction needs the pass that `producers.verify` gave.
        """
        header = accepted.header
        if header.producer_id >= 0:
            duplicate = self.producers.check(header, verified)
            if duplicate is not None:
                return Appended(
                    base_offset=duplicate.base_offset,
                    next_offset=duplicate.last_offset + 1,
                    log_append_time_ms=duplicate.timestamp,
                )
        base_offset = self.log.end_offset
        pieces = [placed(header, base_offset, self.leader_epoch), *accepted.pieces]
        self.log.append(pieces, header)
        if header.producer_id >= 0:
            self.producers.apply(header)
        if not self.log.durable:
            self.wake()
        return Appended(
            base_offset=base_offset,
            next_offset=self.log.end_offset,
            log_append_time_ms=header.max_timestamp if log_append_time else -1,
        )

    def has_open(self, producer_id: int) -> bool:
        """Whether a transaction of this producer is open here: it has written, and has no marker yet."""
        producer = self.producers.by_id.get(producer_id)
        return producer is not None and producer.first_open_offset >= 0

    def write_marker(
        self,
        producer_id: int,
        epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
        now_ms: int,
        transaction_version: int = 0,
    ) -> Appended:
        """End a transaction, here. It counts once it is durable: `wait_durable(appended.next_offset)`.

        Raises KafkaError where a newer epoch of the producer (47) or of the coordinator (52) is known.
        Where no transaction is open the marker is written all the same, and changes nothing for readers.
        """
        self.producers.check_marker(producer_id, epoch, coordinator_epoch, transaction_version)
        base_offset = self.log.end_offset
        batch = build_marker(
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timestamp=self.append_time(now_ms) if self.log_append_time else now_ms,
            base_offset=base_offset,
            leader_epoch=self.leader_epoch,
            log_append_time=self.log_append_time,
        )
        header = read_header(batch)
        self.log.append([batch], header)
        ended = self.producers.apply(header, Marker(committed=committed, coordinator_epoch=coordinator_epoch))
        if ended is not None:
            self._note(ended)
            if self.log.durable:
                self.producers.unstable.hold(ended.marker, ended.first_offset)
        if not self.log.durable:
            self.wake()
        return Appended(base_offset=base_offset, next_offset=self.log.end_offset)

    def append_time(self, now_ms: int) -> int:
        """The time of an append, which never goes back within a partition though the clock may."""
        self._last_append_ms = max(self._last_append_ms, now_ms)
        return self._last_append_ms

    async def wait_durable(self, offset: int) -> None:
        """Return once everything below `offset` would survive what the broker promises to survive.

        KafkaError where that will not come about: the log has failed, or its topic was deleted.
        """
        if self.log.durable and self.log.flushed_offset < offset:
            await self.log.wait_flushed(offset)

    async def settle(self) -> None:
        """Return once all that clients were told by now may be read.

        A client whose write was answered from the page cache finds it when it then reads,
        as it would in Kafka: the reader waits for the sync that is under way, but not for ever.
        """
        with suppress(KafkaError), trio.move_on_after(SETTLE_MAX_S):
            await self.wait_durable(self._told)

    def told(self, offset: int) -> None:
        """A client is told of its write up to here before it is durable: acks 0 or 1."""
        self._told = max(self._told, offset)

    def wake(self) -> None:
        """Tell those who wait that there is more to read, or nothing more to wait for."""
        if self.watchers:
            for watcher in tuple(self.watchers):
                watcher.poke()

    def _flushed(self) -> None:
        """The high watermark has moved."""
        self.producers.unstable.settle(self.log.flushed_offset)
        self.wake()

    # --- for compaction ----------------------------------------------------------------------

    def aborted_ranges(self) -> list[AbortedRange]:
        """All aborted transactions whose end is stable."""
        return self.log.aborted.ended_in(0, self.last_stable_offset)

    def last_writes(self) -> dict[int, LastWrite]:
        """What has to stay of each producer, so that its sequence is still known after a restart."""
        return {
            producer_id: LastWrite(offset=producer.last_data_offset, epoch=producer.epoch)
            for producer_id, producer in self.producers.by_id.items()
        }

    # --- producer state across restarts ------------------------------------------------------

    def _dump(self) -> bytes:
        packed: bytes = msgpack.packb(self.producers.dump())
        return packed

    def _restore(self) -> None:
        """From the newest state that was saved, and the log from there on; else from all of the log."""
        since = 0
        if self.log.saved_state is not None:
            since, blob = self.log.saved_state
            self.producers.load(msgpack.unpackb(blob))
        for header, batch in self.log.history(since):
            if header.base_offset >= since:
                self._replay(header, batch)
            if header.log_append_time:
                self._last_append_ms = max(self._last_append_ms, header.max_timestamp)

    def _replay(self, header: BatchHeader, batch: Buffer) -> None:
        ended = self.producers.apply(header, read_marker(batch) if batch else None)
        if ended is not None:
            self._note(ended)

    def _note(self, ended: Ended) -> None:
        """Have the log keep in mind that readers must leave out what was aborted."""
        if not ended.committed:
            self.log.note_aborted(
                AbortedRange(
                    producer_id=ended.producer_id,
                    first_offset=ended.first_offset,
                    last_offset=ended.marker,
                    last_stable_offset=ended.last_stable_offset,
                )
            )
