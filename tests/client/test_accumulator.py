"""Batches gather, go, come back and are given up, in order, with sequence numbers that have no gap."""

from __future__ import annotations

from rafka.client.accumulator import NEVER, Accumulator, Batch
from rafka.client.errors import ClientError
from rafka.client.model import TopicPartition
from rafka.records.record import Record

A = TopicPartition("t", 0)
B = TopicPartition("t", 1)
SIZE = 100
FAILED = ClientError("failed")


def accumulator(*, sequenced: bool = True, linger: float = 5.0, per_batch: int = 3) -> Accumulator:
    return Accumulator(
        batch_size=61 + per_batch * SIZE, linger=linger, delivery_timeout=60, sequenced=sequenced
    )


def give(queue: Accumulator, count: int, target: TopicPartition = A, now: float = 0) -> None:
    for _ in range(count):
        queue.add(target, Record(0, 0, None, None), SIZE, now)


def take(queue: Accumulator, now: float = 0, max_bytes: int = 10**6) -> list[Batch]:
    return queue.take(lambda target: True, now, max_bytes)


def shape(batches: list[Batch]) -> list[tuple[int, int, int]]:
    """Partition, records, sequence."""
    return [(batch.target.partition, len(batch.records), batch.sequence) for batch in batches]


def test_a_full_batch_goes_at_once_and_the_rest_lingers() -> None:
    queue = accumulator()
    give(queue, 4)

    first, nothing, last = take(queue, 0), take(queue, 4.9), take(queue, 5)

    assert shape(first) == [(0, 3, 0)]
    assert nothing == []
    assert shape(last) == [(0, 1, 3)]


def test_who_looks_is_told_when_to_look_again() -> None:
    queue = accumulator()

    assert queue.next_look(lambda target: True, 0) == NEVER
    give(queue, 1, now=2)
    assert queue.next_look(lambda target: True, 2) == 7
    assert queue.next_look(lambda target: target == B, 2) == NEVER
    give(queue, 2, now=3)
    assert queue.next_look(lambda target: True, 3) == 3


def test_adding_says_when_senders_should_look() -> None:
    queue = accumulator()

    news = [queue.add(A, Record(0, 0, None, None), SIZE, 0)[2] for _ in range(5)]

    assert news == [True, False, True, True, False]


def test_a_flush_waits_for_no_linger() -> None:
    queue = accumulator()
    give(queue, 1)

    queue.flushing += 1

    assert shape(take(queue)) == [(0, 1, 0)]


def test_a_request_takes_one_batch_of_each_partition_up_to_its_size_and_serves_all_in_turn() -> None:
    queue = accumulator()
    give(queue, 9, A)
    give(queue, 6, B)

    taken = [shape(take(queue, max_bytes=500)) for _ in range(5)]

    assert taken == [[(0, 3, 0)], [(1, 3, 0)], [(0, 3, 3)], [(1, 3, 3)], [(0, 3, 6)]]


def test_without_sequence_numbers_one_batch_of_a_partition_is_in_flight() -> None:
    queue = accumulator(sequenced=False)
    give(queue, 6)
    [first] = take(queue)

    meanwhile = take(queue)
    queue.succeed(first, 10, -1)

    assert meanwhile == []
    assert shape(take(queue)) == [(0, 3, -1)]


def test_retries_keep_order_and_numbers_whatever_comes_back_first() -> None:
    queue = accumulator()
    give(queue, 9)
    [one], [two], [three] = take(queue), take(queue), take(queue)

    queue.retry(one, 1)
    queue.retry(three, 1)
    blocked = take(queue, 2)  # two is not answered yet
    queue.retry(two, 1)
    too_early = take(queue, 0.5)
    again = [take(queue, 2) for _ in range(3)]

    assert blocked == too_early == []
    assert again == [[one], [two], [three]]
    assert shape([one, two, three]) == [(0, 3, 0), (0, 3, 3), (0, 3, 6)]


def test_the_numbers_of_what_was_refused_are_given_again() -> None:
    queue = accumulator()
    give(queue, 9)
    [one], [two], [three] = take(queue), take(queue), take(queue)

    queue.succeed(one, 0, -1)
    queue.fail(two, FAILED)
    explained = queue.explains(three)
    queue.retry(three, 0)
    give(queue, 3)

    assert explained
    assert shape(take(queue)) == [(0, 3, 3)]
    assert shape(take(queue)) == [(0, 3, 6)]
    assert three.sequence == 3
    assert two.error is FAILED


def test_a_gap_without_a_cause_is_not_explained() -> None:
    queue = accumulator()
    give(queue, 3)
    [one] = take(queue)

    assert not queue.explains(one)


def test_what_may_have_been_written_stops_the_numbering_until_it_starts_afresh() -> None:
    queue = accumulator()
    give(queue, 6)
    give(queue, 3, B)
    [one, other], [two] = take(queue), take(queue)

    queue.fail(one, FAILED, unknown=True)
    queue.succeed(other, 0, -1)
    queue.retry(two, 0)
    stuck = take(queue)
    queue.renumber()
    give(queue, 3, B)

    assert stuck == []
    assert sorted(shape(take(queue))) == [(0, 3, 0), (1, 3, 0)]


def test_what_waits_too_long_is_given_up() -> None:
    queue = accumulator()
    give(queue, 3, now=0)
    give(queue, 1, now=30)

    queue.expire(60, lambda batch: FAILED)
    [left] = take(queue, 61)

    assert (len(left.records), left.sequence) == (1, 0)
    assert not queue.stuck  # it was never sent, so no number was lost
    assert queue.bytes == 61 + SIZE


def test_what_was_sent_and_waits_too_long_leaves_its_numbers_in_doubt() -> None:
    queue = accumulator()
    give(queue, 3)
    [one] = take(queue)
    queue.retry(one, 0)

    queue.expire(60, lambda batch: FAILED)

    assert queue.stuck


def test_sequence_numbers_wrap() -> None:
    queue = accumulator()
    give(queue, 3)
    [one] = take(queue)
    one.sequence = 2**31 - 2
    queue.fail(one, FAILED)
    give(queue, 6)

    numbers = [take(queue)[0].sequence, take(queue)[0].sequence]

    assert numbers == [2**31 - 2, 1]


def test_bytes_are_counted_until_they_are_done() -> None:
    queue = accumulator()
    give(queue, 4)
    [one] = take(queue)

    before = queue.bytes
    queue.succeed(one, 0, -1)

    assert (before, queue.bytes) == (2 * 61 + 4 * SIZE, 61 + SIZE)
