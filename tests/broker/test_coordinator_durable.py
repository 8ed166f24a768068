"""What of groups survives: nobody is told what a crash could take back; a restart goes on where it was."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.broker.coordinator import HELD
from rafka.broker.held import TOLD_AT_ONCE
from rafka.errors import ErrorCode, KafkaError
from rafka.ops import group as ops
from rafka.ops.base import Later
from rafka.storage import journal as journals
from rafka.storage.backend import LogSettings
from rafka.storage.journal import JOURNAL
from rafka.storage.memory import MemoryBackend

from .grouping import (
    MINE,
    code_of,
    commit,
    committed,
    consume,
    heartbeat,
    join,
    leave,
    stable,
    states,
    sync,
)
from .kit import SlowBackend, World, make_env, open_world


@pytest.fixture
async def member(slow: World) -> str:
    """Of a stable group of one, which is durable."""
    backend = disk(slow)
    backend.at_once = True
    member_id = await stable(slow, session_timeout_ms=60_000)
    backend.at_once = False
    return member_id


def disk(world: World) -> SlowBackend:
    assert isinstance(world.backend, SlowBackend)
    return world.backend


def unanswered(answer: object) -> bool:
    assert isinstance(answer, Later)
    return not answer.ready()


# --- answers wait ---------------------------------------------------------------------------


async def test_a_commit_is_answered_once_it_is_durable(slow: World) -> None:
    answer = slow.answer(commit(5))
    await wait_all_tasks_blocked()
    assert unanswered(answer)

    disk(slow).journal.flush()

    assert code_of(await answer.wait()) is ErrorCode.NONE


async def test_nobody_reads_an_offset_that_a_crash_could_take_back(slow: World) -> None:
    writing = slow.answer(commit(5))
    reading: list[object] = []

    async def read() -> None:
        reading.append(await committed(slow))

    async with trio.open_nursery() as nursery:
        await wait_all_tasks_blocked()
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        assert reading == []
        disk(slow).journal.flush()

    assert reading == [{("t", 0): 5}]
    await writing.wait()


async def test_no_member_is_given_its_share_before_all_are_kept(slow: World, member: str) -> None:
    joining, again = slow.answer(join()), slow.answer(join(member_id=member))
    await wait_all_tasks_blocked()
    assert unanswered(joining), "the number of the generation is not durable yet"
    disk(slow).journal.flush()
    newcomer = (await joining.wait()).member_id
    await again.wait()

    waiting = slow.answer(sync(newcomer, 2))
    leading = slow.answer(sync(member, 2, {member: b"a", newcomer: b"b"}))
    await wait_all_tasks_blocked()
    assert unanswered(waiting)
    assert unanswered(leading)

    disk(slow).journal.flush()
    assert (await leading.wait()).assignment == b"a"
    assert (await waiting.wait()).assignment == b"b"


async def test_what_comes_while_the_disk_works_shares_the_next_append(slow: World) -> None:
    journal = disk(slow).journal
    before = journal.appends
    answers = [slow.answer(commit(offset)) for offset in range(200)]
    await wait_all_tasks_blocked()
    assert all(map(unanswered, answers))

    journal.flush()

    assert journal.appends == before + 1
    assert not any(map(unanswered, answers)), "in the step in which the disk is through"
    for answer in answers:
        assert code_of(await answer.wait()) is ErrorCode.NONE


async def test_an_answer_waits_for_what_others_have_changed(slow: World, member: str) -> None:
    """What it says may rest on that."""
    await wait_all_tasks_blocked()
    assert not isinstance(slow.answer(heartbeat(member)), Later)

    committing = slow.answer(commit(5, group_id="other"))
    alive = slow.answer(heartbeat(member))
    listing = slow.answer(ops.ListGroups())
    await wait_all_tasks_blocked()
    assert all(map(unanswered, (committing, alive, listing)))

    disk(slow).journal.flush()
    assert (await alive.wait()).error_code is ErrorCode.NONE
    assert len((await listing.wait()).groups) == 2
    await committing.wait()


async def test_where_many_wait_for_the_disk_the_rest_queue_up(slow: World) -> None:
    answers = [slow.answer(commit(offset)) for offset in range(HELD)]
    assert len(slow.coordinator._inbox) == 0

    queued = slow.answer(commit(HELD))
    assert len(slow.coordinator._inbox) == 1
    await wait_all_tasks_blocked()
    disk(slow).at_once = True
    disk(slow).journal.flush()

    for answer in (*answers, queued):
        assert code_of(await answer.wait()) is ErrorCode.NONE
    await wait_all_tasks_blocked()
    assert not isinstance(slow.answer(commit(0)), Later), "and then it is as before"


async def test_of_many_that_waited_for_the_disk_only_some_are_told_in_one_breath(slow: World) -> None:
    rung = 0

    def bell() -> None:
        nonlocal rung
        rung += 1

    for offset in range(3 * TOLD_AT_ONCE):
        assert slow.answer(commit(offset)).ring(bell)
    disk(slow).journal.flush()
    assert rung == TOLD_AT_ONCE

    await wait_all_tasks_blocked()

    assert rung == 3 * TOLD_AT_ONCE


async def test_what_is_sent_to_a_busy_task_shares_an_append_also_where_nothing_waits(world: World) -> None:
    journal = world.backend.open(JOURNAL, LogSettings())
    await world.ask(commit(0))
    before = journal.end_offset
    world.answer(ops.ListGroups())
    answers = [world.answer(commit(offset)) for offset in range(20)]

    assert code_of(await answers[0].wait()) is ErrorCode.NONE

    assert not any(map(unanswered, answers[1:])), "all at once"
    assert len(list(journal.headers(before))) == 1


async def test_a_disk_is_waited_for_though_the_task_rests(slow: World, member: str) -> None:
    await wait_all_tasks_blocked()

    assert unanswered(slow.answer(commit(5, group_id="other")))


async def test_signs_of_life_count_though_the_disk_is_slow(
    slow: World, member: str, autojump_clock: MockClock
) -> None:
    """Whoever has spoken up in time is not taken for silent because we were busy."""
    slow.answer(commit(5, group_id="other"))
    await trio.sleep(59)
    alive = slow.answer(heartbeat(member))
    await trio.sleep(10)
    disk(slow).at_once = True
    disk(slow).journal.flush()

    assert (await alive.wait()).error_code is ErrorCode.NONE
    assert await states(slow) == {"g": "Stable", "other": "Empty"}


async def test_a_journal_that_fails_ends_the_broker() -> None:
    """Memory is ahead of what is kept: only a restart tells what is true."""
    env = make_env()
    backend = SlowBackend(env, at_once=True)
    with pytest.RaisesGroup(pytest.RaisesExc(Exception, match="the disk is gone"), flatten_subgroups=True):
        async with open_world(backend=backend, env=env) as world:
            await world.create()
            backend.journal.fail("the disk is gone")
            with pytest.raises(KafkaError, match="the disk is gone"):
                await world.ask(commit(5))
            await trio.sleep_forever()


async def test_a_journal_that_fails_before_answers_leave_ends_the_broker() -> None:
    """Nobody is told, and memory is ahead."""
    with pytest.RaisesGroup(pytest.RaisesExc(Exception, match="the disk is gone"), flatten_subgroups=True):
        async with open_world() as world:
            await world.create()
            await world.ask(commit(4))
            journal = world.backend._logs[JOURNAL]
            journal.failed = "the disk is gone"
            world.broker.ask(world.envelope, commit(5))

            for _ in range(2):  # others have answers that rest on the same batch
                with pytest.raises(KafkaError, match="the disk is gone"):
                    world.broker.keep()
            await trio.sleep_forever()


# --- restarts ---------------------------------------------------------------------------------


@pytest.fixture
async def backend() -> MemoryBackend:
    return MemoryBackend(make_env())


async def test_members_go_on_after_a_restart_as_if_nothing_had_been(
    backend: MemoryBackend, autojump_clock: MockClock
) -> None:
    async with open_world(backend=backend) as world:
        await world.create()
        member = await stable(world)
        await world.ask(commit(5, member_id=member, generation_id_or_member_epoch=1))
        (before,) = (await world.ask(ops.DescribeGroups(groups=["g"]))).groups
        known_as = (await world.ask(ops.GroupHistory(group_id="g"))).stable_id

    await trio.sleep(3600)  # it is down for long: sessions begin anew

    async with open_world(backend=backend) as world:
        assert (await world.ask(heartbeat(member))).error_code is ErrorCode.NONE
        assert (
            code_of(await world.ask(commit(6, member_id=member, generation_id_or_member_epoch=1)))
            is ErrorCode.NONE
        )
        assert (await world.ask(sync(member))).assignment == MINE
        assert (await world.ask(ops.DescribeGroups(groups=["g"]))).groups == [before]
        history = await world.ask(ops.GroupHistory(group_id="g"))
        assert (history.stable_id, list(history.rebalances)) == (known_as, [])
        assert await committed(world) == {("t", 0): 6}


async def test_members_that_do_not_come_back_are_out_a_session_later(
    backend: MemoryBackend, autojump_clock: MockClock
) -> None:
    async with open_world(backend=backend) as world:
        await stable(world, session_timeout_ms=10_000)

    async with open_world(backend=backend) as world:
        await trio.sleep(9.9)
        assert await states(world) == {"g": "Stable"}
        await trio.sleep(0.2)
        assert await states(world) == {"g": "Empty"}


async def test_consumers_live_through_many_restarts_in_one_generation(
    backend: MemoryBackend, autojump_clock: MockClock
) -> None:
    generations: list[int] = []
    async with open_world(backend=backend) as world, trio.open_nursery() as nursery:
        await nursery.start(consume, world, generations)
        await trio.sleep(10)
        (told,) = (await world.ask(ops.DescribeGroups(groups=["g"]))).groups
        nursery.cancel_scope.cancel()

    for _ in range(5):
        async with open_world(backend=backend) as world:
            for _ in range(5):
                alive = await world.ask(heartbeat(told.members[0].member_id))
                assert alive.error_code is ErrorCode.NONE
                await trio.sleep(3)

    assert generations == [1]


async def test_those_who_left_stay_gone(backend: MemoryBackend) -> None:
    async with open_world(backend=backend) as world:
        await world.ask(leave(await stable(world)))
        await world.ask(leave(await stable(world, "deleted"), "deleted"))
        await world.ask(ops.DeleteGroups(groups_names=["deleted"]))

    async with open_world(backend=backend) as world:
        assert await states(world) == {"g": "Empty"}
        assert (await world.ask(join())).generation_id == 3


async def test_a_generation_that_was_forming_is_not_taken_for_formed(backend: MemoryBackend) -> None:
    async with open_world(backend=backend) as world:
        first = await stable(world)
        joining = world.answer(join())
        await world.ask(join(member_id=first))
        assert (await joining.wait()).generation_id == 2  # and nobody has synced

    async with open_world(backend=backend) as world:
        assert (await world.ask(heartbeat(first, 2))).error_code is ErrorCode.ILLEGAL_GENERATION
        assert (await world.ask(heartbeat(first, 1))).error_code is ErrorCode.NONE
        again = await world.ask(join(member_id=first))
        assert again.generation_id == 3, "a number is never given twice"


async def test_offsets_of_a_topic_that_is_gone_do_not_come_back(backend: MemoryBackend) -> None:
    async with open_world(backend=backend) as world:
        await world.create("t")
        await world.create("kept")
        await world.ask(commit(5))
        await world.ask(commit(6, topic="kept"))
        await world.delete("t")
        await world.create("t")

    async with open_world(backend=backend) as world:
        assert await committed(world) == {("kept", 0): 6}


async def test_a_snapshot_holds_groups_and_topics_as_of_one_moment(
    backend: MemoryBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_FACTS", 10)
    async with open_world(backend=backend) as world:
        for number in range(8):
            await world.create(f"t{number}")
            await stable(world, f"g{number}", session_timeout_ms=60_000)
            for offset in range(5):
                await world.ask(commit(offset, topic=f"t{number}", group_id=f"h{number}"))
        await wait_all_tasks_blocked()
        log = backend.open(JOURNAL, LogSettings())
        assert log.start_offset > 0, "what a snapshot covers was cut off"

    async with open_world(backend=backend) as world:
        for number in range(8):
            assert await committed(world, f"h{number}") == {(f"t{number}", 0): 4}
        assert sorted(await states(world)) == [f"{kind}{n}" for kind in "gh" for n in range(8)]
