"""Which records of a compacted log stay: Kafka's rules, applied to bytes of segments.

Two steps over the same log. First the keys of the dirty part are read into a map of
the newest offset of each (`KeyMap`). Then everything up to there is read again, and
`Cleaner` writes each batch as it is, with fewer records, empty, or not at all:

* A record stays if no newer one has its key. One without a key goes.
* A tombstone (null value) stays for `delete_retention_ms` after it was first met here:
  the batch is marked with the time from which it may go, its delete horizon.
* Records of aborted transactions go. The marker of a transaction goes like a
  tombstone, once nothing of its transaction is left.
* The last batch of a producer that is still active stays, if need be empty, for its
  sequence number; so does the last batch of the range, for the offset it ends with.

Nothing here waits or knows a log: `compaction` says what is read and where it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from ..errors import ErrorCode, KafkaError
from ..records.batch import BatchHeader, crc_of, walk
from ..records.compact import candidates, rebuild
from ..records.control import read_marker
from ..types import Buffer, message
from .aborted import AbortedRange

_HASH_BYTES = 16  # two keys with one hash would lose a record: with this many, not in the life of the sun


@message
class LastWrite:
    """The last that an active producer wrote: its last data, or where it has none, its epoch's marker."""

    offset: int | None
    epoch: int


class KeyMap:
    """The newest offset of each key, for as many batches as there is room."""

    def __init__(self, aborted: Sequence[AbortedRange], max_entries: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._max_entries = max_entries
        self._transactions = _Transactions(aborted)
        self.upto = -1  # all below has been seen
        self.full = False

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, batches: Buffer, since: int) -> None:
        """Note the keys of these batches, from the offset `since` on; none any more once it is `full`.

        A batch is noted as a whole or, but for the first one, not at all.
        """
        for header, batch in _sound(batches):
            if self.full or header.next_offset <= since:
                continue
            if not header.control and not self._transactions.is_aborted(header):
                keys = {
                    _hash(record.key): record.offset
                    for record in candidates(batch)
                    if record.key is not None and record.offset >= since
                }
                self.full = bool(self._offsets) and len(self._offsets) + len(keys) > self._max_entries
                if self.full:
                    continue
                self._offsets.update(keys)
            self.upto = header.next_offset

    def superseded(self, offset: int, key: bytes) -> bool:
        """Whether a newer record has the key."""
        return offset < self._offsets.get(_hash(key), -1)


class Cleaner:
    """Goes through all batches from the start of the log, in order, and says what is left of each."""

    def __init__(
        self,
        keys: KeyMap,
        aborted: Sequence[AbortedRange],
        producers: Mapping[int, LastWrite],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._keys = keys
        self._transactions = _Transactions(aborted)
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = now_ms + delete_retention_ms
        self.records_read = 0
        self.records_kept = 0
        self._needed: set[int] = set()  # offsets of markers that end transactions of which there was data

    def clean(self, batches: Buffer) -> Iterator[Buffer]:
        """What is left of these batches."""
        for header, batch in _sound(batches):
            self.records_read += header.count
            if header.base_offset >= self._keys.upto:
                self.records_kept += header.count
                yield batch
                continue
            left = self._marker(header, batch) if header.control else self._data(header, batch)
            if left is not None:
                yield left

    def still_aborted(self, range_: AbortedRange) -> bool:
        """Whether readers may still come upon records of it: asked once its marker has been cleaned."""
        return range_.last_offset >= self._keys.upto or range_.last_offset in self._needed

    def _data(self, header: BatchHeader, batch: Buffer) -> Buffer | None:
        aborted = self._transactions.read(header)
        tombstones_stay = not header.has_delete_horizon or self._now_ms < header.base_timestamp
        kept = []
        tombstones = False
        for record in () if aborted else candidates(batch):
            if record.key is None or self._keys.superseded(record.offset, record.key):
                continue
            if record.tombstone and not tombstones_stay:
                continue
            tombstones = tombstones or record.tombstone
            kept.append(record.raw)
        self.records_kept += len(kept)
        if not kept and not self._stays_empty(header):
            return None
        marks = tombstones and not header.has_delete_horizon
        if len(kept) == header.count and not marks:
            return batch
        return rebuild(header, kept, delete_horizon_ms=self._horizon_ms if marks else None)

    def _marker(self, header: BatchHeader, batch: Buffer) -> Buffer | None:
        needed = self._transactions.end(header, batch)
        if needed:
            self._needed.add(header.base_offset)
        over = header.has_delete_horizon and header.base_timestamp <= self._now_ms
        if not needed and over and not self._stays_empty(header):
            return None
        self.records_kept += header.count
        if needed or header.has_delete_horizon:
            return batch
        records = [record.raw for record in candidates(batch)]
        return rebuild(header, records, delete_horizon_ms=self._horizon_ms)

    def _stays_empty(self, header: BatchHeader) -> bool:
        """Whether the batch has to stay for what its header says."""
        if header.next_offset == self._keys.upto:
            return True
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        if last.offset is None:
            return header.control and header.producer_epoch == last.epoch
        return header.last_offset == last.offset


class _Transactions:
    """Which transaction a batch belongs to, and whether anything of it was met before its marker."""

    def __init__(self, aborted: Sequence[AbortedRange]) -> None:
        self._waiting = sorted(aborted, key=lambda range_: range_.first_offset, reverse=True)
        self._aborted: dict[int, AbortedRange] = {}  # by producer, those that have begun
        self._met: set[int] = set()  # producers with data in the transaction that is open at this point

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the batch is data of an aborted transaction. Batches are asked for in order."""
        while self._waiting and self._waiting[-1].first_offset <= header.last_offset:
            begun = self._waiting.pop()
            self._aborted[begun.producer_id] = begun
        range_ = self._aborted.get(header.producer_id) if header.transactional else None
        return range_ is not None and range_.first_offset <= header.base_offset <= range_.last_offset

    def read(self, header: BatchHeader) -> bool:
        """As `is_aborted`, and remember that the transaction has data."""
        if header.transactional:
            self._met.add(header.producer_id)
        return self.is_aborted(header)

    def end(self, header: BatchHeader, batch: Buffer) -> bool:
        """Whether this marker is still needed: it ends a transaction of which there was data."""
        if not header.count:
            return False
        if read_marker(batch) is None:
            return True  # another kind of control record, which is not ours to remove
        met = header.producer_id in self._met
        self._met.discard(header.producer_id)
        return met


def _sound(batches: Buffer) -> Iterator[tuple[BatchHeader, Buffer]]:
    """The batches, one by one. A damaged one must not be written anew, with a checksum that is right."""
    view = memoryview(batches)
    for at, header in walk(view):
        if crc_of(view, at, header.size) != header.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {header.base_offset} has a wrong checksum"
            )
        yield header, view[at : at + header.size]


def _hash(key: bytes) -> bytes:
    return blake2b(key, digest_size=_HASH_BYTES).digest()
