"""Transactions in the state of a partition's producers: what they begin with, what ends them, what is stable.

Rules Q2 to Q9 and the rules of markers (transactions.md, section 7), and a naive model beside them.
"""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.producers import Ended, Producers, Verification
from rafka.machines.unstable import NONE, Unstable
from rafka.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from rafka.records.control import Marker

PID = 7
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
NOT_VERIFIED = ErrorCode.INVALID_TXN_STATE


def batch(
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    pid: int = PID,
    at: int = 0,
    time: int = 0,
    plain: bool = False,
) -> BatchHeader:
    bits = 0 if plain else TRANSACTIONAL_BIT
    return BatchHeader(at, 0, 0, 2, 0, bits, count - 1, time, time, pid, epoch, sequence, count)


def marker(
    at: int, *, committed: bool = True, epoch: int = 0, pid: int = PID, coordinator: int = 0, time: int = 0
) -> tuple[BatchHeader, Marker]:
    bits = TRANSACTIONAL_BIT | CONTROL_BIT
    header = BatchHeader(at, 0, 0, 2, 0, bits, 0, time, time, pid, epoch, -1, 1)
    return header, Marker(committed=committed, coordinator_epoch=coordinator)


def verify(producers: Producers, header: BatchHeader, *, adds: bool = False, now_ms: int = 0) -> Verification:
    return producers.verify(header, adds=adds, now_ms=now_ms)


def write(producers: Producers, header: BatchHeader, *, adds: bool = False) -> int | ErrorCode | None:
    """Verified if need be. None where it was written, else the offset of what it repeats, or why not."""
    passed = None
    if header.transactional and not producers.has_open(header.producer_id, header.producer_epoch):
        passed = verify(producers, header, adds=adds)
    try:
        duplicate = producers.check(header, passed)
    except KafkaError as refused:
        return refused.code
    if duplicate is not None:
        return duplicate.base_offset
    producers.apply(header)
    return None


def refusal(producers: Producers, header: BatchHeader, passed: Verification | None) -> ErrorCode | None:
    try:
        producers.check(header, passed)
    except KafkaError as refused:
        return refused.code
    return None


# --- beginning ---------------------------------------------------------------------------------


def test_the_first_batch_of_a_transaction_needs_a_pass_and_the_others_none() -> None:
    """Q2, Q9."""
    producers = Producers()

    assert refusal(producers, batch(0), None) == NOT_VERIFIED
    assert write(producers, batch(0, 2, at=10)) is None
    assert producers.by_id[PID].first_open_offset == 10
    assert refusal(producers, batch(2, at=12), None) is None


def test_a_pass_is_good_for_one_producer_and_until_something_of_it_is_written() -> None:
    producers = Producers()
    mine, others = batch(0), batch(0, pid=8)
    passed, other_pass = verify(producers, mine), verify(producers, others)

    assert refusal(producers, mine, other_pass) == NOT_VERIFIED
    producers.apply(*marker(0))

    assert refusal(producers, mine, passed) == NOT_VERIFIED, "its transaction has ended meanwhile"
    assert refusal(producers, others, other_pass) is None


def test_a_pass_is_no_pass_into_an_older_epoch() -> None:
    """Q3 after Q2."""
    producers = Producers()
    producers.apply(batch(0, epoch=3, plain=True))

    assert write(producers, batch(0, epoch=2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(producers, batch(0, epoch=2), None) == NOT_VERIFIED


def test_a_newer_epoch_goes_on_with_the_open_transaction_once_verified() -> None:
    producers = Producers()
    write(producers, batch(0, at=5))

    assert refusal(producers, batch(0, epoch=1, at=6), None) == NOT_VERIFIED
    assert write(producers, batch(0, epoch=1, at=6)) is None

    assert producers.by_id[PID].first_open_offset == 5
    assert producers.unstable.first == 5


def test_what_was_tried_first_is_what_a_transaction_begins_with() -> None:
    """Q7, TX-053: whatever became of the first attempt, a later one with a greater sequence is too early."""
    producers = Producers()
    for number in range(5):
        write(producers, batch(number, at=number, plain=True))
    verify(producers, batch(5))  # on its way, or refused for its checksum

    assert write(producers, batch(6)) == OUT_OF_ORDER
    assert write(producers, batch(5, at=5)) is None

    producers = Producers()
    write(producers, batch(0, plain=True))
    assert write(producers, batch(9)) == OUT_OF_ORDER
    assert write(producers, batch(1)) is None
    producers = Producers()
    write(producers, batch(0, plain=True))
    assert write(producers, batch(0, 2)) == OUT_OF_ORDER
    assert write(producers, batch(1)) == OUT_OF_ORDER, "0 was tried, and keeps the right one out"


def test_a_newer_epoch_begins_its_attempts_anew() -> None:
    """Q7."""
    producers = Producers()
    write(producers, batch(0, epoch=0, plain=True))
    verify(producers, batch(1, epoch=0))

    entry = verify(producers, batch(4, epoch=1))
    assert (entry.epoch, entry.lowest_sequence) == (1, 4)
    assert verify(producers, batch(0, epoch=0)).lowest_sequence == 4
    assert write(producers, batch(0, epoch=1)) is None


@pytest.mark.parametrize("adds", [True, False])
def test_who_adds_partitions_by_writing_begins_with_0_where_nobody_knows_him(adds: bool) -> None:
    """Q5, TX-023."""
    assert write(Producers(), batch(100), adds=adds) == (OUT_OF_ORDER if adds else None)
    assert write(Producers(), batch(0), adds=adds) is None


def test_a_duplicate_needs_no_pass() -> None:
    """Q1 before Q2."""
    producers = Producers()
    write(producers, batch(0, at=3))
    producers.apply(*marker(4))

    duplicate = producers.check(batch(0))

    assert duplicate is not None
    assert duplicate.base_offset == 3


def test_plain_batches_wait_until_the_transaction_is_over() -> None:
    """Q8, TX-016, TX-062: told after all that is wrong with the sequence."""
    producers = Producers()
    write(producers, batch(0))

    assert write(producers, batch(1, plain=True)) == ErrorCode.INVALID_TXN_STATE
    assert write(producers, batch(0, epoch=1, plain=True)) == ErrorCode.INVALID_TXN_STATE
    assert write(producers, batch(7, plain=True)) == OUT_OF_ORDER
    producers.apply(*marker(1))
    assert write(producers, batch(1, plain=True)) is None


# --- markers -------------------------------------------------------------------------------------


def mark(
    producers: Producers, epoch: int, *, coordinator: int = 0, version: int = 1, pid: int = PID
) -> ErrorCode | None:
    try:
        producers.check_marker(pid, epoch, coordinator, version)
    except KafkaError as refused:
        return refused.code
    return None


def test_a_marker_of_an_older_epoch_is_fenced() -> None:
    """TX-041, TX-060."""
    producers = Producers()
    assert mark(producers, 0) is None, "of a producer that nobody knows"
    assert mark(producers, -2) == ErrorCode.INVALID_PRODUCER_EPOCH
    write(producers, batch(0, epoch=5))

    assert mark(producers, 4) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert mark(producers, 5) is None
    assert mark(producers, 6) is None
    assert mark(producers, 5, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH, "each end raises the epoch"
    assert mark(producers, 6, version=2) is None
    producers.apply(*marker(1, epoch=6))
    assert mark(producers, 6, version=2) is None, "nothing is open, so nothing comes late"
    assert mark(producers, 5, version=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_of_an_older_coordinator_is_fenced() -> None:
    """TX-041: after the epoch of the producer."""
    producers = Producers()
    producers.apply(*marker(0, epoch=3, coordinator=8))

    assert mark(producers, 3, coordinator=7) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert mark(producers, 2, coordinator=7) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert mark(producers, 3, coordinator=8) is None


def test_a_marker_tells_which_transaction_it_has_ended() -> None:
    producers = Producers()
    write(producers, batch(0, 3, at=10))

    ended = producers.apply(*marker(13, committed=False))

    assert ended == Ended(producer_id=PID, first_offset=10, marker=13, committed=False, last_stable_offset=14)
    assert producers.apply(*marker(14)) is None, "there is nothing left to end"


def test_a_marker_in_the_same_epoch_lets_sequences_go_on_and_a_newer_one_begins_them_anew() -> None:
    """E7, E8, Q6: TX-054."""
    producers = Producers()
    write(producers, batch(0, 2, at=0))
    producers.apply(*marker(2))
    assert write(producers, batch(0)) == OUT_OF_ORDER
    producers.verifying.clear()
    assert write(producers, batch(2, at=3)) is None

    producers.apply(*marker(4, epoch=1))
    assert producers.by_id[PID].last_sequence == -1
    assert producers.by_id[PID].last_data_offset is None
    assert write(producers, batch(3, epoch=0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    producers.verifying.clear()
    assert write(producers, batch(1, epoch=1)) == OUT_OF_ORDER
    assert write(producers, batch(0, epoch=1)) is None


def test_a_marker_is_remembered_of_a_producer_that_has_written_nothing() -> None:
    """TX-052, DescribeProducers: last sequence -1."""
    producers = Producers()

    assert producers.apply(*marker(0, epoch=4, coordinator=2, time=99)) is None

    producer = producers.by_id[PID]
    assert (producer.epoch, producer.coordinator_epoch, producer.last_timestamp) == (4, 2, 99)
    assert (producer.last_sequence, producer.first_open_offset) == (-1, -1)
    assert write(producers, batch(0, epoch=4)) is None


def test_other_control_records_change_nothing() -> None:
    producers = Producers()
    header, _ = marker(0)

    assert producers.apply(header, None) is None
    assert producers == Producers()


# --- what is stable ---------------------------------------------------------------------------------


def test_the_earliest_open_transaction_is_where_stability_ends() -> None:
    """TX-029."""
    producers = Producers()
    assert producers.unstable.first == NONE
    for at, pid in ((0, 1), (2, 2), (4, 3)):
        write(producers, batch(0, pid=pid, at=at))

    second = producers.apply(*marker(5, pid=2))
    assert producers.unstable.first == 0
    first = producers.apply(*marker(6, pid=1))
    assert producers.unstable.first == 4
    third = producers.apply(*marker(7, pid=3))
    assert producers.unstable.first == NONE

    assert [e.last_stable_offset for e in (second, first, third) if e] == [0, 4, 8]


def test_what_was_ended_by_a_marker_that_may_be_lost_is_not_decided() -> None:
    unstable = Unstable()
    for producer_id, offset in ((1, 0), (2, 1), (3, 2)):
        unstable.begin(producer_id, offset)

    def end(producer_id: int, first: int, at: int) -> None:
        unstable.end(producer_id, at)
        unstable.hold(at, first)

    end(2, 1, 10)
    end(1, 0, 11)
    assert unstable.first == 0
    unstable.settle(11)  # the marker at 10 is safe, the one at 11 is not
    assert unstable.first == 0
    unstable.settle(12)
    assert unstable.first == 2
    end(3, 2, 12)
    unstable.settle(12)
    assert unstable.first == 2
    unstable.settle(13)
    assert unstable == Unstable()


# --- forgetting, snapshots ----------------------------------------------------------------------------


def test_attempts_that_came_to_nothing_are_forgotten_in_the_end() -> None:
    producers = Producers()
    verify(producers, batch(0, pid=1), now_ms=1000)
    passed = verify(producers, batch(0, pid=2), now_ms=1001)

    producers.forget_idle(now_ms=2000, idle_ms=1000)

    assert list(producers.verifying) == [2]
    assert refusal(producers, batch(0, pid=2), passed) is None


def test_a_snapshot_knows_what_is_open() -> None:
    producers = Producers()
    for at, pid in ((3, 2), (1, 5), (2, 1)):
        write(producers, batch(0, pid=pid, at=at))
    producers.apply(*marker(4, pid=1, coordinator=3))

    again = Producers()
    again.load(msgpack.unpackb(msgpack.packb(producers.dump())))

    assert again.by_id == producers.by_id
    assert again.unstable.first == 1
    again.apply(*marker(5, pid=5))
    assert again.unstable.first == 3


# --- against a naive model ------------------------------------------------------------------------------


class Naive:
    """Looks through all that was ever written."""

    def __init__(self) -> None:
        self.log: list[tuple[BatchHeader, Marker | None]] = []

    def undecided(self) -> dict[int, int]:
        """Producer -> first offset of its open transaction."""
        found: dict[int, int] = {}
        for header, mark in self.log:
            if mark is not None:
                found.pop(header.producer_id, None)
            elif header.transactional:
                found.setdefault(header.producer_id, header.base_offset)
        return found

    def epoch(self, pid: int) -> int:
        return max((h.producer_epoch for h, _ in self.log if h.producer_id == pid), default=-1)

    def next_sequence(self, pid: int) -> int:
        """What follows in the newest epoch."""
        epoch = self.epoch(pid)
        following = 0
        for header, mark in self.log:
            if header.producer_id == pid and header.producer_epoch == epoch and mark is None:
                following = header.base_sequence + header.count
        return following


PIDS = st.integers(1, 3)


class Transacting(RuleBasedStateMachine):
    """Batches in order, plain and transactional, and markers that keep or raise the epoch."""

    @initialize()
    def begin(self) -> None:
        self.producers = Producers()
        self.naive = Naive()
        self.end = 0

    @rule(pid=PIDS, count=st.integers(1, 3), plain=st.booleans(), raised=st.integers(0, 1))
    def a_batch(self, pid: int, count: int, plain: bool, raised: int) -> None:
        known = self.naive.epoch(pid)
        epoch = max(0, known) + raised
        sequence = self.naive.next_sequence(pid) if epoch == known else 0
        header = batch(sequence, count, pid=pid, epoch=epoch, at=self.end, plain=plain)
        expected = NOT_VERIFIED if plain and pid in self.naive.undecided() else None
        assert write(self.producers, header) == expected
        if expected is None:
            self.naive.log.append((header, None))
            self.end += count

    @rule(pid=PIDS, committed=st.booleans(), raised=st.integers(0, 1), version=st.integers(1, 2))
    def a_marker(self, pid: int, committed: bool, raised: int, version: int) -> None:
        epoch = max(0, self.naive.epoch(pid)) + raised
        first = self.naive.undecided().get(pid)
        late = version == 2 and first is not None and not raised
        assert mark(self.producers, epoch, version=version, pid=pid) == (
            ErrorCode.INVALID_PRODUCER_EPOCH if late else None
        )
        if late:
            return
        header, said = marker(self.end, pid=pid, committed=committed, epoch=epoch)
        ended = self.producers.apply(header, said)
        self.naive.log.append((header, said))
        self.end += 1
        if first is None:
            assert ended is None
        else:
            assert ended is not None
            assert (ended.first_offset, ended.marker) == (first, header.base_offset)
            stable = min(self.naive.undecided().values(), default=self.end)
            assert ended.last_stable_offset == stable

    @rule()
    def restart(self) -> None:
        """By a snapshot, and by reading the log again from its beginning: they agree."""
        by_snapshot, by_log = Producers(), Producers()
        by_snapshot.load(self.producers.dump())
        for header, said in self.naive.log:
            by_log.apply(header, said)
        assert by_snapshot == by_log == self.producers
        self.producers = by_snapshot

    @invariant()
    def stability_ends_where_the_first_undecided_record_is(self) -> None:
        if hasattr(self, "naive"):
            assert self.producers.unstable.first == min(self.naive.undecided().values(), default=NONE)


TestAgainstTheNaiveModel = Transacting.TestCase
