"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.base import Later
from rafka.types import OrgId

from .kit import World, fetch, found, produce, values

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6


def list_offsets(*wanted: tuple[str, int, int], epoch: int = -1, **options: int) -> log.ListOffsets:
    """(topic, partition, timestamp)."""
    topics = [
        log.ListOffsetsTopic(
            name=topic,
            partitions=[
                log.ListOffsetsPartition(
                    partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                )
            ],
        )
        for topic, index, timestamp in wanted
    ]
    return log.ListOffsets(topics=topics, **options)


async def listed(world: World, timestamp: int, **options: int) -> tuple[int, int, int, int]:
    """Code, timestamp, offset, epoch of the one partition of t."""
    reply = await world.ask(list_offsets(("t", 0, timestamp), **options))
    [partition] = reply.topics[0].partitions
    return partition.error_code, partition.timestamp, partition.offset, partition.leader_epoch


async def timed(world: World, *times: int, codec: int = 0) -> None:
    """One batch whose records have these times."""
    from rafka.records.build import build
    from rafka.records.record import Record

    records = build([Record(0, at, b"k", b"v") for at in times], codec=codec)
    reply = await world.ask(produce(records))
    assert reply.responses[0].partition_responses[0].error_code == 0


# --- list offsets ----------------------------------------------------------------------------


async def test_the_ends_of_an_empty_log(world: World) -> None:
    """LF-047, LF-049."""
    assert await listed(world, LATEST) == (0, -1, 0, 0)
    assert await listed(world, EARLIEST) == (0, -1, 0, 0)
    assert await listed(world, EARLIEST_LOCAL) == (0, -1, 0, 0)
    assert await listed(world, MAX_TIMESTAMP) == (0, -1, -1, -1)
    assert await listed(world, 0) == (0, -1, -1, -1)


async def test_the_ends_of_a_log(world: World) -> None:
    """LF-047, LF-050, LF-051."""
    await timed(world, 100, 200, 300)
    world.partition().log.advance_start(2)

    assert await listed(world, LATEST) == (0, -1, 3, 0)
    assert await listed(world, EARLIEST) == (0, -1, 2, 0)
    assert await listed(world, EARLIEST_LOCAL) == (0, -1, 2, 0)
    assert await listed(world, LATEST_TIERED) == (0, -1, -1, -1)
    assert await listed(world, EARLIEST_PENDING) == (0, -1, -1, -1)


@pytest.mark.parametrize("codec", [0, 1])
async def test_a_time_finds_the_first_record_at_or_after_it_in_the_order_of_offsets(
    world: World, codec: int
) -> None:
    """L5, LF-048: times need not ascend, and a record inside a batch is found itself."""
    await timed(world, 100, 300, 200, codec=codec)
    await timed(world, 400)

    assert await listed(world, 0) == (0, 100, 0, 0)
    assert await listed(world, 150) == (0, 300, 1, 0)
    assert await listed(world, 301) == (0, 400, 3, 0)
    assert await listed(world, 401) == (0, -1, -1, -1)


async def test_the_greatest_time_is_that_of_the_first_record_that_has_it(world: World) -> None:
    """L6, LF-049."""
    await timed(world, 100, 300, 200)
    await timed(world, 300, 50)

    assert await listed(world, MAX_TIMESTAMP) == (0, 300, 1, 0)


async def test_where_no_record_has_a_time_the_first_has_the_greatest(world: World) -> None:
    await timed(world, -1, -1)
    await timed(world, -1)

    assert await listed(world, MAX_TIMESTAMP) == (0, -1, 0, 0)
    assert await listed(world, 0) == (0, -1, -1, -1)


async def test_topics_without_partitions_are_left_out(world: World) -> None:
    op = list_offsets(("t", 0, LATEST))
    op.topics.append(log.ListOffsetsTopic(name="t", partitions=[]))
    bare = log.ListOffsets(topics=[log.ListOffsetsTopic(name="t", partitions=[])])

    assert len((await world.ask(op)).topics) == 1
    assert (await world.ask(bare)).topics == []


async def test_an_unknown_isolation_level_fails_the_whole_request(world: World) -> None:
    """L7: whatever else is wrong with a partition."""
    reply = await world.ask(list_offsets(("t", 0, LATEST), ("t", 9, -100), isolation_level=2))

    assert [t.partitions[0].error_code for t in reply.topics] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2


async def test_what_is_below_the_start_is_not_found_by_time(world: World) -> None:
    await timed(world, 100)
    await timed(world, 200)
    world.partition().log.advance_start(1)

    assert await listed(world, 50) == (0, 200, 1, 0)


@pytest.mark.parametrize(
    ("timestamp", "lowest", "code"),
    [
        (-3, -2, 35), (-3, -3, 0), (-4, -3, 35), (-4, -4, 0), (-5, -4, 35),
        (-5, -5, 0), (-6, -5, 35), (-6, -6, 0), (-7, -6, 35), (-100, -6, 35),
    ],
)  # fmt: skip
async def test_special_times_came_with_versions(world: World, timestamp: int, lowest: int, code: int) -> None:
    """LF-049, LF-050; `lowest_timestamp` is what the version knows."""
    assert (await listed(world, timestamp, lowest_timestamp=lowest))[0] == code


@pytest.mark.parametrize("timestamp", [LATEST, 50])
async def test_a_partition_named_twice_is_refused_once(world: World, timestamp: int) -> None:
    """L2: also by naming its topic twice."""
    await world.create("u", partitions=2)

    reply = await world.ask(list_offsets(("u", 0, timestamp), ("u", 1, timestamp), ("u", 0, timestamp)))

    [topic] = reply.topics
    assert sorted((p.partition_index, p.error_code) for p in topic.partitions) == [(0, 42), (1, 0)]


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 50])
async def test_refusals_do_not_depend_on_what_is_asked(world: World, timestamp: int) -> None:
    """L3, L7, LF-083, LF-085."""
    await timed(world, 100)
    reply = await world.ask(list_offsets(("nobody", 0, timestamp), ("t", 1, timestamp), ("t", -1, timestamp)))

    assert [p.error_code for t in reply.topics for p in t.partitions] == [3, 3, 3]
    assert (await listed(world, timestamp, epoch=1))[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (await listed(world, timestamp, epoch=-2))[0] == ErrorCode.FENCED_LEADER_EPOCH
    assert (await listed(world, timestamp, epoch=0))[0] == ErrorCode.NONE
    assert (await listed(world, timestamp, isolation_level=2))[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await listed(world, timestamp, isolation_level=1))[0] == ErrorCode.NONE


async def test_topics_of_another_organisation_have_no_offsets(world: World) -> None:
    reply = await world.ask(list_offsets(("t", 0, LATEST)), OrgId("them"))

    assert reply.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_replica_is_told_the_end_of_the_log(slow: World) -> None:
    """LF-084: and an ordinary reader the high watermark."""
    await slow.write(b"a")
    slow.log().flush()
    await slow.write(b"b")

    waits = slow.answer(list_offsets(("t", 0, LATEST), replica_id=5))

    assert isinstance(waits, Later)
    slow.log().flush()
    assert (await waits.wait()).topics[0].partitions[0].offset == 2


async def test_what_is_not_durable_is_not_found_by_time_until_it_is(slow: World) -> None:
    """L1."""
    await timed(slow, 100)
    answer = slow.answer(list_offsets(("t", 0, 50)))
    assert isinstance(answer, Later)
    slow.log().flush()

    assert (await answer.wait()).topics[0].partitions[0].offset == 0


async def test_a_failed_log_has_no_offsets(world: World) -> None:
    world.partition().log.failed = "the disk is gone"

    for timestamp in (LATEST, EARLIEST, 50, MAX_TIMESTAMP):
        assert (await listed(world, timestamp))[0] == ErrorCode.KAFKA_STORAGE_ERROR


# --- leader epochs -----------------------------------------------------------------------------


async def epoch_end(world: World, asked: int, current: int = -1, index: int = 0) -> tuple[int, int, int]:
    partition = log.EpochPartition(partition=index, leader_epoch=asked, current_leader_epoch=current)
    op = log.OffsetForLeaderEpoch(topics=[log.EpochTopic(topic="t", partitions=[partition])])
    [end] = (await world.ask(op)).topics[0].partitions
    return end.error_code, end.leader_epoch, end.end_offset


async def test_epochs_of_an_empty_log(world: World) -> None:
    """Section 5, LF-052."""
    assert await epoch_end(world, 0) == (0, 0, 0)
    assert await epoch_end(world, 5) == (0, -1, -1)
    assert await epoch_end(world, -1) == (0, -1, -1)
    assert await epoch_end(world, -2) == (0, -2, 0)


async def test_epochs_of_a_log_that_has_had_some(world: World) -> None:
    """Section 5."""
    for epoch in (2, 4, 7):
        world.partition().leader_epoch = epoch
        await world.write(b"a", b"b")

    assert await epoch_end(world, 7) == (0, 7, 6), "the latest: the end of the log"
    assert await epoch_end(world, 8) == (0, -1, -1)
    assert await epoch_end(world, 4) == (0, 4, 4)
    assert await epoch_end(world, 5) == (0, 4, 4), "between: the largest known that is not above it"
    assert await epoch_end(world, 2) == (0, 2, 2)
    assert await epoch_end(world, 1) == (0, 1, 0), "before all: the start of the first"


async def test_epochs_are_refused_where_they_cannot_be_told(world: World) -> None:
    assert await epoch_end(world, 0, index=1) == (3, -1, -1)
    assert await epoch_end(world, 0, current=1) == (75, -1, -1)
    assert await epoch_end(world, 0, current=-2) == (74, -1, -1)
    assert await epoch_end(world, 0, current=0) == (0, 0, 0)


async def test_a_partition_asked_for_twice_is_answered_twice(world: World) -> None:
    partition = log.EpochPartition(partition=0, leader_epoch=0)
    op = log.OffsetForLeaderEpoch(topics=[log.EpochTopic(topic="t", partitions=[partition, partition])])

    assert len((await world.ask(op)).topics[0].partitions) == 2


# --- deleting records ---------------------------------------------------------------------------


async def deleted(world: World, offset: int, topic: str = "t", index: int = 0) -> tuple[int, int]:
    partition = log.DeleteRecordsPartition(partition_index=index, offset=offset)
    op = log.DeleteRecords(
        topics=[log.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=1000
    )
    [gone] = (await world.ask(op)).topics[0].partitions
    return gone.error_code, gone.low_watermark


async def test_records_below_an_offset_are_deleted(world: World) -> None:
    """LF-051."""
    for value in (b"a", b"b", b"c"):
        await world.write(value)

    assert await deleted(world, 2) == (0, 2)
    assert (await listed(world, EARLIEST))[2] == 2
    assert found(await world.ask(fetch(("t", 0, 1))))[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert await deleted(world, 1) == (0, 2), "a lower one changes nothing"
    assert await deleted(world, -1) == (0, 3), "all that may be read"
    assert await world.write(b"d") == 3, "offsets go on"


@pytest.mark.parametrize("offset", [4, -2, -(2**63), 2**63 - 1])
async def test_offsets_that_are_not_there_cannot_be_deleted(world: World, offset: int) -> None:
    """LF-051."""
    await world.write(b"a", b"b", b"c")

    assert await deleted(world, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


async def test_an_empty_log_takes_0_and_minus_1(world: World) -> None:
    assert await deleted(world, 0) == (0, 0)
    assert await deleted(world, -1) == (0, 0)


async def test_a_batch_that_holds_the_new_start_is_given_whole(world: World) -> None:
    await world.write(b"a", b"b", b"c")
    await deleted(world, 1)

    [partition] = found(await world.ask(fetch(("t", 0, 1))))

    assert values(partition.records) == [b"a", b"b", b"c"]
    assert partition.log_start_offset == 1


async def test_some_topics_have_records_that_are_not_to_be_deleted(world: World) -> None:
    """LF-051."""
    await world.create("c", cleanup_policy="compact")

    assert await deleted(world, 0, topic="c") == (ErrorCode.POLICY_VIOLATION, -1)
    assert await deleted(world, 0, topic="__consumer_offsets") == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
    assert await deleted(world, 0, topic="nobody") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert await deleted(world, 0, index=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


async def test_a_topic_that_never_loses_records_by_itself_may_be_told_to(world: World) -> None:
    """Only compaction forbids it: not a cleanup.policy of nothing."""
    await world.create("kept", cleanup_policy="")
    await world.write(b"a", topic="kept")

    assert await deleted(world, 1, topic="kept") == (0, 1)


async def test_a_partition_whose_records_are_deleted_twice_is_answered_once(world: World) -> None:
    """What was asked last counts; a topic without partitions is left out."""
    await world.create("u", partitions=2)
    await world.write(b"a", topic="u")

    def part(index: int, offset: int) -> log.DeleteRecordsPartition:
        return log.DeleteRecordsPartition(partition_index=index, offset=offset)

    asked = [("u", [part(0, 99), part(0, 1)]), ("t", []), ("u", [part(1, 0)])]
    op = log.DeleteRecords(
        topics=[log.DeleteRecordsTopic(name=name, partitions=parts) for name, parts in asked], timeout_ms=1000
    )
    [topic] = (await world.ask(op)).topics

    assert topic.name == "u"
    assert [(p.partition_index, p.error_code, p.low_watermark) for p in topic.partitions] == [
        (0, 0, 1),
        (1, 0, 0),
    ]


async def test_what_is_not_durable_yet_is_deleted_once_it_is(slow: World) -> None:
    """A client that was told of its write by acks=1 may ask for it to go."""
    await slow.write(b"a")
    partition = log.DeleteRecordsPartition(partition_index=0, offset=1)
    op = log.DeleteRecords(topics=[log.DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000)
    answer = slow.answer(op)

    assert isinstance(answer, Later)
    slow.log().flush()
    assert (await answer.wait()).topics[0].partitions[0].low_watermark == 1
