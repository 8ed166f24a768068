"""Fetch: the rules of each partition, the limits of a request, and waiting."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.base import Later
from rafka.ops.log import DeleteRecords, DeleteRecordsPartition, DeleteRecordsTopic
from rafka.types import NO_TOPIC_ID, OrgId, TopicId

from .kit import World, batch, fetch, found, produce, values

NOBODYS = TopicId(b"nobody's id.....")


async def one(world: World, op: log.Fetch) -> log.PartitionFetchReply:
    [partition] = found(await world.ask(op))
    return partition


def asking(**fields: int) -> log.Fetch:
    """The one partition of t from 0, with these fields of the partition."""
    op = fetch(("t", 0, 0))
    for name, value in fields.items():
        setattr(op.topics[0].partitions[0], name, value)
    return op


def assert_error(partition: log.PartitionFetchReply, code: ErrorCode) -> None:
    """-1 with any error, and records that are empty and never null."""
    assert partition.error_code == code
    assert (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset) == (-1,) * 3
    assert partition.records == b""


# --- 3.1: what a partition answers -----------------------------------------------------------


@pytest.mark.parametrize("isolation_level", [2, -1, 7])
async def test_an_unknown_isolation_level_fails_the_whole_request(world: World, isolation_level: int) -> None:
    """F0, LF-083."""
    reply = await world.ask(fetch(("t", 0, 0), ("u", 3, 0), isolation_level=isolation_level))

    assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    for partition in found(reply):
        assert_error(partition, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("topic_id", [NO_TOPIC_ID, NOBODYS])
async def test_an_unknown_topic_id_is_told(world: World, topic_id: TopicId) -> None:
    """F1, LF-037."""
    partition = await one(world, fetch(("", 0, 0), topic_ids=[topic_id]))

    assert_error(partition, ErrorCode.UNKNOWN_TOPIC_ID)
    assert partition.aborted_transactions == ()


@pytest.mark.parametrize(("topic", "index"), [("unknown", 0), ("t", 1), ("t", -1)])
async def test_an_unknown_partition_is_told(world: World, topic: str, index: int) -> None:
    """F3, LF-037."""
    partition = await one(world, fetch((topic, index, 0)))

    assert_error(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert partition.aborted_transactions == ()


async def test_topics_of_another_organisation_are_unknown(world: World) -> None:
    topic_id = await world.create("theirs", org=OrgId("them"))

    by_name = await one(world, fetch(("theirs", 0, 0)))
    by_id = await one(world, fetch(("", 0, 0), topic_ids=[topic_id]))

    assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_a_topic_may_be_named_by_its_id(world: World) -> None:
    topic_id = await world.create("u")
    await world.write(b"a", topic="u")

    reply = await world.ask(fetch(("", 0, 0), topic_ids=[topic_id]))

    assert reply.responses[0].topic_id == topic_id
    assert values(found(reply)[0].records) == [b"a"]


@pytest.mark.parametrize(("replica_id", "code"), [(-1, 0), (-2, 0), (0, 6), (9999, 6)])
async def test_replicas_are_turned_away(world: World, replica_id: int, code: int) -> None:
    """F5, LF-084."""
    await world.write(b"a")

    partition = await one(world, fetch(("t", 0, 0), replica_id=replica_id))

    assert partition.error_code == code
    assert bool(partition.records) is (code == 0)


@pytest.mark.parametrize(("epoch", "code"), [(-1, 0), (-2, 0), (0, 0), (1, 75), (2**31 - 1, 75)])
async def test_the_clients_leader_epoch_has_to_be_ours(world: World, epoch: int, code: int) -> None:
    """F6, LF-038, LF-085: any negative one is none."""
    await world.write(b"a")

    partition = await one(world, asking(current_leader_epoch=epoch))

    assert partition.error_code == code


async def test_an_older_leader_epoch_is_fenced(world: World) -> None:
    """F6, LF-038."""
    world.partition().leader_epoch = 3

    old, new = asking(current_leader_epoch=2), asking(current_leader_epoch=2)
    old.leader_told, new.leader_told = False, True  # type: ignore[misc]

    partition, newer = await one(world, old), await one(world, new)

    assert_error(partition, ErrorCode.FENCED_LEADER_EPOCH)
    assert partition.current_leader is None
    assert newer.current_leader == log.LeaderEpoch(leader_id=0, leader_epoch=3)


async def test_a_log_of_two_epochs_tells_where_a_readers_log_parts_from_it(world: World) -> None:
    """F7, F8, LF-039."""
    await world.write(b"a", b"b")
    world.partition().leader_epoch = 2
    await world.write(b"c")

    # The reader has three records of epoch 0, where the log has two.
    parted = await one(world, asking(last_fetched_epoch=0, fetch_offset=3))
    # It asks for an epoch between those that there are.
    between = await one(world, asking(last_fetched_epoch=1, fetch_offset=2))
    same = await one(world, asking(last_fetched_epoch=0, fetch_offset=2))
    future = await one(world, asking(last_fetched_epoch=3, fetch_offset=2))

    assert parted.error_code == ErrorCode.NONE
    assert parted.records == b""
    assert parted.diverging_epoch == log.EpochEnd(epoch=0, end_offset=2)
    assert between.diverging_epoch == log.EpochEnd(epoch=0, end_offset=2)
    assert same.diverging_epoch is None
    assert values(same.records) == [b"c"]
    assert_error(future, ErrorCode.OFFSET_OUT_OF_RANGE)


async def test_a_diverging_reader_is_told_at_once(world: World) -> None:
    await world.write(b"a")
    world.partition().leader_epoch = 1
    await world.write(b"b")
    op = asking(last_fetched_epoch=0, fetch_offset=2)
    op.max_wait_ms = 30_000  # type: ignore[misc]

    assert not isinstance(world.answer(op), Later)


async def test_an_epoch_below_the_start_of_the_log_is_out_of_range(world: World) -> None:
    """F7."""
    await world.write(b"a")
    await world.write(b"b")
    await delete_to(world, 1)

    assert_error(
        await one(world, asking(last_fetched_epoch=0, fetch_offset=0)), ErrorCode.OFFSET_OUT_OF_RANGE
    )


@pytest.mark.parametrize("offset", [0, -1, 4, 2**63 - 1])
async def test_offsets_outside_the_log_are_out_of_range(world: World, offset: int) -> None:
    """F9, LF-032, LF-051; bad input 68."""
    for value in (b"a", b"b", b"c"):
        await world.write(value)
    await delete_to(world, 1)

    assert_error(await one(world, fetch(("t", 0, offset))), ErrorCode.OFFSET_OUT_OF_RANGE)


async def test_the_end_of_the_log_is_no_error(world: World) -> None:
    """F10, LF-030."""
    await world.write(b"a", b"b")

    partition = await one(world, fetch(("t", 0, 2)))

    assert (partition.error_code, partition.records) == (0, b"")
    assert (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset) == (2, 2, 0)


async def test_a_batch_comes_whole_from_the_one_that_holds_the_offset(world: World) -> None:
    """F11, LF-033."""
    await world.write(b"a", b"b", b"c")
    await world.write(b"d")

    partition = await one(world, fetch(("t", 0, 1)))

    assert values(partition.records) == [b"a", b"b", b"c", b"d"]


async def test_the_last_batch_is_cut_where_the_limit_hits(world: World) -> None:
    """F11."""
    await world.write(b"a")
    await world.write(b"b")
    size = len(batch(b"a"))

    partition = await one(world, fetch(("t", 0, 0), partition_max_bytes=size + 10))

    assert len(partition.records) == size + 10


async def test_the_bytes_are_those_that_were_written_but_for_their_place(world: World) -> None:
    """F11, LF-019."""
    sent = batch(b"a", b"b")
    await world.write(b"x")
    await world.ask(produce(sent))

    partition = await one(world, fetch(("t", 0, 1)))

    got = bytes(partition.records)
    assert got[:8] == (1).to_bytes(8, "big")
    assert got[8:12] + got[16:] == sent[8:12] + sent[16:]


@pytest.mark.parametrize(("isolation_level", "aborted"), [(0, None), (1, ())])
async def test_aborted_transactions_are_listed_for_those_who_read_what_is_committed(
    world: World, isolation_level: int, aborted: object
) -> None:
    await world.write(b"a")

    good = await one(world, fetch(("t", 0, 0), isolation_level=isolation_level))
    bad = await one(world, fetch(("t", 0, 9), isolation_level=isolation_level))

    assert good.aborted_transactions == aborted
    assert bad.aborted_transactions is None


async def test_a_partition_named_twice_counts_as_it_was_named_last(world: World) -> None:
    """LF-075."""
    await world.write(b"a")
    await world.write(b"b")

    reply = await world.ask(fetch(("t", 0, 0), ("t", 0, 1)))

    [partition] = found(reply)
    assert values(partition.records) == [b"b"]


async def test_a_failed_log_is_told(world: World) -> None:
    await world.write(b"a")
    world.partition().log.failed = "the disk is gone"

    assert (await one(world, fetch(("t", 0, 0)))).error_code == ErrorCode.KAFKA_STORAGE_ERROR


# --- 3.2: limits -------------------------------------------------------------------------------


async def three(world: World) -> int:
    """The topic u: three partitions, each with two batches of the same size, which is told."""
    await world.create("u", partitions=3)
    for index in range(3):
        await world.write(b"x" * 100, topic="u", index=index)
        await world.write(b"y" * 100, topic="u", index=index)
    return len(batch(b"x" * 100))


def sizes(reply: log.FetchReply, unit: int) -> dict[int, float]:
    return {p.partition_index: len(p.records) / unit for p in found(reply)}


ALL_THREE = (("u", 0, 0), ("u", 1, 0), ("u", 2, 0))


async def test_max_bytes_is_for_all_partitions_in_the_order_of_the_request(world: World) -> None:
    """LF-035: cut mid-way where it hits, nothing for those after."""
    unit = await three(world)

    forth = await world.ask(fetch(*ALL_THREE, max_bytes=3 * unit))
    back = await world.ask(fetch(*reversed(ALL_THREE), max_bytes=3 * unit))

    assert sizes(forth, unit) == {0: 2, 1: 1, 2: 0}
    assert sizes(back, unit) == {2: 2, 1: 1, 0: 0}


async def test_each_partition_has_its_own_limit_as_well(world: World) -> None:
    unit = await three(world)

    reply = await world.ask(fetch(*ALL_THREE, partition_max_bytes=unit))

    assert sizes(reply, unit) == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize(
    "limits", [{"max_bytes": 1}, {"max_bytes": 0}, {"partition_max_bytes": 1}, {"partition_max_bytes": 0}]
)
async def test_the_first_batch_comes_whole_whatever_the_limits(world: World, limits: dict[str, int]) -> None:
    """LF-034, LF-035, LF-086."""
    unit = await three(world)

    reply = await world.ask(fetch(*ALL_THREE, **limits))  # type: ignore[arg-type]

    assert sizes(reply, unit) == {0: 1, 1: 0, 2: 0}


async def test_the_exemption_goes_to_the_first_partition_that_has_something(world: World) -> None:
    unit = await three(world)

    reply = await world.ask(fetch(("u", 0, 2), ("u", 1, 0), ("u", 2, 0), max_bytes=1))

    assert sizes(reply, unit) == {0: 0, 1: 1, 2: 0}


async def test_after_the_first_a_batch_that_does_not_fit_is_left_out(world: World) -> None:
    unit = await three(world)

    reply = await world.ask(fetch(*ALL_THREE, max_bytes=2 * unit + 10))

    assert sizes(reply, unit) == {0: 2, 1: 0, 2: 0}


@pytest.mark.parametrize(
    ("limits", "codes", "batches"),
    [
        ({"max_bytes": -1}, [-1, 0, 0], {0: 0, 1: 1, 2: 0}),
        ({"partition_max_bytes": -1}, [-1, -1, -1], {0: 0, 1: 0, 2: 0}),
    ],
)
async def test_negative_limits_are_a_mistake_of_the_clients(
    world: World, limits: dict[str, int], codes: list[int], batches: dict[int, int]
) -> None:
    """LF-086, bad input 70, as Apache Kafka answers them: the request's is told to the first partition."""
    unit = await three(world)

    reply = await world.ask(fetch(*ALL_THREE, **limits))  # type: ignore[arg-type]

    assert [p.error_code for p in found(reply)] == codes
    assert sizes(reply, unit) == batches


# --- 3.2: waiting ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"max_wait_ms": 0}, {"max_wait_ms": -1}, {"min_bytes": 0}, {"min_bytes": -5}]
)
async def test_who_does_not_want_to_wait_does_not(world: World, options: dict[str, int]) -> None:
    """LF-031."""
    op = fetch(("t", 0, 0), **{"max_wait_ms": 500, **options})  # type: ignore[arg-type]

    assert not isinstance(world.answer(op), Later)


async def test_an_empty_partition_is_waited_for(world: World, autojump_clock: MockClock) -> None:
    """LF-030."""
    began = trio.current_time()

    partition = await one(world, fetch(("t", 0, 0), max_wait_ms=500))

    assert trio.current_time() - began == pytest.approx(0.5)
    assert partition.records == b""
    assert world.no_watcher_left()


async def test_what_is_written_meanwhile_ends_the_waiting(world: World, autojump_clock: MockClock) -> None:
    """LF-030."""
    began = trio.current_time()
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(2)
        await world.write(b"a")

    assert values(got[0].records) == [b"a"]
    assert trio.current_time() - began == pytest.approx(2)
    assert world.no_watcher_left()


async def test_too_little_goes_on_waiting(world: World, autojump_clock: MockClock) -> None:
    unit = len(batch(b"a"))
    began = trio.current_time()
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000, min_bytes=3 * unit)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for value in (b"a", b"b", b"c"):
            await trio.sleep(1)
            await world.write(value)

    assert values(got[0].records) == [b"a", b"b", b"c"]
    assert trio.current_time() - began == pytest.approx(3)


async def test_bytes_of_all_partitions_count_together(world: World, autojump_clock: MockClock) -> None:
    await world.create("u", partitions=2)
    unit = len(batch(b"a"))
    got = []

    async def read() -> None:
        got.extend(
            found(await world.ask(fetch(("u", 0, 0), ("u", 1, 0), max_wait_ms=30_000, min_bytes=2 * unit)))
        )

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        await world.write(b"a", topic="u", index=0)
        await trio.sleep(1)
        await world.write(b"b", topic="u", index=1)

    assert [values(p.records) for p in got] == [[b"a"], [b"b"]]
    assert trio.current_time() - began == pytest.approx(2)


async def test_the_end_of_a_segment_is_not_waited_at(world: World, autojump_clock: MockClock) -> None:
    """A reading ends with its segment: what is left of an older one is given, however little it is."""
    await world.write(b"a")
    world.partition().log.roll()
    await world.write(b"b")

    async def read(offset: int) -> list[bytes | None]:
        op = fetch(("t", 0, offset), max_wait_ms=500, min_bytes=10_000)
        return values((await one(world, op)).records)

    began = trio.current_time()
    assert await read(0) == [b"a"]
    assert trio.current_time() == began
    assert await read(1) == [b"b"]
    assert trio.current_time() - began == pytest.approx(0.5)


async def test_a_partitions_limit_caps_what_it_counts_for(world: World, autojump_clock: MockClock) -> None:
    """Accumulated bytes are each capped by PartitionMaxBytes."""
    began = trio.current_time()
    await world.write(b"x" * 1000)

    await world.ask(fetch(("t", 0, 0), max_wait_ms=700, min_bytes=500, partition_max_bytes=100))
    # The first batch came whole and was enough; from the second on there is only what the limit lets count.

    assert trio.current_time() == began


@pytest.mark.parametrize("what", ["unknown", "out of range", "fenced"])
async def test_errors_found_while_reading_are_told_at_once_and_others_are_not(
    world: World, what: str, autojump_clock: MockClock
) -> None:
    """LF-036."""
    await world.create("u")
    bad = {"unknown": ("nobody", 0, 0), "out of range": ("u", 0, 99), "fenced": ("u", 0, 0)}[what]
    op = fetch(("t", 0, 0), bad, max_wait_ms=500, min_bytes=1_000_000)
    if what == "fenced":
        op.topics[1].partitions[0].current_leader_epoch = 9  # type: ignore[misc]
    began = trio.current_time()

    idle, wrong = found(await world.ask(op))

    assert trio.current_time() - began == pytest.approx(0.5 if what == "unknown" else 0)
    assert (idle.error_code, wrong.error_code) == (0, {"unknown": 3, "out of range": 1, "fenced": 75}[what])


async def test_with_no_valid_partition_there_is_nothing_to_wait_for(world: World) -> None:
    for op in (fetch(("nobody", 0, 0), max_wait_ms=30_000), fetch(max_wait_ms=30_000)):
        assert not isinstance(world.answer(op), Later)


async def test_all_who_wait_are_woken(world: World, autojump_clock: MockClock) -> None:
    got = []

    async def read() -> None:
        got.append(values((await one(world, fetch(("t", 0, 0), max_wait_ms=30_000))).records))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(read)
        await wait_all_tasks_blocked()
        await world.write(b"a")

    assert got == [[b"a"]] * 10
    assert world.no_watcher_left()


async def test_a_topic_that_goes_ends_the_waiting(world: World, autojump_clock: MockClock) -> None:
    """D4."""
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000)))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await trio.sleep(1)
        await world.delete("t")

    assert trio.current_time() - began < 2
    assert_error(got[0], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_a_start_that_passes_the_reader_ends_its_waiting(
    world: World, autojump_clock: MockClock
) -> None:
    await world.write(b"a", b"b")
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000, min_bytes=10_000)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        await delete_to(world, 2)

    assert trio.current_time() == began
    assert_error(got[0], ErrorCode.OFFSET_OUT_OF_RANGE)


async def test_nobody_waits_for_longer_than_a_minute(world: World, autojump_clock: MockClock) -> None:
    """Bad input 69."""
    began = trio.current_time()

    await world.ask(fetch(("t", 0, 0), max_wait_ms=2**31 - 1))

    assert trio.current_time() - began == pytest.approx(60)


async def test_a_broker_that_closes_answers_those_who_wait(world: World, autojump_clock: MockClock) -> None:
    got = []

    async def read() -> None:
        got.append(await one(world, fetch(("t", 0, 0), max_wait_ms=30_000)))

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        world.broker.fetcher.close()

    assert got[0].error_code == 0
    assert trio.current_time() == began
    assert not isinstance(world.answer(fetch(("t", 0, 0), max_wait_ms=30_000)), Later), (
        "nor is it begun again"
    )


async def test_a_waiting_fetch_that_is_cancelled_at_any_step_leaves_nobody_behind(
    world: World, autojump_clock: MockClock
) -> None:
    """Reliability 6.1, rule 7: cancelled before its k-th step, for every k."""
    for steps in range(6):
        op = fetch(("t", 0, 0), max_wait_ms=1000, min_bytes=10**6)
        answer = world.answer(op)
        scope = trio.CancelScope()

        async def read(answer: Later[log.FetchReply] = answer, scope: trio.CancelScope = scope) -> None:
            with scope:
                await answer.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
                world.partition().wake()
            scope.cancel()

        assert world.no_watcher_left()


async def test_a_reply_that_was_never_waited_for_leaves_nobody_behind(world: World) -> None:
    world.answer(fetch(("t", 0, 0), max_wait_ms=1000))

    assert world.no_watcher_left()


async def delete_to(world: World, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    await world.ask(
        DeleteRecords(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000)
    )
