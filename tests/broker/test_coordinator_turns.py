"""Whose turn it is: what goes through the inbox, in which order, and what need not."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.broker.actor import ROUND_SIZE
from rafka.broker.coordinator import HELD, INBOX_SIZE
from rafka.broker.held import TOLD_AT_ONCE
from rafka.errors import ErrorCode
from rafka.ops import group as ops
from rafka.ops import offsets as offset_ops
from rafka.ops.base import Later
from rafka.storage.backend import LogSettings
from rafka.storage.journal import JOURNAL

from .grouping import code_of, commit, committed, heartbeat, join, stable, sync
from .kit import World


async def test_a_full_inbox_makes_callers_wait_and_loses_nobody(
    slow: World, autojump_clock: MockClock
) -> None:
    log = slow.backend.journal  # type: ignore[attr-defined]
    answers = []

    async def ask(offset: int) -> None:
        answers.append((offset, code_of(await slow.ask(commit(offset, group_id=f"g{offset}")))))

    callers = HELD + INBOX_SIZE + ROUND_SIZE + 100
    async with trio.open_nursery() as nursery:
        for offset in range(callers):
            nursery.start_soon(ask, offset)
        await wait_all_tasks_blocked()

        assert slow.coordinator._inbox.crowd > 0
        assert len(slow.coordinator._inbox) == INBOX_SIZE
        assert answers == []
        slow.backend.at_once = True  # type: ignore[attr-defined]
        log.flush()

    assert sorted(answers) == [(offset, ErrorCode.NONE) for offset in range(callers)]


async def test_with_a_full_inbox_the_next_request_of_a_connection_waits_its_turn(slow: World) -> None:
    async with trio.open_nursery() as nursery:
        for offset in range(HELD + INBOX_SIZE + ROUND_SIZE + 1):
            nursery.start_soon(slow.ask, commit(offset))
        await wait_all_tasks_blocked()

        answer = slow.answer(commit(1))

        assert isinstance(answer, Later)
        assert not answer.overlaps
        nursery.cancel_scope.cancel()


async def test_what_one_client_sends_ahead_is_decided_in_its_order(world: World) -> None:
    answers = [world.answer(op) for op in (ops.ListGroups(), *map(commit, range(20)))]

    assert all(answer.overlaps for answer in answers)
    listing = answers.pop(0)
    assert (await listing.wait()).groups == []
    for answer in reversed(answers):
        assert code_of(await answer.wait()) is ErrorCode.NONE
    assert await committed(world) == {("t", 0): 19}


async def test_no_group_feels_how_busy_another_is(world: World) -> None:
    calm = await stable(world, group_id="calm")
    await stable(world, group_id="busy")
    world.answer(join("busy"))

    answer = world.answer(heartbeat(calm, group_id="calm"))

    assert not isinstance(answer, Later)
    assert answer.error_code is ErrorCode.NONE


async def test_whoever_asks_about_several_groups_waits_for_any_of_them(world: World) -> None:
    def fetch(*group_ids: str) -> Any:
        groups = [offset_ops.FetchOffsetsGroup(group_id=group_id) for group_id in group_ids]
        return world.answer(offset_ops.OffsetFetch(groups=groups))

    await stable(world, group_id="busy")
    world.answer(join("busy"))

    assert isinstance(fetch("calm", "busy"), Later)
    await wait_all_tasks_blocked()
    assert not isinstance(fetch("calm", "busy"), Later)


async def test_a_commit_does_not_overtake_a_look_that_was_asked_before_it(world: World) -> None:
    await world.ask(commit(1))
    listing = world.answer(ops.ListGroups())  # for which the look has to wait
    group = offset_ops.FetchOffsetsGroup(group_id="g")
    looking = world.answer(offset_ops.OffsetFetch(groups=[group]))
    await listing.wait()

    await world.ask(commit(2))

    (told,) = (await looking.wait()).groups
    assert told.topics[0].partitions[0].committed_offset == 1


async def test_a_letter_about_all_groups_is_overtaken_by_none(world: World) -> None:
    await world.ask(commit(1))
    deleting = world.answer(ops.DeleteGroups(groups_names=["g"]))
    committing = world.answer(commit(2))

    assert isinstance(committing, Later)
    assert (await deleting.wait()).results[0].error_code is ErrorCode.NONE
    await committing.wait()
    assert await committed(world) == {("t", 0): 2}


async def test_while_many_are_told_others_have_their_turn(world: World) -> None:
    """A generation of a thousand members is not told in one breath."""
    first = await stable(world)
    rung = 0
    seen = set()

    def bell() -> None:
        nonlocal rung
        rung += 1

    members = 4 * TOLD_AT_ONCE
    for _ in range(members):
        assert world.answer(join()).ring(bell)
    assert world.answer(join(member_id=first)).ring(bell)
    while rung <= members:
        seen.add(rung)
        await trio.lowlevel.checkpoint()

    assert len(seen) >= 3


@pytest.mark.parametrize("op", [join(), sync("m"), ops.GroupHistory(group_id="g", max_wait_ms=10)])
async def test_what_may_take_long_holds_up_what_comes_after_it(world: World, op: ops.JoinGroup) -> None:
    await world.ask(commit(1))

    answer = world.answer(op)

    assert isinstance(answer, Later)
    assert not answer.overlaps
    await answer.wait()


async def test_where_the_page_cache_will_do_a_commit_is_answered_in_the_step_in_which_it_is_asked(
    world: World,
) -> None:
    await world.ask(ops.ListGroups())
    await wait_all_tasks_blocked()
    journal = world.backend.open(JOURNAL, LogSettings())
    before = journal.end_offset

    answer = world.answer(commit(7))

    assert not isinstance(answer, Later)
    assert code_of(answer) is ErrorCode.NONE
    assert journal.end_offset > before, "it is in the journal before that leaves"
    assert await committed(world) == {("t", 0): 7}


async def test_what_is_asked_in_one_step_is_one_batch_in_the_journal(world: World) -> None:
    await world.ask(commit(1))
    journal = world.backend.open(JOURNAL, LogSettings())
    before = journal.end_offset

    for offset in range(20):
        world.broker.ask(world.envelope, commit(offset))
    assert journal.end_offset == before
    world.broker.keep()

    assert [header.count for header in journal.headers(before)] == [20]


async def test_nothing_overtakes_what_lies_in_the_inbox(world: World) -> None:
    """A join that is under way changes what a heartbeat is told."""
    member_id = await stable(world)
    joining = world.answer(join())
    beating = world.answer(heartbeat(member_id))

    assert isinstance(beating, Later)
    assert (await beating.wait()).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert not joining.ready()
