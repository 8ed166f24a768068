"""What is done now and then: retention, forgetting producers, removing the logs of deleted topics."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock

from rafka.errors import ErrorCode, KafkaError
from rafka.ops import log
from rafka.storage.backend import LogName

from .kit import NOW, World, batch, fetch, found, produce

RETENTION_CHECK_S = 300


async def test_old_records_go_and_their_readers_are_told(world: World, autojump_clock: MockClock) -> None:
    """LF-053: the active segment as well."""
    await world.alter(retention_ms="1000")
    await world.write(b"a")
    world.partition().log.roll()
    await world.write(b"b")

    await trio.sleep(RETENTION_CHECK_S + 30)

    assert (world.partition().log.start_offset, world.partition().log.end_offset) == (2, 2)
    [partition] = found(await world.ask(fetch(("t", 0, 0))))
    assert partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert await world.write(b"c") == 2


async def test_a_topic_that_is_only_compacted_keeps_what_is_old(
    world: World, autojump_clock: MockClock
) -> None:
    await world.alter(retention_ms="1000", cleanup_policy="compact")
    await world.write(b"a")

    await trio.sleep(RETENTION_CHECK_S + 30)

    assert world.partition().log.start_offset == 0


async def test_retention_changes_at_once(world: World, autojump_clock: MockClock) -> None:
    await world.write(b"a")
    await trio.sleep(RETENTION_CHECK_S + 30)
    assert world.partition().log.start_offset == 0

    await world.alter(retention_ms="1000")
    await trio.sleep(RETENTION_CHECK_S + 30)

    assert world.partition().log.start_offset == 1


async def test_one_logs_trouble_is_nobody_elses(
    world: World, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "rafka")
    await world.create("u", retention_ms="1000")
    await world.write(b"a", topic="u")

    def no_room(*_: object) -> int:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room for a new segment")

    monkeypatch.setattr(world.partition("t").log, "expire", no_room)
    await trio.sleep(RETENTION_CHECK_S + 30)

    assert world.partition("u").log.start_offset == 1
    assert "no room" in caplog.text


async def test_producers_who_have_gone_quiet_are_forgotten(world: World, autojump_clock: MockClock) -> None:
    await world.ask(produce(batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)))
    await trio.sleep(86_000)
    assert world.partition().producers.by_id

    await trio.sleep(2_000)

    assert not world.partition().producers.by_id


async def test_the_logs_of_a_deleted_topic_are_removed(world: World, autojump_clock: MockClock) -> None:
    topic_id = await world.create("u", partitions=2)
    for index in (0, 1):
        await world.write(b"a", topic="u", index=index)
    held = world.partition("u")
    names = {LogName(f"topics/{topic_id.hex()}/{index}") for index in (0, 1)}
    assert names <= set(await world.backend.start())

    await world.delete("u")
    await trio.sleep(1)

    assert not names & set(await world.backend.start())
    with pytest.raises(KafkaError):
        held.log.read(0, 1, 100)


async def test_a_reader_of_compacted_records_is_given_what_is_left(
    world: World, autojump_clock: MockClock
) -> None:
    """LF-055: with their offsets, from the next one that there is."""
    await world.alter(cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    for value in (b"old", b"new"):
        await world.write(value)
    world.partition().log.roll()
    await world.write(b"newest")

    await trio.sleep(60)

    [partition] = found(await world.ask(fetch(("t", 0, 0))))
    from rafka.records.batch import read_header

    assert read_header(partition.records).last_offset >= 1
    assert world.partition().log.end_offset == 3
    listing = log.ListOffsets(
        topics=[
            log.ListOffsetsTopic(
                name="t", partitions=[log.ListOffsetsPartition(partition_index=0, timestamp=NOW)]
            )
        ]
    )
    assert (await world.ask(listing)).topics[0].partitions[0].offset == 1
