"""The index of aborted transactions: what a reader is told, and Kafka's file format."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rafka.storage.aborted import AbortedIndex, AbortedRange, unpacked


def range_(first: int, last: int, *, stable: int | None = None, producer: int = 7) -> AbortedRange:
    stable = last + 1 if stable is None else stable
    return AbortedRange(producer_id=producer, first_offset=first, last_offset=last, last_stable_offset=stable)


def spans(found: list[AbortedRange]) -> list[tuple[int, int]]:
    return [(one.first_offset, one.last_offset) for one in found]


def test_a_reader_is_told_of_all_that_overlap_what_it_reads() -> None:
    index = AbortedIndex([range_(0, 4), range_(5, 9), range_(20, 24)])

    assert spans(index.collect(0, 100)) == [(0, 4), (5, 9), (20, 24)]
    assert spans(index.collect(4, 5)) == [(0, 4)], "from the marker itself"
    assert spans(index.collect(5, 6)) == [(5, 9)]
    assert spans(index.collect(10, 20)) == []
    assert spans(index.collect(25, 100)) == []
    assert [index.count_from(offset) for offset in (0, 5, 24, 25)] == [3, 2, 1, 0]


def test_one_that_began_before_and_ended_after_others_is_told_of() -> None:
    """It comes last in the index, and others before it begin beyond what is read."""
    index = AbortedIndex([range_(10, 20, stable=5), range_(5, 30, producer=8)])

    assert spans(index.collect(0, 8)) == [(5, 30)]


def test_one_that_is_known_is_not_added_again() -> None:
    index = AbortedIndex([range_(0, 4)])

    assert not index.add(range_(0, 4))
    assert not index.add(range_(0, 3))
    assert index.add(range_(2, 5))
    assert spans(index.ended_in(0, 100)) == [(0, 4), (2, 5)]


def test_the_index_is_cut_and_replaced_by_markers() -> None:
    index = AbortedIndex([range_(n, n + 1) for n in range(0, 20, 2)])

    index.cut_head(5)
    assert spans(index.ended_in(0, 100))[0] == (4, 5)
    index.replace(6, 16, [range_(8, 9)])
    assert spans(index.ended_in(0, 100)) == [(4, 5), (8, 9), (16, 17), (18, 19)]
    index.replace(0, 100, [])
    assert not index
    index.cut_head(1000)


def test_the_file_is_kafkas() -> None:
    """34 bytes an entry: version, producer, first offset, last offset, last stable offset."""
    index = AbortedIndex([range_(1, 2), range_(3, 9, stable=5, producer=1 << 40), range_(11, 12)])

    data = index.packed(0, 12, 1)

    assert data == struct.pack(">hqqqq", 0, 1 << 40, 3, 9, 5)
    assert list(unpacked(index.packed(0, 100, 0))) == index.ended_in(0, 100)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans(), st.integers(1, 3)), max_size=40),
    st.integers(0, 80),
    st.integers(0, 80),
)
def test_nothing_that_a_reader_has_to_leave_out_is_missed(
    steps: list[tuple[int, bool, int]], offset: int, upto: int
) -> None:
    """Against going through all of them: what may be left out of the answer is only what does not overlap."""
    at, opened, everything = 0, dict[int, int](), list[AbortedRange]()
    for producer, ends, count in steps:
        if ends and producer in opened:
            first = opened.pop(producer)
            stable = min(opened.values(), default=at + 1)
            everything.append(range_(first, at, stable=stable, producer=producer))
            at += 1
        else:
            opened.setdefault(producer, at)
            at += count
    index = AbortedIndex(everything)

    expected = [one for one in everything if one.last_offset >= offset and one.first_offset < upto]
    assert index.collect(offset, upto) == expected


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_it_takes_little_memory(size: int) -> None:
    index = AbortedIndex(range_(2 * n, 2 * n + 1) for n in range(size))

    assert len(index) == size
    assert sum(len(getattr(index, name)) * 8 for name in AbortedIndex.__slots__) == 32 * size
