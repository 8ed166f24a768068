"""How a rebalance begins, whom it waits for and for how long, and who leads afterwards."""

from __future__ import annotations

import pytest

from rafka.errors import ErrorCode
from rafka.machines.groups.model import GroupRules, State

from .kit import BOTH, Uuids, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def patient() -> World:
    """As Kafka is set by default: a new group waits three seconds for company."""
    return World(GroupRules(new_uuid=Uuids(), initial_delay_ms=3_000))


# --- the delay of a new group ---------------------------------------------------------------


def test_a_new_group_waits_for_company(patient: World) -> None:
    """CG-026"""
    token = patient.join("ann", id_required=False)

    patient.pass_time(2.999)
    assert patient.parked(token)
    patient.pass_time(0.001)
    assert patient.joined(token).generation_id == 1


def test_company_extends_the_delay_once(patient: World) -> None:
    """CG-027"""
    ann = patient.join("ann", id_required=False)
    patient.pass_time(1)
    bob = patient.join("bob", id_required=False)

    patient.pass_time(4.999)
    assert patient.parked(ann)
    patient.pass_time(0.001)

    assert patient.joined(ann).generation_id == patient.joined(bob).generation_id == 1
    assert patient.joined(ann).leader == patient.joined(bob).leader == patient.joined(ann).member_id


def test_the_delay_ends_with_the_rebalance_timeout(patient: World) -> None:
    """CG-028"""
    tokens = []
    for at in range(7):
        tokens.append(patient.join(f"m{at}", id_required=False))
        patient.pass_time(1.5 if at < 6 else 0.999)
    assert patient.at == pytest.approx(9.999)
    assert all(map(patient.parked, tokens))

    patient.pass_time(0.001)

    assert {patient.joined(token).generation_id for token in tokens} == {1}


def test_a_short_rebalance_timeout_is_not_extended(patient: World) -> None:
    """CG-029"""
    token = patient.join("ann", id_required=False, rebalance_timeout_ms=2_000)
    patient.pass_time(1)
    patient.join("bob", id_required=False, rebalance_timeout_ms=2_000)

    patient.pass_time(2)

    assert patient.joined(token).generation_id == 1


def test_asking_again_does_not_extend_the_delay(patient: World) -> None:
    """CG-030: and the one who asked before is told to join again, where Kafka says nothing."""
    member_id = patient.joined(patient.join("ann")).member_id
    first = patient.join("ann", member_id)
    patient.pass_time(1)
    second = patient.join("ann", member_id)
    assert patient.code(first) is ErrorCode.REBALANCE_IN_PROGRESS

    patient.pass_time(2)

    assert patient.joined(second).generation_id == 1


def test_an_id_given_out_does_not_extend_the_delay(patient: World) -> None:
    """CG-031"""
    ann = patient.join("ann", id_required=False)
    patient.pass_time(1)
    bob = patient.joined(patient.join("bob")).member_id
    patient.pass_time(2)
    assert patient.joined(ann).generation_id == 1

    other = patient.join("bob", bob)

    assert patient.parked(other), "there is a generation now: it is a rebalance like any other"
    assert patient.state() is State.PREPARING


def test_a_second_generation_waits_for_nobody_who_is_not_in(patient: World) -> None:
    ann = patient.join("ann", id_required=False)
    patient.pass_time(3)
    patient.sync("ann", patient.joined(ann).member_id)

    token = patient.join("ann", patient.joined(ann).member_id)

    assert patient.joined(token).generation_id == 2


# --- who is waited for ------------------------------------------------------------------------


def test_a_newcomer_makes_everybody_join_again(world: World) -> None:
    """CG-032"""
    (ann,) = world.stable("ann")
    newcomer = world.join("bob", id_required=False)
    assert world.heartbeat(ann) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.state() is State.PREPARING

    again = world.join("ann", ann)

    assert world.joined(again).generation_id == world.joined(newcomer).generation_id == 2


def test_an_id_given_out_disturbs_nobody(world: World) -> None:
    """CG-033"""
    (ann,) = world.stable("ann")

    world.join("bob")

    assert world.heartbeat(ann) is ErrorCode.NONE


def test_a_generation_waits_for_ids_given_out(world: World) -> None:
    """CG-034"""
    (ann,) = world.stable("ann")
    pending = world.joined(world.join("bob")).member_id
    again = world.join("ann", ann)
    assert world.parked(again)

    last = world.join("bob", pending)

    assert world.joined(again).generation_id == world.joined(last).generation_id == 2


def test_an_id_nobody_comes_with_is_waited_for_until_its_session_ends(world: World) -> None:
    """CG-035"""
    (ann,) = world.stable("ann", rebalance_timeout_ms=60_000)
    world.join("bob", session_timeout_ms=8_000)
    again = world.join("ann", ann, rebalance_timeout_ms=60_000)

    world.pass_time(7.999)
    assert world.parked(again)
    world.pass_time(0.001)

    assert world.joined(again).generation_id == 2


def test_an_id_given_back_is_not_waited_for(world: World) -> None:
    """CG-036"""
    (ann,) = world.stable("ann")
    pending = world.joined(world.join("bob")).member_id
    again = world.join("ann", ann)

    assert world.leave(pending) == [ErrorCode.NONE]

    assert world.joined(again).generation_id == 2


def test_who_does_not_join_in_time_is_out(world: World) -> None:
    """CG-037 CG-103: heartbeats are no joining."""
    ann, bob = world.stable("ann", "bob", session_timeout_ms=15_000)
    again = world.join("ann", ann, session_timeout_ms=15_000)

    world.keep_alive(9, bob)
    assert world.parked(again)
    world.pass_time(1)

    assert world.joined(again).generation_id == 2
    assert [m.member_id for m in world.joined(again).members] == [ann]
    assert world.heartbeat(bob) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_stays_in_though_it_does_not_join(world: World) -> None:
    """CG-038 CG-194: until its session ends, or it has not synced in time."""
    ann, bob = world.stable("ann", "bob", static=True, session_timeout_ms=15_000)
    again = world.join("ann", ann, group_instance_id="i-ann", session_timeout_ms=15_000)
    world.keep_alive(10, bob)
    assert [m.member_id for m in world.joined(again).members] == [ann, bob]

    assert world.heartbeat(bob, generation=1) is ErrorCode.ILLEGAL_GENERATION
    world.sync("ann", ann, {ann: b"a", bob: b"b"})
    assert world.synced(world.sync("bob", bob)).assignment == b"b"

    for _ in range(15):
        world.pass_time(1)
        world.heartbeat(ann)
    assert world.state() is State.PREPARING
    assert world.heartbeat(bob) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_does_not_join_does_not_lead(world: World) -> None:
    """CG-039"""
    ann, bob = world.stable("ann", "bob", static=True, session_timeout_ms=15_000)
    token = world.join("bob", bob, group_instance_id="i-bob", protocols=BOTH, session_timeout_ms=15_000)

    world.keep_alive(10, ann)

    assert world.joined(token).leader == bob
    assert {m.member_id for m in world.joined(token).members} == {ann, bob}


def test_where_only_silent_static_members_are_left_their_sessions_decide(world: World) -> None:
    """CG-040"""
    ann, bob = world.stable("ann", "bob", static=True, session_timeout_ms=15_000)
    guest = world.join("cid", id_required=False, session_timeout_ms=15_000)
    pending = next(m for m in world.group.roster.by_id if m not in (ann, bob))
    world.leave(pending)
    assert world.code(guest) is ErrorCode.UNKNOWN_MEMBER_ID

    world.keep_alive(10, ann, bob)
    assert world.state() is State.PREPARING
    assert world.group.generation == 1

    world.pass_time(15)
    assert world.state() is State.EMPTY
    assert world.group.generation == 2


def test_the_longest_timeout_counts(world: World) -> None:
    """CG-041"""
    names = {"ann": 10_000, "bob": 60_000, "cid": 10_000}
    tokens = {
        name: world.join(name, id_required=False, rebalance_timeout_ms=ms, session_timeout_ms=100_000)
        for name, ms in names.items()
    }
    world.tick()
    ids = {name: world.joined(token).member_id for name, token in tokens.items()}
    world.sync_all({member_id: name for name, member_id in ids.items()})
    again = [
        world.join(n, ids[n], rebalance_timeout_ms=names[n], session_timeout_ms=100_000)
        for n in ("ann", "bob")
    ]

    world.keep_alive(59, ids["cid"])
    assert all(map(world.parked, again))
    world.pass_time(1)

    assert {world.joined(token).generation_id for token in again} == {2}
    assert world.heartbeat(ids["cid"]) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_newcomer_is_not_kept_waiting_for_ever(world: World) -> None:
    """CG-042 CG-043: its session has not begun, but after five minutes it is told to go."""
    ann, bob = world.stable("ann", "bob", rebalance_timeout_ms=600_000)
    newcomer = world.join("cid", id_required=False, session_timeout_ms=6_000)

    world.keep_alive(299, ann, bob)
    assert world.parked(newcomer)
    world.keep_alive(1, ann, bob)

    assert world.code(newcomer) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.joined(newcomer).member_id == ""


def test_who_waits_need_not_say_that_it_lives(world: World) -> None:
    """CG-044"""
    ann, bob = world.stable("ann", "bob", rebalance_timeout_ms=60_000)
    again = world.join("ann", ann, rebalance_timeout_ms=60_000)

    world.keep_alive(30, bob)
    assert world.parked(again)
    world.join("bob", bob)

    assert world.code(again) is ErrorCode.NONE


def test_generations_are_counted_one_by_one_even_to_nobody(world: World) -> None:
    """CG-045"""
    (ann,) = world.stable("ann")
    for generation in (2, 3, 4):
        assert world.joined(world.join("ann", ann)).generation_id == generation
        world.sync("ann", ann)

    world.leave(ann)
    assert world.group.generation == 5
    world.member("bob")
    assert world.group.generation == 6


def test_the_leader_is_told_of_everybody_once_and_the_others_of_nobody(world: World) -> None:
    """CG-046"""
    tokens = [
        world.join("ann", id_required=False, protocols=(("rr", b"1"), ("range", b"2"))),
        world.join("bob", group_instance_id="i1", protocols=(("range", b"3"),)),
        world.join("cid", id_required=False, protocols=(("range", b"4"), ("rr", b"5"))),
    ]
    world.tick()
    leader, *followers = map(world.joined, tokens)

    roll = [(m.group_instance_id, m.metadata) for m in leader.members]
    assert roll == [(None, b"2"), ("i1", b"3"), (None, b"4")]
    assert [m.member_id for m in leader.members] == [leader.member_id, *(f.member_id for f in followers)]
    assert [list(f.members) for f in followers] == [[], []]


def test_a_leader_that_comes_too_late_leads_no_more(world: World) -> None:
    """CG-189"""
    ann, bob = world.stable("ann", "bob", rebalance_timeout_ms=8_000)
    token = world.join("bob", bob, protocols=BOTH, rebalance_timeout_ms=8_000)
    world.pass_time(8)
    assert world.joined(token).leader == bob

    assert world.heartbeat(ann) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(world.join("ann", ann)) is ErrorCode.UNKNOWN_MEMBER_ID
    world.join("ann", id_required=False)
    again = world.join("bob", bob, protocols=BOTH)

    assert world.joined(again).leader == bob


def test_a_member_of_an_old_version_has_its_session_for_joining(world: World) -> None:
    """CG-006: the gateway fills in the session timeout, and it counts as any other."""
    _ann, bob = world.stable("ann", "bob", session_timeout_ms=6_000, rebalance_timeout_ms=6_000)
    token = world.join("bob", bob, protocols=BOTH, session_timeout_ms=6_000, rebalance_timeout_ms=6_000)

    world.pass_time(6)

    assert [m.member_id for m in world.joined(token).members] == [bob]


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_timeout_of_nothing_is_a_very_short_one(world: World, timeout_ms: int) -> None:
    """J3: the rebalance timeout is not checked."""
    token = world.join("ann", id_required=False, rebalance_timeout_ms=timeout_ms)
    world.tick()
    assert world.joined(token).generation_id == 1

    world.pass_time(0.001)

    assert world.state() is State.EMPTY, "it has not synced in no time"
