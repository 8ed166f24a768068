"""What of a transaction is refused, and in whose words, where several things are wrong at once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rafka.errors import ErrorCode
from rafka.ops import txn

from .kit import World, told
from .producing import Producer, a_producer, marker_request, markers

NONE = ErrorCode.NONE
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_TRIED = ErrorCode.OPERATION_NOT_ATTEMPTED


async def add(
    world: World, producer: Producer, *places: tuple[str, int], by_client: bool = True
) -> list[ErrorCode]:
    """Ask for partitions of any topics; their codes."""
    op = producer.addition()
    op.transactions[0].topics = [  # type: ignore[misc]
        txn.TxnTopic(name=topic, partitions=[index]) for topic, index in places
    ]
    op.by_client = by_client  # type: ignore[misc]
    [result] = (await world.ask(op)).results_by_transaction
    return [p.partition_error_code for topic in result.topic_results for p in topic.results_by_partition]


@pytest.mark.parametrize(
    ("places", "codes"),
    [
        ([("__consumer_offsets", 0), ("t", 0)], [DENIED, NOT_TRIED]),
        ([("__transaction_state", 0)], [DENIED]),
        ([("__consumer_offsets", 0), ("gone", 0)], [DENIED, UNKNOWN]),
    ],
)
async def test_producers_may_not_write_to_internal_topics(
    world: World, places: list[tuple[str, int]], codes: Sequence[ErrorCode]
) -> None:
    producer = await a_producer(world)

    assert await add(world, producer, *places) == codes
    assert await producer.state() == "Empty"


async def test_brokers_may_add_the_partition_of_a_group(world: World) -> None:
    """As they do before they take offsets that are part of a transaction."""
    producer = await a_producer(world)

    assert await add(world, producer, ("__consumer_offsets", 3), ("t", 0), by_client=False) == [NONE, NONE]
    assert await add(world, producer, ("__consumer_offsets", 50), by_client=False) == [UNKNOWN]
    await producer.end(True)
    assert await producer.complete() == "CompleteCommit"


async def test_a_write_with_an_empty_transactional_id(world: World) -> None:
    producer = await a_producer(world)
    await producer.begin(0)
    request = producer.batch(b"a")
    request.transactional_id = ""  # type: ignore[misc]

    [reply] = told(await world.ask(request))

    assert reply.error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("bumps", [False, True])
async def test_a_producer_whose_epoch_is_past_is_told_so_before_anybody_is_asked(
    world: World, bumps: bool
) -> None:
    """It opens no transaction, and what the coordinator would say of it does not matter."""
    producer = await a_producer(world, bumps=bumps)
    await world.ask(marker_request(producer, False, [("t", 0)], producer_epoch=3))
    request = producer.batch(b"a")

    [reply] = told(await world.ask(request))

    assert (reply.error_code, reply.log_start_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    assert await producer.state() == "Empty"
    request.transactional_id = "somebody else"  # type: ignore[misc]
    [reply] = told(await world.ask(request))
    assert reply.error_code is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("version", [4, 5])
async def test_offsets_of_a_group_without_a_name(world: World, version: int) -> None:
    """TX-065: the name is looked at before the transaction."""
    producer = await a_producer(world, bumps=version == 5)

    assert await producer.send_offset(5, group_id="") is ErrorCode.INVALID_GROUP_ID
    assert await producer.state() == "Empty"


@pytest.mark.parametrize("wrong", [{"producer_epoch": -1}, {"transaction_version": -1}])
async def test_markers_with_negative_numbers_are_not_written(world: World, wrong: dict[str, int]) -> None:
    producer = await a_producer(world)
    await producer.begin(0)
    await producer.write(b"a")

    reply = await world.ask(marker_request(producer, True, [("t", 0)], **wrong))

    assert reply.markers[0].topics[0].partitions[0].error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert await markers(world) == []


async def test_markers_of_one_producer_are_answered_under_one_heading(world: World) -> None:
    """What has no partitions is not mentioned."""
    producer = await a_producer(world)
    first = marker_request(producer, True, [("t", 0)]).markers
    second = marker_request(producer, False, [("t", 7), ("gone", 1)]).markers
    nothing = marker_request(producer, False, []).markers

    reply = await world.ask(txn.WriteTxnMarkers(markers=[*first, *nothing, *second]))

    [marker] = reply.markers
    found = {
        topic.name: [(p.partition_index, p.error_code) for p in topic.partitions] for topic in marker.topics
    }
    assert found == {"t": [(0, NONE), (7, UNKNOWN)], "gone": [(1, UNKNOWN)]}
    assert (await world.ask(txn.WriteTxnMarkers(markers=nothing))).markers == []
