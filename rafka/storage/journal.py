"""The journal: the one internal log, in which facts outlive the process.

Topics, configs, groups, committed offsets, transactions and credentials are not kept
in tables but as the facts that led to them. An actor appends the facts of a round,
waits until they are durable, and only then answers; a restart replays them.

On the storage it is a log like any other, named `journal`: one batch per append, one
record per fact, its tag as the key and its fields, in msgpack, as the value. What
the facts mean is unknown here; a `FactCodec` turns them into bytes and back
(`machines.facts.FactRegistry` is one).

Snapshots keep the replay short. A snapshot at offset N is a blob of the facts that
lead to the same state as everything below N; then come the journal's own batches from
N on. The newest two are kept, and the log's head is cut at the older one only: if
the newest turns out to be damaged, the one before it and a longer replay still tell
everything. What no copy can make good, a damaged batch or a gap, refuses the start:
a broker that forgot some facts in the middle would contradict its own answers.

Where an answer has to wait for a sync, what is put is written when the next sync begins, or
sooner if a task waits for it: nobody may be told of it before, and all of it is one batch.

Rules for callers
* `put` puts facts in order at once, `settled` waits for them; `append` is both. So as
  long as an actor decides and appends without an await in between, memory and journal
  agree whenever anybody else runs, and a snapshot taken then is a consistent cut.
* Several tasks may append at once. Each append is atomic, and the backend's flusher
  makes one sync serve them all.
* An append that raises leaves memory ahead of the journal. Nothing can be done about
  it in place: the actor lets the error out and dies with its nursery, and a
  restart replays what is true. A write that fails as a sync begins ends the storage.
* Cancelling an append while it waits does not take the facts back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import trio

from ..env import Env
from ..records.batch import BatchHeader, crc_of, sealed, walk, write_header
from ..records.build import build_pairs
from ..records.record import Record, iterate
from ..types import Buffer
from .backend import Blobs, Log, LogBackend, LogName, LogSettings

JOURNAL = LogName("journal")
SEGMENT_BYTES = 16 << 20  # the head is cut by whole segments

# A snapshot is due after so many bytes or facts of journal, and not before there are as
# many as the last snapshot has: so writing snapshots at most doubles what is written.
SNAPSHOT_BYTES = 8 << 20
SNAPSHOT_FACTS = 100_000

_READ_BYTES = 1 << 20  # of the log at a time, when replaying
_SLICE = 500  # facts of a snapshot that are packed between two looks at the loop: about 2 ms
_SNAPSHOT = "journal-{:020}.snapshot"

log_line = logging.getLogger(__name__)


class JournalDamaged(Exception):
    """The journal cannot be replayed without leaving something out: the broker does not start."""


class FactCodec(Protocol):
    """Facts to bytes and back."""

    def pack(self, fact: Any) -> tuple[bytes, bytes]:
        """(tag, fields)."""

    def unpack(self, tag: bytes, packed: bytes) -> Any:
        """ValueError, in words for a person, where it cannot be understood."""


async def open_journal(backend: LogBackend, codec: FactCodec, env: Env) -> Journal:
    """Read the newest good snapshot and the log after it. JournalDamaged where something is missing."""
    settings = LogSettings(segment_bytes=SEGMENT_BYTES, file_delete_delay_ms=0, essential=True)
    log = backend.open(JOURNAL, settings)
    if log.failed is not None:
        raise JournalDamaged(f"the journal cannot be read: {log.failed}")
    blobs = backend.blobs
    since, snapshot = _newest_good(blobs)
    tail = await _read_tail(log, since)
    journal = Journal(log, codec, blobs, env, since, snapshot, tail)
    if log.end_offset < since:  # a loss of power, without syncs, may take more of the log than of a snapshot
        journal.pad(since)
    return journal


class Journal:
    """Facts in, in order and for good; facts out again at the next start. Made by `open_journal`."""

    def __init__(
        self,
        log: Log,
        codec: FactCodec,
        blobs: Blobs,
        env: Env,
        since: int,
        snapshot: bytes,
        tail: list[bytes],
    ) -> None:
        self._log = log
        self._codec = codec
        self._blobs = blobs
        self._env = env
        # The journal has no leaders. But an epoch lies outside the checksum, where a torn tail may have
        # raised it unseen, and recovery takes a lower one after it for damage.
        self._epoch = max(0, log.epoch_of(log.end_offset))
        self._snapshot_at = since  # the newest good snapshot's offset; 0 stands for none
        self._snapshot_bytes, self._snapshot_facts = len(snapshot), _count(snapshot)
        self._to_replay = [snapshot, *tail]
        self._bytes_since = sum(map(len, tail))
        self._facts_since = sum(map(_count, tail))
        self._snapshotting = False
        self._unwritten: list[Any] = []  # facts
        self.on_due: Callable[[], None] = _nobody  # called where a snapshot may be worth its writing
        self._due_at_bytes, self._due_at_facts = self._due_at()
        if log.durable:
            log.on_flush = self._write

    def replay(self) -> Iterator[Any]:
        """All facts, oldest first; once, before the first append. JournalDamaged for one not understood."""
        pieces, self._to_replay = self._to_replay, []
        for piece in pieces:
            for at, header in walk(piece):
                for record in iterate(memoryview(piece)[at : at + header.size]):
                    yield self._unpack(record)

    async def append(self, facts: Sequence[Any]) -> None:
        """Return when the facts are as durable as the broker promises."""
        if self.put(facts):
            await self.settled()

    def put(self, facts: Sequence[Any]) -> bool:
        """Put facts in order behind all others, without waiting. Whether there were any."""
        if not facts:
            return False
        self._facts_since += len(facts)
        self._unwritten += facts
        if not self._log.durable:
            self._write()
        elif len(self._unwritten) == len(facts):
            self._log.flush_soon()
        return True

    def owe(self, facts: Sequence[Any]) -> None:
        """As `put`, but where the page cache will do they are written with the next, or by `pay`.

        So what many requests bring in one step is written as one batch. Nobody may be told before.
        """
        if self._log.durable:
            self.put(facts)
        else:
            self._facts_since += len(facts)
            self._unwritten += facts

    def pay(self) -> None:
        """Write what is owed."""
        if self._unwritten and not self._log.durable:
            self._write()

    async def settled(self) -> None:
        """Return when all that has been put so far is as durable as the broker promises."""
        if self._log.durable:
            self._write()
            await self._log.wait_flushed(self._log.end_offset)
        else:
            self.pay()
            await trio.lowlevel.checkpoint()

    @property
    def end(self) -> int:
        """Behind all that has been put."""
        return self._log.end_offset + len(self._unwritten)

    @property
    def kept(self) -> int:
        """All that was put before this is as durable as the broker promises, or will be by `pay`."""
        return self._log.flushed_offset if self._log.durable else self.end

    @property
    def rests(self) -> bool:
        """Whether all that was put is."""
        return not self._log.durable or self.kept == self.end

    def on_kept(self, told: Callable[[], None]) -> None:
        """Call this when `kept` has moved without a `put`. It must neither wait nor raise."""
        if self._log.durable:
            self._log.on_flushed = told

    @property
    def at_once(self) -> bool:
        """Whether what is put is as durable as promised at that moment: the page cache will do."""
        return not self._log.durable

    @property
    def due(self) -> bool:
        """Whether a snapshot now would be worth its writing."""
        if self._snapshotting:
            return False
        return self._bytes_since >= self._due_at_bytes or self._facts_since >= self._due_at_facts

    def _due_at(self) -> tuple[int, int]:
        """Of bytes, or of facts."""
        return max(SNAPSHOT_BYTES, self._snapshot_bytes), max(SNAPSHOT_FACTS, self._snapshot_facts)

    async def snapshot(self, facts: Iterable[Any]) -> None:
        """Keep `facts` in place of all that was appended so far.

        They are taken from the iterable before anything waits: they must lead to the
        state of this very moment. Appending goes on meanwhile.
        """
        if self._snapshotting:
            raise RuntimeError("a snapshot of the journal is already being written")
        facts = list(facts)
        self._write()
        offset = self._log.end_offset
        covered_bytes, covered_facts = self._bytes_since, self._facts_since
        self._snapshotting = True
        try:
            blob = await self._pack_snapshot(facts)
            if self._log.durable:
                await self._log.wait_flushed(offset)
            await self._blobs.save(_SNAPSHOT.format(offset), blob)
            previous, self._snapshot_at = self._snapshot_at, offset
            self._snapshot_bytes, self._snapshot_facts = len(blob), len(facts)
            self._due_at_bytes, self._due_at_facts = self._due_at()
            self._bytes_since -= covered_bytes
            self._facts_since -= covered_facts
            await self._forget_before(previous)
        finally:
            self._snapshotting = False

    async def _pack_snapshot(self, facts: list[Any]) -> bytes:
        blob = bytearray()
        for at in range(0, len(facts), _SLICE):
            _, pieces = self._batch(facts[at : at + _SLICE], at)
            blob += b"".join(pieces)
            await trio.lowlevel.checkpoint()
        return bytes(blob)

    async def _forget_before(self, previous: int) -> None:
        """Cut the log where the snapshot before the newest begins, and remove older ones and damaged ones."""
        keep = {previous, self._snapshot_at}
        for offset in _offsets(self._blobs):
            if offset not in keep:
                await self._blobs.remove(_SNAPSHOT.format(offset))
        self._log.advance_start(previous)
        self._log.expire(self._now_ms(), -1, -1, previous)

    def pad(self, offset: int) -> None:
        """Go on at `offset`, by a batch that has no facts."""
        log_line.warning(
            "the journal ends at offset %d, before its snapshot at %d: the facts between are in the snapshot",
            self._log.end_offset,
            offset,
        )
        header = _filler(self._log.end_offset, offset, self._epoch)
        self._put(header, [write_header(header)])

    def _write(self) -> None:
        """Append what has been put."""
        if facts := self._unwritten:
            self._unwritten = []
            self._put(*self._batch(facts, self._log.end_offset, self._epoch))

    def _put(self, header: BatchHeader, pieces: list[Buffer]) -> None:
        self._log.append(pieces, header)
        self._bytes_since += header.size
        if self.due:
            self.on_due()

    def _batch(
        self, facts: Sequence[Any], base_offset: int, epoch: int = -1
    ) -> tuple[BatchHeader, list[Buffer]]:
        packed = map(self._codec.pack, facts)
        return build_pairs(packed, self._now_ms(), base_offset=base_offset, leader_epoch=epoch)

    def _unpack(self, record: Record) -> Any:
        try:
            return self._codec.unpack(bytes(record.key or b""), bytes(record.value or b""))
        except ValueError as wrong:
            raise JournalDamaged(f"the journal cannot be read at offset {record.offset}: {wrong}") from wrong

    def _now_ms(self) -> int:
        return int(self._env.now() * 1000)


def _nobody() -> None:
    """Who is told before anybody wants to know."""


def _filler(first: int, after: int, epoch: int) -> BatchHeader:
    """A batch of no records that takes the offsets from `first` up to `after`."""
    return sealed(BatchHeader(first, 0, epoch, 2, 0, 0, after - first - 1, -1, -1, -1, -1, -1, 0))


def _count(batches: bytes) -> int:
    return sum(header.count for _, header in walk(batches))


def _offsets(blobs: Blobs) -> list[int]:
    """Where the snapshots that exist begin, ascending."""
    prefix, suffix = _SNAPSHOT.split("{:020}")
    return [
        int(name.removeprefix(prefix).removesuffix(suffix))
        for name in blobs.names()
        if name.startswith(prefix) and name.endswith(suffix)
    ]


def _newest_good(blobs: Blobs) -> tuple[int, bytes]:
    for offset in reversed(_offsets(blobs)):
        blob = blobs.load(_SNAPSHOT.format(offset))
        if blob is not None:
            return offset, blob
        log_line.warning(
            "the journal's snapshot at offset %d is damaged: going back to the one before", offset
        )
    return 0, b""


async def _read_tail(log: Log, since: int) -> list[bytes]:
    """Every batch from `since` on, whole and checked."""
    if log.start_offset > since:
        raise JournalDamaged(
            f"the journal begins at offset {log.start_offset}, but its newest readable snapshot ends"
            f" at {since}: the facts between are gone"
        )
    pieces = []
    while since < log.end_offset:
        read = await log.read_cold(since, log.end_offset, _READ_BYTES)
        whole = 0
        for at, header in walk(read):
            if header.base_offset != since or crc_of(read, at, header.size) != header.crc:
                break
            since, whole = header.next_offset, at + header.size
        if not whole:
            raise JournalDamaged(
                f"the journal is damaged at offset {since}, and ends at {log.end_offset}:"
                " the facts between cannot be told"
            )
        pieces.append(read[:whole])
    return pieces
