"""What the rest of rafka knows of storage: logs of record batches, on something.

A *backend* keeps many *logs* by name; a log is one partition's (or the journal's)
sequence of record batches, in *segments*. Two backends implement these protocols:
`memory.MemoryBackend`, where nothing outlives the process, and
`embedded.EmbeddedBackend`, which keeps Kafka's segment files. One suite of tests,
`tests/storage/conformance.py`, holds both to what is written here.

Which call may be made where
* Plain methods run on the event-loop thread, never wait, and are atomic to everybody
  else because nothing awaits in them. (The two marked *any thread* may block.)
* `async` methods may hand work to a thread. Cancelling one delays until the thread
  is back: a file operation is never abandoned half done.

What survives what
* An append that returned survives the death of the process (kill -9).
* Offsets below `flushed_offset` survive a loss of power as well.
* A start offset, `compacted_to` and the state of `state_source` are as of the last
  checkpoint: after a crash they may be older, never newer.

An unreadable or full disk answers KafkaError(KAFKA_STORAGE_ERROR) from the log it
concerns; a failed sync raises `StorageFailed` out of `LogBackend.run`, and the
process has to end: no second sync can tell what the first one lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NewType, NoReturn, Protocol

import trio

from ..records.batch import BatchHeader
from ..types import Buffer, message
from .aborted import AbortedIndex, AbortedRange

LogName = NewType("LogName", str)  # a relative path: "topics/<32 hex digits>/0", "journal"

FOREVER = 2**63 - 1  # Kafka's way to switch a limit of messages or milliseconds off


class StorageFailed(Exception):
    """The disk can no longer be trusted to keep what is acknowledged: end the process."""


@message
class LogSettings:
    """Kafka's topic configs that concern a log, under Kafka's names and defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    index_interval_bytes: int = 4096
    index_max_bytes: int = 10 << 20  # segment.index.bytes
    preallocate: bool = False
    file_delete_delay_ms: int = 60_000
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    essential: bool = False  # may take the room kept in reserve: the journal, or nothing could be deleted


@message
class TimeFound:
    """A record found by its time."""

    offset: int
    timestamp: int
    epoch: int


@message
class DirRoom:
    """The room there is where a backend keeps its logs; -1 where it means nothing."""

    path: str
    total: int
    usable: int


class Segment(Protocol):
    """A closed segment, as retention and compaction see it. Nothing is appended to it any more."""

    base_offset: int
    next_offset: int  # the base offset of the segment after it
    size: int

    @property
    def largest_timestamp(self) -> int:
        """Of its records; where none has one, the time of the last write. Milliseconds."""

    def read(self, at: int, size: int) -> bytes:
        """Up to `size` bytes from position `at`; fewer only at the end. *Any thread*; may block.

        Works on, too, for a segment that retention has taken out of the log meanwhile.
        """


class Replacement(Protocol):
    """What is to take the place of closed segments. Nobody sees it before `replace_segments`."""

    size: int
    aborted: Sequence[AbortedRange]  # of whose records there may be some left; to be assigned

    def write(self, batch: Buffer) -> None:
        """Add one whole batch; offsets ascend and keep within those replaced. *Any thread*; may block.

        OSError where the disk does not take it, or the log has been deleted meanwhile.
        """


class Segmented(Protocol):
    """A log from below: what compaction and retention work with."""

    compacted_to: int  # first offset that compaction has not yet seen. Saved with checkpoints

    def closed_segments(self) -> Sequence[Segment]:
        """Oldest first, without the active one."""

    def roll(self) -> None:
        """Close the active segment and begin another. Nothing happens where it is empty."""

    def replacement(self, old: Sequence[Segment]) -> Replacement:
        """Begin what will replace these neighbours. Left unused, it vanishes at the next start."""

    async def replace_segments(self, old: Sequence[Segment], new: Replacement) -> bool:
        """Put `new` in their place, crash-safely: after any crash either all of old or new is there.

        False, and nothing changed, where one of them has left the log meanwhile.
        """

    def expire(self, now_ms: int, retention_ms: int, retention_bytes: int, upto: int) -> int:
        """Remove segments by start offset, size, then time (-1: no such limit); how many were removed.

        Only whole segments below `upto` (the high watermark) go. The active one goes as
        well if all of it qualifies: a new one is begun first. Their files are removed
        `file_delete_delay_ms` later by `LogBackend.remove_deleted`.
        """


class Log(Segmented, Protocol):
    """One partition's log."""

    name: LogName
    settings: LogSettings  # may be assigned; the new ones count from the next append on
    start_offset: int
    end_offset: int  # what the next batch gets
    flushed_offset: int  # all below would survive a loss of power
    size: int  # bytes
    epochs: list[tuple[int, int]]  # (leader epoch, its first offset), ascending; grows by appending
    durable: bool  # as LogBackend.durable: whether an answer has to wait for flushed_offset
    failed: str | None  # why this log refuses every read and append, if it does
    on_flush: Callable[[], None] | None  # called before a flush begins: what is appended then goes with it
    on_flushed: Callable[[], None] | None  # called after flushed_offset has moved
    state_source: Callable[[], bytes] | None  # asked for what has to be saved at roll, checkpoint, close
    saved_state: (
        tuple[int, bytes] | None
    )  # the newest such state found at the start, and the end offset it was of
    aborted: AbortedIndex  # to be read. At the start it is complete up to the offset of `saved_state`

    def append(self, pieces: Sequence[Buffer], header: BatchHeader) -> None:
        """Add one batch; `header.base_offset` is `end_offset`, and placed in the pieces.

        KafkaError(KAFKA_STORAGE_ERROR) if it is refused: then nothing has changed. The
        pieces are used during the call only.
        """

    def read(self, offset: int, upto: int, max_bytes: int, whole_first: bool = True) -> bytes | None:
        """Whole batches from the one that holds `offset` (or the next one), below `upto`, of one segment.

        The last one is cut where `max_bytes` hits, as Kafka does. A first batch larger
        than `max_bytes` comes whole, or with `whole_first=False` not at all. b"" where
        there is nothing; None if it would have to wait for the disk: use `read_cold`.
        """

    async def read_cold(self, offset: int, upto: int, max_bytes: int, whole_first: bool = True) -> bytes:
        """As `read`, waiting for the disk in a thread."""

    def bytes_between(self, offset: int, upto: int) -> int:
        """How many bytes a reader at `offset` has before it, up to `upto`. Never touches the disk.

        Exact at the offsets lately appended and read; elsewhere short of the truth by at
        most `index_interval_bytes` and one batch. At least 1 where there is anything.
        """

    async def find_time(self, timestamp: int) -> TimeFound | None:
        """The first record, in order of offsets, from start_offset on, at or after `timestamp`."""

    async def latest_time(self) -> TimeFound | None:
        """The record with the greatest timestamp; the first of them if there are several."""

    def epoch_of(self, offset: int) -> int:
        """The leader epoch that `offset` was, or would be, written in; -1 if that is not known."""

    def note_aborted(self, range_: AbortedRange) -> None:
        """The marker at its `last_offset`, which is in the log, has ended an aborted transaction.

        It is kept as long as that marker. One that is known already changes nothing.
        """

    def headers(self, since: int) -> Iterator[BatchHeader]:
        """Of all batches from the one that holds `since` on. May block: for the start, where nobody waits."""

    def history(self, since: int) -> Iterator[tuple[BatchHeader, Buffer]]:
        """As `headers`; beside that of a control batch the whole batch, beside others nothing."""

    def advance_start(self, offset: int) -> None:
        """Nothing below `offset` is read any more; `expire` frees the room. Lower than now: no change."""

    def flush_soon(self) -> None:
        """Have a flush begin, for what `on_flush` will append. Only where the backend is durable."""

    async def wait_flushed(self, offset: int) -> None:
        """Return once `flushed_offset` is at least `offset`, having asked for a flush if need be."""


class Blobs(Protocol):
    """Small files beside the logs, each replaced as a whole or not at all: snapshots, ids."""

    def names(self) -> list[str]:
        """Sorted."""

    def load(self, name: str) -> bytes | None:
        """None where there is none, or where it is damaged (a log line says which)."""

    async def save(self, name: str, blob: bytes) -> None:
        """Return once it would survive a loss of power (in page-cache mode: a kill)."""

    async def remove(self, name: str) -> None: ...


class LogBackend(Protocol):
    """Keeps logs by name."""

    durable: bool  # whether the broker promises flushed data (acks=all waits), or the page cache will do
    blobs: Blobs

    async def start(self) -> list[LogName]:
        """Recover what is there, and tell which logs that is."""

    def open(self, name: LogName, settings: LogSettings) -> Log:
        """The log of that name. A new one leaves no trace before its first append.

        KafkaError(KAFKA_STORAGE_ERROR) while one of that name is being deleted.
        """

    async def delete(self, name: LogName) -> None:
        """Remove the log and its files. Whoever still holds it reads and appends no more."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        """The flusher: make what was appended durable, many logs at once. One task, while logs are used."""

    async def checkpoint(self) -> None:
        """Save recovery points, start offsets and states, so that the next start has less to do."""

    async def remove_deleted(self, now_ms: int) -> int:
        """Remove the files that retention and compaction gave up and whose delay is over; how many."""

    async def close(self) -> None:
        """Flush and checkpoint all, and mark the stop as clean. After `run` was cancelled."""

    def abandon(self) -> None:
        """Let go of files, locks and threads, and leave all as it lies, as a death would."""

    def room(self) -> DirRoom: ...
