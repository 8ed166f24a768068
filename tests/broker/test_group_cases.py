"""Cases of groups that take a whole broker: several versions, or several kinds of requests, together.

The broker is one over memory, asked in bytes.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from rafka.errors import ErrorCode
from rafka.wire.apis.delete_groups import DELETE_GROUPS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR
from rafka.wire.apis.offset_fetch import OFFSET_FETCH

from ..group_asking import TOPIC, World, commit, join, offset, protocols, serving, sync

DELAY_S = 3.0  # in which everybody has come


async def fetch(world: World, group_id: str, **given: Any) -> tuple[int, int]:
    """The error of the group, and what is committed of the first partition."""
    asked = OFFSET_FETCH.Request.Groups
    topic = asked.Topics(name=TOPIC, partition_indexes=[0])
    request = OFFSET_FETCH.Request(groups=[asked(group_id=group_id, topics=[topic], **given)])
    [group] = (await world.client().ask(OFFSET_FETCH, 9, request)).groups
    return group.error_code, group.topics[0].partitions[0].committed_offset


def codes(reply: Any) -> list[int]:
    return [partition.error_code for topic in reply.topics for partition in topic.partitions]


# --- members ---------------------------------------------------------------------------------


async def test_members_of_all_ages_share_a_group_and_each_is_answered_in_its_version(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """CG-182"""
    joined: dict[int, Any] = {}

    async def come(version: int) -> None:
        client, offers = world.client(), protocols("range", metadata=b"%d" % version)
        reply = await join(client, version, protocols=offers)
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            reply = await join(client, version, protocols=offers, member_id=reply.member_id)
        joined[version] = reply

    delay_ms = f"{DELAY_S * 1000:.0f}"
    async with serving(group_initial_rebalance_delay_ms=delay_ms) as world, trio.open_nursery() as members:
        for version in (2, 4, 7, 9):
            members.start_soon(come, version)

    assert {(reply.error_code, reply.generation_id) for reply in joined.values()} == {(0, 1)}
    assert {version: reply.protocol_type for version, reply in joined.items()} == {
        2: None,
        4: None,
        7: "consumer",
        9: "consumer",
    }
    [leader] = [reply for reply in joined.values() if reply.member_id == reply.leader]
    assert {(m.member_id, m.metadata) for m in leader.members} == {
        (reply.member_id, b"%d" % version) for version, reply in joined.items()
    }


# --- offsets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
async def test_a_generation_of_an_absent_group_is_wrong_or_by_newer_clients_not_found(
    version: int, code: ErrorCode
) -> None:
    """CG-123"""
    async with serving() as world:
        given = {"generation_id_or_member_epoch": 5, "member_id": "m"}
        reply = await commit(world.client(), [offset(1)], version, **given)

    assert codes(reply) == [code]


async def test_a_group_without_a_name_has_no_members_and_yet_offsets() -> None:
    """CG-132"""
    async with serving() as world:
        reply = await commit(world.client(), [offset(7)], group_id="")
        found = await fetch(world, "")

    assert codes(reply) == [0]
    assert found == (0, 7)


async def test_whoever_says_who_it_is_when_it_fetches_from_a_classic_group_need_not_be_in_it() -> None:
    """CG-206, its classic half: member and epoch are of the modern protocol."""
    async with serving() as world:
        member = await join(world.client())
        await sync(world.client(), member)
        given = {"generation_id_or_member_epoch": 1, "member_id": member.member_id}
        await commit(world.client(), [offset(7)], **given)
        found = [
            await fetch(world, "g", member_id=member_id, member_epoch=epoch)
            for member_id, epoch in (("", -1), ("nobody", 1), (member.member_id, 99), (None, 3))
        ]

    assert found == [(0, 7)] * 4


# --- administration --------------------------------------------------------------------------


async def test_what_one_may_do_with_a_group_is_told_if_asked_for_and_though_it_is_not_there() -> None:
    """CG-214: without an authorizer, everything."""
    async with serving() as world:
        client = world.client()
        await join(client)
        told = {}
        for asked in (True, False):
            request = DESCRIBE_GROUPS.Request(groups=["g", "absent"], include_authorized_operations=asked)
            described = (await client.ask(DESCRIBE_GROUPS, 5, request)).groups
            told[asked] = [(group.group_id, group.authorized_operations) for group in described]

    assert told == {
        True: [("g", 3400), ("absent", 3400)],
        False: [("g", -(2**31)), ("absent", -(2**31))],
    }


async def test_a_group_twice_is_deleted_once_and_a_coordinator_twice_is_found_twice() -> None:
    """CG-215: a key without letters has one as well."""
    async with serving() as world:
        client = world.client()
        await commit(client, [offset(1)])
        deleted = await client.ask(DELETE_GROUPS, 2, DELETE_GROUPS.Request(groups_names=["g", "g"]))
        request = FIND_COORDINATOR.Request(coordinator_keys=["g", "", "g"])
        found = await client.ask(FIND_COORDINATOR, 6, request)

    assert [(result.group_id, result.error_code) for result in deleted.results] == [("g", 0)]
    assert [(one.key, one.error_code, one.node_id) for one in found.coordinators] == [
        ("g", 0, 0),
        ("", 0, 0),
        ("g", 0, 0),
    ]
