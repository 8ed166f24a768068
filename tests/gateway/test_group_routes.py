"""Groups over the wire: what each version tells an op, and what it makes of the reply.

The link answers as the test says. What a group does is in `tests/machines`.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from rafka.errors import ErrorCode
from rafka.ops import group
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.list_groups import LIST_GROUPS
from rafka.wire.apis.sync_group import SYNC_GROUP

from .group_kit import DENIED, answer, ask, joining, syncing
from .kit import Client, ScriptedLink, World, request

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


# --- JoinGroup -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", JOIN_GROUP.versions)
async def test_a_join_says_by_its_version_what_its_client_knows(
    client: Client, link: ScriptedLink, version: int
) -> None:
    """A.1: one timeout for both in version 0; KIP-394 from 4 on; KIP-814 from 9 on."""
    answer(link, group.JoinGroup, group.JoinGroupReply())

    await ask(client, JOIN_GROUP, version, joining(rebalance_timeout_ms=60_000 if version else -1))

    [op] = link.asked
    assert isinstance(op, group.JoinGroup)
    assert (op.group_id, op.protocol_type, op.member_id) == ("g", "consumer", "")
    assert (op.session_timeout_ms, op.rebalance_timeout_ms) == (10_000, 60_000 if version else 10_000)
    assert op.protocols == [group.JoinProtocol(name="range", metadata=b"m")]
    assert (op.id_required, op.may_skip) == (version >= 4, version >= 9)


async def test_a_timeout_of_nothing_is_the_client_s_own(client: Client, link: ScriptedLink) -> None:
    """J3: the rebalance timeout is not checked, and from version 1 on it is never made up."""
    answer(link, group.JoinGroup, group.JoinGroupReply())

    await ask(client, JOIN_GROUP, 5, joining(rebalance_timeout_ms=0, group_instance_id=""))
    await ask(client, JOIN_GROUP, 8, joining(rebalance_timeout_ms=-1, reason="a new day"))

    first, second = link.asked
    assert isinstance(first, group.JoinGroup)
    assert isinstance(second, group.JoinGroup)
    assert (first.rebalance_timeout_ms, first.group_instance_id, first.reason) == (0, "", None)
    assert (second.rebalance_timeout_ms, second.group_instance_id, second.reason) == (-1, None, "a new day")


@pytest.mark.parametrize("version", JOIN_GROUP.versions)
async def test_an_answer_that_cannot_be_written_is_refused_in_the_words_of_its_version(
    client: Client, link: ScriptedLink, version: int
) -> None:
    answer(link, group.JoinGroup, group.JoinGroupReply(member_id="x" * 40_000))

    reply = await ask(client, JOIN_GROUP, version, joining(rebalance_timeout_ms=60_000 if version else -1))

    assert (reply.error_code, reply.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert reply.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize("version", JOIN_GROUP.versions)
async def test_a_leader_is_told_the_roll(client: Client, link: ScriptedLink, version: int) -> None:
    joined = group.JoinGroupReply(
        generation_id=3,
        protocol_type="consumer",
        protocol_name="range",
        leader="ann",
        skip_assignment=True,
        member_id="ann",
        members=[
            group.JoinedMember(member_id="ann", metadata=b"1"),
            group.JoinedMember(member_id="bob", group_instance_id="b", metadata=b"2"),
        ],
    )
    answer(link, group.JoinGroup, joined)

    reply = await ask(client, JOIN_GROUP, version, joining())

    assert (reply.error_code, reply.generation_id, reply.leader, reply.member_id) == (0, 3, "ann", "ann")
    assert [(m.member_id, m.metadata) for m in reply.members] == [("ann", b"1"), ("bob", b"2")]
    assert [m.group_instance_id for m in reply.members] == [None, "b" if version >= 5 else None]
    assert (reply.protocol_name, reply.skip_assignment) == ("range", version >= 9)
    assert reply.protocol_type == ("consumer" if version >= 7 else None)


@pytest.mark.parametrize("version", JOIN_GROUP.versions)
@pytest.mark.parametrize("name", [None, ""])
async def test_no_protocol_is_an_empty_name_or_null(
    client: Client, link: ScriptedLink, version: int, name: str | None
) -> None:
    """A.1: `""` before version 7, null from then on, whatever the coordinator says."""
    answer(link, group.JoinGroup, group.JoinGroupReply(error_code=UNKNOWN, protocol_name=name))

    reply = await ask(client, JOIN_GROUP, version, joining())

    assert reply.protocol_name == (None if version >= 7 else "")


async def test_one_reply_may_serve_clients_of_all_ages(world: World, link: ScriptedLink) -> None:
    answer(link, group.JoinGroup, group.JoinGroupReply(error_code=REBALANCE))
    clients = {version: world.connect() for version in (9, 6, 7, 0)}

    names = {
        version: (await ask(client, JOIN_GROUP, version, joining())).protocol_name
        for version, client in clients.items()
    }

    assert names == {9: None, 6: "", 7: None, 0: ""}


@pytest.mark.parametrize("version", JOIN_GROUP.versions)
async def test_a_join_that_is_refused_has_the_defaults_and_echoes_its_member(
    client: Client, link: ScriptedLink, version: int
) -> None:
    answer(link, group.JoinGroup, ErrorCode.INVALID_SESSION_TIMEOUT)

    reply = await ask(client, JOIN_GROUP, version, joining(member_id="ann"))

    assert (reply.error_code, reply.generation_id, reply.member_id) == (26, -1, "ann")
    assert (reply.protocol_type, reply.leader, reply.members, reply.skip_assignment) == (None, "", [], False)


async def test_a_refused_join_chose_no_protocol_which_is_empty_up_to_version_6_and_null_since(
    client: Client, link: ScriptedLink
) -> None:
    """CG-017"""
    answer(link, group.JoinGroup, ErrorCode.UNKNOWN_MEMBER_ID)

    replies = [await ask(client, JOIN_GROUP, version, joining(member_id="ann")) for version in (6, 7)]

    assert [reply.error_code for reply in replies] == [25, 25]
    assert [reply.protocol_name for reply in replies] == ["", None]
    assert replies[1].protocol_type is None


# --- SyncGroup -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "said", "code"),
    [
        (0, {}, 0),
        (4, {}, 0),
        (5, {"protocol_type": "consumer", "protocol_name": "range"}, 0),
        (5, {"protocol_type": "", "protocol_name": ""}, 0),
        (5, {"protocol_type": "consumer"}, 23),
        (5, {"protocol_name": "range"}, 23),
        (5, {}, 23),
        (5, {"group_id": ""}, 23),
    ],
)
async def test_a_sync_has_to_name_its_protocol_from_version_5_on(
    client: Client, link: ScriptedLink, version: int, said: dict[str, Any], code: int
) -> None:
    """S1: before anything else is looked at."""
    answer(link, group.SyncGroup, group.SyncGroupReply(assignment=b"all"))

    reply = await ask(client, SYNC_GROUP, version, syncing(**said))

    assert (reply.error_code, reply.assignment) == (code, b"" if code else b"all")
    assert len(link.asked) == (not code)


@pytest.mark.parametrize("version", SYNC_GROUP.versions)
async def test_an_assignment_goes_through_as_it_is(client: Client, link: ScriptedLink, version: int) -> None:
    answer(
        link,
        group.SyncGroup,
        group.SyncGroupReply(protocol_type="consumer", protocol_name="range", assignment=b"\x00\xff"),
    )
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    parts = [SYNC_GROUP.Request.Assignments(member_id=name, assignment=name.encode()) for name in ("a", "b")]

    reply = await ask(client, SYNC_GROUP, version, syncing(assignments=parts, **named))

    assert reply.assignment == b"\x00\xff"
    assert (reply.protocol_type, reply.protocol_name) == (
        ("consumer", "range") if version >= 5 else (None, None)
    )
    [op] = link.asked
    assert isinstance(op, group.SyncGroup)
    assert op.assignments == [
        group.MemberAssignment(member_id="a", assignment=b"a"),
        group.MemberAssignment(member_id="b", assignment=b"b"),
    ]
    assert (op.protocol_type, op.protocol_name) == (named.get("protocol_type"), named.get("protocol_name"))


# --- Heartbeat, LeaveGroup -------------------------------------------------------------------------


@pytest.mark.parametrize("version", HEARTBEAT.versions)
async def test_a_heartbeat(client: Client, link: ScriptedLink, version: int) -> None:
    answer(link, group.Heartbeat, group.HeartbeatReply(error_code=REBALANCE))
    beat = HEARTBEAT.Request(group_id="g", generation_id=4, member_id="ann")
    if version >= 3:
        beat.group_instance_id = "a"

    reply = await ask(client, HEARTBEAT, version, beat)

    assert reply.error_code == REBALANCE
    assert link.asked == [
        group.Heartbeat(
            group_id="g", generation_id=4, member_id="ann", group_instance_id="a" if version >= 3 else None
        )
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (group.LeaveGroupReply(members=[group.LeaverReply(member_id="ann")]), 0),
        (group.LeaveGroupReply(members=[group.LeaverReply(member_id="ann", error_code=UNKNOWN)]), 25),
        (group.LeaveGroupReply(error_code=ErrorCode.INVALID_GROUP_ID), 24),
        (DENIED, 30),
    ],
)
async def test_one_member_leaves_and_its_error_is_the_answer_before_version_3(
    client: Client, link: ScriptedLink, version: int, reply: Any, code: int
) -> None:
    """A.10, L2."""
    answer(link, group.LeaveGroup, reply)

    said = await ask(client, LEAVE_GROUP, version, LEAVE_GROUP.Request(group_id="g", member_id="ann"))

    assert said.error_code == code
    [op] = link.asked
    assert isinstance(op, group.LeaveGroup)
    assert op.members == [group.Leaver(member_id="ann")]


async def test_an_unknown_member_that_leaves_is_told_in_one_code_and_no_more(
    client: Client, link: ScriptedLink
) -> None:
    """CG-117: of version 2, a header, a throttle time and the code are all there is on the wire."""
    unknown = group.LeaverReply(member_id="nobody", error_code=UNKNOWN)
    answer(link, group.LeaveGroup, group.LeaveGroupReply(members=[unknown]))

    await client.send(request(LEAVE_GROUP, 2, LEAVE_GROUP.Request(group_id="g", member_id="nobody")))

    assert await client.frame() == struct.pack(">iih", 1, 0, 25)


@pytest.mark.parametrize("version", [3, 4, 5])
async def test_members_leave_together_from_version_3_on(
    client: Client, link: ScriptedLink, version: int
) -> None:
    """The answer of the whole is apart from those of its members; nobody leaving is no error (L12)."""
    answer(
        link,
        group.LeaveGroup,
        group.LeaveGroupReply(
            members=[
                group.LeaverReply(member_id="", group_instance_id="a"),
                group.LeaverReply(member_id="bob", error_code=UNKNOWN),
            ]
        ),
    )
    leavers = [
        LEAVE_GROUP.Request.Members(member_id="", group_instance_id="a"),
        LEAVE_GROUP.Request.Members(member_id="bob"),
    ]
    if version >= 5:
        leavers[1].reason = "the day is over"

    reply = await ask(client, LEAVE_GROUP, version, LEAVE_GROUP.Request(group_id="g", members=leavers))
    await ask(client, LEAVE_GROUP, version, LEAVE_GROUP.Request(group_id="g", members=[]))

    assert reply.error_code == 0
    assert [(m.member_id, m.group_instance_id, m.error_code) for m in reply.members] == [
        ("", "a", 0),
        ("bob", None, 25),
    ]
    first, second = link.asked
    assert isinstance(first, group.LeaveGroup)
    assert isinstance(second, group.LeaveGroup)
    assert first.members == [
        group.Leaver(member_id="", group_instance_id="a"),
        group.Leaver(member_id="bob", reason="the day is over" if version >= 5 else None),
    ]
    assert second.members == []


# --- describe, list, delete ------------------------------------------------------------------------


@pytest.mark.parametrize("version", DESCRIBE_GROUPS.versions)
async def test_a_describe_says_whether_its_client_knows_of_absence(
    client: Client, link: ScriptedLink, version: int
) -> None:
    """DE1, DE4, CG-151."""
    absent = group.DescribedGroup(
        group_id="g",
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE,
        error_message="Group g not found.",
        group_state="Dead",
    )
    answer(link, group.DescribeGroups, group.DescribeGroupsReply(groups=[absent]))

    asked = DESCRIBE_GROUPS.Request(groups=["g"], include_authorized_operations=version >= 3)
    [told] = (await ask(client, DESCRIBE_GROUPS, version, asked)).groups

    assert (told.error_code, told.group_state) == (69 if version >= 6 else 0, "Dead")
    assert told.error_message == ("Group g not found." if version >= 6 else None)
    assert told.authorized_operations == -(2**31)
    [op] = link.asked
    assert isinstance(op, group.DescribeGroups)
    assert (op.groups, op.absence_told) == (["g"], version >= 6)
    assert op.include_authorized_operations is (version >= 3)


@pytest.mark.parametrize("version", LIST_GROUPS.versions)
async def test_a_list_is_filtered_by_those_who_can_ask_for_it(
    client: Client, link: ScriptedLink, version: int
) -> None:
    """LG2, LG3."""
    listed = group.ListedGroup(
        group_id="g", protocol_type="consumer", group_state="Stable", group_type="classic"
    )
    answer(link, group.ListGroups, group.ListGroupsReply(groups=[listed]))
    asked = LIST_GROUPS.Request(
        states_filter=["stable"] if version >= 4 else [], types_filter=["Classic"] if version >= 5 else []
    )

    [told] = (await ask(client, LIST_GROUPS, version, asked)).groups

    assert (told.group_id, told.protocol_type) == ("g", "consumer")
    assert told.group_state == ("Stable" if version >= 4 else "")
    assert told.group_type == ("classic" if version >= 5 else "")
    [op] = link.asked
    assert isinstance(op, group.ListGroups)
    assert (list(op.states_filter), list(op.types_filter)) == (asked.states_filter, asked.types_filter)
