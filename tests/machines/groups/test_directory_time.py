"""All groups together, in time: whose turn it is when, what expires, who waits for news, and restarts."""

from __future__ import annotations

import time
from math import inf

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.directory import Limits
from rafka.machines.groups.facts import GroupDeleted
from rafka.machines.groups.model import GroupRules
from rafka.ops import group as ops
from rafka.types import DEFAULT_ORG

from .directory_kit import DAY_S, TOPIC, World, txn_commit_op
from .kit import Uuids, join_op


@pytest.fixture
def world() -> World:
    return World()


# --- time -----------------------------------------------------------------------------------------


def test_every_group_keeps_its_own_time(world: World) -> None:
    world.stable("short", session_timeout_ms=6000)
    world.stable("long", session_timeout_ms=20_000)

    world.pass_time(7)
    assert world.listed() == {"short": "Empty", "long": "Stable"}
    world.pass_time(14)
    assert world.listed() == {"short": "Empty", "long": "Empty"}
    world.pass_time(300)  # alarms are lazy: what was armed for the first join rings once more
    assert world.groups.deadline == inf


def test_a_heartbeat_puts_the_deadline_off(world: World) -> None:
    member = world.stable("g", session_timeout_ms=6000)
    for _ in range(5):
        world.pass_time(5)
        assert (
            world.answer(ops.Heartbeat(group_id="g", generation_id=1, member_id=member)).error_code
            is ErrorCode.NONE
        )

    world.pass_time(5)
    assert world.listed() == {"g": "Stable"}
    world.pass_time(1.1)
    assert world.listed() == {"g": "Empty"}


def test_a_new_group_forms_at_once_though_idle_ones_sleep_long(world: World) -> None:
    world.stable("idle", session_timeout_ms=1_800_000)
    token = world.ask(join_op(group_id="new", id_required=False))

    assert world.groups.deadline == world.at
    world.take(world.groups.tick(world.now))
    assert token in world.heard


def test_a_group_that_was_deleted_has_no_alarm(world: World) -> None:
    world.ask(join_op(group_id="g"))  # an id was given out, and will be forgotten
    world.delete("g")

    world.pass_time(DAY_S)

    assert world.listed() == {}


def test_alarms_do_not_pile_up(world: World) -> None:
    member = world.stable("g")
    for _ in range(1000):
        world.pass_time(1)
        world.ask(ops.Heartbeat(group_id="g", generation_id=1, member_id=member))

    assert len(world.groups._alarms) <= 2


def test_idle_groups_cost_nothing(world: World) -> None:
    """Rounds with ten thousand idle groups take as long as with a hundred."""

    def thousand_rounds() -> float:
        began = time.perf_counter()
        for _ in range(1000):
            world.ask(ops.Heartbeat(group_id="g0", generation_id=1, member_id=member))
            if world.groups.deadline <= world.at:
                world.take(world.groups.tick(world.now))
        return time.perf_counter() - began

    member = world.stable("g0")
    for number in range(1, 100):
        world.stable(f"g{number}")
    few = min(thousand_rounds() for _ in range(3))
    for number in range(100, 10_000):
        world.stable(f"g{number}")

    assert min(thousand_rounds() for _ in range(3)) < 4 * few


# --- expiry -----------------------------------------------------------------------------------------


def test_offsets_of_an_empty_group_expire_and_it_goes_with_them(world: World) -> None:
    member = world.stable("g")
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=member)
    world.at += 3 * DAY_S
    world.leave("g", member)

    world.at += 6 * DAY_S
    world.expire()
    assert world.offsets() == {0: 5}, "it is a week since the last one left that counts"

    world.at += 1.1 * DAY_S
    world.expire()
    assert world.listed() == {}
    world.restart()
    assert world.listed() == {}


def test_a_group_without_members_and_offsets_is_let_go(world: World) -> None:
    world.leave("empty", world.stable("empty"))
    world.ask(join_op(group_id="id given out"))
    world.stable("busy")
    world.commit({0: 1}, "kept")
    world.ask(txn_commit_op({0: 1}, "open transaction"))

    world.expire()

    assert set(world.listed()) == {"busy", "kept", "open transaction"}


def test_expiry_goes_through_groups_in_portions(world: World) -> None:
    for number in range(1200):
        world.commit({0: 1}, f"g{number}")
    world.at += 8 * DAY_S

    portions = [len(decision.facts) for decision in world.groups.expire(world.now)]

    assert portions == [1000, 1000, 400], "each group loses its offsets and itself"
    assert len(world.groups) == 0


def test_what_expires_between_two_portions_is_not_missed_or_met_twice(world: World) -> None:
    for number in range(600):
        world.commit({0: 1}, f"g{number}")
    world.at += 8 * DAY_S
    portions = world.groups.expire(world.now)
    world.take(next(portions))

    world.delete("g599")
    for decision in portions:
        world.take(decision)

    assert len(world.groups) == 0


# --- topics --------------------------------------------------------------------------------------------


def test_a_topics_offsets_go_with_it(world: World) -> None:
    world.commit({0: 5})

    world.groups.forget_topic(TOPIC)

    assert world.offsets() == {}
    assert world.listed() == {"g": "Empty"}


def test_offsets_of_topics_that_are_gone_do_not_come_back_with_a_restart(world: World) -> None:
    world.commit({0: 5})

    world.restart(topics=())

    assert world.offsets() == {}


# --- history -------------------------------------------------------------------------------------------


def history_op(after: int = 0, max_wait_ms: int = 0) -> ops.GroupHistory:
    return ops.GroupHistory(group_id="g", after=after, max_wait_ms=max_wait_ms)


def test_a_groups_history_names_it_and_its_rebalances(world: World) -> None:
    world.stable("g")

    reply = world.answer(history_op())

    assert reply.stable_id == world.groups.need((DEFAULT_ORG, "g")).group.stable_id
    assert reply.locator == "default/consumer-groups/g"
    assert [(told.number, told.outcome) for told in reply.rebalances] == [(1, "stable")]
    assert world.told == [((DEFAULT_ORG, "g"), reply.rebalances[0])]


def test_an_absent_group_has_no_history(world: World) -> None:
    reply = world.answer(history_op(max_wait_ms=1000))

    assert (reply.error_code, reply.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group g not found.")


def test_whoever_waits_for_news_is_told_at_once(world: World) -> None:
    member = world.stable("g")
    [known] = world.answer(history_op()).rebalances
    waiting = world.ask(history_op(after=known.told_ms, max_wait_ms=30_000))
    world.pass_time(3)
    assert waiting not in world.heard

    world.leave("g", member)

    reply = world.heard[waiting]
    assert isinstance(reply, ops.GroupHistoryReply)
    assert [told.outcome for told in reply.rebalances] == ["empty"]


def test_whoever_waits_in_vain_is_told_that(world: World) -> None:
    world.commit({0: 1})
    waiting = world.ask(history_op(max_wait_ms=30_000))
    long = world.ask(history_op(max_wait_ms=3_600_000))

    world.pass_time(30)
    reply = world.heard[waiting]
    assert isinstance(reply, ops.GroupHistoryReply)
    assert (reply.error_code, list(reply.rebalances)) == (ErrorCode.NONE, [])
    assert long not in world.heard
    world.pass_time(30)
    assert long in world.heard, "a minute is as long as anybody waits"


def test_whoever_waits_for_a_group_that_is_deleted_is_told_that(world: World) -> None:
    world.commit({0: 1})
    waiting = world.ask(history_op(max_wait_ms=30_000))

    world.delete("g")

    reply = world.heard[waiting]
    assert isinstance(reply, ops.GroupHistoryReply)
    assert reply.error_code is ErrorCode.GROUP_ID_NOT_FOUND


# --- beginning and end ------------------------------------------------------------------------------------


def test_a_restart_brings_everything_back(world: World) -> None:
    member = world.stable("g")
    world.commit({0: 5, 1: 6}, generation_id_or_member_epoch=1, member_id=member)
    world.pass_time(9)

    world.restart()

    assert world.listed() == {"g": "Stable"}
    assert world.offsets() == {0: 5, 1: 6}
    world.pass_time(9)
    heartbeat = ops.Heartbeat(group_id="g", generation_id=1, member_id=member)
    assert world.answer(heartbeat).error_code is ErrorCode.NONE
    world.pass_time(11)
    assert world.listed() == {"g": "Empty"}


def test_a_snapshot_leads_to_the_same_state(world: World) -> None:
    member = world.stable("g")
    world.commit({0: 5}, generation_id_or_member_epoch=1, member_id=member)
    world.leave("gone", world.stable("gone"))
    world.ask(txn_commit_op({1: 7}, "pending"))
    world.commit({0: 1}, "deleted")
    world.delete("deleted")

    snapshot = list(world.groups.facts())
    world.groups = world.empty()
    world.replay(snapshot)

    assert list(world.groups.facts()) == snapshot
    assert world.listed() == {"g": "Stable", "gone": "Empty", "pending": "Empty"}
    world.take(world.groups.settle_transaction(DEFAULT_ORG, 7, committed=True))
    assert world.offsets("pending") == {1: 7}


def test_at_the_end_everybody_is_sent_to_another_coordinator(world: World) -> None:
    world.stable("g")
    [known] = world.answer(history_op()).rebalances
    joining = world.ask(join_op(group_id="g", id_required=False))
    watching = world.ask(history_op(after=known.told_ms, max_wait_ms=1000))

    world.take(world.groups.abandon())

    told = world.heard[joining]
    assert isinstance(told, ops.JoinGroupReply)
    assert told.error_code is ErrorCode.NOT_COORDINATOR
    assert watching in world.heard
    assert world.commit({0: 1}, "new") is ErrorCode.NOT_COORDINATOR
    assert world.groups.deadline == inf
    world.expire()
    assert len(world.groups) == 1


def test_new_rules_hold_for_groups_that_are_there(world: World) -> None:
    world.stable("g")

    world.groups.reconfigure(GroupRules(new_uuid=Uuids(), max_size=1), Limits(history_size=1))

    assert world.answer(join_op(group_id="g")).error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_facts_name_their_group(world: World) -> None:
    world.stable("g")
    world.commit({0: 1}, "h")
    world.delete("h")

    assert {fact.group_id for fact in world.journal} == {"g", "h"}  # type: ignore[attr-defined]
    assert isinstance(world.journal[-1], GroupDeleted)


def test_alarms_of_groups_that_are_gone_do_not_pile_up(world: World) -> None:
    for n in range(500):
        world.ask(join_op(group_id=f"g{n}", session_timeout_ms=1_800_000))
        world.delete(f"g{n}")

    assert len(world.groups._alarms) < 100
