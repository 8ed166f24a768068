"""What nobody should send to a coordinator, sent: the right code, or the end of the connection; never more.

A whole broker over memory, asked in bytes. Each test ends by asking something sensible on
another connection: whatever came, the others are served.
"""

from __future__ import annotations

import tracemalloc
from typing import Any, Final

import pytest
import trio
import trio.testing

from rafka.errors import ErrorCode
from rafka.wire.apis.delete_groups import DELETE_GROUPS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.init_producer_id import INIT_PRODUCER_ID
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.list_groups import LIST_GROUPS
from rafka.wire.apis.list_transactions import LIST_TRANSACTIONS
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_fetch import OFFSET_FETCH

from .group_asking import (
    TOPIC,
    World,
    beat,
    commit,
    hangs_up_on,
    join,
    joining,
    offset,
    protocols,
    serving,
    sync,
)
from .simulation.wire_client import WireClient

MiB: Final = 1 << 20


# --- group ids ---------------------------------------------------------------------------


@pytest.mark.parametrize("group_id", ["../../etc", "a\0b", "‮evil", "组别", " ", "x" * 249])
async def test_any_text_is_a_group_id(group_id: str) -> None:
    async with serving() as world:
        client = world.client()
        joined = await join(client, group_id=group_id)
        listed = await client.ask(LIST_GROUPS, 4, LIST_GROUPS.Request())

    assert joined.error_code == 0
    assert [group.group_id for group in listed.groups] == [group_id]


@pytest.mark.parametrize("length", [250, 32_000])
async def test_a_group_id_beyond_all_bounds_makes_no_group(length: int) -> None:
    group_id = "x" * length
    async with serving() as world:
        client = world.client()
        refused = await join(client, group_id=group_id)
        committed = await commit(client, [offset(1)], group_id=group_id)
        fetched = await client.ask(OFFSET_FETCH, 7, OFFSET_FETCH.Request(group_id=group_id, topics=None))
        listed = await client.ask(LIST_GROUPS, 4, LIST_GROUPS.Request())

    assert refused.error_code == ErrorCode.INVALID_GROUP_ID
    assert committed.topics[0].partitions[0].error_code == ErrorCode.INVALID_GROUP_ID
    assert (fetched.error_code, fetched.topics) == (0, [])
    assert listed.groups == []


async def test_the_empty_group_id_has_no_members() -> None:
    async with serving() as world:
        client = world.client()
        joined = await join(client, group_id="")
        synced = await sync(client, joined, group_id="")
        left = await client.ask(LEAVE_GROUP, 3, LEAVE_GROUP.Request(group_id=""))
        committed = await commit(client, [offset(7)], group_id="")

        assert joined.error_code == ErrorCode.INVALID_GROUP_ID
        assert synced.error_code == ErrorCode.INVALID_GROUP_ID
        assert await beat(client, group_id="") == ErrorCode.INVALID_GROUP_ID
        assert left.error_code == ErrorCode.INVALID_GROUP_ID
        assert committed.topics[0].partitions[0].error_code == 0


class NotUtf8(str):
    """Bytes that a client sends where text belongs."""

    __slots__ = ()

    def encode(self, *_: Any) -> bytes:
        return b"\xff" * len(self)


@pytest.mark.parametrize("version", [3, 9], ids=["classic", "flexible"])
async def test_a_kind_of_group_that_no_answer_could_name_ends_the_connection(version: int) -> None:
    """Read as U+FFFD it is three times as long: the list of groups could not be told to anybody."""
    kind = NotUtf8("?" * 11_000)
    async with serving() as world:
        hung_up = await hangs_up_on(world.client(), JOIN_GROUP, version, joining(protocol_type=kind))
        listed = await world.client().ask(LIST_GROUPS, 4, LIST_GROUPS.Request())

    assert hung_up
    assert (listed.error_code, listed.groups) == (0, [])


async def test_a_transactional_id_that_no_answer_could_name_ends_the_connection() -> None:
    name = NotUtf8("?" * 11_000)
    asked = INIT_PRODUCER_ID.Request(transactional_id=name, transaction_timeout_ms=60_000)
    async with serving() as world:
        hung_up = await hangs_up_on(world.client(), INIT_PRODUCER_ID, 4, asked)
        listed = await world.client().ask(LIST_TRANSACTIONS, 1, LIST_TRANSACTIONS.Request())

    assert hung_up
    assert (listed.error_code, listed.transaction_states) == (0, [])


# --- what members bring ------------------------------------------------------------------


async def test_a_member_without_protocols_is_refused() -> None:
    async with serving() as world:
        refused = await join(world.client(), protocols=[])

    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_a_member_may_offer_some_protocols_and_not_any_number() -> None:
    async with serving() as world:
        some = await join(world.client(), protocols=protocols(*(f"p{n}" for n in range(64))))
        many = await join(
            world.client(), group_id="other", protocols=protocols(*(f"p{n}" for n in range(65)))
        )

    assert some.error_code == 0
    assert many.error_code == ErrorCode.INVALID_REQUEST


async def test_a_million_protocols_end_the_connection_and_cost_little() -> None:
    request = joining(protocols=protocols("p") * 1_000_000)
    async with serving() as world:
        client = world.client()
        tracemalloc.start()
        try:
            assert await hangs_up_on(client, JOIN_GROUP, 3, request)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak < 12 * 8 * MiB  # the frame has 8 MiB, and lies here in some copies on both sides


@pytest.mark.parametrize("size", [MiB, 10 * MiB])
async def test_metadata_beyond_the_bound_is_refused(size: int) -> None:
    async with serving() as world:
        refused = await join(world.client(), protocols=protocols("range", metadata=bytes(size)))

    assert refused.error_code == ErrorCode.INVALID_REQUEST


async def test_a_hundred_kilobytes_of_metadata_reach_the_leader_whole() -> None:
    metadata = bytes(range(256)) * 400
    async with serving() as world:
        joined = await join(world.client(), protocols=protocols("range", metadata=metadata))

    assert bytes(joined.members[0].metadata) == metadata


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, 0, -1, 1_000_000_000, -(1 << 31)])
async def test_a_session_timeout_out_of_range_is_refused(session_ms: int) -> None:
    async with serving() as world:
        refused = await join(world.client(), session_timeout_ms=session_ms)

    assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
async def test_a_session_timeout_at_the_bounds_is_granted(session_ms: int) -> None:
    async with serving() as world:
        joined = await join(world.client(), session_timeout_ms=session_ms)

    assert joined.error_code == 0


@pytest.mark.parametrize("rebalance_ms", [0, -1, -(1 << 31), (1 << 31) - 1])
async def test_any_rebalance_timeout_is_taken(rebalance_ms: int) -> None:
    async with serving() as world:
        joined = await join(world.client(), rebalance_timeout_ms=rebalance_ms)

    assert joined.error_code == 0


async def test_two_kinds_of_members_do_not_share_a_group() -> None:
    async with serving() as world:
        first = await join(world.client())
        other_kind = await join(world.client(), protocol_type="connect")
        other_way = await join(world.client(), protocols=protocols("sticky"))

    assert first.error_code == 0
    assert other_kind.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert other_way.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# --- how many they are -------------------------------------------------------------------


async def test_ids_that_nobody_comes_back_with_are_bounded_and_forgotten(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with serving() as world:
        client = world.client()
        codes = [(await join(client, 5)).error_code for _ in range(10_001)]
        await trio.sleep(11)  # past the session timeout that they asked for
        again = await join(client, 5)

    assert set(codes[:10_000]) == {ErrorCode.MEMBER_ID_REQUIRED}
    assert codes[10_000] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert again.error_code == ErrorCode.MEMBER_ID_REQUIRED


async def test_a_full_group_takes_nobody_more() -> None:
    async with serving(group_max_size="1") as world:
        client = world.client()
        joined = await join(client)
        await sync(client, joined)
        static = await join(world.client(), 5, group_instance_id="late")
        late = await join(world.client())
        code = await beat(client, member_id=joined.member_id)

    assert static.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert late.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code == 0, "whoever is in does not hear of it"


# --- assignments -------------------------------------------------------------------------


async def test_assignments_beyond_the_bound_fail_the_sync_of_all() -> None:
    async with serving() as world:
        client = world.client()
        joined = await join(client)
        synced = await sync(client, joined, {joined.member_id: bytes(50 * MiB)})
        rejoined = await join(client, member_id=joined.member_id)

    assert synced.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert rejoined.error_code == 0
    assert rejoined.generation_id > joined.generation_id


async def test_shares_for_strangers_are_dropped_and_the_rest_handed_out() -> None:
    async with serving() as world:
        client = world.client()
        joined = await join(client)
        synced = await sync(client, joined, {"stranger": b"theirs", joined.member_id: b"mine"})
        described = await client.ask(DESCRIBE_GROUPS, 4, DESCRIBE_GROUPS.Request(groups=["g"]))

    assert bytes(synced.assignment) == b"mine"
    assert [bytes(m.member_assignment) for m in described.groups[0].members] == [b"mine"]


async def two_joined(world: World) -> tuple[tuple[WireClient, Any], tuple[WireClient, Any]]:
    """Leader and follower of one generation, neither of which has synced."""
    joined: dict[str, Any] = {}
    clients = {"a": world.client(), "b": world.client()}

    async def come(name: str, **given: Any) -> None:
        joined[name] = await join(clients[name], **given)

    await come("a")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(come, "b")
        await trio.testing.wait_all_tasks_blocked()
        first = joined["a"].member_id
        again = world.client()
        clients["a"] = again
        joined["a"] = await join(again, member_id=first)
    assert joined["a"].generation_id == joined["b"].generation_id
    assert joined["a"].leader == first
    return (clients["a"], joined["a"]), (clients["b"], joined["b"])


async def test_what_a_follower_hands_in_is_not_taken() -> None:
    async with serving() as world:
        (leading, leader), (following, follower) = await two_joined(world)
        answers: dict[str, Any] = {}

        async def follow() -> None:
            wrong = {leader.member_id: b"wrong", follower.member_id: b"wrong"}
            answers["follower"] = await sync(following, follower, wrong)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await trio.testing.wait_all_tasks_blocked()
            assert not answers, "it waits for the leader"
            shares = {leader.member_id: b"one", follower.member_id: b"two"}
            answers["leader"] = await sync(leading, leader, shares)

    assert {who: bytes(answer.assignment) for who, answer in answers.items()} == {
        "leader": b"one",
        "follower": b"two",
    }


# --- who says what -----------------------------------------------------------------------


@pytest.mark.parametrize("generation", [-1, 0, 2, (1 << 31) - 1])
async def test_another_generation_than_the_groups_own_is_refused(generation: int) -> None:
    async with serving() as world:
        client = world.client()
        joined = await join(client)
        await sync(client, joined)
        code = await beat(client, member_id=joined.member_id, generation_id=generation)
        given = {"member_id": joined.member_id, "generation_id_or_member_epoch": generation}
        committed = await commit(client, [offset(1)], **given)

    assert code == ErrorCode.ILLEGAL_GENERATION
    assert committed.topics[0].partitions[0].error_code == ErrorCode.ILLEGAL_GENERATION


async def test_a_strange_member_is_refused_and_ids_cannot_be_guessed() -> None:
    async with serving() as world:
        client = world.client()
        joined = await join(client)
        await sync(client, joined)
        prefix, own = joined.member_id[:-36], joined.member_id[-36:]
        stranger = prefix + own[::-1]
        code = await beat(client, member_id=stranger)
        given = {"member_id": stranger, "generation_id_or_member_epoch": 1}
        committed = await commit(client, [offset(1)], **given)

    assert len(set(own)) > 8
    assert code == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_of_two_with_one_instance_id_the_older_is_fenced() -> None:
    async with serving() as world:
        older, newer = world.client(), world.client()
        first = await join(older, 5, group_instance_id="i")
        await sync(older, first, group_instance_id="i")
        second = await join(newer, 5, group_instance_id="i")
        said = {"group_instance_id": "i", "generation_id": second.generation_id}

        assert second.error_code == 0
        assert await beat(older, member_id=first.member_id, **said) == ErrorCode.FENCED_INSTANCE_ID
        assert await beat(newer, member_id=second.member_id, **said) == 0


async def test_a_live_group_is_not_deleted_in_any_state() -> None:
    async with serving() as world:
        (leading, leader), _ = await two_joined(world)
        admin = world.client()

        async def delete() -> int:
            reply = await admin.ask(DELETE_GROUPS, 2, DELETE_GROUPS.Request(groups_names=["g"]))
            return int(reply.results[0].error_code)

        while_syncing = await delete()
        await sync(leading, leader, {leader.member_id: b"x"})
        while_stable = await delete()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(join, world.client())
            await trio.testing.wait_all_tasks_blocked()
            while_joining = await delete()
            nursery.cancel_scope.cancel()

    assert {while_syncing, while_stable, while_joining} == {ErrorCode.NON_EMPTY_GROUP}


# --- offsets -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-5, -(1 << 63), (1 << 63) - 1])
async def test_any_offset_is_kept_as_it_is(value: int) -> None:
    async with serving() as world:
        client = world.client()
        committed = await commit(client, [offset(value)])
        fetched = await client.ask(OFFSET_FETCH, 7, OFFSET_FETCH.Request(group_id="g", topics=None))

    assert committed.topics[0].partitions[0].error_code == 0
    assert fetched.topics[0].partitions[0].committed_offset == value


async def test_a_commit_to_a_topic_or_partition_that_is_not_there_is_refused() -> None:
    async with serving() as world:
        client = world.client()
        elsewhere = await commit(client, [offset(1)], topic="elsewhere")
        beside = await commit(client, [offset(1, partition=n) for n in (0, 1, -1, (1 << 31) - 1)])

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [p.error_code for p in elsewhere.topics[0].partitions] == [unknown]
    assert [p.error_code for p in beside.topics[0].partitions] == [0, unknown, unknown, unknown]


async def test_a_hundred_thousand_partitions_are_answered_one_by_one() -> None:
    async with serving() as world:
        client = world.client()
        with trio.fail_after(30):
            committed = await commit(client, [offset(1, partition=n) for n in range(100_000)])

    codes = [partition.error_code for partition in committed.topics[0].partitions]
    assert codes[0] == 0
    assert set(codes[1:]) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(codes) == 100_000


async def test_a_million_partitions_end_the_connection() -> None:
    partitions = [offset(1)] * 1_000_000
    topic = OFFSET_COMMIT.Request.Topics(name=TOPIC, partitions=partitions)
    request = OFFSET_COMMIT.Request(group_id="g", topics=[topic])
    async with serving() as world:
        assert await hangs_up_on(world.client(), OFFSET_COMMIT, 8, request)


@pytest.mark.parametrize("version", [1, 2, 5, 7, 8, 9])
async def test_what_is_too_much_for_one_answer_is_not_taken_for_nothing_committed(version: int) -> None:
    """Twelve kilobytes of metadata, asked for forty thousand times: half a gigabyte for 160 kB."""
    topic, asked = TOPIC, [0] * 40_000
    if version < 8:
        topics = [OFFSET_FETCH.Request.Topics(name=topic, partition_indexes=asked)]
        request = OFFSET_FETCH.Request(group_id="g", topics=topics)
    else:
        of_group = [OFFSET_FETCH.Request.Groups.Topics(name=topic, partition_indexes=asked)]
        request = OFFSET_FETCH.Request(groups=[OFFSET_FETCH.Request.Groups(group_id="g", topics=of_group)])
    async with serving() as world:
        client = world.client()
        await commit(client, [offset(7, metadata="€" * 4_096)])
        told = await client.ask(OFFSET_FETCH, version, request)

    if version == 1:
        assert {p.error_code for p in told.topics[0].partitions} == {ErrorCode.INVALID_REQUEST}
    else:
        group = told if version < 8 else told.groups[0]
        assert (group.error_code, group.topics) == (ErrorCode.INVALID_REQUEST, [])


async def test_a_group_named_hundreds_of_times_costs_no_more_than_an_answer_may_hold() -> None:
    async with serving(group_max_reply_bytes=str(MiB)) as world:
        joined = await join(client := world.client(), protocols=protocols("range", metadata=bytes(MiB // 3)))
        await sync(client, joined)
        told = (await client.ask(DESCRIBE_GROUPS, 6, DESCRIBE_GROUPS.Request(groups=["g"] * 400))).groups

    assert [group.error_code for group in told] == [0, 0] + [ErrorCode.INVALID_REQUEST] * 398
    assert told[-1].error_message == "the answer would be too large: ask for fewer at a time"


@pytest.mark.parametrize("length", [4_097, 32_000])
async def test_metadata_that_is_too_long_is_refused_and_the_partition_beside_it_taken(length: int) -> None:
    async with serving() as world:
        client = world.client()
        asked = [offset(1, metadata="x" * 4_096), offset(2, metadata="x" * length)]
        committed = await commit(client, asked)
        fetched = await client.ask(OFFSET_FETCH, 7, OFFSET_FETCH.Request(group_id="g", topics=None))

    codes = [partition.error_code for partition in committed.topics[0].partitions]
    assert codes == [0, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert fetched.topics[0].partitions[0].committed_offset == 1
