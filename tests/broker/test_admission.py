"""Which transactional batches are written: what the gate is asked, and what its answers come to."""

from __future__ import annotations

import pytest
import trio

from rafka.errors import ErrorCode
from rafka.ops.base import Later

from .kit import World, batch, produce, produce_many, told, values
from .transacting import PID, Doorkeeper, doorkeeper_of, end, put, read, transactional


@pytest.fixture
def door(world: World) -> Doorkeeper:
    return doorkeeper_of(world)


async def test_only_the_first_batch_of_a_transaction_is_asked_about(world: World, door: Doorkeeper) -> None:
    await world.create("u", partitions=2)
    first = [("t", 0, transactional(b"a")), ("u", 1, transactional(b"a")), ("gone", 0, transactional(b"a"))]

    codes = [r.error_code for r in told(await world.ask(produce_many(*first, transactional_id="tx")))]

    assert codes == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    [entrance] = door.asked
    assert (entrance.transactional_id, entrance.producer_id, entrance.producer_epoch) == ("tx", PID, 0)
    assert (list(entrance.partitions), entrance.adds) == ([("t", 0), ("u", 1)], False)
    await put(world, b"b", sequence=1)
    assert len(door.asked) == 1
    end(world)
    await put(world, b"c", sequence=2)
    assert len(door.asked) == 2
    await world.ask(produce(transactional(b"d", sequence=3, epoch=1), transactional_id="tx"))
    assert len(door.asked) == 3, "another epoch than that of the open transaction"


async def test_a_refused_partition_is_not_written_to_and_others_are(world: World, door: Doorkeeper) -> None:
    await world.create("u", partitions=2)
    door.refusals = {("u", 0): ErrorCode.TRANSACTION_ABORTABLE}
    plain = batch(b"plain", producer_id=9, producer_epoch=0, base_sequence=0)
    wanted = [("u", 0, transactional(b"a")), ("u", 1, transactional(b"a")), ("t", 0, plain)]

    replies = told(await world.ask(produce_many(*wanted, transactional_id="tx")))

    assert [r.error_code for r in replies] == [ErrorCode.TRANSACTION_ABORTABLE, 0, 0]
    assert replies[0].log_start_offset == -1
    assert world.partition("u", 0).log.end_offset == 0


@pytest.mark.parametrize(
    ("told_by_gate", "told_to_client", "words"),
    [
        (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, None),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING, None),
        (ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE, None),
        (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            "Underlying error: CONCURRENT_TRANSACTIONS",
        ),
        (
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            "Underlying error: COORDINATOR_LOAD_IN_PROGRESS",
        ),
    ],
)
async def test_refusals_are_told_in_codes_that_producers_know(
    world: World, door: Doorkeeper, told_by_gate: ErrorCode, told_to_client: ErrorCode, words: str | None
) -> None:
    """7.1, TX-048."""
    door.refusals = {("t", 0): told_by_gate}

    [reply] = told(await world.ask(produce(transactional(b"a"), transactional_id="tx")))

    assert (reply.error_code, reply.error_message, reply.log_start_offset) == (told_to_client, words, -1)
    assert world.partition().log.end_offset == 0


async def test_old_clients_are_told_that_the_state_is_wrong(world: World, door: Doorkeeper) -> None:
    """TX-014."""
    door.refusals = {("t", 0): ErrorCode.TRANSACTION_ABORTABLE}
    op = produce(transactional(b"a"), transactional_id="tx", abortable_told=False)

    [reply] = told(await world.ask(op))

    assert reply.error_code == ErrorCode.INVALID_TXN_STATE
    assert reply.error_message == "Partition was not added to the transaction"


async def test_nothing_is_written_until_the_gate_has_answered(world: World, door: Doorkeeper) -> None:
    """And by then the bytes that the request came in belong to another."""
    door.opened = trio.Event()
    received = bytearray(transactional(b"a"))
    op = produce(memoryview(received), transactional_id="tx", adds_partitions=True)

    answer = world.answer(op)
    received[:] = bytes(len(received))

    assert isinstance(answer, Later)
    assert not answer.overlaps, "what comes next may be the next of its sequence"
    assert door.asked[0].adds
    assert world.partition().log.end_offset == 0
    door.opened.set()
    [reply] = told(await answer.wait())
    assert (reply.error_code, reply.base_offset) == (0, 0)
    assert values((await read(world, isolation_level=0)).records) == [b"a"]


async def test_who_was_let_in_to_a_transaction_that_ended_meanwhile_stays_outside(
    world: World, door: Doorkeeper
) -> None:
    """Else it would open one that nobody ends."""
    door.opened = trio.Event()
    answer = world.answer(produce(transactional(b"a"), transactional_id="tx"))
    end(world, epoch=0)
    door.opened.set()

    [reply] = told(await answer.wait())

    assert reply.error_code == ErrorCode.INVALID_TXN_STATE
    assert not world.partition().has_open(PID)
    assert world.partition().log.end_offset == 1


async def test_transactional_batches_of_two_producers_are_refused(world: World, door: Doorkeeper) -> None:
    """Q10, TX-059: a plain one beside them is not."""
    await world.create("u", partitions=2)
    two = [("u", 0, transactional(b"a")), ("u", 1, transactional(b"a", pid=8))]

    replies = told(await world.ask(produce_many(*two, ("t", 0, batch(b"p")), transactional_id="tx")))

    assert {r.error_code for r in replies} == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert {r.error_message for r in replies} == {"Transactional records contained more than one producer ID"}
    assert door.asked == []


async def test_a_batch_without_a_producer_is_of_no_transaction(world: World, door: Doorkeeper) -> None:
    """As Kafka does: whatever its bit says."""
    [reply] = told(await world.ask(produce(batch(b"a", transactional=True), transactional_id="tx")))

    assert reply.error_code == 0
    assert door.asked == []
    assert (await read(world)).last_stable_offset == 1


async def test_a_plain_batch_in_an_open_transaction_is_told_where_the_log_begins(
    world: World, door: Doorkeeper
) -> None:
    """Q8, TX-016."""
    await put(world, b"a")
    plain = batch(b"b", producer_id=PID, producer_epoch=0, base_sequence=1)

    [reply] = told(await world.ask(produce(plain)))

    assert (reply.error_code, reply.log_start_offset) == (ErrorCode.INVALID_TXN_STATE, 0)


async def test_a_damaged_first_attempt_keeps_later_ones_out(world: World, door: Doorkeeper) -> None:
    """Q7, TX-053."""
    damaged = bytearray(transactional(b"a"))
    damaged[-1] ^= 1
    replies = [
        told(await world.ask(produce(records, transactional_id="tx")))[0].error_code
        for records in (bytes(damaged), transactional(b"b", sequence=1), transactional(b"a"))
    ]

    assert replies == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, 0]


async def test_where_nobody_keeps_transactions_every_producer_is_a_stranger(world: World) -> None:
    """And nothing is remembered of it."""
    wanted = [("t", 0, transactional(b"a")), ("t", 5, batch(b"b"))]

    replies = told(await world.ask(produce_many(*wanted, transactional_id="tx")))

    assert [r.error_code for r in replies] == [49, 3]
    assert world.partition().producers.verifying == {}
