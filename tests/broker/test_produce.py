"""Produce: each partition for itself, duplicates, acks, and what an error says of the log's start."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from trio.testing import MockClock

from rafka.broker.produce import ALWAYS_LOOKED_AT
from rafka.config import load
from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.log import PartitionData, Produce, TopicData
from rafka.types import NO_TOPIC_ID, OrgId, TopicId

from .kit import NOW, World, batch, fetch, found, open_world, produce, produce_many, told, values


async def one(world: World, op: Produce) -> log.PartitionProduceReply:
    [partition] = told(await world.ask(op))
    return partition


def codes(reply: log.ProduceReply) -> list[tuple[int, int, int]]:
    return [(p.index, p.error_code, p.base_offset) for p in told(reply)]


async def contents(world: World, topic: str = "t", index: int = 0) -> Sequence[bytes | None]:
    return values(found(await world.ask(fetch((topic, index, 0))))[0].records)


async def test_a_batch_is_appended_and_told_where(world: World) -> None:
    """LF-009."""
    first = await one(world, produce(batch(b"a", b"b", b"c")))
    second = await one(world, produce(batch(b"d")))

    assert (first.base_offset, first.log_append_time_ms, first.log_start_offset) == (0, -1, 0)
    assert second.base_offset == 3
    assert first.error_message is None
    assert await contents(world) == [b"a", b"b", b"c", b"d"]


async def test_one_partition_refuses_while_the_next_takes(world: World) -> None:
    """LF-027."""
    await world.create("u", partitions=2)

    reply = await world.ask(
        produce_many(
            ("u", 0, batch(b"a")),
            ("u", 7, batch(b"b")),
            ("u", 1, b"junk"),
            ("nobody", 0, batch(b"c")),
            ("t", 0, batch(b"d")),
        )
    )

    assert codes(reply) == [(0, 0, 0), (7, 3, -1), (1, 87, -1), (0, 3, -1), (0, 0, 0)]
    assert [topic.name for topic in reply.responses] == ["u", "nobody", "t"]


async def test_the_same_partition_twice_is_written_and_answered_once(world: World) -> None:
    """B24, LF-075: the last one counts."""
    op = produce_many(("t", 0, batch(b"a")), ("t", 0, batch(b"b")))

    reply = await world.ask(op)

    assert codes(reply) == [(0, 0, 0)]
    assert await contents(world) == [b"b"]


@pytest.mark.parametrize("acks", [2, -2, 127])
async def test_other_acks_are_refused_and_nothing_is_written(world: World, acks: int) -> None:
    """LF-025. What nobody knows, or what is no batch at all, is told first."""
    unsound = batch(b"a")[:-1] + b"?"

    reply = await world.ask(
        produce_many(("t", 0, unsound), ("t", 1, b""), ("u", 0, b""), ("nobody", 0, batch(b"a")), acks=acks)
    )

    assert codes(reply) == [(0, 21, -1), (1, 3, -1), (0, 3, -1), (0, 3, -1)]
    assert codes(await world.ask(produce(b"", acks=acks))) == [(0, 87, -1)]
    assert [p.log_start_offset for p in told(reply)] == [-1] * 4
    assert await contents(world) == []


async def test_a_topic_without_partitions_is_not_answered(world: World) -> None:
    empty = Produce(acks=-1, timeout_ms=1, topic_data=[])
    bare = Produce(acks=1, timeout_ms=1, topic_data=[TopicData(name="t", partition_data=[])])

    assert (await world.ask(empty)).responses == []
    assert (await world.ask(bare)).responses == []


@pytest.mark.parametrize("topic_id", [NO_TOPIC_ID, TopicId(b"nobody's id.....")])
async def test_topics_may_be_named_by_id(world: World, topic_id: TopicId) -> None:
    """B2."""
    known = await world.create("u")

    def by_id(which: TopicId) -> Produce:
        data = [PartitionData(index=0, records=batch(b"a"))]
        topic = TopicData(topic_id=which, partition_data=data)
        return Produce(acks=1, timeout_ms=1, topic_data=[topic], by_id=True)

    assert codes(await world.ask(by_id(known))) == [(0, 0, 0)]
    assert codes(await world.ask(by_id(topic_id))) == [(0, 100, -1)]
    assert codes(await world.ask(by_id(known), OrgId("others"))) == [(0, 100, -1)]


async def test_internal_topics_are_not_for_clients(world: World) -> None:
    """B6, LF-028."""
    reply = await one(world, produce(batch(b"a"), topic="__consumer_offsets"))

    assert (reply.error_code, reply.log_start_offset) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)


async def test_transactional_batches_need_an_id_before_anything_else_is_looked_at(world: World) -> None:
    """B0, Q11: in every partition, and before the checksum."""
    broken = bytearray(batch(b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0))
    broken[17] ^= 1

    reply = await world.ask(produce_many(("t", 0, bytes(broken)), ("nobody", 0, batch(b"a"))))

    assert codes(reply) == [(0, 53, -1), (0, 53, -1)]
    assert await contents(world) == []


async def test_what_is_no_whole_batch_of_today_is_not_transactional(world: World) -> None:
    """The bit counts only where there is a first batch that has it: else the fault of the batch is told."""
    whole = bytearray(batch(b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0))
    old, strange, short = bytearray(whole), bytearray(whole), bytearray(whole)
    old[16], strange[16], short[8:12] = 1, 9, (13).to_bytes(4, "big")

    refused = [(await one(world, produce(bytes(b)))).error_code for b in (whole[:-1], old, strange, short)]

    assert refused == [87, 87, 2, 2]


async def test_a_transactional_id_with_plain_batches_changes_nothing(world: World) -> None:
    for transactional_id in ("tx", ""):
        reply = await one(world, produce(batch(b"a"), transactional_id=transactional_id))
        assert reply.error_code == ErrorCode.NONE


async def test_zstd_needs_a_client_that_may_know_it(world: World) -> None:
    """B4, LF-018."""
    zstd = batch(b"a", codec=4)

    assert (await one(world, produce(zstd, zstd_allowed=False))).error_code == 76
    assert (await one(world, produce(zstd))).error_code == 0


def flipped(at: int) -> bytes:
    data = bytearray(batch(b"a"))
    data[at] ^= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("records", "code", "start"),
    [
        pytest.param(flipped(20), 2, -1, id="a wrong checksum"),
        pytest.param(batch(b"x" * 2_000_000), 10, -1, id="too large"),
        pytest.param(batch(b"a") * 2, 87, -1, id="two batches"),
        pytest.param(None, 87, -1, id="null"),
        pytest.param(b"", 87, -1, id="nothing"),
        pytest.param(flipped(0), 87, 2, id="a base offset"),
        pytest.param(batch(b"a", control=True), 87, 2, id="a control batch"),
        pytest.param(
            batch(b"a", producer_id=9, producer_epoch=0, base_sequence=7), 45, 2, id="a gap in the sequence"
        ),
        pytest.param(batch(b"a", producer_id=8, producer_epoch=0, base_sequence=0), 47, 2, id="an old epoch"),
        pytest.param(batch(b"a", at_ms=(NOW + 7200) * 1000), 32, 2, id="a time in two hours"),
    ],
)
async def test_an_error_tells_the_start_of_the_log_if_it_was_found_while_appending(
    world: World, records: bytes | None, code: int, start: int
) -> None:
    """LF-082."""
    await world.ask(produce(batch(b"1", producer_id=9, producer_epoch=0, base_sequence=0)))
    await world.ask(produce(batch(b"2", producer_id=8, producer_epoch=1, base_sequence=0)))
    world.partition().log.advance_start(2)

    reply = await one(world, produce(records))

    assert (reply.error_code, reply.log_start_offset, reply.base_offset) == (code, start, -1)
    assert world.partition().log.end_offset == 2, "nothing is written"


async def test_bad_records_are_named_one_by_one(world: World) -> None:
    """B17, LF-079."""
    from rafka.records.build import build
    from rafka.records.record import Record

    late = (NOW + 7200) * 1000
    records = build([Record(0, at, b"k", b"v") for at in (NOW * 1000, late, NOW * 1000, late)])

    reply = await one(world, produce(records))

    assert reply.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in reply.record_errors] == [1, 3]
    assert reply.error_message


# --- idempotence ----------------------------------------------------------------------------


def numbered(sequence: int, *values: bytes, epoch: int = 0, producer_id: int = 5) -> Produce:
    return produce(
        batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence), acks=-1
    )


async def test_a_batch_sent_again_is_answered_as_before_and_not_written(world: World) -> None:
    """Q1: for one of the last five; with the greatest time of the stored batch as its append time."""
    for n in range(6):
        await world.ask(numbered(n, b"x"))

    again = [await one(world, numbered(n, b"x")) for n in range(1, 6)]
    sixth_last = await one(world, numbered(0, b"x"))

    assert [(p.error_code, p.base_offset) for p in again] == [(0, n) for n in range(1, 6)]
    assert {p.log_append_time_ms for p in again} == {NOW * 1000}
    assert sixth_last.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert world.partition().log.end_offset == 6


async def test_a_refused_batch_leaves_the_sequence_where_it_was(world: World) -> None:
    """Q14."""
    await world.ask(numbered(0, b"a"))
    op = numbered(1, b"b")
    data = bytearray(op.topic_data[0].partition_data[0].records or b"")
    data[20] ^= 1
    await world.ask(produce(bytes(data)))

    assert (await one(world, op)).error_code == ErrorCode.NONE


async def test_an_append_that_the_log_refuses_leaves_the_sequence_where_it_was(world: World) -> None:
    world.partition().log.failed = "no room"
    refused = await one(world, numbered(0, b"a"))
    world.partition().log.failed = None

    assert (refused.error_code, refused.log_start_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert not world.partition().producers.by_id
    assert (await one(world, numbered(0, b"a"))).base_offset == 0


async def test_sequences_belong_to_a_partition(world: World) -> None:
    await world.create("u", partitions=2)

    for index in (0, 1):
        op = produce(
            batch(b"a", producer_id=5, producer_epoch=0, base_sequence=index), topic="u", index=index
        )
        assert (await one(world, op)).error_code == 0


async def test_producers_are_described(world: World) -> None:
    await world.ask(numbered(0, b"a", b"b", epoch=3))

    op = log.DescribeProducers(
        topics=[
            log.ProducersTopic(name="t", partition_indexes=[0, 1]),
            log.ProducersTopic(name="no such!", partition_indexes=[0]),
        ]
    )
    known, unknown, invalid = [p for t in (await world.ask(op)).topics for p in t.partitions]

    [producer] = known.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (5, 3, 1)
    assert producer.last_timestamp == NOW * 1000
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


async def test_a_partition_that_is_named_again_and_again_is_told_of_as_long_as_there_is_room() -> None:
    async with open_world(load(flags=[("describe.max.reply.bytes", "1024", "--set")])) as world:
        await world.create("t")
        await world.ask(numbered(0, b"a"))
        op = log.DescribeProducers(topics=[log.ProducersTopic(name="t", partition_indexes=[0] * 100)])

        [topic] = (await world.ask(op)).topics

    told = [partition for partition in topic.partitions if partition.active_producers]
    refused = [p for p in topic.partitions if p.error_code == ErrorCode.INVALID_REQUEST]
    assert 1 < len(told) < 10
    assert len(refused) == 100 - len(told)


async def test_ids_are_given_out_at_random(world: World) -> None:
    ids = [await world.ask(log.InitProducerId(transaction_timeout_ms=1000)) for _ in range(50)]

    assert len({given.producer_id for given in ids}) == 50
    assert all(0 <= given.producer_id < 2**63 and given.producer_epoch == 0 for given in ids)


@pytest.mark.parametrize(("producer_id", "epoch"), [(1, -1), (-1, 1)])
async def test_an_id_without_its_epoch_is_refused(world: World, producer_id: int, epoch: int) -> None:
    op = log.InitProducerId(transaction_timeout_ms=1, producer_id=producer_id, producer_epoch=epoch)

    assert (await world.ask(op)).error_code == ErrorCode.INVALID_REQUEST


# --- what a topic's configuration does -----------------------------------------------------------


async def test_a_lower_limit_counts_for_the_next_batch(world: World) -> None:
    """LF-066."""
    large = batch(b"x" * 2000)
    assert (await one(world, produce(large))).error_code == 0

    await world.alter(max_message_bytes="1000")
    assert (await one(world, produce(large))).error_code == ErrorCode.MESSAGE_TOO_LARGE

    await world.alter(max_message_bytes=None)
    assert (await one(world, produce(large))).error_code == 0


async def test_log_append_time_is_the_brokers_and_never_goes_back(
    world: World, autojump_clock: MockClock
) -> None:
    """LF-023."""
    await world.alter(message_timestamp_type="LogAppendTime")
    first = await one(world, produce(batch(b"a", at_ms=7)))
    autojump_clock.jump(5)
    second = await one(world, produce(batch(b"b", at_ms=7)))

    assert first.log_append_time_ms >= NOW * 1000
    assert second.log_append_time_ms == pytest.approx(first.log_append_time_ms + 5000, abs=5)
    assert world.partition().append_time(0) == second.log_append_time_ms, "though a clock may be set back"


async def test_every_sender_is_looked_at_closely_for_a_while_and_then_now_and_then(world: World) -> None:
    """`record.validation=sampled`: a record that lies is found among the first hundred batches."""
    lying = bytearray(batch(b"a"))
    lying[-1] = 9  # the record's count of headers
    from rafka.records.batch import read_header, sealed, write_header

    header = read_header(lying)
    sealed(header, bytes(lying[61:]))
    lie = bytes(write_header(header)) + bytes(lying[61:])

    assert (await one(world, produce(lie))).error_code == ErrorCode.INVALID_RECORD
    world.envelope.batches = ALWAYS_LOOKED_AT
    refused = [(await one(world, produce(lie))).error_code != 0 for _ in range(128)]
    assert sum(refused) == 2
