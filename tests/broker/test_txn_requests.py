"""Around the transaction coordinator: offsets sent along, markers of administrators, the gate of Produce."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from rafka.broker.coordinator import INBOX_SIZE
from rafka.errors import ErrorCode
from rafka.ops import group as group_ops
from rafka.ops import log, txn
from rafka.ops.base import Later
from rafka.types import DEFAULT_ORG

from .grouping import commit, stable
from .kit import World, batch, open_world, produce, told
from .producing import Producer, a_producer, committed_values, group_offset, marker_request, markers

NONE = ErrorCode.NONE


# --- offsets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"), [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE), (5, NONE)]
)
async def test_offsets_without_their_group_in_the_transaction(
    world: World, version: int, code: ErrorCode
) -> None:
    """TX-061: refused in the words that the client knows, until a client need not add its group any more."""
    producer = await a_producer(world)

    answer = await producer.send_offset(5, adds_group=version >= 5, abortable_known=version >= 4)

    assert answer is code
    assert await producer.state() == ("Ongoing" if version >= 5 else "Empty")
    assert await group_offset(world, stable=True) == (
        ErrorCode.UNSTABLE_OFFSET_COMMIT if version >= 5 else -1
    )


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_offsets_of_a_producer_that_was_replaced_are_refused(world: World, version: int) -> None:
    """U3, TX-034."""
    old = await a_producer(world)
    await Producer(world).init()

    answer = await old.send_offset(5, adds_group=version >= 5, abortable_known=version >= 4)

    assert answer is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await group_offset(world) == -1


async def test_offsets_that_wait_for_a_place_do_not_outlive_their_transaction(slow: World) -> None:
    """T2, T5: what was sent before the transaction was aborted is gone with it, whoever is in the way."""
    disk = slow.backend
    disk.at_once = True  # type: ignore[attr-defined]
    producer = await a_producer(slow)
    await producer.add_group()
    crowd = [slow.answer(group_ops.ListGroups()) for _ in range(INBOX_SIZE)]
    sent = slow.answer(producer.sending(77))
    assert isinstance(sent, Later)

    await producer.end(committed=False)
    assert (await sent.wait()).topics[0].partitions[0].error_code is NONE
    assert all(answer.ready() for answer in crowd)
    await producer.add_group()
    await producer.end()

    assert await group_offset(slow) == -1


async def test_offsets_of_strangers_are_refused(world: World) -> None:
    """TX-034, U2, U7."""
    producer = await a_producer(world, bumps=True)
    stranger = Producer(world, "x", producer.producer_id + 1, 0, bumps=True)
    nameless = Producer(world, "", producer.producer_id, 0, bumps=True)

    assert await stranger.send_offset(5) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert await nameless.send_offset(5) is ErrorCode.INVALID_REQUEST
    assert await producer.send_offset(5, topic="nowhere") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await producer.state() == "Empty", "what does not exist is part of nothing"


async def test_members_are_told_apart_by_generation(world: World) -> None:
    """TX-034."""
    member = await stable(world)
    producer = await a_producer(world, bumps=True)

    wrong = await producer.send_offset(5, generation_id=7, member_id=member)
    unknown = await producer.send_offset(5, generation_id=1, member_id="nobody")
    right = await producer.send_offset(5, generation_id=1, member_id=member)

    assert (wrong, unknown, right) == (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, NONE)


async def test_a_later_plain_commit_wins_over_what_was_sent_before_it(world: World) -> None:
    """TX-033."""
    producer = await a_producer(world, bumps=True)
    await producer.send_offset(5)
    await world.ask(commit(7))

    await producer.end(True)
    await producer.complete()

    assert await group_offset(world) == 7


async def test_offsets_that_come_just_as_their_producer_is_replaced_count_for_nobody(world: World) -> None:
    """The group is taken in, and in the same breath the transaction is aborted: the offsets are too late."""
    old = await a_producer(world, bumps=True)
    new = Producer(world, bumps=True)
    answers: dict[str, ErrorCode] = {}

    async def send() -> None:
        answers["offsets"] = await old.send_offset(5)

    async def replace() -> None:
        answers["init"] = await new.init()

    # Whichever task is first, its letter is first; both letters are decided in one round.
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(replace)
    await new.complete()
    assert await new.init() is NONE
    await new.write(b"a")
    await new.end(True)
    await new.complete()

    assert await group_offset(world, stable=True) == -1, "the old one's offsets were committed by the new one"


async def test_no_order_of_two_producers_lets_old_offsets_through(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The same, with the scheduler's own dice thrown again and again."""
    refused = 0
    for _ in range(40):
        async with open_world() as world:
            await world.create()
            old, new = await a_producer(world, bumps=True), Producer(world, bumps=True)

            async def send(old: Producer = old) -> None:
                nonlocal refused
                refused += await old.send_offset(5) is not NONE

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                nursery.start_soon(new.init)
            await new.complete()
            await new.init()
            await new.send_offset(9, group_id="other")
            await new.end(True)
            await new.complete()
            assert await group_offset(world, stable=True) == -1
    assert refused, "they never met"


# --- markers ------------------------------------------------------------------------------------


async def a_hanging_transaction(world: World) -> Producer:
    """In the partition and at no coordinator: as a broker that lost half of its disk has it."""
    producer = await a_producer(world)
    await producer.begin(0)
    await producer.write(b"a")
    coordinator = world.broker._handlers[txn.EndTxn].__self__  # type: ignore[attr-defined]
    coordinator._transactions._by_key.clear()
    return producer


async def test_an_administrator_ends_a_transaction_that_hangs(world: World) -> None:
    producer = await a_hanging_transaction(world)
    assert world.partition().last_stable_offset == 0

    reply = await world.ask(marker_request(producer, False, [("t", 0), ("t", 9), ("nowhere", 0)]))

    codes = [p.error_code for m in reply.markers for t in m.topics for p in t.partitions]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [NONE, unknown, unknown]
    assert world.partition().last_stable_offset == 2
    assert await committed_values(world) == []


async def test_markers_of_the_past_are_refused(world: World) -> None:
    """TX-041, TX-060."""
    producer = await a_producer(world)
    await producer.begin(0)
    await producer.write(b"a")

    async def code(**more: int) -> ErrorCode:
        reply = await world.ask(marker_request(producer, True, [("t", 0)], **more))
        told: ErrorCode = reply.markers[0].topics[0].partitions[0].error_code
        return told

    assert await code(transaction_version=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await code(coordinator_epoch=4) is NONE
    assert await code(coordinator_epoch=3) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert await markers(world) == [(0, True)]


async def test_a_marker_for_offsets_settles_what_is_pending(world: World) -> None:
    producer = await a_producer(world, bumps=True)
    await producer.send_offset(5)

    reply = await world.ask(marker_request(producer, True, [("__consumer_offsets", 3)]))

    assert reply.markers[0].topics[0].partitions[0].error_code is NONE
    assert await group_offset(world, stable=True) == 5


@pytest.mark.parametrize("index", [4, 77, -1], ids=["of another group", "beyond all", "negative"])
async def test_a_marker_settles_no_group_of_a_partition_that_it_does_not_reach(
    world: World, index: int
) -> None:
    """T8, T9: the offsets of group "g" are in partition 3, and those of "h" in 4."""
    producer = await a_producer(world, bumps=True)
    await producer.send_offset(5, "g")
    await producer.send_offset(6, "h")

    reply = await world.ask(marker_request(producer, True, [("__consumer_offsets", index)]))

    there = index == 4
    code = NONE if there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert marked(reply) == [(index, code)]
    assert await group_offset(world, "g", stable=True) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert await group_offset(world, "h", stable=True) == (6 if there else ErrorCode.UNSTABLE_OFFSET_COMMIT)


@pytest.mark.parametrize(
    ("later", "version", "code"),
    [
        (-1, 0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (0, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (-1, 2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (0, 0, NONE),
        (0, 1, NONE),
        (1, 0, NONE),
        (1, 2, NONE),
    ],
)
async def test_a_marker_of_the_past_settles_no_offsets(
    world: World, later: int, version: int, code: ErrorCode
) -> None:
    """TX-041, TX-060: as it is with records, and as Kafka 4.3.1 answers."""
    producer = await a_producer(world)
    await producer.init()
    await producer.add_group()
    await producer.send_offset(5)
    epoch = producer.epoch + later

    asked = marker_request(
        producer, True, [("__consumer_offsets", 3)], producer_epoch=epoch, transaction_version=version
    )

    assert marked(await world.ask(asked)) == [(3, code)]
    unsettled = ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert await group_offset(world, stable=True) == (5 if code is NONE else unsettled)


async def test_markers_for_offsets_are_answered_each_in_its_place(world: World) -> None:
    producer = await a_producer(world)
    await producer.init()
    await producer.begin(0)
    await producer.write(b"a")
    await producer.add_group()
    await producer.send_offset(5)
    old = marker_request(producer, True, [("__consumer_offsets", 3)], producer_epoch=producer.epoch - 1)
    now = marker_request(
        producer, False, [("t", 0), ("__consumer_offsets", 99), ("__consumer_offsets", 3), ("t", 9)]
    )

    reply = await world.ask(txn.WriteTxnMarkers(markers=[*old.markers, *now.markers]))

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    [marker] = reply.markers
    found = {t.name: [(p.partition_index, p.error_code) for p in t.partitions] for t in marker.topics}
    assert found == {
        "__consumer_offsets": [(3, ErrorCode.INVALID_PRODUCER_EPOCH), (99, unknown), (3, NONE)],
        "t": [(0, NONE), (9, unknown)],
    }
    assert await group_offset(world, stable=True) == -1, "they were dropped"


async def test_markers_for_offsets_find_no_groups_where_the_broker_closes(world: World) -> None:
    """Section 6: whoever writes markers looks for a leader, and knows no coordinators of groups."""
    producer = await a_producer(world, bumps=True)
    await producer.send_offset(5)
    world.broker.close()
    await trio.testing.wait_all_tasks_blocked()

    reply = await world.ask(marker_request(producer, True, [("__consumer_offsets", 3)]))

    assert marked(reply) == [(3, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def marked(reply: txn.WriteTxnMarkersReply) -> list[tuple[int, ErrorCode]]:
    return [(p.partition_index, p.error_code) for m in reply.markers for t in m.topics for p in t.partitions]


async def test_no_markers_are_no_mistake(world: World) -> None:
    assert (await world.ask(txn.WriteTxnMarkers(markers=[]))).markers == ()


# --- the gate ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bumps", "abortable", "code"),
    [
        (False, False, ErrorCode.INVALID_TXN_STATE),
        (False, True, ErrorCode.TRANSACTION_ABORTABLE),
        (True, True, NONE),
    ],
)
async def test_writing_to_a_partition_that_was_not_added(
    world: World, bumps: bool, abortable: bool, code: ErrorCode
) -> None:
    """TX-014."""
    producer = await a_producer(world)
    op = producer.batch(b"a")
    op.adds_partitions, op.abortable_told = bumps, abortable  # type: ignore[misc]

    [reply] = told(await world.ask(op))

    assert reply.error_code is code
    assert await producer.state() == ("Ongoing" if code is NONE else "Empty")


async def test_a_transactional_batch_needs_its_id(world: World) -> None:
    """TX-015."""
    producer = await a_producer(world)
    op = producer.batch(b"a")
    op.transactional_id = None  # type: ignore[misc]

    [reply] = told(await world.ask(op))

    assert reply.error_code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


async def test_a_plain_batch_of_a_producer_in_a_transaction_is_refused(world: World) -> None:
    """TX-016, TX-062."""
    producer = await a_producer(world)
    await producer.begin(0)
    await producer.write(b"a")
    who = {"producer_id": producer.producer_id, "producer_epoch": 0, "base_sequence": 1}

    [during] = told(await world.ask(produce(batch(b"b", **who))))
    await producer.end(True)
    await producer.complete()
    [after] = told(await world.ask(produce(batch(b"b", **who))))

    assert (during.error_code, after.error_code) == (ErrorCode.INVALID_TXN_STATE, NONE)


async def test_the_sequence_goes_on_or_begins_again_as_the_transaction_ended(world: World) -> None:
    """TX-054."""
    same = await a_producer(world, "same")
    for value in (b"a", b"b"):
        await same.begin(0)
        assert await same.write(value) is NONE
        await same.end(True)
        await same.complete()
    anew = await a_producer(world, "anew", bumps=True)
    await anew.write(b"c")
    late = Producer(world, "anew", anew.producer_id, anew.epoch, bumps=True)
    await anew.end(True)

    anew.sequences["t", 0] = 1
    assert await anew.write(b"d") is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    anew.sequences.clear()
    assert await anew.write(b"d") is NONE
    assert await late.write(b"e") is ErrorCode.INVALID_PRODUCER_EPOCH


# --- ids -------------------------------------------------------------------------------------------


async def test_producers_without_transactions_ask_nobody(world: World) -> None:
    """TX-001, TX-003."""
    first, second = [
        await world.ask(log.InitProducerId(transaction_timeout_ms=-5, producer_id=p, producer_epoch=e))
        for p, e in ((-1, -1), (77, 3))
    ]

    assert first.producer_id != second.producer_id
    assert (first.producer_epoch, second.producer_epoch) == (0, 0)
    listed = await world.ask(txn.ListTransactions(state_filters=[], producer_id_filters=[]))
    assert list(listed.transaction_states) == []


async def test_organisations_do_not_see_each_other_s_transactions(world: World) -> None:
    producer = await a_producer(world)
    other = type(DEFAULT_ORG)("other")

    op = txn.DescribeTransactions(transactional_ids=[producer.name])
    [mine] = (await world.ask(op)).transaction_states
    [theirs] = (await world.ask(op, other)).transaction_states

    assert mine.error_code is NONE
    assert theirs.error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
