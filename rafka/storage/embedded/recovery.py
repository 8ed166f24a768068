"""One log's folder made sense of, after any kind of stop.

The checkpoint promises segments up to a recovery point; what it promises must be there,
or the log is *refused*: reads and appends answer KAFKA_STORAGE_ERROR, until a person has
looked. What lies above was appended after the last flush that the checkpoint knows of.
After a clean stop there is nothing above. After any other, it is walked batch by batch;
the first thing that is not a sound batch in its right place is a torn tail, and is cut
off there, with all segments after it.

Where the checkpoint itself is damaged nothing is known to be flushed, so everything is
walked; and since all of it may have been acknowledged, only a tail that nothing sound
follows is cut. A damaged middle refuses the log.

Nothing here touches shared state: it runs in a thread, log by log.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs

from ...env import Disk
from .. import epochs as leader_epochs
from ..aborted import ENTRY as ABORTED_ENTRY
from ..aborted import AbortedRange, unpacked
from ..backend import LogName
from . import names, snapshots
from .index import NO_ABORTED, AbortedProof, DamagedIndex, Index, Progress
from .marks import LogMark, SegmentMark
from .scan import Batch, Damaged, batch_at, check
from .segment import SegmentFile, read_whole

_log = logging.getLogger("rafka.storage")
_INTERVAL = 4096  # index.interval.bytes is not known here; segments that grow on take the log's own


@attrs.define
class Recovered:
    """What was found. With `refused`, `segments` mean nothing."""

    name: LogName
    segments: list[SegmentFile] = attrs.field(factory=list)
    start_offset: int = 0
    compacted_to: int = 0
    epochs: leader_epochs.Epochs = attrs.field(factory=list)
    saved_state: tuple[int, bytes] | None = None
    aborted: list[AbortedRange] = attrs.field(factory=list)  # complete up to the offset of the state
    walked: int = 0  # bytes
    cut: int = 0  # bytes
    refused: str | None = None
    swapped: list[SegmentFile] = attrs.field(factory=list)  # still under the name of a swap


class Refused(Exception):
    """Something that was promised is not there."""


def recover(
    disk: Disk, root: str, name: LogName, mark: LogMark | None, *, clean: bool, all_known: bool
) -> Recovered:
    """Bring one folder in order. `mark` is what the checkpoint says of it, if it says anything.

    `all_known` is whether there is a checkpoint at all: then a log without a mark is new.
    """
    found = Recovered(name)
    try:
        _Recovery(disk, f"{root}/{name}", mark, found, clean=clean, all_known=all_known).run()
    except (Refused, Damaged, OSError) as error:
        found.refused = str(error)
    return found


class _Recovery:
    def __init__(
        self,
        disk: Disk,
        folder: str,
        mark: LogMark | None,
        found: Recovered,
        *,
        clean: bool,
        all_known: bool,
    ) -> None:
        self.disk = disk
        self.folder = folder
        self.mark = mark if mark is not None and mark.segments else None
        self.found = found
        self.clean = clean
        self.promised = all_known and (
            mark is None or bool(mark.segments)
        )  # what is not marked is not flushed
        self.logs: dict[int, str] = {}  # base offset -> name of the file
        self.swaps: dict[int, int] = {}  # base offset -> end, of those files that are swaps
        self.changed = False  # names in the folder
        self.proven = self.mark is not None  # whether aborted transactions are known as far as marked

    def run(self) -> None:
        entries = self.disk.list(self.folder)
        self._tidy(entries)
        if self.mark is not None:
            self._take_marked(self.mark)
        above = self._unmarked()
        if above or self.found.segments:
            self._walk(above)
        if self.found.segments:
            self._take_state(entries)
        if self.changed or above:  # a file that was found need not have a durable name
            self.disk.sync_dir(self.folder)
        if self.mark is None:
            for folder in self._folders_above():
                self.disk.sync_dir(folder)
        found = self.found
        if found.segments and not self.promised:
            self._take_epochs()
        if found.segments:
            end_offset = found.segments[-1].next_offset
            leader_epochs.cut_tail(found.epochs, end_offset + 1)
            found.start_offset = max(found.start_offset, found.segments[0].base_offset)
            for segment in found.segments[:-1]:
                segment.closed = True

    def _take_state(self, entries: list[str]) -> None:
        """The newest state that what is left of the log goes on from.

        None, where aborted transactions below it may be missing from their index. Such states go
        at once, and durably: the next checkpoint knows only of the index as it is now.
        """
        found = self.found
        lowest = found.segments[0].base_offset
        highest = found.segments[-1].next_offset if self.proven else -1
        found.saved_state, removed = snapshots.load(self.disk, self.folder, entries, lowest, highest)
        self.changed = self.changed or removed
        if not self.proven:
            found.aborted = []
            for segment in found.segments:
                segment.aborted_proof = NO_ABORTED

    def _take_epochs(self) -> None:
        """Without a checkpoint: the epochs of the batches, and a later one that has no batch yet."""
        try:
            epochs = leader_epochs.from_text(read_whole(self.disk, f"{self.folder}/{names.EPOCHS}"))
        except (FileNotFoundError, ValueError):
            return
        for epoch, offset in epochs:
            if offset >= self.found.segments[-1].next_offset:
                leader_epochs.grow(self.found.epochs, epoch, offset)

    def _folders_above(self) -> list[str]:
        parts = self.found.name.split("/")
        return [self.folder.removesuffix("/" + "/".join(parts[at:])) for at in range(len(parts))]

    # Names

    def _tidy(self, entries: list[str]) -> None:
        """Remove what was on its way out, and see which files are segments."""
        for name in entries:
            if name.endswith((names.DELETED, names.CLEANED, names.TEMPORARY)):
                self._remove(name)
            elif (base := names.segment_base(name)) is not None:
                self.logs[base] = name
        for name in entries:
            if (span := names.swap_range(name)) is not None:
                self._apply_swap(name, *span)

    def _apply_swap(self, name: str, base: int, end: int) -> None:
        """It stands for all segments from `base` up to `end`, unless those have expired since."""
        if self.mark and not any(base <= segment.base_offset < end for segment in self.mark.segments):
            self._remove(name)
            return
        for replaced in [offset for offset in self.logs if base <= offset < end]:
            self._remove(self.logs.pop(replaced))
            for suffix in (names.INDEX, names.TIME_INDEX, names.TXN_INDEX):
                self._remove_beside(replaced, suffix)
        self.logs[base] = name
        self.swaps[base] = end

    def _remove_beside(self, base: int, suffix: str) -> None:
        if self.disk.exists(f"{self.folder}/{names.stem(base)}{suffix}"):
            self._remove(names.stem(base) + suffix)

    def _remove_segment(self, base: int) -> None:
        self._remove(self.logs.pop(base))
        self._remove_beside(base, names.TXN_INDEX)

    def _remove(self, name: str) -> None:
        self.disk.remove(f"{self.folder}/{name}")
        self.changed = True

    # What is promised

    def _take_marked(self, mark: LogMark) -> None:
        found = self.found
        found.start_offset = mark.start_offset
        found.compacted_to = mark.compacted_to
        found.epochs = list(mark.epochs)
        for segment_mark in mark.segments:
            base = segment_mark.base_offset
            swap = next((start for start, end in self.swaps.items() if start <= base < end), None)
            if swap is not None and not self._is_swap(
                segment_mark
            ):  # replaced since the checkpoint was taken
                if all(segment.base_offset != swap for segment in found.segments):
                    found.segments.append(self._walk_whole(swap))
                if segment_mark.aborted.entries:
                    self.proven = False  # they were of the old segments
                continue
            if base not in self.logs:
                raise Refused(f"{self.folder}/{names.stem(base)}.log is missing")
            found.segments.append(self._marked_segment(segment_mark))
        last = mark.segments[-1].base_offset
        for base in [base for base in self.logs if base < last]:
            if all(segment.base_offset != base for segment in found.segments):
                self._remove_segment(base)  # expired or replaced before this checkpoint was taken

    def _is_swap(self, mark: SegmentMark) -> bool:
        """Whether the mark is already of the new segment."""
        if self.swaps.get(mark.base_offset) != mark.next_offset:
            return False
        file = self.disk.open(f"{self.folder}/{self.logs[mark.base_offset]}")
        try:
            return file.size() == mark.size
        finally:
            file.close()

    def _marked_segment(self, mark: SegmentMark) -> SegmentFile:
        segment = self._segment(mark.base_offset)
        segment.next_offset = mark.next_offset
        segment.size = mark.size
        segment.created_ms = mark.created_ms
        segment.written_ms = mark.written_ms
        segment.first_timestamp = mark.first_timestamp
        segment.proof = mark.proof
        segment.progress = Progress(_INTERVAL, mark.since_entry, mark.timestamp, mark.time_offset)
        if mark.aborted.entries:
            self._take_aborted(segment, mark.aborted)
        return segment

    def _take_aborted(self, segment: SegmentFile, proof: AbortedProof) -> None:
        """The entries that the checkpoint tells of. Synced before it was, so that only damage loses them."""
        path = segment.index_path(names.TXN_INDEX)
        try:
            data = read_whole(self.disk, path)[: proof.entries * ABORTED_ENTRY.size]
        except FileNotFoundError:
            data = b""
        if proof.matches(data):
            segment.aborted_proof = proof
            self.found.aborted += unpacked(data)
        else:
            _log.warning("%s is damaged: the log is gone through for aborted transactions", path)
            self.proven = False

    def _segment(self, base: int) -> SegmentFile:
        path = f"{self.folder}/{self.logs[base]}"
        segment = SegmentFile(self.disk, self.folder, base, int(self.disk.modified(path) * 1000))
        segment.path = path
        segment.named = base not in self.swaps
        segment.progress = Progress(_INTERVAL)
        if not segment.named:
            self.found.swapped.append(segment)
        return segment

    def _walk_whole(self, base: int) -> SegmentFile:
        """A closed segment that no mark is of. All of it must be sound."""
        segment = self._segment(base)
        segment.index = _new_index(base)
        self._walk_segment(segment, base, gaps=True)
        segment.next_offset = max(segment.next_offset, self.swaps.get(base, 0))
        segment.seal()
        return segment

    # What is not

    def _unmarked(self) -> list[int]:
        known = {segment.base_offset for segment in self.found.segments}
        return sorted(base for base in self.logs if base not in known)

    def _walk(self, above: Sequence[int]) -> None:
        """Walk on from the recovery point: the rest of the last promised segment, then those after it."""
        segments = self.found.segments
        if segments:
            if not self._walk_on(segments[-1]):
                self._drop(above, segments[-1].next_offset)
                return
        elif not self.promised:
            self.found.epochs = []
        for at, base in enumerate(above):
            expected = segments[-1].next_offset if segments else 0 if self.promised else base
            if base != expected and (self.promised or base < expected):
                if not self.promised:
                    raise Refused(f"{self.folder}/{names.stem(base)}.log overlaps the segment before it")
                self._drop(above[at:], expected)
                return
            if segments:
                segments[-1].seal()
            segment = self._segment(base)
            segment.index = _new_index(base)
            segments.append(segment)
            if not self._walk_tail(segment, base, last=at == len(above) - 1):
                self._drop(above[at + 1 :], segment.next_offset)
                return
            segment.next_offset = max(segment.next_offset, self.swaps.get(base, 0))

    def _walk_on(self, segment: SegmentFile) -> bool:
        """Make sure of the promised part; walk what comes after it. False if that had to be cut."""
        file = self.disk.open(segment.path)
        try:
            size = file.size()
        finally:
            file.close()
        if size < segment.size:
            raise Refused(
                f"{segment.path} has {size} bytes, and had {segment.size} that were flushed: "
                f"{segment.size - size} are missing"
            )
        if size == segment.size:
            if not self.clean:
                self._restore_index(segment)
            return True
        self._restore_index(segment)
        return self._walk_tail(segment, segment.next_offset, last=True)

    def _restore_index(self, segment: SegmentFile) -> None:
        """The index up to the recovery point: from its files; from the batches if those lack anything."""
        try:
            segment.index = segment.index_from_files()
            segment.index.cut(segment.size, segment.next_offset)
        except (DamagedIndex, FileNotFoundError):
            segment.index = segment.rebuild_index()

    def _walk_tail(self, segment: SegmentFile, next_offset: int, *, last: bool) -> bool:
        """Walk to the end of the file; cut there what is not sound, if it may be. False if it was cut."""
        try:
            self._walk_segment(segment, next_offset, gaps=not self.promised)
        except Damaged as damage:
            self._cut(segment, damage, last=last)
            return False
        return True

    def _walk_segment(self, segment: SegmentFile, next_offset: int, *, gaps: bool) -> None:
        """Take in all sound batches after `segment.size`. Damaged at the first one that is not."""
        assert segment.index is not None
        file = self.disk.open(segment.path)
        try:
            end, begin = file.size(), segment.size
            try:
                epoch = self.found.epochs[-1][0] if self.found.epochs and not gaps else -1
                for batch in check(file.read, begin, end, next_offset, epoch, gaps=gaps):
                    self._take(segment, batch)
            finally:
                self.found.walked += segment.size - begin
                segment.offset_entries = len(segment.index.offsets)
                segment.time_entries = len(segment.index.times)
            if end > begin:
                file.sync()  # a kill left it in the page cache, and from here on it counts as durable
        finally:
            file.close()

    def _take(self, segment: SegmentFile, batch: Batch) -> None:
        assert segment.index is not None
        if batch.position == 0:
            segment.first_timestamp = batch.max_timestamp
        segment.progress.note(segment.index, batch)
        epochs = self.found.epochs
        if not epochs or batch.epoch != epochs[-1][0]:
            leader_epochs.grow(epochs, batch.epoch, batch.base_offset)
        segment.size = batch.position + batch.size
        segment.next_offset = batch.next_offset

    def _cut(self, segment: SegmentFile, damage: Damaged, *, last: bool) -> None:
        """Cut a torn tail. Refused where what follows may have been promised."""
        file = self.disk.open(segment.path)
        try:
            end = file.size()
            rest = file.read(end - damage.position, damage.position)
            if not self.promised and (not last or _goes_on(rest)):
                raise Refused(
                    f"{segment.path} is damaged at {damage.position} ({damage}), and goes on after that"
                )
            file.truncate(damage.position)
            file.sync()
        finally:
            file.close()
        self.found.cut += len(rest)
        level = logging.WARNING if rest.strip(b"\0") else logging.INFO  # zeros: room taken in advance
        _log.log(
            level,
            "%s: cut %d bytes at %d, offset %d: %s",
            segment.path,
            len(rest),
            damage.position,
            segment.next_offset,
            damage,
        )

    def _drop(self, bases: Sequence[int], end_offset: int) -> None:
        """Remove segments that come after what was cut: they were not flushed either."""
        for base in bases:
            path = f"{self.folder}/{self.logs[base]}"
            file = self.disk.open(path)
            size = file.size()
            file.close()
            self.found.cut += size
            _log.warning("%s: removed with %d bytes, the log ends at offset %d", path, size, end_offset)
            self._remove_segment(base)


def _new_index(base: int) -> Index:
    index = Index(base)
    index.stale = True  # whatever the files say
    return index


def _goes_on(rest: bytes) -> bool:
    """Whether a sound batch follows the damaged one, going by the length that that one claims."""
    try:
        at = batch_at(rest, 0, 0).size
        next(check(lambda size, at: rest[at : at + size], at, len(rest), 0, -1, gaps=True))
    except (Damaged, StopIteration):
        return False
    return True
