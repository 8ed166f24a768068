"""One partition: its log, what of it may be read, who wrote to it, and who waits for it.

Partitions have no task. Code without an `await` is atomic on one thread, so writing
and reading are plain calls in the task of whoever asks, and need no lock.

    log start ─────────── last stable offset ── high watermark ── log end
              readable by all      readable uncommitted     written, not yet durable

Where durability means fsync, the high watermark is the durable offset: nobody reads
what a loss of power could take back. In page-cache mode it is the end of the log.
The last stable offset is the high watermark as long as no transaction is open;
transactions will keep it at the first offset of the earliest open one, from the
`first_open_offset` of `Producers` and the aborted index that goes with the segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

import msgpack
import trio

from ..errors import ErrorCode, KafkaError
from ..machines.producers import Producers
from ..ops.log import AbortedTransaction
from ..records.batch import BatchHeader, placed
from ..records.check import Accepted
from ..storage.backend import Log
from ..types import message

SETTLE_MAX_S: Final = 5.0  # a sync that takes longer than this is not waited for by readers


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
        self.watchers: set[Watcher] = set()
        self._last_append_ms = -1
        self._told = 0
        self._restore()
        # Restoring leaves the log's end as it was found: from here on this is the leader's epoch.
        self.leader_epoch = max(0, log.epoch_of(log.end_offset))
        log.state_source = self._dump
        log.on_flushed = self.wake if log.durable else None

    # --- what may be read --------------------------------------------------------------

    @property
    def high_watermark(self) -> int:
        return self.log.flushed_offset if self.log.durable else self.log.end_offset

    @property
    def last_stable_offset(self) -> int:
        return self.high_watermark

    @property
    def settled(self) -> bool:
        """Whether all that clients were told is written may be read. If not, a sync sees to it soon."""
        return self.high_watermark >= self._told

    def ceiling(self, isolation_level: int) -> int:
        """Readers at this isolation level see what lies below."""
        return self.last_stable_offset if isolation_level else self.high_watermark

    def aborted(self, offset: int, upto: int) -> Sequence[AbortedTransaction]:
        """The aborted transactions that a reader of this range has to leave out."""
        return ()

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

    def append(self, accepted: Accepted, log_append_time: bool) -> Appended:
        """Write a checked batch, unless it is a duplicate. Raises KafkaError where it is out of order."""
        header = accepted.header
        if header.producer_id >= 0:
            duplicate = self.producers.check(header)
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

    # --- producer state across restarts ------------------------------------------------------

    def _dump(self) -> bytes:
        packed: bytes = msgpack.packb(self.producers.dump())
        return packed

    def _restore(self) -> None:
        since = self.log.start_offset
        if self.log.saved_state is not None:
            since, blob = self.log.saved_state
            self.producers.load(msgpack.unpackb(blob))
        header: BatchHeader
        for header in self.log.headers(since):
            if header.base_offset >= since:
                self.producers.apply(header)
            if header.log_append_time:
                self._last_append_ms = max(self._last_append_ms, header.max_timestamp)
