"""Producers of a partition: next, duplicate or out of order; one test a rule, and a naive model beside it."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.producers import Producers
from rafka.records.batch import CONTROL_BIT, BatchHeader

LAST = 2**31 - 1  # the greatest sequence number
PID = 7


def batch(
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    pid: int = PID,
    at: int = 0,
    time: int = 0,
    attributes: int = 0,
) -> BatchHeader:
    return BatchHeader(at, 0, 0, 2, 0, attributes, count - 1, time, time, pid, epoch, sequence, count)


def write(producers: Producers, header: BatchHeader) -> int | ErrorCode | None:
    """None where it was written, the offset of the batch that it repeats, or why it was refused."""
    try:
        duplicate = producers.check(header)
    except KafkaError as refused:
        return refused.code
    if duplicate is not None:
        return duplicate.base_offset
    producers.apply(header)
    return None


# --- rules of transactions.md, section 7 -----------------------------------------------------


def test_a_batch_sent_again_is_a_duplicate_if_both_its_sequences_are_remembered() -> None:
    """Q1: values are not compared, first and last sequence are."""
    producers = Producers()
    write(producers, batch(0, 3, at=10))
    write(producers, batch(3, 2, at=13))

    assert write(producers, batch(0, 3)) == 10
    assert write(producers, batch(3, 2)) == 13
    assert write(producers, batch(3, 3)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(producers, batch(0, 5)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(producers, batch(5)) is None


def test_a_duplicate_is_told_with_the_time_of_what_it_repeats() -> None:
    """Q1."""
    producers = Producers()
    producers.apply(batch(0, time=123, at=4))

    duplicate = producers.check(batch(0, time=999))

    assert duplicate is not None
    assert (duplicate.base_offset, duplicate.last_offset, duplicate.timestamp) == (4, 4, 123)


def test_five_batches_are_remembered_and_no_more() -> None:
    """Q1, Q6."""
    producers = Producers()
    for n in range(6):
        write(producers, batch(n, at=n))

    assert [write(producers, batch(n)) for n in range(6)] == [45, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("epoch", [0, 4])
def test_an_older_epoch_is_fenced(epoch: int) -> None:
    """Q3: whatever its sequence, also that of a duplicate."""
    producers = Producers()
    write(producers, batch(0, epoch=epoch))
    write(producers, batch(0, epoch=5))

    assert write(producers, batch(0, epoch=epoch)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(producers, batch(1, epoch=epoch)) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_newer_epoch_begins_at_0() -> None:
    """Q4: and what was remembered of the older one is gone."""
    producers = Producers()
    write(producers, batch(0, epoch=0, at=0))

    assert write(producers, batch(1, epoch=1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(producers, batch(0, epoch=1, at=1)) is None
    assert write(producers, batch(0, epoch=1)) == 1


def test_after_an_epoch_of_minus_1_any_sequence_will_do() -> None:
    """Q4: known ≠ −1."""
    producers = Producers()
    write(producers, batch(0, epoch=-1))

    assert write(producers, batch(9, epoch=0)) is None


@pytest.mark.parametrize("sequence", [0, 1, 5000, LAST])
def test_a_producer_nobody_knows_may_begin_anywhere(sequence: int) -> None:
    """Q5: never seen, or forgotten."""
    producers = Producers()

    assert write(producers, batch(sequence)) is None
    producers.forget_idle(now_ms=10**15, idle_ms=1)
    assert write(producers, batch(sequence)) is None


@pytest.mark.parametrize("sequence", [0, 1, 2, 4, LAST])
def test_a_sequence_that_does_not_follow_is_refused(sequence: int) -> None:
    """Q6: a gap as well as an overlap."""
    producers = Producers()
    write(producers, batch(0, 3))

    assert write(producers, batch(sequence)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_with_nothing_written_in_an_epoch_the_next_is_0() -> None:
    """Q6: as a marker leaves it that has raised the epoch."""
    producers = Producers()
    write(producers, batch(5))
    producers.by_id[PID].batches.clear()

    assert write(producers, batch(6)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert write(producers, batch(0)) is None


def test_after_the_greatest_sequence_comes_0() -> None:
    """Q6: between batches, and within one."""
    producers = Producers()
    write(producers, batch(LAST, at=0))
    assert write(producers, batch(0, at=1)) is None

    producers = Producers()
    write(producers, batch(LAST - 1, 4, at=0))
    assert write(producers, batch(2, at=4)) is None
    assert write(producers, batch(LAST - 1, 4)) == 0
    assert producers.by_id[PID].last_sequence == 2


def test_an_epoch_of_minus_1_is_an_epoch() -> None:
    """Q13."""
    producers = Producers()

    assert write(producers, batch(0, epoch=-1)) is None
    assert write(producers, batch(1, epoch=-1)) is None
    assert write(producers, batch(3, epoch=-1)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_an_epoch_below_minus_1_is_older_than_any() -> None:
    """Kafka takes a producer that it does not know for one of epoch -1."""
    assert write(Producers(), batch(0, epoch=-2)) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert write(Producers(), batch(7, epoch=-1)) is None


@pytest.mark.parametrize("pid", [-1, -2])
def test_a_batch_without_a_producer_is_not_remembered(pid: int) -> None:
    """Q13."""
    producers = Producers()

    producers.apply(batch(0, pid=pid))

    assert producers == Producers()


def test_a_check_remembers_nothing() -> None:
    """Q14: what is refused, or not written after all, leaves the sequence as it was."""
    producers = Producers()

    producers.check(batch(0))
    assert producers == Producers()
    write(producers, batch(0))
    with pytest.raises(KafkaError):
        producers.check(batch(7))

    assert producers.by_id[PID].last_sequence == 0


def test_markers_are_nobodys_data() -> None:
    producers = Producers()

    producers.apply(batch(-1, attributes=CONTROL_BIT))

    assert producers == Producers()


def test_producers_are_told_apart() -> None:
    producers = Producers()

    assert [write(producers, batch(n, pid=pid)) for n in (0, 1) for pid in (1, 2)] == [None] * 4


# --- forgetting ------------------------------------------------------------------------------


def test_who_has_been_quiet_for_long_is_forgotten() -> None:
    """Expiry: by the time of its last batch; at that very time already."""
    producers = Producers()
    write(producers, batch(0, pid=1, time=1000))
    write(producers, batch(0, pid=2, time=1001))
    write(producers, batch(0, pid=3, time=1000))
    producers.by_id[3].first_open_offset = 0  # its transaction is open

    assert producers.forget_idle(now_ms=2000, idle_ms=1000) == 1

    assert sorted(producers.by_id) == [2, 3]


# --- snapshots -------------------------------------------------------------------------------


def test_a_snapshot_is_plain_values_and_all_there_is() -> None:
    import msgpack

    producers = Producers()
    for n in range(7):
        write(producers, batch(n, at=n, time=n, pid=n % 2))
    producers.by_id[1].coordinator_epoch = 4

    again = Producers()
    again.load(msgpack.unpackb(msgpack.packb(producers.dump())))

    assert again == producers


# --- against a naive model ---------------------------------------------------------------------


class Naive:
    """Keeps every batch that was ever written, and looks through them all."""

    def __init__(self) -> None:
        self.written: list[BatchHeader] = []

    def judge(self, header: BatchHeader) -> int | ErrorCode | None:
        mine = [b for b in self.written if b.producer_id == header.producer_id]
        if not mine:
            return None
        epoch = mine[-1].producer_epoch
        if header.producer_epoch < epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if header.producer_epoch > epoch:
            fine = header.base_sequence == 0 or epoch == -1
            return None if fine else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        of_epoch: list[BatchHeader] = []
        for b in reversed(mine):
            if b.producer_epoch != epoch:
                break
            of_epoch.insert(0, b)
        for b in of_epoch[-5:]:
            if (b.base_sequence, b.count) == (header.base_sequence, header.count):
                return b.base_offset
        numbers = list(self._numbers(of_epoch[-1]))
        if header.base_sequence == (0 if numbers[-1] == LAST else numbers[-1] + 1):
            return None
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _numbers(self, header: BatchHeader) -> list[int]:
        """The sequence of each record of the batch, counted one by one."""
        numbers = [header.base_sequence]
        while len(numbers) < header.count:
            numbers.append(0 if numbers[-1] == LAST else numbers[-1] + 1)
        return numbers


PIDS = st.integers(1, 2)
COUNTS = st.integers(1, 3)


class Writing(RuleBasedStateMachine):
    """Batches that follow, repeat, jump and come from other epochs, with the wrap of sequences in reach."""

    @initialize(start=st.sampled_from([0, LAST - 3, LAST]))
    def begin(self, start: int) -> None:
        self.producers = Producers()
        self.naive = Naive()
        self.end = 0
        for pid in (1, 2):
            self.send(batch(start, pid=pid))

    def send(self, header: BatchHeader) -> None:
        header.base_offset = self.end
        expected = self.naive.judge(header)
        assert write(self.producers, header) == expected
        if expected is None:
            self.naive.written.append(header)
            self.end += header.count

    def last(self, pid: int) -> BatchHeader:
        return next(b for b in reversed(self.naive.written) if b.producer_id == pid)

    @rule(pid=PIDS, count=COUNTS)
    def the_next(self, pid: int, count: int) -> None:
        last = self.last(pid)
        self.send(batch(last.last_sequence + 1 & LAST, count, pid=pid, epoch=last.producer_epoch))

    @rule(pid=PIDS, back=st.integers(1, 8))
    def one_again(self, pid: int, back: int) -> None:
        mine = [b for b in self.naive.written if b.producer_id == pid]
        again = mine[-min(back, len(mine))]
        self.send(batch(again.base_sequence, again.count, pid=pid, epoch=again.producer_epoch))

    @rule(pid=PIDS, jump=st.integers(-4, 4), count=COUNTS, epoch=st.integers(-1, 1))
    def another(self, pid: int, jump: int, count: int, epoch: int) -> None:
        last = self.last(pid)
        sequence = (last.last_sequence + jump) % (LAST + 1)
        self.send(batch(sequence, count, pid=pid, epoch=max(-1, last.producer_epoch + epoch)))

    @rule(pid=PIDS, count=COUNTS)
    def a_new_epoch(self, pid: int, count: int) -> None:
        self.send(batch(0, count, pid=pid, epoch=self.last(pid).producer_epoch + 1))

    @rule()
    def restart(self) -> None:
        """By a snapshot, and by reading the log again from its beginning: they agree."""
        by_snapshot, by_log = Producers(), Producers()
        by_snapshot.load(self.producers.dump())
        for header in self.naive.written:
            by_log.apply(header)
        assert by_snapshot == by_log == self.producers
        self.producers = by_snapshot

    @invariant()
    def no_more_is_kept_than_has_to_be(self) -> None:
        assert all(1 <= len(p.batches) <= 5 for p in self.producers.by_id.values())


TestAgainstTheNaiveModel = Writing.TestCase
