"""What a producer has been given and has not yet got rid of. No I/O: `now` comes in.

Records gather in batches, one open batch per partition at its queue's end. A batch may go when it
is full, when it has lingered long enough, or when somebody flushes. Per partition:

    add ──▶ waiting ──take──▶ in flight ──succeed──▶ done
               ▲                  │ └─────fail─────▶ done
               └──────retry───────┘

Order within a partition is kept whatever happens. With sequence numbers (an idempotent producer)
several batches of one partition may be in flight: should one fail for a passing reason, those
behind it are refused by the broker (OUT_OF_ORDER_SEQUENCE_NUMBER), all go back in order, and
nothing of that partition is sent until none is in flight. Without sequence numbers a partition
has one batch in flight at a time.

A sequence number is given when a batch is first taken, and kept through retries: that is how the
broker knows a batch it has already written. A batch that failed for good was not written, so its
numbers are given to those behind it. Where nobody knows whether it was written (it was sent and
timed out), numbering cannot go on: `stuck` tells, and `renumber` starts afresh once nothing is
in flight, under a new producer id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import attrs
import trio

from ..records.record import Record
from ..types import Buffer
from .errors import ClientError
from .model import TopicPartition

BATCH_OVERHEAD: Final = 61
NEVER: Final = float("inf")
SEQUENCE_SPAN: Final = 2**31  # sequence numbers wrap to 0 after 2^31 - 1


@attrs.define(eq=False)
class Batch:
    """Records that are sent, written and answered together."""

    target: TopicPartition
    serial: int  # grows along the queue; a retry goes back to its place by it
    deadline: float  # after which the producer gives it up
    ready_at: float  # when it has lingered long enough
    records: list[Record] = attrs.field(factory=list)
    size: int = BATCH_OVERHEAD
    sequence: int = -1
    sent: bool = False  # it went out at least once, so it may have been written
    data: Buffer | None = None  # encoded with its sequence number; kept for a retry
    finished: bool = False
    error: ClientError | None = None
    base_offset: int = -1
    append_time_ms: int = -1
    _event: trio.Event | None = None

    async def wait(self) -> None:
        """Return once the batch is done, well or not."""
        if self.finished:
            await trio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()

    def finish(self) -> None:
        self.finished = True
        if self._event is not None:
            self._event.set()

    def unnumber(self) -> None:
        self.sequence = -1
        self.data = None


@attrs.define(eq=False)
class _Queue:
    """One partition's batches, oldest first."""

    waiting: deque[Batch] = attrs.field(factory=deque)
    in_flight: list[Batch] = attrs.field(factory=list)
    open: bool = False  # the last one waiting takes more records
    next_serial: int = 0
    next_sequence: int = 0
    resume_at: int | None = None  # sequence numbers from here on were not used and are given again
    settling: bool = False  # nothing goes until none is in flight
    not_before: float = 0.0  # backing off


class Accumulator:
    def __init__(self, *, batch_size: int, linger: float, delivery_timeout: float, sequenced: bool) -> None:
        self._batch_size = batch_size
        self._linger = linger
        self._delivery_timeout = delivery_timeout
        self._sequenced = sequenced
        self._queues: dict[TopicPartition, _Queue] = {}
        self.flushing = 0  # how many are flushing: while any is, no batch lingers
        self.in_flight = 0
        self.bytes = 0  # of all batches that are not done
        self.stuck = False  # sequence numbers are lost track of: `renumber` before taking more

    def unfinished(self) -> list[Batch]:
        """All batches that are not done."""
        return [batch for queue in self._queues.values() for batch in (*queue.in_flight, *queue.waiting)]

    def waiting(self) -> list[TopicPartition]:
        """The partitions that have something to send."""
        return [target for target, queue in self._queues.items() if queue.waiting]

    # --- giving ------------------------------------------------------------------

    def add(self, target: TopicPartition, record: Record, size: int, now: float) -> tuple[Batch, int, bool]:
        """Put a record at the end of its partition's queue.

        Gives the batch, the record's place in it, and whether senders should look again, because a
        batch was begun or is full.
        """
        queue = self._queues.get(target)
        if queue is None:
            queue = self._queues[target] = _Queue()
        begun = not queue.open or queue.waiting[-1].size + size > self._batch_size
        batch = self._begin(queue, target, now) if begun else queue.waiting[-1]
        batch.records.append(record)
        batch.size += size
        self.bytes += size
        if batch.size >= self._batch_size:
            queue.open = False
        return batch, len(batch.records) - 1, begun or not queue.open

    def _begin(self, queue: _Queue, target: TopicPartition, now: float) -> Batch:
        queue.next_serial += 1
        batch: Batch = Batch(target, queue.next_serial, now + self._delivery_timeout, now + self._linger)
        queue.waiting.append(batch)
        queue.open = True
        self.bytes += batch.size
        return batch

    # --- taking ------------------------------------------------------------------

    def take(self, mine: Callable[[TopicPartition], bool], now: float, max_bytes: int) -> list[Batch]:
        """At most one batch of each partition that is `mine`; they are in flight from now on."""
        if self.stuck:
            return []
        taken: list[Batch] = []
        size = 0
        for target, queue in self._queues.items():
            if not queue.waiting or self._due(queue, now) > now or not mine(target):
                continue
            size += queue.waiting[0].size
            if taken and size > max_bytes:
                break
            taken.append(self._send_off(queue))
        for batch in taken:  # whoever was served goes to the end of the line
            self._queues[batch.target] = self._queues.pop(batch.target)
        return taken

    def next_look(self, mine: Callable[[TopicPartition], bool], now: float) -> float:
        """When there may be something to take, unless something is added or answered before."""
        dues = (self._due(q, now) for target, q in self._queues.items() if q.waiting and mine(target))
        return min(dues, default=NEVER)

    def _due(self, queue: _Queue, now: float) -> float:
        """When the first batch of a queue may go; NEVER while an answer has to come first."""
        if queue.in_flight and (queue.settling or not self._sequenced):
            return NEVER
        may_still_grow = queue.open and len(queue.waiting) == 1 and not self.flushing
        return max(queue.not_before, queue.waiting[0].ready_at if may_still_grow else now)

    def _send_off(self, queue: _Queue) -> Batch:
        if queue.resume_at is not None:
            queue.next_sequence = queue.resume_at
            queue.resume_at = None
            for again in queue.waiting:
                again.unnumber()
        batch = queue.waiting.popleft()
        queue.open = queue.open and bool(queue.waiting)
        queue.settling = False
        if self._sequenced and batch.sequence < 0:
            batch.sequence = queue.next_sequence
            queue.next_sequence = (batch.sequence + len(batch.records)) % SEQUENCE_SPAN
        batch.sent = True
        queue.in_flight.append(batch)
        self.in_flight += 1
        return batch

    # --- answers -----------------------------------------------------------------

    def succeed(self, batch: Batch, base_offset: int, append_time_ms: int) -> None:
        queue = self._land(batch)
        batch.base_offset = base_offset
        batch.append_time_ms = append_time_ms
        if queue.resume_at is not None:  # written after all, so its numbers are used
            queue.resume_at = (batch.sequence + len(batch.records)) % SEQUENCE_SPAN
        self._finish(batch)

    def retry(self, batch: Batch, not_before: float) -> None:
        """Back to its place in the queue."""
        queue = self._land(batch)
        place = sum(1 for other in queue.waiting if other.serial < batch.serial)
        queue.waiting.insert(place, batch)
        queue.not_before = max(queue.not_before, not_before)
        queue.settling = True

    def fail(self, batch: Batch, error: ClientError, *, unknown: bool = False) -> None:
        """Give a batch up. `unknown`: it may have been written all the same."""
        self._give_up(self._land(batch), batch, error, unknown)

    def expire(self, now: float, error: Callable[[Batch], ClientError]) -> None:
        """Give up what waits and is past its deadline. What is in flight is left to its answer."""
        for queue in self._queues.values():
            while queue.waiting and queue.waiting[0].deadline <= now:
                batch = queue.waiting.popleft()
                queue.open = queue.open and bool(queue.waiting)
                self._give_up(queue, batch, error(batch), batch.sent)

    def abandon(self, mine: Callable[[TopicPartition], bool], error: ClientError) -> None:
        """Give up all that waits for partitions that are `mine`."""
        for target, queue in self._queues.items():
            while queue.waiting and mine(target):
                batch = queue.waiting.popleft()
                self._give_up(queue, batch, error, batch.sent)
            queue.open = queue.open and bool(queue.waiting)

    def explains(self, batch: Batch) -> bool:
        """Whether the broker may miss numbers before this batch's because an earlier one failed."""
        queue = self._queues[batch.target]
        return queue.settling or queue.in_flight[0] is not batch

    def renumber(self) -> None:
        """All sequence numbers begin at 0 again, under a new producer id. Nothing may be in flight."""
        assert self.in_flight == 0
        self.stuck = False
        for queue in self._queues.values():
            queue.next_sequence = 0
            queue.resume_at = None
            queue.settling = False
            for batch in queue.waiting:
                batch.unnumber()

    def _land(self, batch: Batch) -> _Queue:
        queue = self._queues[batch.target]
        queue.in_flight.remove(batch)
        self.in_flight -= 1
        return queue

    def _give_up(self, queue: _Queue, batch: Batch, error: ClientError, unknown: bool) -> None:
        batch.error = error
        if self._sequenced and batch.sequence >= 0:
            if unknown:
                self.stuck = True
            elif queue.resume_at is None:  # the first to fail: those behind it take over its numbers
                queue.resume_at = batch.sequence
                queue.settling = True
        self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        self.bytes -= batch.size
        batch.finish()
