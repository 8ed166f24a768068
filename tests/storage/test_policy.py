"""When segments are closed and removed, as a table; and what is known of leader epochs."""

from __future__ import annotations

import attrs
import pytest

from rafka.storage import epochs
from rafka.storage.backend import LogSettings
from rafka.storage.policy import expired, must_roll


@attrs.define
class Active:
    base_offset: int = 100
    size: int = 500
    jitter_ms: int = 0
    first_timestamp: int = 10_000
    created_ms: int = 50_000
    offset_entries: int = 0
    time_entries: int = 0


LIMITS = LogSettings(segment_bytes=1000, segment_ms=1000, index_max_bytes=240)


@pytest.mark.parametrize(
    ("active", "batch", "rolls"),
    [
        (Active(), {}, False),
        (Active(size=0), {"size": 5000}, False),
        (Active(), {"size": 500}, False),
        (Active(), {"size": 501}, True),
        (Active(), {"timestamp": 11_000}, False),
        (Active(), {"timestamp": 11_001}, True),
        (Active(jitter_ms=10), {"timestamp": 10_990}, False),
        (Active(jitter_ms=10), {"timestamp": 10_991}, True),
        (Active(size=0), {"timestamp": 99_999}, False),
        (Active(), {"timestamp": 11_000, "now_ms": 90_000}, False),  # timestamps count, where there are any
        (Active(first_timestamp=-1), {"timestamp": 90_000, "now_ms": 51_000}, False),
        (Active(first_timestamp=-1), {"timestamp": 10_000, "now_ms": 51_001}, True),
        (Active(), {"timestamp": -1, "now_ms": 51_001}, True),
        (Active(), {"last_offset": 100 + 2**31 - 1}, False),
        (Active(), {"last_offset": 100 + 2**31}, True),
        (Active(offset_entries=29), {}, False),
        (Active(offset_entries=30), {}, True),
        (Active(time_entries=18), {}, False),
        (Active(time_entries=19), {}, True),
    ],
)
def test_a_segment_is_closed(active: Active, batch: dict[str, int], rolls: bool) -> None:
    usual = {"size": 10, "timestamp": 10_500, "last_offset": 200, "now_ms": 50_500}
    assert must_roll(active, LIMITS, **(usual | batch)) is rolls


@attrs.define
class Closed:
    base_offset: int
    next_offset: int
    size: int
    largest_timestamp: int

    def read(self, at: int, size: int) -> bytes:
        return b""


def three(active_size: int = 10) -> list[Closed]:
    return [Closed(0, 10, 100, 1000), Closed(10, 20, 50, 3000), Closed(20, 30, active_size, 2000)]


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({}, 0),
        ({"start_offset": 9}, 0),
        ({"start_offset": 10}, 1),
        ({"start_offset": 30}, 2),  # the active one never goes by its offset alone
        ({"start_offset": 30, "upto": 15}, 1),
        ({"retention_bytes": 160}, 0),
        ({"retention_bytes": 61}, 0),
        ({"retention_bytes": 60}, 1),
        ({"retention_bytes": 11}, 1),
        ({"retention_bytes": 10}, 2),
        ({"retention_bytes": 0}, 3),
        ({"retention_bytes": 0, "upto": 29}, 2),
        ({"retention_ms": 4000, "now_ms": 5000}, 0),  # older than, not as old as
        ({"retention_ms": 3999, "now_ms": 5000}, 1),
        ({"retention_ms": 100, "now_ms": 5000}, 3),
        ({"retention_ms": 2500, "now_ms": 5000}, 1),  # stops at the second, though the third is older
        ({"retention_ms": 100, "now_ms": 5000, "upto": 19}, 1),
        ({"retention_ms": 100, "now_ms": 5000, "start_offset": 10, "retention_bytes": 10}, 3),
    ],
)
def test_segments_expire(limits: dict[str, int], count: int) -> None:
    usual = {"start_offset": 0, "now_ms": 0, "retention_ms": -1, "retention_bytes": -1, "upto": 30}
    assert expired(three(), **(usual | limits)) == count


def test_an_empty_active_segment_stays_and_an_empty_closed_one_goes() -> None:
    limits = {"start_offset": 0, "now_ms": 9999, "retention_ms": 1, "retention_bytes": 0, "upto": 30}
    assert expired(three(active_size=0), **limits) == 2
    assert expired([Closed(0, 10, 0, 0), *three()[1:]], **limits) == 3


def test_epochs_grow_and_are_cut() -> None:
    known: epochs.Epochs = []
    for epoch, offset in ((0, 0), (0, 5), (2, 10), (1, 15), (7, 20)):
        epochs.grow(known, epoch, offset)
    assert known == [(0, 0), (2, 10), (7, 20)]
    assert [epochs.epoch_at(known, offset) for offset in (-1, 0, 9, 10, 19, 20, 99)] == [-1, 0, 0, 2, 2, 7, 7]

    epochs.grow(known, 8, 20)  # the one before has no batch
    assert known == [(0, 0), (2, 10), (8, 20)]
    epochs.cut_head(known, 12)
    assert known == [(2, 12), (8, 20)]
    epochs.cut_tail(known, 20)
    assert known == [(2, 12)]


def test_epochs_are_kept_in_kafkas_format() -> None:
    assert epochs.to_text([(0, 0), (5, 17)]) == b"0\n2\n0 0\n5 17\n"
    assert epochs.from_text(b"0\n2\n0 0\n5 17\n") == [(0, 0), (5, 17)]


@pytest.mark.parametrize(
    "text", [b"", b"1\n0\n", b"0\n1\n", b"0\n2\n0 0\n", b"0\n1\n0\n", b"0\n2\n5 0\n0 3\n", b"\xff"]
)
def test_a_damaged_file_of_epochs_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        epochs.from_text(text)
