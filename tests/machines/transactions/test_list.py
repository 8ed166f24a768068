"""Looking at transactions: describe and list."""

from __future__ import annotations

import attrs
import pytest

from rafka.errors import ErrorCode
from rafka.ops.txn import DescribeTransactions, ListTransactions, ListTransactionsReply
from rafka.types import DEFAULT_ORG

from .kit import T0, World, code_of


@pytest.fixture
def world() -> World:
    """One id that never began, one whose transaction is open."""
    world = World()
    world.init("idle")
    pid = world.init("open").producer_id
    world.add(pid, 0, T0, name="open")
    return world


def listed(
    world: World,
    states: list[str] | None = None,
    ids: list[int] | None = None,
    duration: int = -1,
    pattern: str | None = None,
) -> ListTransactionsReply:
    op = ListTransactions(
        state_filters=states or [],
        producer_id_filters=ids or [],
        duration_filter=duration,
        transactional_id_pattern=pattern,
    )
    return world.all.list(op, DEFAULT_ORG, world.now_ms)


def names(reply: ListTransactionsReply) -> list[str]:
    return [transaction.transactional_id for transaction in reply.transaction_states]


def test_all_are_listed_unless_filtered(world: World) -> None:
    assert names(listed(world)) == ["idle", "open"]


def test_states_that_nobody_knows_are_told_and_match_nothing(world: World) -> None:
    """TX-038."""
    reply = listed(world, ["Ongoing", "Bogus", "ongoing"])

    assert names(reply) == ["open"]
    assert reply.unknown_state_filters == ["Bogus", "ongoing"]
    assert names(listed(world, ["Bogus"])) == []


def test_filters_are_joined_by_and(world: World) -> None:
    (open_one,) = listed(world, ["Ongoing"]).transaction_states

    assert names(listed(world, ids=[open_one.producer_id])) == ["open"]
    assert names(listed(world, ["Empty"], [open_one.producer_id])) == []


def test_those_that_never_began_count_as_having_begun_long_ago(world: World) -> None:
    """TX-064."""
    assert names(listed(world, duration=3_600_000)) == ["idle"]
    assert names(listed(world, duration=0)) == ["idle"]


def test_a_pattern_has_to_match_the_whole_id(world: World) -> None:
    """TX-064."""
    assert names(listed(world, pattern="o.*")) == ["open"]
    assert names(listed(world, pattern="o")) == []
    assert names(listed(world, pattern="")) == ["idle", "open"]
    assert code_of(listed, world, pattern="(") is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_what_is_not_known_is_not_found(world: World) -> None:
    """TX-039."""
    assert world.seen("nobody").error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert world.seen("").error_code is ErrorCode.INVALID_REQUEST
    assert world.seen("open").error_code is ErrorCode.NONE


def test_a_transaction_that_is_named_often_is_described_while_there_is_room(world: World) -> None:
    pid = world.init("large").producer_id
    world.add(pid, 0, *(("t", index) for index in range(1000)), name="large")
    world.all.rules = attrs.evolve(world.all.rules, max_reply_bytes=40_000)

    reply = world.all.describe(
        DescribeTransactions(transactional_ids=["large"] * 500 + ["open", "nobody"]), DEFAULT_ORG
    )

    refused = ErrorCode.INVALID_REQUEST
    states = reply.transaction_states
    assert [one.error_code for one in states] == [ErrorCode.NONE] * 4 + [refused] * 498
    assert [len(one.topics) for one in states] == [1] * 4 + [0] * 498
    assert states[-1].transactional_id == "nobody"


def test_a_transaction_alone_is_described_however_large_it_is(world: World) -> None:
    pid = world.init("large").producer_id
    world.add(pid, 0, *(("t", index) for index in range(1000)), name="large")
    world.all.rules = attrs.evolve(world.all.rules, max_reply_bytes=1024)

    [one] = world.all.describe(
        DescribeTransactions(transactional_ids=["large"]), DEFAULT_ORG
    ).transaction_states

    assert (one.error_code, len(one.topics[0].partitions)) == (ErrorCode.NONE, 1000)
