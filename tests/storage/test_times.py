"""Records found by time in a batch that cannot be looked into."""

from __future__ import annotations

import pytest

from rafka.records.batch import read_header
from rafka.records.build import build
from rafka.records.record import Record
from rafka.storage.times import first_at, latest_of

from ..records.kit import altered


def _missing(name: str) -> None:
    raise ImportError(name)


def test_without_the_codec_times_are_found_by_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never later than the record: a consumer that begins there misses nothing."""
    monkeypatch.setattr("rafka.records.compress.importlib.import_module", _missing)
    plain = build([Record(n, 10 * n, None, b"v") for n in range(1, 5)], base_offset=7)
    packed = altered(plain, attributes=4)
    stamped = altered(plain, attributes=4 | 8)
    last = read_header(plain).last_offset

    early, within, late = (first_at(packed, timestamp, 0) for timestamp in (5, 25, 45))

    assert early is not None
    assert (early.offset, early.timestamp) == (7, 10)
    assert within is not None
    assert (within.offset, within.timestamp) == (7, 40)
    assert late is None
    assert [found and found.offset for found in (latest_of(packed, 0), latest_of(stamped, 0))] == [last, 7]


def test_without_the_codec_nothing_below_the_start_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rafka.records.compress.importlib.import_module", _missing)
    plain = build([Record(n, 10, None, b"v") for n in range(4)], base_offset=7)

    stamped, packed = altered(plain, attributes=4 | 8), altered(plain, attributes=4)

    assert [found and found.offset for found in (latest_of(stamped, 9), first_at(packed, 5, 9))] == [9, 9]
