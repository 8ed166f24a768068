"""Keys go where other clients put them; records without a key stick together."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as their_murmur2

from rafka.client.partitioner import StickyPartitioner, murmur2, partition_of_key


@given(st.binary(max_size=80))
def test_murmur2_is_that_of_kafka_python(data: bytes) -> None:
    assert murmur2(data) == their_murmur2(data) & 0xFFFFFFFF


@pytest.mark.parametrize(
    ("key", "hash_"),
    [  # from the tests of the Java client (UtilsTest)
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_that_of_the_java_client(key: bytes, hash_: int) -> None:
    assert murmur2(key) == hash_ & 0xFFFFFFFF


def test_one_key_has_one_partition() -> None:
    partitioner = StickyPartitioner(100, random.Random(1))

    found = {partitioner.choose(b"abc", 50, 7) for _ in range(20)}

    assert found == {partition_of_key(b"abc", 7)} == {479470107 % 7}


def test_records_without_a_key_fill_a_batch_and_move_on() -> None:
    partitioner = StickyPartitioner(100, random.Random(1))

    chosen = [partitioner.choose(None, 25, 3) for _ in range(400)]

    runs = [chosen[i : i + 4] for i in range(0, 400, 4)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(a != b for a, b in zip([run[0] for run in runs], [run[0] for run in runs[1:]], strict=False))
    assert min(Counter(chosen).values()) > 60


def test_a_topic_that_is_made_again_with_fewer_partitions_is_not_overrun() -> None:
    partitioner = StickyPartitioner(10_000, random.Random(1))
    while partitioner.choose(None, 10_000, 8) < 2:
        pass

    assert partitioner.choose(None, 1, 2) < 2
