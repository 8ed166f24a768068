"""Fetch: the rules of each partition, the limits of a request, and waiting."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.base import Later
from rafka.types import NO_TOPIC_ID, OrgId, TopicId

from .fetching import asking, assert_error, delete_to, one
from .kit import World, batch, fetch, found, produce, values

NOBODYS = TopicId(b"nobody's id.....")


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


@pytest.mark.parametrize(("replica_id", "code"), [(-1, 0), (-2, 0), (-3, 0), (0, 6), (9999, 6)])
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


# --- what was there when the reader first asked -----------------------------------------------


async def test_a_session_by_id_misses_a_deleted_topic_by_its_name(world: World) -> None:
    topic_id = await world.create("u")
    nobody = await world.ask(fetch(("", 0, 0), topic_ids=[NOBODYS], session_epoch=0))
    known = await world.ask(fetch(("", 0, 0), topic_ids=[topic_id], session_epoch=0))
    await world.delete("u")

    def again(reply: log.FetchReply, epoch: int = 1) -> log.Fetch:
        return log.Fetch(
            max_wait_ms=0,
            min_bytes=0,
            topics=[],
            by_id=True,
            session_id=reply.session_id,
            session_epoch=epoch,
        )

    assert (await one(world, again(nobody))).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (await one(world, again(known))).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await world.create("u")
    partition = await one(world, again(known, 2))
    assert partition.error_code == ErrorCode.INCONSISTENT_TOPIC_ID, "it is not the one that the session reads"


async def test_what_was_read_is_told_before_what_nobody_knows(world: World) -> None:
    """Kafka's order: then ids, then names."""
    topic_id = await world.create("u")

    reply = await world.ask(
        fetch(("", 9, 0), ("", 0, 0), ("", 0, 0), topic_ids=[topic_id, NOBODYS, topic_id])
    )

    assert [p.error_code for p in found(reply)] == [0, 100, 3]


async def test_a_whole_request_that_is_refused_names_topics_only_where_they_have_names(world: World) -> None:
    by_name, by_id = fetch(("t", 0, 0)), fetch(("", 0, 0), topic_ids=[NOBODYS])

    assert len(by_name.refusal(ErrorCode.UNKNOWN_SERVER_ERROR).responses) == 1
    assert by_id.refusal(ErrorCode.UNKNOWN_SERVER_ERROR).responses == []
