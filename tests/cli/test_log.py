"""`rafka log dump` tells what is in segment files, and what is wrong with them."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from rafka.cli import main
from rafka.cli.segments import Dump, Line, dump_index, dump_log, dump_time_index, dump_txn_index
from rafka.records.batch import OVERHEAD, read_header, sealed, write_header
from rafka.records.build import build
from rafka.records.control import build_marker
from rafka.records.record import Record

FIRST = 100


def batch(at: int, *values: str, codec: int = 0) -> bytes:
    records = [Record(0, 1000 + i, b"k", value.encode(), [("h", b"x")]) for i, value in enumerate(values)]
    return build(records, base_offset=at, codec=codec)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / f"{FIRST:020}.log"
    marker = build_marker(
        producer_id=7, producer_epoch=0, committed=False, coordinator_epoch=0, timestamp=5, base_offset=103
    )
    path.write_bytes(batch(100, "a", "b") + batch(102, "c", codec=1) + marker)
    return path


def dumped(path: Path, **wanted: bool) -> tuple[list[Line], int]:
    dump = Dump(**wanted)
    return list(dump_log(path, dump)), dump.faults


def test_a_line_for_each_batch(segment: Path) -> None:
    lines, faults = dumped(segment, deep=True)

    assert [(one["base_offset"], one["last_offset"], one["codec"]) for one in lines] == [
        (100, 101, "none"),
        (102, 102, "gzip"),
        (103, 103, "none"),
    ]
    assert all(one["crc_ok"] for one in lines)
    assert lines[1]["position"] == lines[0]["size"]
    assert faults == 0


def test_records_and_markers_are_shown_where_they_are_wanted(segment: Path) -> None:
    lines, _ = dumped(segment, records=True)

    assert [one for one in lines if "record_offset" in one] == [
        {"record_offset": 100, "time": 1000, "key": "k", "value": "a", "headers": {"h": "x"}},
        {"record_offset": 101, "time": 1001, "key": "k", "value": "b", "headers": {"h": "x"}},
        {"record_offset": 102, "time": 1000, "key": "k", "value": "c", "headers": {"h": "x"}},
        {"record_offset": 103, "time": 5, "control": "ABORT"},
    ]


def test_a_damaged_batch_is_told_and_the_rest_is_read(segment: Path) -> None:
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)

    lines, faults = dumped(segment)

    assert (lines[0]["crc_ok"], lines[0]["fault"]) == (False, "the checksum is wrong")
    assert len(lines) == 3
    assert faults == 1


def test_a_torn_tail_is_told_and_reserved_room_is_no_fault(segment: Path) -> None:
    whole = segment.read_bytes()

    segment.write_bytes(whole + bytes(5000))
    reserved, no_faults = dumped(segment)
    segment.write_bytes(whole[:-5])
    torn, faults = dumped(segment)

    assert reserved[-1] == {"position": len(whole), "size": 5000, "reserved": True}
    assert "cut short" in str(torn[-1]["fault"])
    assert (no_faults, faults) == (0, 1)


def test_offsets_that_go_back_are_told(segment: Path) -> None:
    segment.write_bytes(batch(100, "a", "b") + batch(101, "c"))

    lines, faults = dumped(segment)

    assert "below 102" in str(lines[1]["fault"])
    assert faults == 1


def test_a_count_that_lies_is_found_by_looking_deep(segment: Path) -> None:
    data = batch(100, "a", "b")
    header = read_header(data)
    header.count = 3
    segment.write_bytes(write_header(sealed(header, data[OVERHEAD:])) + data[OVERHEAD:])

    shallow, no_faults = dumped(segment)
    deep, faults = dumped(segment, deep=True)

    assert shallow[0]["crc_ok"]
    assert "its records cannot be read" in str(deep[0]["fault"])
    assert (no_faults, faults) == (0, 1)


def test_an_index_is_held_against_its_log(segment: Path) -> None:
    second = len(batch(100, "a", "b"))
    index = segment.with_suffix(".index")
    index.write_bytes(struct.pack(">iiiiii", 2, second, 3, second + 1, 4, second) + bytes(80))
    dump = Dump(deep=True)

    lines = list(dump_index(index, dump))

    assert lines == [
        {"offset": 102, "position": second},
        {"offset": 103, "position": second + 1, "fault": "no batch begins at this position"},
        {"offset": 104, "position": second, "fault": "the batch there goes from 102 to 102"},
    ]
    assert dump.faults == 2


def test_a_time_index_is_held_against_its_log(segment: Path) -> None:
    index = segment.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">qiqiqi", 1001, 1, 2000, 2, 1500, 3))
    dump = Dump(deep=True)

    lines = list(dump_time_index(index, dump))

    assert [one.get("fault") for one in lines] == [
        None,
        "the batch there is not later than 1000",
        "it is not above the one before it",
    ]


def test_aborted_transactions_are_held_against_their_markers(segment: Path) -> None:
    ranges = [(7, 100, 103), (8, 100, 103), (7, 104, 104), (7, 101, 105)]
    index = segment.with_suffix(".txnindex")
    index.write_bytes(b"".join(struct.pack(">hqqqq", 0, *one, one[2] + 1) for one in ranges) + b"cut")
    dump = Dump(deep=True)

    lines = list(dump_txn_index(index, dump))

    assert lines[0] == {
        "producer_id": 7,
        "first_offset": 100,
        "last_offset": 103,
        "last_stable_offset": 104,
    }
    assert [one.get("fault") for one in lines[1:]] == [
        "its marker is not above the one before it",
        "its marker is not above its first record",
        "there is no marker at its last offset",
        "the last entry is cut short",
    ]
    index.write_bytes(struct.pack(">hqqqq", 0, 8, 100, 103, 104))
    assert [one.get("fault") for one in dump_txn_index(index, dump)] == ["the marker there is of producer 7"]


def test_the_command_exits_with_1_where_something_is_damaged(
    segment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    well = main(["log", "dump", str(segment), "--json", "--deep"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    segment.write_bytes(segment.read_bytes()[:-1])
    badly = main(["log", "dump", str(segment)])

    assert (well, badly) == (0, 1)
    assert [one["base_offset"] for one in lines] == [100, 102, 103]
    assert "fault: a batch of" in capsys.readouterr().out


def test_what_is_no_segment_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "dump", str(tmp_path / "x.txt")]) == 1
    assert main(["log", "dump", str(tmp_path / "1.log")]) == 1
    errors = capsys.readouterr().err
    assert "not a .log, .index, .timeindex or .txnindex file" in errors
    assert "No such file" in errors
