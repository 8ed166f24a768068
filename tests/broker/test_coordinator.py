"""The coordinator as an actor: the barrier that members meet at, deadlines, and callers who go away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.broker.actor import ROUND_SIZE
from rafka.broker.coordinator import HELD, INBOX_SIZE, LATE_S
from rafka.config import Config, load
from rafka.errors import ErrorCode
from rafka.machines.groups.group import Group
from rafka.ops import cluster
from rafka.ops import group as ops
from rafka.ops.base import Op
from rafka.types import DEFAULT_ORG, OrgId

from .grouping import MINE, code_of, commit, committed, consume, heartbeat, join, leave, stable, states, sync
from .kit import World, open_world


def configured(**settings: str) -> Config:
    return load(flags=[(key.replace("__", "."), value, "--set") for key, value in settings.items()])


# --- the barrier ----------------------------------------------------------------------


@pytest.fixture
async def gathering() -> AsyncIterator[World]:
    """A new group waits a second for company."""
    async with open_world(configured(group__initial__rebalance__delay__ms="1000")) as world:
        yield world


async def three(world: World) -> list[str]:
    """Members of a generation that has formed, the leader first."""
    joining = [world.answer(join()) for _ in range(3)]
    return [(await answer.wait()).member_id for answer in joining]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_all_who_join_are_answered_together_in_whatever_order_they_come(
    gathering: World, autojump_clock: MockClock, order: tuple[int, ...]
) -> None:
    world, members = gathering, await three(gathering)
    await world.ask(sync(members[0], 1, dict.fromkeys(members, MINE)))
    began, replies, times = trio.current_time(), {}, []

    async def rejoin(member: str, after: float) -> None:
        await trio.sleep(after)
        changed = [ops.JoinProtocol(name="range", metadata=member.encode())]
        replies[member] = await world.ask(join(member_id=member, protocols=changed))
        times.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        for after, which in enumerate(order, 1):
            nursery.start_soon(rejoin, members[which], after)

    assert times == [pytest.approx(3.0)] * 3, "the last one in lets all go on"
    assert {reply.generation_id for reply in replies.values()} == {2}
    roll = [[m.metadata.decode() for m in replies[member].members] for member in members]
    assert roll == [members, [], []], "who led leads on, and is told what everybody says"


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_all_who_sync_are_answered_once_the_leader_has(
    gathering: World, autojump_clock: MockClock, order: tuple[int, ...]
) -> None:
    world, members = gathering, await three(gathering)
    began, given, times = trio.current_time(), {}, {}

    async def bring(which: int, after: float) -> None:
        await trio.sleep(after)
        assigned = {member: member.encode() for member in members} if which == 0 else None
        given[which] = (await world.ask(sync(members[which], 1, assigned))).assignment.decode()
        times[which] = trio.current_time() - began

    async with trio.open_nursery() as nursery:
        for after, which in enumerate(order, 1):
            nursery.start_soon(bring, which, after)

    leader_came = order.index(0) + 1.0
    assert given == dict(enumerate(members))
    assert times == {which: pytest.approx(max(after, leader_came)) for after, which in enumerate(order, 1)}


async def test_a_lone_member_is_answered_at_once(world: World, autojump_clock: MockClock) -> None:
    began = trio.current_time()

    reply = await world.ask(join())

    assert (reply.generation_id, reply.leader) == (1, reply.member_id)
    assert trio.current_time() == began


async def test_a_new_group_waits_for_company_and_whoever_comes_extends_the_wait(
    gathering: World, autojump_clock: MockClock
) -> None:
    generations, times = [], []

    async def member(after: float) -> None:
        await trio.sleep(after)
        generations.append((await gathering.ask(join())).generation_id)
        times.append(trio.current_time() - began)

    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(member, 0)
        nursery.start_soon(member, 0.9)

    assert generations == [1, 1]
    assert times == [pytest.approx(2.0)] * 2


# --- deadlines -------------------------------------------------------------------------------


async def test_a_silent_member_is_out_when_its_session_ends_and_not_before(
    world: World, autojump_clock: MockClock
) -> None:
    await stable(world, session_timeout_ms=10_000)

    await trio.sleep(9.999)
    assert await states(world) == {"g": "Stable"}
    await trio.sleep(0.002)
    assert await states(world) == {"g": "Empty"}


async def test_a_broker_that_was_away_does_not_take_its_members_for_silent(
    world: World, mock_clock: MockClock
) -> None:
    """The machine slept: what members have sent meanwhile is still on its way."""
    member = await stable(world, session_timeout_ms=10_000)

    mock_clock.jump(15)
    await wait_all_tasks_blocked()
    assert (await world.ask(heartbeat(member))).error_code is ErrorCode.NONE

    mock_clock.jump(15)
    await wait_all_tasks_blocked()
    mock_clock.jump(LATE_S)
    await wait_all_tasks_blocked()
    assert (await world.ask(heartbeat(member))).error_code is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_crowd_of_letters_does_not_keep_deadlines_from_being_met(
    slow: World, autojump_clock: MockClock
) -> None:
    """Every round takes longer than a deadline may be put off, and the inbox is never empty."""
    log = slow.backend.journal  # type: ignore[attr-defined]
    slow.backend.at_once = True  # type: ignore[attr-defined]
    await stable(slow, "silent", session_timeout_ms=10_000)
    slow.backend.at_once = False  # type: ignore[attr-defined]
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for offset in range(HELD + INBOX_SIZE + 18 * ROUND_SIZE):
            nursery.start_soon(slow.ask, commit(offset))
        while slow.coordinator.groups.need((DEFAULT_ORG, "silent")).group.listed().group_state == "Stable":
            await trio.sleep(1)
            log.flush()
            assert slow.coordinator._inbox.crowd > 0
        nursery.cancel_scope.cancel()

    assert trio.current_time() - began <= 13


async def test_a_new_group_begins_with_all_whose_requests_have_come(world: World) -> None:
    """With no delay to gather in: each of a crowd would otherwise begin a generation of its own."""
    answers = []
    for _ in range(3):
        answers.append(world.answer(join()))
        await trio.lowlevel.checkpoint()  # the next is still being read

    replies = [await answer.wait() for answer in answers]

    assert {reply.generation_id for reply in replies} == {1}
    assert [len(reply.members) for reply in replies] == [3, 0, 0]


async def test_a_new_group_does_not_wait_for_ever_while_others_keep_coming(
    world: World, mock_clock: MockClock
) -> None:
    began, answer = trio.current_time(), world.answer(join())

    while not answer.ready() and trio.current_time() - began < 1:
        world.answer(ops.ListGroups())
        await trio.lowlevel.checkpoint()
        mock_clock.jump(0.01)

    assert trio.current_time() - began < LATE_S


async def test_members_that_behave_live_through_others_coming_and_going(
    world: World, autojump_clock: MockClock
) -> None:
    generations: list[list[int]] = [[], []]
    async with trio.open_nursery() as nursery:
        await nursery.start(consume, world, generations[0])
        await nursery.start(consume, world, generations[1])
        await trio.sleep(60)
        came = await world.ask(join())
        await world.ask(leave(came.member_id))
        await trio.sleep(60)
        nursery.cancel_scope.cancel()

    assert generations[0][-1] == generations[1][-1]
    assert await states(world) == {"g": "Stable"}


async def test_whoever_does_not_come_back_is_waited_for_only_so_long(
    world: World, autojump_clock: MockClock
) -> None:
    await stable(world, session_timeout_ms=60_000, rebalance_timeout_ms=7000)
    began = trio.current_time()

    reply = await world.ask(join(session_timeout_ms=60_000, rebalance_timeout_ms=5000))

    assert trio.current_time() - began == pytest.approx(7.0), "the longest of all"
    assert (reply.generation_id, reply.leader) == (2, reply.member_id)


# --- callers who go away --------------------------------------------------------------------


async def test_callers_cancelled_at_every_step_leave_the_group_whole(
    world: World, autojump_clock: MockClock
) -> None:
    """Reliability 6.1, rule 7: cancelling stops the waiting, and nothing else."""
    for steps in range(6):
        for op in (join(), commit(7), ops.ListGroups(), ops.GroupHistory(group_id="g", max_wait_ms=5000)):
            scope = trio.CancelScope()

            async def ask(op: Op[Any] = op, scope: trio.CancelScope = scope) -> None:
                with scope:
                    await world.ask(op)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        await trio.sleep(400)  # whoever joined and was never heard of again is out by now
        assert (await states(world)) in ({"g": "Empty"}, {})
        member = await stable(world)
        reply = await world.ask(leave(member))
        assert reply.members[0].error_code == 0


async def test_a_connection_that_goes_leaves_its_member_parked(
    world: World, autojump_clock: MockClock
) -> None:
    """G6: only time takes a member out. Meanwhile its place is in the generation that forms."""
    first = await stable(world)
    with trio.move_on_after(1):
        await world.ask(join())
    await world.ask(heartbeat(first))

    reply = await world.ask(join(member_id=first))

    assert len(reply.members) == 2


# --- organisations, deletion, news ---------------------------------------------------------------


async def test_two_organisations_have_groups_of_the_same_name(world: World) -> None:
    acme = OrgId("acme")
    ours = await stable(world)

    theirs = await world.ask(join(), acme)

    assert theirs.generation_id == 1
    assert (await world.ask(heartbeat(theirs.member_id))).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert (await world.ask(heartbeat(ours))).error_code is ErrorCode.NONE


async def test_members_of_a_deleted_group_are_strangers(world: World) -> None:
    member = await stable(world)
    assert (await world.ask(ops.DeleteGroups(groups_names=["g"]))).results[0].error_code == 68
    await world.ask(leave(member))

    assert (await world.ask(ops.DeleteGroups(groups_names=["g"]))).results[0].error_code == 0

    assert (await world.ask(heartbeat(member))).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert (await world.ask(join(member_id=member))).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert (await world.ask(join())).generation_id == 1


async def test_a_deleted_topics_offsets_are_gone_and_those_of_a_new_one_begin_anew(world: World) -> None:
    await world.create("other")
    await world.ask(commit(5))
    await world.ask(commit(6, topic="other"))

    await world.delete("t")
    await wait_all_tasks_blocked()
    assert await committed(world) == {("other", 0): 6}

    await world.create("t")
    assert await committed(world) == {("other", 0): 6}


async def last_told(world: World) -> int:
    reply: ops.GroupHistoryReply = await world.ask(ops.GroupHistory(group_id="g"))
    return reply.rebalances[-1].told_ms


async def test_news_of_a_group_come_as_they_happen(world: World, autojump_clock: MockClock) -> None:
    member = await stable(world)
    known = await last_told(world)
    began = trio.current_time()

    async def later() -> None:
        await trio.sleep(2)
        await world.ask(leave(member))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        reply = await world.ask(ops.GroupHistory(group_id="g", after=known, max_wait_ms=30_000))

    assert trio.current_time() - began == pytest.approx(2)
    assert [(told.number, told.outcome) for told in reply.rebalances] == [(2, "empty")]


async def test_no_news_take_as_long_as_the_caller_waits(world: World, autojump_clock: MockClock) -> None:
    await stable(world, session_timeout_ms=60_000)
    known = await last_told(world)
    began = trio.current_time()

    reply = await world.ask(ops.GroupHistory(group_id="g", after=known, max_wait_ms=5000))

    assert trio.current_time() - began == pytest.approx(5)
    assert (reply.error_code, list(reply.rebalances)) == (0, [])


async def test_a_rebalance_is_a_line_in_the_brokers_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rafka.broker.coordinator")

    member = await stable(world)

    (line,) = caplog.records
    assert line.getMessage().startswith("rebalance 1: generation 1 is stable; trigger: member joined (")
    assert line.group == "g"  # type: ignore[attr-defined]
    assert member in line.getMessage()


# --- expiry, settings -------------------------------------------------------------------------------


async def test_offsets_expire_when_they_are_old_and_nobody_is_left(autojump_clock: MockClock) -> None:
    config = configured(offsets__retention__minutes="1", offsets__retention__check__interval__ms="10000")
    async with open_world(config) as world:
        await world.create()
        member = await stable(world, "busy", session_timeout_ms=1_800_000)
        await world.ask(commit(5, group_id="busy", member_id=member, generation_id_or_member_epoch=1))
        await world.ask(commit(5, group_id="idle"))

        await trio.sleep(59)
        assert await committed(world, "idle") == {("t", 0): 5}
        await trio.sleep(12)

        assert await states(world) == {"busy": "Stable"}
        assert await committed(world, "busy") == {("t", 0): 5}


async def test_groups_of_nobody_and_nothing_do_not_stay(autojump_clock: MockClock) -> None:
    config = configured(offsets__retention__check__interval__ms="1000")
    async with open_world(config) as world:
        await world.ask(join(id_required=True))
        await world.ask(leave(await stable(world, "left"), "left"))
        assert set(await states(world)) == {"g", "left"}

        await trio.sleep(1.5)

        assert await states(world) == {}


async def test_our_own_bounds_may_change_while_the_broker_runs(world: World) -> None:
    await world.ask(commit(1, group_id="a"))
    change = cluster.ConfigChange(name="group.max.count", config_operation=0, value="1")
    resource = cluster.ChangedResource(resource_type=4, resource_name="", configs=[change])

    (altered,) = (
        await world.ask(cluster.IncrementalAlterConfigs(resources=[resource], validate_only=False))
    ).responses

    assert altered.error_code == 0
    assert code_of(await world.ask(commit(1, group_id="b"))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert code_of(await world.ask(commit(2, group_id="a"))) is ErrorCode.NONE


# --- the end -------------------------------------------------------------------------------------


async def test_when_the_broker_closes_nobody_waits_for_others(world: World) -> None:
    await stable(world)
    watch = ops.GroupHistory(group_id="g", after=await last_told(world), max_wait_ms=9999)
    parked = [world.answer(op) for op in (join(), watch)]
    await wait_all_tasks_blocked()

    world.broker.close()

    joining, watching = [await answer.wait() for answer in parked]
    assert joining.error_code is ErrorCode.NOT_COORDINATOR
    assert list(watching.rebalances) == []
    assert (await world.ask(join())).error_code is ErrorCode.NOT_COORDINATOR
    assert code_of(await world.ask(commit(1))) is ErrorCode.NOT_COORDINATOR


async def test_a_mistake_of_ours_is_told_to_whoever_met_it_and_nobody_else(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    member = await stable(world)

    def stumble(*_: object) -> object:
        raise RuntimeError("a mistake of ours")

    with monkeypatch.context() as patched:
        patched.setattr(Group, "heartbeat", stumble)
        assert (await world.ask(heartbeat(member))).error_code is ErrorCode.UNKNOWN_SERVER_ERROR

    assert "a mistake of ours" in caplog.text
    assert (await world.ask(heartbeat(member))).error_code is ErrorCode.NONE


async def test_a_mistake_half_way_ends_the_broker() -> None:
    """Memory is ahead of the journal: only a restart tells what is true."""
    honest = Group.leave

    def stumble(group: Group, *args: object) -> object:  # type: ignore[type-arg]
        honest(group, *args)  # type: ignore[arg-type]
        raise RuntimeError("a mistake of ours")

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="a mistake of ours")):
        async with open_world() as world:
            member = await stable(world)
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(Group, "leave", stumble)
                await world.ask(leave(member))


async def test_a_deadline_that_we_fail_at_is_not_tried_in_a_frenzy(
    world: World, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    await stable(world, session_timeout_ms=10_000)
    tried = []

    def stumble(*_: object) -> object:
        tried.append(trio.current_time())
        raise RuntimeError("a mistake of ours")

    with monkeypatch.context() as patched:
        patched.setattr(Group, "tick", stumble)
        await trio.sleep(20)

    assert len(tried) == 1
    assert "a deadline of a group could not be met" in caplog.text
    assert (await states(world)) == {"g": "Stable"}
    await stable(world, "other")
