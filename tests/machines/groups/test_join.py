"""Who is let in, under which id, and what a JoinGroup is refused with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups.join import check_join
from rafka.machines.groups.model import GroupRules, State
from rafka.ops.group import JoinedMember, JoinGroup

from .kit import BOTH, RANGE, Uuids, World, code_of, join_op


@pytest.fixture
def world() -> World:
    return World()


def test_a_group_must_have_a_name(world: World) -> None:
    """CG-001, and the first half of CG-179: the name is looked at first."""
    token = world.join("ann", "x", group_id="", session_timeout_ms=1)

    assert world.code(token) is ErrorCode.INVALID_GROUP_ID
    assert world.joined(token).generation_id == -1
    assert world.joined(token).member_id == "x"


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_session_timeouts_have_bounds(world: World, timeout_ms: int) -> None:
    """CG-002 CG-003 CG-179: even for a member that nobody knows."""
    token = world.join("ann", "x", session_timeout_ms=timeout_ms)

    assert world.code(token) is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("timeout_ms", [6_000, 1_800_000])
def test_the_bounds_of_session_timeouts_are_inclusive(world: World, timeout_ms: int) -> None:
    """CG-002 CG-003"""
    token = world.join("ann", session_timeout_ms=timeout_ms)

    assert world.code(token) is ErrorCode.MEMBER_ID_REQUIRED


def test_who_comes_without_an_id_is_given_one_and_is_no_member_yet(world: World) -> None:
    """CG-004"""
    token = world.join("ann")

    assert world.code(token) is ErrorCode.MEMBER_ID_REQUIRED
    assert world.joined(token).generation_id == -1
    assert world.joined(token).member_id.startswith("ann-")
    assert len(world.joined(token).member_id) == len("ann-") + 36
    assert not world.group.describe(absence_told=True).members


def test_an_old_client_is_let_in_at_once(world: World) -> None:
    """CG-005"""
    token = world.join("ann", id_required=False)
    assert world.parked(token)

    world.tick()

    assert world.joined(token).generation_id == 1
    assert world.joined(token).member_id.startswith("ann-")


def test_the_given_id_lets_in(world: World) -> None:
    """CG-007"""
    member_id = world.joined(world.join("ann")).member_id

    token = world.join("ann", member_id, protocols=(("range", b"all of it"),))
    world.tick()

    answer = world.joined(token)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert answer.leader == answer.member_id == member_id
    assert answer.members == [JoinedMember(member_id=member_id, metadata=b"all of it")]


def test_an_unknown_id_is_refused_by_a_group_with_members(world: World) -> None:
    """CG-009"""
    world.stable("ann")

    token = world.join("bob", "x")

    assert world.code(token) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.joined(token).member_id == "x"


def test_a_protocol_type_is_needed(world: World) -> None:
    """CG-010"""
    token = world.join("ann", protocol_type="")

    assert world.code(token) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.joined(token).member_id == ""


def test_a_protocol_is_needed(world: World) -> None:
    """CG-011"""
    assert world.code(world.join("ann", protocols=())) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_are_of_one_protocol_type(world: World) -> None:
    """CG-012 CG-179: also where the member is not known at all."""
    (ann,) = world.stable("ann")

    for member_id in ("", ann, "x"):
        token = world.join("ann", member_id, protocol_type="connect")
        assert world.code(token) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert world.joined(token).member_id == member_id


def test_a_newcomer_must_offer_what_all_members_support(world: World) -> None:
    """CG-013"""
    world.stable("ann")

    token = world.join("bob", protocols=(("roundrobin", b""),))

    assert world.code(token) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_agree_on_what_all_support(world: World) -> None:
    """CG-014"""
    ann = world.member("ann", protocols=BOTH)
    bob = world.join("bob", id_required=False, protocols=(("roundrobin", b"only"),))
    again = world.join("ann", ann, protocols=BOTH)

    assert world.joined(again).protocol_name == world.joined(bob).protocol_name == "roundrobin"


@pytest.mark.parametrize(
    ("lists", "elected"),
    [
        (["range rr", "range rr", "rr range"], "range"),
        (["range rr", "rr range", "rr range"], "rr"),
        (["range rr", "rr range"], "range"),
    ],
    ids=["CG-015", "CG-016", "a tie goes to who came first"],
)
def test_members_vote_for_the_first_of_their_protocols(world: World, lists: list[str], elected: str) -> None:
    """CG-015 CG-016"""
    tokens = [
        world.join(f"m{at}", id_required=False, protocols=tuple((name, b"") for name in names.split()))
        for at, names in enumerate(lists)
    ]
    world.tick()

    assert {world.joined(token).protocol_name for token in tokens} == {elected}


def test_an_answer_carries_the_protocol_type(world: World) -> None:
    """CG-018"""
    token = world.join("ann", id_required=False)
    world.tick()

    assert world.joined(token).protocol_type == "consumer"


def test_ids_tell_whose_they_are(world: World) -> None:
    """CG-019 CG-020: a static member needs no id to come again with."""
    ann = world.joined(world.join("ann")).member_id
    bob = world.joined(world.join("bob")).member_id
    token = world.join("cid", group_instance_id="i1")
    world.tick()

    assert ann.startswith("ann-")
    assert bob.startswith("bob-")
    assert world.code(token) is ErrorCode.NONE
    assert world.joined(token).member_id.startswith("i1-")


def test_an_instance_id_must_be_the_members_own(world: World) -> None:
    """CG-021 CG-022 CG-023"""
    ann, _bob = world.stable("ann", "bob", static=True)

    assert world.code(world.join("ann", ann, group_instance_id="i-none")) is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.code(world.join("ann", "x", group_instance_id="i-ann")) is ErrorCode.FENCED_INSTANCE_ID
    assert world.code(world.join("ann", ann, group_instance_id="i-bob")) is ErrorCode.FENCED_INSTANCE_ID


def test_a_given_id_is_not_for_static_members(world: World) -> None:
    """CG-024"""
    given = world.joined(world.join("ann")).member_id

    token = world.join("ann", given, group_instance_id="i1")

    assert world.code(token) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert world.joined(token).member_id == ""
    token = world.join("ann", given)
    world.tick()
    assert world.code(token) is ErrorCode.NONE


def test_a_lone_member_changes_what_it_offers_only_by_adding(world: World) -> None:
    """CG-025b: its own old list counts as well."""
    (ann,) = world.stable("ann")

    refused = world.join("ann", ann, protocols=(("roundrobin", b""),))
    assert world.code(refused) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    accepted = world.join("ann", ann, protocols=BOTH)
    assert world.joined(accepted).generation_id == 2


@pytest.mark.parametrize("reason", ["x" * 300, None, ""])
def test_a_reason_may_be_long_or_none(world: World, reason: str | None) -> None:
    """CG-025"""
    world.member("ann", reason=reason)

    assert world.state() is State.COMPLETING


def test_ids_given_out_do_not_hold_up_the_first_generation(world: World) -> None:
    """CG-178"""
    given = [world.joined(world.join(name)).member_id for name in ("ann", "bob", "cid")]
    token = world.join("ann", given[0])
    world.tick()
    assert world.code(token) is ErrorCode.NONE

    assert world.leave(given[1]) == [ErrorCode.NONE]

    assert world.code(world.sync("ann", given[0])) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.heartbeat(given[0]) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.code(world.join("bob", given[1])) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_client_without_a_name_has_an_id_all_the_same(world: World) -> None:
    """CG-181"""
    member_id = world.member("ann", client_id="")

    assert member_id.startswith("-")
    assert [m.client_id for m in world.group.describe(absence_told=True).members] == [""]


def test_an_empty_instance_id_is_one(world: World) -> None:
    """CG-181"""
    token = world.join("ann", group_instance_id="")
    world.tick()

    assert [m.group_instance_id for m in world.joined(token).members] == [""]


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\0\1",
        b"\xff\xff\0\0\0\0",
        b"\0\x09\0\0\0\0",
        b"\0\0\0\0\0\1\0\1tand more",
        b"\0\1\0\0\0\5",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xff",
        b"\0\0\0\0\0\1\0\x09t",
    ],
)
def test_metadata_is_the_members_own_business(world: World, metadata: bytes) -> None:
    """CG-183 CG-184: Kafka never answers some of these."""
    token = world.join("ann", id_required=False, protocols=(("range", metadata),))
    world.tick()

    assert [m.metadata for m in world.joined(token).members] == [metadata]


def test_a_protocol_listed_twice_counts_once(world: World) -> None:
    """CG-185: Kafka never answers the first of these, and chooses b in the second."""
    token = world.join("ann", id_required=False, protocols=(("range", b"1"), ("range", b"2")))
    other = World()
    second = other.join(
        "ann", id_required=False, protocol_type="connect", protocols=(("a", b"1"), ("b", b"2"), ("a", b"3"))
    )
    world.tick()
    other.tick()

    assert world.joined(token).protocol_name == "range"
    assert [m.metadata for m in world.joined(token).members] == [b"1"]
    assert other.joined(second).protocol_name == "a"


def test_a_connection_that_goes_takes_nobody_with_it(world: World) -> None:
    """CG-186: the machine is not even told; the member goes on from another connection."""
    (ann,) = world.stable("ann")
    lost = world.join("bob", id_required=False)

    world.join("ann", ann)
    bob = world.joined(lost).member_id
    again = world.join("bob", bob)

    assert world.code(again) is ErrorCode.NONE
    assert world.joined(again).generation_id == 2


def test_an_empty_group_may_become_something_else(world: World) -> None:
    """CG-187"""
    (ann,) = world.stable("ann")
    world.leave(ann)
    assert world.group.generation == 2

    token = world.join("bob", id_required=False, protocol_type="connect", protocols=(("v1", b""),))
    world.tick()

    assert world.joined(token).generation_id == 3
    assert world.joined(token).protocol_type == "connect"


def test_a_protocol_is_chosen_again_when_the_last_who_lacked_it_has_gone(world: World) -> None:
    """CG-188"""
    ann, bob = world.stable("ann", "bob", protocols=(("coop", b""), ("range", b"")))
    world.leave(bob)
    world.join("ann", ann, protocols=(("coop", b""), ("range", b"")))
    old = world.join("old", id_required=False)
    world.join("ann", ann, protocols=(("coop", b""), ("range", b"")))
    assert world.joined(old).protocol_name == "range"

    world.leave(world.joined(old).member_id)
    token = world.join("ann", ann, protocols=(("coop", b""), ("range", b"")))

    assert world.joined(token).protocol_name == "coop"


def test_the_first_name_leads_where_that_is_the_rule() -> None:
    """Our own setting, of the designs that rafka follows."""
    world = World(GroupRules(new_uuid=Uuids(), lexicographic_leader=True))

    tokens = [world.join(name, id_required=False) for name in ("cid", "ann", "bob")]
    world.tick()

    assert {world.joined(token).leader for token in tokens} == {world.joined(tokens[1]).member_id}


# --- limits ----------------------------------------------------------------------------


def test_a_member_may_not_bring_too_much() -> None:
    rules = GroupRules(new_uuid=Uuids(), max_protocols=2, max_metadata_bytes=20)

    def code(*offer: tuple[str, bytes]) -> ErrorCode:
        return code_of(lambda: check_join(join_op(protocols=offer), rules))

    assert code(("a", b""), ("b", b"")) is ErrorCode.NONE
    assert code(("a", b""), ("b", b""), ("c", b"")) is ErrorCode.INVALID_REQUEST
    assert code(("range", b"x" * 15)) is ErrorCode.NONE
    assert code(("range", b"x" * 16)) is ErrorCode.INVALID_REQUEST
    assert code(("range", b"x" * 5), ("rr", b"x" * 9)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "named",
    [
        lambda name: join_op(protocol_type=name),
        lambda name: join_op(group_instance_id=name),
        lambda name: join_op(protocols=((name, b""),)),
    ],
)
def test_names_have_an_end(named: Callable[[str], JoinGroup]) -> None:
    """A member id begins with the instance id, and all have to fit into answers to others."""
    rules = GroupRules(new_uuid=Uuids())

    def code(size: int) -> ErrorCode:
        return code_of(lambda: check_join(named("\N{SNOWMAN}" * size), rules))

    assert code(249) is ErrorCode.NONE
    assert code(250) is ErrorCode.INVALID_REQUEST


def test_ids_are_not_given_out_without_end() -> None:
    world = World(GroupRules(new_uuid=Uuids(), max_pending=2))
    given = [world.joined(world.join(name)).member_id for name in ("ann", "bob")]

    assert world.code(world.join("cid")) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    world.join("ann", given[0])
    assert world.code(world.join("cid")) is ErrorCode.MEMBER_ID_REQUIRED


def test_a_group_that_is_gone_lets_nobody_in(world: World) -> None:
    world.group.apply(world.group.begin_deletion())

    for member_id in ("", "x"):
        token = world.join("ann", member_id)
        assert world.code(token) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert world.joined(token).member_id == member_id


def test_a_refused_join_says_which_rule_it_broke() -> None:
    with pytest.raises(KafkaError, match="more protocols than a member may offer"):
        check_join(join_op(protocols=RANGE * 101), GroupRules(new_uuid=Uuids()))
