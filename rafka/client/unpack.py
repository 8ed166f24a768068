"""From what a fetch brought to the records that a reader should see. No I/O.

A broker sends whole batches, so the first may begin before the offset asked for, and the last may
be cut short. Markers of transactions are for clients, not for readers; what an aborted transaction
wrote is left out where only committed records are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..records.batch import BatchHeader, crc_of, walk
from ..records.compress import MissingCodec
from ..records.control import END_TXN_ABORT, marker_type
from ..records.errors import BadBatch
from ..records.record import Record, payload_of, records_of
from ..types import Buffer
from .errors import ClientError, CorruptBatch
from .messages.data import AbortedTransaction

MAGIC: Final = 2
UNPACK_CAP: Final = 1 << 30  # what a batch may grow to: brokers do not limit it, memory does


class Unpacker:
    """Reads one answer for one partition. `next_offset` is where the following fetch begins."""

    def __init__(
        self,
        subject: str,
        offset: int,
        aborted: Sequence[AbortedTransaction] | None,
        *,
        check_crc: bool = True,
    ) -> None:
        self.next_offset = offset
        self._subject = subject
        self._check_crc = check_crc
        # What is still to begin, the first last; and the producers whose aborted part we are in.
        self._to_come = sorted(aborted or (), key=lambda one: one.first_offset, reverse=True)
        self._aborting: set[int] = set()

    def unpack(self, data: Buffer) -> list[Record]:
        """The records from `next_offset` on, which moves behind them."""
        records: list[Record] = []
        view = memoryview(data)
        for at, header in walk(view):
            batch = view[at : at + header.size]
            self._check(header, batch)
            if header.last_offset < self.next_offset:
                continue
            try:
                if not self._hidden(header, batch):
                    records += self._visible(header, batch)
            except MissingCodec as error:
                raise ClientError(f"{self._subject}: {error.message}") from error
            except BadBatch as error:
                where = f"{self._subject}: the batch at offset {header.base_offset}"
                raise CorruptBatch(f"{where} cannot be read: {error.reason}") from error
            self.next_offset = header.next_offset
        return records

    def _check(self, header: BatchHeader, batch: memoryview) -> None:
        if header.magic != MAGIC:
            raise CorruptBatch(
                f"{self._subject}: the batch at offset {header.base_offset} is of format {header.magic}, "
                "which only Kafka before 0.11 wrote: this client reads format 2"
            )
        if self._check_crc and crc_of(batch, 0, header.size) != header.crc:
            raise CorruptBatch(
                f"{self._subject}: the batch at offset {header.base_offset} fails its checksum: "
                f"go on behind it from offset {header.next_offset}"
            )

    def _hidden(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether no reader should see this batch."""
        while self._to_come and self._to_come[-1].first_offset <= header.last_offset:
            self._aborting.add(self._to_come.pop().producer_id)
        if header.control:
            if self._aborting and marker_type(batch) == END_TXN_ABORT:
                self._aborting.discard(header.producer_id)
            return True
        return header.transactional and header.producer_id in self._aborting

    def _visible(self, header: BatchHeader, batch: memoryview) -> list[Record]:
        records = list(records_of(header, payload_of(header, batch, UNPACK_CAP)))
        if header.base_offset < self.next_offset:
            return [record for record in records if record.offset >= self.next_offset]
        return records
