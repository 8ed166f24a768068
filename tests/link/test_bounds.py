"""What a gateway has under way is bounded, by itself and by its broker; what is parked blocks nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.config import MEMORY, Config
from rafka.errors import ErrorCode
from rafka.link import Link
from rafka.link.frames import Framed, Kind
from rafka.link.hello import Limits, greet
from rafka.ops import group, log, offsets, topics
from rafka.ops.base import Envelope, Op
from rafka.ops.packing import envelope_fields, packing_of
from rafka.server import open_broker

from .kit import (
    METADATA,
    NOTHING_THERE,
    Gate,
    World,
    always,
    ask,
    asks,
    heartbeat,
    join,
    open_world,
    produce,
    written,
)


def slow_disk(world: World) -> Gate:
    disk = Gate()
    world.broker.answers[log.Produce] = lambda envelope, op: disk.later(written(op), overlaps=True)
    return disk


# --- how large ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "code"),
    [
        (join(metadata=bytes(2000)), ErrorCode.INVALID_REQUEST),
        (
            offsets.OffsetCommit(
                group_id="g" * 2000,
                topics=[
                    offsets.CommitTopic(
                        partitions=[offsets.CommitPartition(partition_index=0, committed_offset=0)]
                    )
                ],
            ),
            ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
        ),
    ],
    ids=["JoinGroup", "OffsetCommit"],
)
async def test_an_op_about_groups_that_is_too_large_is_refused(op: Op[Any], code: ErrorCode) -> None:
    async with open_world(Limits(group_op_bytes=1024)) as world:
        link = await world.gateway()

        reply = await ask(link, op)

    assert code in [getattr(reply, "error_code", None), *codes_of_partitions(reply)]
    assert world.asked() == []


def codes_of_partitions(reply: Any) -> list[ErrorCode]:
    return [p.error_code for topic in getattr(reply, "topics", ()) for p in topic.partitions]


async def test_assignments_that_are_too_large_are_left_out_and_the_coordinator_is_told() -> None:
    """The other members wait for them, and would for the whole of a rebalance timeout."""
    refused = group.SyncGroupReply(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    async with open_world(Limits(group_op_bytes=1024)) as world:
        link = await world.gateway()
        world.broker.answers[group.SyncGroup] = always(refused)

        replies = [await ask(link, sync(size)) for size in (100, 2000)]

    assert replies == [refused, refused]
    assert world.broker.asked == [sync(100), sync(2000).without_assignments()]


def sync(size: int, generation: int = 1, member: str = "m") -> group.SyncGroup:
    share = group.MemberAssignment(member_id=member, assignment=bytes(size))
    return group.SyncGroup(group_id="g", generation_id=generation, member_id=member, assignments=[share])


async def test_a_sync_that_is_too_large_without_its_assignments_is_refused() -> None:
    async with open_world(Limits(group_op_bytes=1024)) as world:
        link = await world.gateway()

        reply = await ask(link, sync(2000, member="m" * 2000))

    assert reply.error_code == ErrorCode.INVALID_REQUEST
    assert world.asked() == []


# --- how large, in one process and in two -----------------------------------------------------------------

MOST = 1024 * 1024  # of metadata, of assignments, and of an op about groups


@asynccontextmanager
async def real_broker() -> AsyncIterator[tuple[Link, Link]]:
    """The broker itself, and a gateway of it."""
    plain = Config()
    config = attrs.evolve(plain, storage=attrs.evolve(plain.storage, place=MEMORY))
    async with open_broker(config, listen=False) as running, open_world(served=running.link) as world:
        yield running.link, await world.gateway()


@pytest.fixture(params=["one process", "two"])
async def broker(request: pytest.FixtureRequest) -> AsyncIterator[Link]:
    async with real_broker() as (link, gateway):
        yield link if request.param == "one process" else gateway


async def test_assignments_that_are_too_large_fail_the_sync_of_everybody_at_once(broker: Link) -> None:
    ann, bob = Envelope(client_id="ann"), Envelope(client_id="bob")
    leader, follower, generation = await two_members(broker, ann, bob)
    told = []

    async def follow() -> None:
        told.append(await ask(broker, sync(0, generation, follower), bob))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await wait_all_tasks_blocked()
            told.append(await ask(broker, sync(MOST + 1, generation, leader), ann))
    [described] = (await ask(broker, group.DescribeGroups(groups=["g"]))).groups

    assert [reply.error_code for reply in told] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    assert described.group_state == "PreparingRebalance"


async def two_members(broker: Link, ann: Envelope, bob: Envelope) -> tuple[str, str, int]:
    """Who leads, who follows, and the generation in which both are to sync."""
    first = await ask(broker, old_join(""), ann)
    replies = {}

    async def come(envelope: Envelope, member: str) -> None:
        replies[envelope.client_id] = await ask(broker, old_join(member), envelope)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come, bob, "")
        await wait_all_tasks_blocked()
        nursery.start_soon(come, ann, first.member_id)
    assert replies["ann"].leader == first.member_id
    return first.member_id, replies["bob"].member_id, replies["ann"].generation_id


def old_join(member: str) -> group.JoinGroup:
    """As of a client that expects no id first."""
    return group.JoinGroup(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[group.JoinProtocol(name="range", metadata=b"")],
        id_required=False,
    )


async def test_metadata_that_is_too_large_is_refused_alike(broker: Link) -> None:
    reply = await ask(broker, join(metadata=bytes(MOST + 1)))

    assert reply == group.JoinGroupReply(error_code=ErrorCode.INVALID_REQUEST, member_id="m")


async def test_what_only_just_fits_in_one_process_is_refused_in_two_as_what_does_not_fit() -> None:
    """The names around it count on the link: the same code says so."""
    async with real_broker() as (link, gateway):
        op = join("", metadata=bytes(MOST - len("range")))

        replies = [await ask(each, op) for each in (link, gateway)]

    assert [reply.error_code for reply in replies] == [
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.INVALID_REQUEST,
    ]


async def test_other_ops_may_be_as_large_as_a_request() -> None:
    async with open_world(Limits(group_op_bytes=1024, op_bytes=100_000)) as world:
        link = await world.gateway()

        taken = await ask(link, produce(bytes(90_000)))
        refused = await ask(link, produce(bytes(101_000)))

    assert taken.responses[0].partition_responses[0].error_code == 0
    assert refused.responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert world.asked() == ["Produce"]


async def test_records_and_replies_of_many_megabytes_pass() -> None:
    async with open_world() as world:
        link, records = await world.gateway(), bytes(range(256)) * 40_000
        world.broker.answers[log.Fetch] = lambda envelope, op: log.FetchReply(
            responses=[
                log.TopicFetchReply(
                    topic="t",
                    topic_id=op.topics[0].topic_id,
                    partitions=[log.PartitionFetchReply(partition_index=0, records=records)],
                )
            ]
        )

        await ask(link, produce(records))
        partition = log.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
        asked = log.Fetch(
            max_wait_ms=0, min_bytes=0, topics=[log.FetchTopic(topic="t", partitions=[partition])]
        )
        found = await ask(link, asked)

    [came] = [op for op in world.broker.asked if isinstance(op, log.Produce)]
    assert came.topic_data[0].partition_data[0].records == records
    assert found.responses[0].partitions[0].records == records


# --- how many -------------------------------------------------------------------------------------------


async def test_an_op_too_many_waits_for_its_turn_and_lets_its_connection_wait() -> None:
    async with open_world(Limits(ops=2)) as world:
        link, disk, envelope = await world.gateway(), slow_disk(world), Envelope()
        under_way = [asks(link, produce(), envelope) for _ in range(2)]
        too_many = asks(link, produce(b"third"), envelope)
        await wait_all_tasks_blocked()

        assert [answer.overlaps for answer in (*under_way, too_many)] == [True, True, False]
        assert disk.waiting == 2
        disk.opened.set()
        for answer in (*under_way, too_many):
            await answer.wait()

    assert len(world.broker.asked) == 3


async def test_turns_are_taken_in_the_order_of_asking() -> None:
    async with open_world(Limits(ops=1)) as world:
        link, disk = await world.gateway(), slow_disk(world)
        first = asks(link, produce(b"0"), Envelope())
        order: list[int] = []

        async def connection(number: int) -> None:
            await asks(link, produce(bytes([number])), Envelope()).wait()
            order.append(number)

        for number in (1, 2, 3):
            world.nursery.start_soon(connection, number)
            await wait_all_tasks_blocked()
        disk.opened.set()
        await first.wait()
        await wait_all_tasks_blocked()

    assert order == [1, 2, 3]


async def test_bytes_are_bounded_as_well_and_a_giant_goes_alone() -> None:
    async with open_world(Limits(bytes=1000)) as world:
        link, disk = await world.gateway(), slow_disk(world)

        overlaps = [asks(link, produce(bytes(400)), Envelope()).overlaps for _ in range(3)]
        disk.opened.set()
        await wait_all_tasks_blocked()
        giant, behind = (asks(link, produce(bytes(size)), Envelope()) for size in (5000, 1))

        assert overlaps == [True, True, False]
        assert (giant.overlaps, behind.overlaps) == (True, False)
        await giant.wait()
        await behind.wait()


async def test_members_that_are_parked_block_nobody() -> None:
    """Nor do they count: what they wait for may be the very op that would find no room."""
    async with open_world(Limits(ops=2)) as world:
        link, gate = await world.gateway(), Gate()
        world.broker.answers[group.JoinGroup] = lambda e, op: gate.later(
            group.JoinGroupReply(), overlaps=False
        )
        connections = [Envelope(client_id=str(n)) for n in range(20)]
        joins = [asks(link, join(each.client_id), each) for each in connections]
        await wait_all_tasks_blocked()
        assert gate.waiting == 20

        assert await ask(link, heartbeat()) == group.HeartbeatReply()
        gate.opened.set()
        for answer in joins:
            assert await answer.wait() == group.JoinGroupReply()


async def test_whoever_goes_while_waiting_for_a_turn_leaves_it_to_the_next(autojump_clock: MockClock) -> None:
    async with open_world(Limits(ops=1)) as world:
        link, disk = await world.gateway(), slow_disk(world)
        first = asks(link, produce(b"0"), Envelope())
        gone = trio.CancelScope()

        async def connection() -> None:
            with gone:
                await ask(link, produce(b"gone"))

        world.nursery.start_soon(connection)
        await wait_all_tasks_blocked()
        last = asks(link, produce(b"last"), Envelope())

        gone.cancel()
        disk.opened.set()
        await first.wait()
        await last.wait()

    assert len(world.broker.asked) == 2


# --- the broker's own bounds ------------------------------------------------------------------------------


async def test_a_broker_does_not_read_on_while_too_much_is_under_way() -> None:
    """Whatever the gateway thinks of the bounds."""
    async with open_world(Limits(ops=3)) as world:
        disk = slow_disk(world)
        framed = await world.bare_gateway()
        await greet(framed, "greedy")
        framed.put(Kind.OPEN, 1, envelope_fields(Envelope()))
        fields = packing_of(produce().code).op_fields(produce())
        for number in range(1, 11):
            framed.put(Kind.ASK, number, 1, produce().code, fields)
            await framed.flush()  # one read of the broker's for each
            await wait_all_tasks_blocked()

        assert disk.waiting == 3
        disk.opened.set()
        replied: list[int] = []
        while len(replied) < 10:
            frames = await framed.receive()
            assert frames is not None
            replied += [frame[1] for _, frame in frames]

    assert sorted(replied) == list(range(1, 11))


async def test_a_broker_does_not_read_on_while_its_answers_lie_unsent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rafka.link.serving.UNSENT_MOST", 1000)
    async with open_world() as world:
        many = topics.MetadataReply(topics=[topics.TopicMetadata(name="t" * 5000)])
        world.broker.answers[topics.Metadata] = lambda envelope, op: many
        ours, theirs = trio.testing.lockstep_stream_pair()
        world.nursery.start_soon(world.server.serve_stream, theirs)
        framed = Framed(ours, 1 << 20)
        await greet(framed, "slow")
        framed.put(Kind.OPEN, 1, envelope_fields(Envelope()))
        fields = packing_of(METADATA.code).op_fields(METADATA)
        framed.put(Kind.ASK, 1, 1, METADATA.code, fields)
        await framed.flush()
        framed.put(Kind.ASK, 2, 1, METADATA.code, fields)
        world.nursery.start_soon(framed.flush)
        await wait_all_tasks_blocked()

        assert len(world.broker.asked) == 1
        replied: list[int] = []
        while len(replied) < 2:
            frames = await framed.receive()
            assert frames is not None
            replied += [frame[1] for _, frame in frames]

    assert replied == [1, 2]


async def test_a_frame_above_all_bounds_ends_its_link_and_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async with open_world(Limits(op_bytes=10_000, group_op_bytes=1000)) as world:
        link = await world.gateway()
        framed = await world.bare_gateway()
        await greet(framed, "odd one")

        framed.put(Kind.SETTINGS, bytes(200_000))
        await framed.flush()
        assert await framed.receive() is None

        assert await ask(link, METADATA) == NOTHING_THERE
    assert "odd one" in caplog.text
