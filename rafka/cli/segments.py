"""What is in segment files, piece by piece, with whatever is wrong with it.

A file is read a batch at a time. Each reader yields lines, a dict for each batch, record or index
entry; a line about something damaged has a `fault`, and `Dump.faults` counts them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

import attrs

from ..errors import KafkaError
from ..records.batch import OVERHEAD, BatchHeader, crc_of, read_header
from ..records.compress import NAMES
from ..records.control import read_marker
from ..records.record import Record, iterate
from ..storage.aborted import ENTRY, unpacked

Line = dict[str, object]

MAGIC: Final = 2
UNPACK_CAP: Final = 1 << 30
_INDEX: Final = struct.Struct(">ii")
_TIME_INDEX: Final = struct.Struct(">qi")


@attrs.define
class Dump:
    """What is wanted, and how much was wrong."""

    records: bool = False
    deep: bool = False
    faults: int = 0

    def fault(self, line: Line, words: str | None) -> Line:
        if words is not None:
            self.faults += 1
            line["fault"] = words
        return line


def base_offset_of(path: Path) -> int:
    """Segments are named by the offset they begin with."""
    return int(path.stem) if path.stem.isdecimal() else 0


# --- .log ----------------------------------------------------------------------------


def dump_log(path: Path, dump: Dump) -> Iterator[Line]:
    """A line for each batch, and for each record where they are wanted."""
    expected = base_offset_of(path)
    with path.open("rb") as file:
        size = path.stat().st_size
        position = 0
        while position < size:
            header, batch, words = _next_batch(file, position, size)
            if header is None:
                if words is not None:
                    yield dump.fault({"position": position, "size": size - position}, words)
                else:
                    yield {"position": position, "size": size - position, "reserved": True}
                return
            records, broken = _records(header, batch, dump)
            line = _batch_line(header, position, crc_of(batch, 0, header.size) == header.crc)
            yield dump.fault(line, words or broken or _wrong(header, batch, expected, records, dump))
            if dump.records:
                yield from (_record_line(header, batch, record) for record in records)
            expected = header.next_offset
            position += header.size


def batches(path: Path) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch."""
    with path.open("rb") as file:
        size, position = path.stat().st_size, 0
        while position < size:
            header, _, words = _next_batch(file, position, size)
            if header is None or words is not None:
                return
            yield position, header
            position += header.size


def _next_batch(file: BinaryIO, position: int, size: int) -> tuple[BatchHeader | None, bytes, str | None]:
    """Header and bytes of the batch at a position; None with the reason where there is no whole one."""
    file.seek(position)
    start = file.read(OVERHEAD)
    if not any(start) and _only_zeros(file):
        return None, b"", None
    if len(start) < OVERHEAD:
        return None, b"", f"{len(start)} bytes that are no whole batch"
    header = read_header(start)
    if header.magic != MAGIC:
        return None, b"", f"a batch of format {header.magic}, not {MAGIC}"
    if header.size < OVERHEAD:
        return None, b"", f"a batch that says it has {header.size} bytes"
    if position + header.size > size:
        return None, b"", f"a batch of {header.size} bytes that is cut short after {size - position}"
    return header, start + file.read(header.size - OVERHEAD), None


def _only_zeros(file: BinaryIO) -> bool:
    while chunk := file.read(1 << 20):
        if any(chunk):
            return False
    return True


def _batch_line(header: BatchHeader, position: int, crc_ok: bool) -> Line:
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "leader_epoch": header.leader_epoch,
        "transactional": header.transactional,
        "control": header.control,
        "position": position,
        "time_type": "LogAppendTime" if header.log_append_time else "CreateTime",
        "base_time": header.base_timestamp,
        "max_time": header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "codec": NAMES[header.codec] if header.codec < len(NAMES) else header.codec,
        "crc": header.crc,
        "crc_ok": crc_ok,
    }


def _records(header: BatchHeader, batch: bytes, dump: Dump) -> tuple[list[Record], str | None]:
    if not dump.records and not dump.deep:
        return [], None
    try:
        return list(iterate(batch, UNPACK_CAP)), None
    except KafkaError as error:
        return [], f"its records cannot be read: {error}"


def _wrong(header: BatchHeader, batch: bytes, expected: int, records: list[Record], dump: Dump) -> str | None:
    """What is wrong with a batch whose records could be read."""
    if crc_of(batch, 0, header.size) != header.crc:
        return "the checksum is wrong"
    if header.base_offset < expected:
        return f"its base offset is below {expected}, where the batch before it ends"
    return _deep_fault(header, records) if dump.deep else None


def _deep_fault(header: BatchHeader, records: list[Record]) -> str | None:
    if len(records) != header.count:
        return f"it has {len(records)} records and says {header.count}"
    offsets = [record.offset for record in records]
    if any(later <= earlier for earlier, later in pairwise(offsets)):
        return "the offsets of its records do not ascend"
    if offsets and not header.base_offset <= offsets[0] <= offsets[-1] <= header.last_offset:
        return f"its records go from {offsets[0]} to {offsets[-1]}, beyond its own bounds"
    latest = max((record.timestamp for record in records), default=header.max_timestamp)
    if latest > header.max_timestamp:
        return f"a record is of {latest}, later than the greatest time it says"
    return None


def _record_line(header: BatchHeader, batch: bytes, record: Record) -> Line:
    line: Line = {"record_offset": record.offset, "time": record.timestamp}
    if header.control:
        marker = read_marker(batch)
        line["control"] = "other" if marker is None else ("COMMIT" if marker.committed else "ABORT")
        return line
    line["key"] = _shown(record.key)
    line["value"] = _shown(record.value)
    if record.headers:
        line["headers"] = {name: _shown(value) for name, value in record.headers}
    return line


def _shown(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="backslashreplace")


# --- .index and .timeindex -------------------------------------------------------------


def dump_index(path: Path, dump: Dump) -> Iterator[Line]:
    """Offset and position of each entry; with `deep` they are looked up in the .log."""
    base = base_offset_of(path)
    known = _positions(path) if dump.deep else None
    before = base - 1
    for relative, position in _entries(path, _INDEX):
        offset = base + relative
        line: Line = {"offset": offset, "position": position}
        words = None
        if offset <= before:
            words = "its offset is not above the one before it"
        elif known is not None and position not in known:
            words = "no batch begins at this position"
        elif known is not None:
            words = _index_fault(known[position], offset)
        before = offset
        yield dump.fault(line, words)


def _index_fault(header: BatchHeader, offset: int) -> str | None:
    if header.base_offset <= offset <= header.last_offset:
        return None
    return f"the batch there goes from {header.base_offset} to {header.last_offset}"


def dump_time_index(path: Path, dump: Dump) -> Iterator[Line]:
    """Time and offset of each entry; with `deep` they are looked up in the .log."""
    base = base_offset_of(path)
    headers = list(_positions(path).values()) if dump.deep else None
    before = (-1, base - 1)
    for timestamp, relative in _entries(path, _TIME_INDEX):
        offset = base + relative
        words = None
        if timestamp < before[0] or offset < before[1]:
            words = "it is not above the one before it"
        elif headers is not None:
            words = _time_fault(headers, timestamp, offset)
        before = (timestamp, offset)
        yield dump.fault({"timestamp": timestamp, "offset": offset}, words)


def _time_fault(headers: list[BatchHeader], timestamp: int, offset: int) -> str | None:
    holding = [one for one in headers if one.base_offset <= offset <= one.last_offset]
    if not holding:
        return "no batch holds this offset"
    if holding[0].max_timestamp < timestamp:
        return f"the batch there is not later than {holding[0].max_timestamp}"
    return None


# --- .txnindex -----------------------------------------------------------------------


def dump_txn_index(path: Path, dump: Dump) -> Iterator[Line]:
    """Each aborted transaction whose marker is in the .log; with `deep` the marker is looked up there."""
    headers = _positions(path).values() if dump.deep else ()
    markers = {header.base_offset: header for header in headers if header.control}
    data = path.read_bytes()
    before = base_offset_of(path) - 1
    for range_ in unpacked(data[: len(data) - len(data) % ENTRY.size]):
        line: Line = {
            "producer_id": range_.producer_id,
            "first_offset": range_.first_offset,
            "last_offset": range_.last_offset,
            "last_stable_offset": range_.last_stable_offset,
        }
        words = None
        if range_.last_offset <= before:
            words = "its marker is not above the one before it"
        elif range_.first_offset >= range_.last_offset:
            words = "its marker is not above its first record"
        elif dump.deep:
            words = _marker_fault(markers.get(range_.last_offset), range_.producer_id)
        before = range_.last_offset
        yield dump.fault(line, words)
    if len(data) % ENTRY.size:
        yield dump.fault({"size": len(data)}, "the last entry is cut short")


def _marker_fault(header: BatchHeader | None, producer_id: int) -> str | None:
    if header is None:
        return "there is no marker at its last offset"
    if header.producer_id != producer_id:
        return f"the marker there is of producer {header.producer_id}"
    return None


def _positions(path: Path) -> dict[int, BatchHeader]:
    return dict(batches(path.with_suffix(".log")))


def _entries(path: Path, entry: struct.Struct) -> Iterator[tuple[Any, ...]]:
    """Entries up to the zeros that a broker reserves behind them."""
    data = path.read_bytes()
    whole = len(data) - len(data) % entry.size
    last = whole
    while last and not any(data[last - entry.size : last]):
        last -= entry.size
    if not last and whole:
        return
    yield from entry.iter_unpack(data[:last])
