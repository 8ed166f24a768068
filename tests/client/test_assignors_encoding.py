"""What members write to each other is read by other clients, and theirs by us."""

from __future__ import annotations

import pytest

from rafka.client import TopicPartition
from rafka.client.assignors import (
    Member,
    Subscription,
    member_of,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from rafka.client.assignors.encoding import (
    read_generation,
    read_sticky_memory,
    write_generation,
    write_sticky_memory,
)
from rafka.wire.errors import WireError

ONE, TWO = TopicPartition("a", 0), TopicPartition("b", 3)


def test_a_subscription_is_written_as_version_three() -> None:
    told = Subscription(topics=("b", "a"), owned=(TWO, ONE), generation=7, user_data=b"xy", rack_id="r")

    assert (
        write_subscription(told)
        == (
            b"\0\3"
            b"\0\0\0\2\0\1a\0\1b"  # sorted
            b"\0\0\0\2xy"
            b"\0\0\0\2" + b"\0\1a\0\0\0\1\0\0\0\0" + b"\0\1b\0\0\0\1\0\0\0\3" + b"\0\0\0\7"
            b"\0\1r"
        )
    )


def test_what_was_written_is_read() -> None:
    told = Subscription(topics=("a", "b"), owned=(ONE, TWO), generation=7, user_data=b"xy", rack_id="r")

    assert read_subscription(write_subscription(told)) == told
    assert read_subscription(write_subscription(Subscription())) == Subscription()
    assert read_assignment(write_assignment([TWO, ONE])) == (ONE, TWO)
    assert read_sticky_memory(write_sticky_memory([TWO, ONE], 4)) == ((ONE, TWO), 4)
    assert read_generation(write_generation(9)) == 9


def test_an_assignment_is_written_as_version_zero() -> None:
    assert write_assignment([TWO]) == b"\0\0\0\0\0\1\0\1b\0\0\0\1\0\0\0\3\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\0\0\0\0\0\1\0\1a\xff\xff\xff\xff", Subscription(topics=("a",))),
        (
            b"\0\1\0\0\0\1\0\1a\xff\xff\xff\xff\0\0\0\1\0\1a\0\0\0\1\0\0\0\0",
            Subscription(topics=("a",), owned=(ONE,)),
        ),
        # A version from the future: read as our newest, and what follows is let be.
        (
            b"\0\x63\0\0\0\1\0\1a\xff\xff\xff\xff\0\0\0\0\0\0\0\5\xff\xffmore",
            Subscription(topics=("a",), generation=5),
        ),
    ],
)
def test_versions_older_and_newer_than_ours_are_read(data: bytes, expected: Subscription) -> None:
    assert read_subscription(data) == expected


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0\0\0\1", b"\xff\xff\0\0\0\0\xff\xff\xff\xff"])
def test_what_cannot_be_read_is_told_and_makes_a_member_that_wants_nothing(data: bytes) -> None:
    with pytest.raises(WireError):
        read_subscription(data)
    assert member_of("m", "i", data) == Member(member_id="m", instance_id="i")


def test_no_bytes_are_an_assignment_of_nothing() -> None:
    assert read_assignment(b"") == ()


def test_a_sticky_memory_without_a_generation_is_read() -> None:
    with_generation = write_sticky_memory([ONE], 4)

    assert read_sticky_memory(with_generation[:-4]) == ((ONE,), -1)


def test_kafka_python_reads_and_writes_the_same() -> None:
    metadata = pytest.importorskip("kafka.protocol.consumer.metadata")
    theirs = metadata.ConsumerProtocolSubscription
    part = theirs.TopicPartition
    told = Subscription(topics=("a", "b"), owned=(ONE, TWO), generation=7, user_data=b"xy", rack_id="r")

    written = theirs(
        version=3,
        topics=["a", "b"],
        user_data=b"xy",
        owned_partitions=[part(topic="a", partitions=[0]), part(topic="b", partitions=[3])],
        generation_id=7,
        rack_id="r",
    )

    assert bytes(written.encode()) == write_subscription(told)
    assert read_subscription(written.encode()) == told
    assigned = metadata.ConsumerProtocolAssignment.decode(write_assignment([ONE, TWO]))
    assert {part.topic: list(part.partitions) for part in assigned.assigned_partitions} == {
        "a": [0],
        "b": [3],
    }
