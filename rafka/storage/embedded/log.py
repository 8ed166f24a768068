"""One partition's log in segment files. Its methods are documented in `backend.Log`.

    segments   [ closed | closed | ... | active ]        all files in one folder
    offsets    start_offset ...... flushed_offset ... end_offset

`written` has appending and flushing, `reading` has reading; here is what changes which
segments there are, and what the log leaves behind for the next start. Everything runs on
the event loop, and touches the disk only where that cannot be waited for long.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import attrs

from .. import epochs as leader_epochs
from ..aborted import ENTRY as ABORTED_ENTRY
from ..aborted import AbortedIndex, AbortedRange
from ..backend import Replacement, Segment
from ..policy import expired
from . import names, swap
from .index import NO_ABORTED
from .leftovers import Captured
from .marks import LogMark, SegmentMark, mark_of, packed
from .reading import ReadLog
from .recovery import Recovered
from .segment import SegmentFile

_UNKNOWN = LogMark(start_offset=0, compacted_to=0, epochs=[], segments=[])


@attrs.frozen
class CheckpointParts:
    """What a checkpoint takes from one log."""

    log: EmbeddedLog
    entry: bytes | None
    point_base: int
    indexes: list[tuple[str, int, bytes]]  # path, where, what
    aborted: list[tuple[str, int, bytes]]  # the same
    epochs: bytes | None
    settle: Captured | None


class EmbeddedLog(ReadLog):
    """One partition's log."""

    # At the start

    def restore(self, found: Recovered, kept: LogMark | None) -> None:
        """Take over what recovery found; all of it is durable. The last segment is the active one.

        A refused log keeps what the last checkpoint said of it, for the next start to judge by.
        """
        if found.refused is not None:
            self.fail(found.refused)
            self._packed = packed(self.name, kept or _UNKNOWN)
            return
        segments = self._segments = found.segments
        self._bases = [segment.base_offset for segment in segments]
        self.size = sum(segment.size for segment in segments)
        self.end_offset = self.flushed_offset = segments[-1].next_offset
        self.start_offset = found.start_offset
        self._compacted_to = found.compacted_to
        self.saved_state = found.saved_state
        self.saved_state_offset = found.saved_state[0] if found.saved_state else -1
        self.epochs = found.epochs
        self._epoch = self.epochs[-1][0] if self.epochs else -1
        leader_epochs.cut_head(self.epochs, self.start_offset)
        if not found.walked and not found.cut:
            self._epochs_written = list(self.epochs)
        self._point = mark_of(segments[-1])
        self.aborted = AbortedIndex(found.aborted)
        for segment in segments[:-1]:
            if segment.index is not None:
                self._shared.indexes.keep(segment, segment.index)
        for segment in found.swapped:
            self.leftovers.swapped(segment)

    def bump_epoch(self) -> None:
        """Begin a new leader epoch at the end: clients that read further once can tell (KIP-320)."""
        self._epoch += 1
        leader_epochs.grow(self.epochs, self._epoch, self.end_offset)
        self._packed = None

    # Retention and compaction

    @property
    def compacted_to(self) -> int:
        return self._compacted_to

    @compacted_to.setter
    def compacted_to(self, offset: int) -> None:
        self._compacted_to = offset
        self._packed = None

    def advance_start(self, offset: int) -> None:
        assert offset <= self.end_offset, "the start cannot pass the end"
        if offset > self.start_offset:
            self.start_offset = offset
            leader_epochs.cut_head(self.epochs, offset)
            self._packed = None

    def closed_segments(self) -> list[SegmentFile]:
        return self._segments[:-1]

    def expire(self, now_ms: int, retention_ms: int, retention_bytes: int, upto: int) -> int:
        if self.failed is not None:
            raise self._refused(self.failed)
        if not self._segments:
            return 0
        count = expired(
            self._segments,
            start_offset=self.start_offset,
            now_ms=now_ms,
            retention_ms=retention_ms,
            retention_bytes=retention_bytes,
            upto=upto,
        )
        if count == 0:
            return 0
        if count == len(self._segments):
            self.roll()
        gone = self._segments[:count]
        for segment in gone:
            self.leftovers.expire(segment, now_ms + self._settings.file_delete_delay_ms)
            self._aborted_in.pop(segment, None)
        del self._segments[:count], self._bases[:count]
        self.aborted.cut_head(self._bases[0])
        self.size -= sum(segment.size for segment in gone)
        self.advance_start(self._segments[0].base_offset)
        self._packed = None
        self._shared.want_checkpoint()
        return count

    def replacement(self, old: Sequence[Segment]) -> swap.Rewrite:
        return swap.Rewrite(self._shared.env.disk, self.folder, old, self._settings.index_interval_bytes)

    async def replace_segments(self, old: Sequence[Segment], new: Replacement) -> bool:
        if self.failed is not None:
            raise self._refused(self.failed)
        assert isinstance(new, swap.Rewrite)
        try:
            return await swap.replace(self, self._shared, old, new)
        except OSError as error:
            raise self._trouble(error) from error

    def put_in_place(self, old: Sequence[Segment], new: SegmentFile, aborted: Sequence[AbortedRange]) -> bool:
        """The moment of a swap, for `swap.replace`. False if one of the old ones is gone."""
        at = bisect_right(self._bases, old[0].base_offset) - 1
        found = self._segments[at : at + len(old)]
        if at < 0 or found != list(old) or at + len(old) >= len(self._segments):
            return False
        self._segments[at : at + len(old)] = [new]
        self._bases[at : at + len(old)] = [new.base_offset]
        self.size += new.size - sum(segment.size for segment in found)
        self._packed = None
        self.aborted.replace(new.base_offset, new.next_offset, aborted)
        if aborted:
            self._aborted_in[new] = None
        for segment in found:
            self._aborted_in.pop(segment, None)
            not_before_ms = self._shared.now_ms() + self._settings.file_delete_delay_ms
            self.leftovers.set_aside(segment, not_before_ms)
        return True

    # What a checkpoint takes, and what it settles

    def _checkpoint_entry(self, point: SegmentMark) -> bytes:
        """This log's part of the checkpoint."""
        if self._packed is None:
            closed = [
                mark_of(segment) for segment in self._segments if segment.base_offset < point.base_offset
            ]
            mark = LogMark(
                start_offset=min(self.start_offset, point.next_offset),
                compacted_to=self._compacted_to,
                epochs=[entry for entry in self.epochs if entry[1] <= point.next_offset],
                segments=[*closed, point],
            )
            self._packed = packed(self.name, mark)
        return self._packed

    def checkpoint_parts(self) -> CheckpointParts:
        """All that a checkpoint taken now has to write of this log, and what to do once it is durable."""
        self._since_checkpoint = 0
        point = self._point
        if self.failed is not None or point is None:
            return CheckpointParts(self, self._packed, -1, [], [], None, None)
        indexes = self._indexes_to_write()  # first: the entry has the proof of them
        aborted = self._aborted_to_write(point.next_offset)
        holder = next((s for s in self._segments if s.base_offset == point.base_offset), None)
        if holder is not None:
            point = point._replace(proof=holder.proof, aborted=holder.aborted_proof)
        return CheckpointParts(
            self,
            self._checkpoint_entry(point),
            point.base_offset,
            indexes,
            aborted,
            self._epochs_to_write(),
            # A segment that expired while it was being flushed is what this checkpoint ends with.
            self.leftovers.captured() if holder is not None else None,
        )

    def settle(self, parts: CheckpointParts) -> None:
        """The checkpoint is durable."""
        self.checkpointed_base = parts.point_base
        if parts.settle is not None and self.failed is None:
            try:
                self.leftovers.settle(parts.settle, self._segments)
                self._shared.flusher.note_folder(self.folder)
            except OSError as error:
                self._trouble(error)

    def unsettled(self, parts: CheckpointParts) -> None:
        """The checkpoint could not be written: what it would have settled waits for the next one."""
        self._epochs_written = []
        for segment in self._segments:
            if segment.index is not None and any(
                path.startswith(segment.stem) for path, _, _ in parts.indexes
            ):
                segment.index.stale = True
            if any(path == segment.index_path(names.TXN_INDEX) for path, _, _ in parts.aborted):
                segment.aborted_proof = NO_ABORTED
                self._aborted_in[segment] = None
        if parts.settle is not None:
            self.leftovers.returned(parts.settle)

    @property
    def changed(self) -> bool:
        """Whether a checkpoint would say something new of this log."""
        return self._since_checkpoint > 0 or self.leftovers.waiting

    def state_to_save(self) -> tuple[int, bytes] | None:
        """The broker's state of this partition, if it may have changed since it was last saved."""
        if self.state_source is None or self.failed is not None or self.end_offset == self.saved_state_offset:
            return None
        if not self._segments:
            return None
        return self.end_offset, self.state_source()

    def _epochs_to_write(self) -> bytes | None:
        """The file of leader epochs, for Kafka's tools: the truth is in the checkpoint."""
        if not self._segments or self.epochs == self._epochs_written:
            return None
        self._epochs_written = list(self.epochs)
        return leader_epochs.to_text(self.epochs)

    def _indexes_to_write(self) -> list[tuple[str, int, bytes]]:
        """(path, where, what) of the index entries that the files lack; from now on they count as written."""
        writes: list[tuple[str, int, bytes]] = []
        for segment in self._segments:
            if segment.index is not None and segment.index.has_unwritten and segment.named:
                writes += segment.index_writes()
                self._packed = None
        return writes

    def _aborted_to_write(self, flushed: int) -> list[tuple[str, int, bytes]]:
        """The entries that the files lack, of markers that are flushed: no other is sure to stay."""
        writes: list[tuple[str, int, bytes]] = []
        for segment in list(self._aborted_in):
            proof = segment.aborted_proof
            upto = min(segment.next_offset, flushed)
            data = self.aborted.packed(segment.base_offset, upto, proof.entries)
            if data:
                path = segment.index_path(names.TXN_INDEX)
                writes.append((path, proof.entries * ABORTED_ENTRY.size, data))
                segment.aborted_proof = proof.grown(data)
                self._packed = None
            if upto == segment.next_offset:
                del self._aborted_in[segment]
        return writes

    def trim(self) -> None:
        """Give back the room that was taken in advance: the backend is closing."""
        if self._settings.preallocate and self._segments and self.failed is None:
            active = self._segments[-1]
            file = self._shared.files.get(active)
            if file.size() > active.size:
                file.truncate(active.size)
                self._dirtied(active)
