"""Which versions of the group requests there are, that each can be refused, and rafka's own request."""

from __future__ import annotations

from typing import Any

import pytest

from rafka.gateway.routes import ROUTES
from rafka.ops import group
from rafka.wire.api import Api
from rafka.wire.apis.api_versions import API_VERSIONS
from rafka.wire.apis.delete_groups import DELETE_GROUPS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.group_history import GROUP_HISTORY
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.list_groups import LIST_GROUPS
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_delete import OFFSET_DELETE
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.sync_group import SYNC_GROUP

from .group_kit import DENIED, answer, ask, fetching, joining, syncing
from .kit import Client, ScriptedLink, World, raw, request


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


SERVED = {
    OFFSET_COMMIT: (2, 10),
    OFFSET_FETCH: (1, 10),
    JOIN_GROUP: (0, 9),
    HEARTBEAT: (0, 4),
    LEAVE_GROUP: (0, 5),
    SYNC_GROUP: (0, 5),
    DESCRIBE_GROUPS: (0, 6),
    LIST_GROUPS: (0, 5),
    DELETE_GROUPS: (0, 2),
    OFFSET_DELETE: (0, 0),
}


async def test_the_versions_of_kafka_are_served_and_listed(client: Client) -> None:
    """Rule 0.11."""
    listed = {
        each.api_key: (each.min_version, each.max_version)
        for each in (await ask(client, API_VERSIONS, 0, API_VERSIONS.Request())).api_keys
    }

    assert {api.name: listed[api.key] for api in SERVED} == {api.name: span for api, span in SERVED.items()}
    assert listed[10] == (0, 6)


@pytest.mark.parametrize(
    ("key", "version"), [(8, 1), (9, 0), (8, 11), (11, 10), (42, 3), (47, 1), (30_000, 1)]
)
async def test_no_others_are(client: Client, key: int, version: int) -> None:
    await client.send(raw(key, version, b"\0" * 40))

    assert await client.closed()


@pytest.mark.parametrize(("api", "version"), [(OFFSET_COMMIT, 0), (OFFSET_COMMIT, 1), (OFFSET_FETCH, 0)])
async def test_offsets_that_lay_in_zookeeper_are_asked_for_in_vain(
    client: Client, link: ScriptedLink, api: Api, version: int
) -> None:
    """CG-133"""
    await client.send(raw(api.key, version, b"\0\1g\0\0\0\0"))

    assert await client.closed()
    assert link.asked == []


def a_request(api: Api, version: int) -> Any:
    """One that asks for something by which a refusal can be told."""
    bodies = {
        OFFSET_FETCH: lambda: fetching(version),
        JOIN_GROUP: joining,
        SYNC_GROUP: lambda: syncing(protocol_type="consumer", protocol_name="range"),
        DESCRIBE_GROUPS: lambda: DESCRIBE_GROUPS.Request(groups=["a", "a"]),
        DELETE_GROUPS: lambda: DELETE_GROUPS.Request(groups_names=["a"]),
        OFFSET_COMMIT: lambda: OFFSET_COMMIT.Request(
            topics=[
                OFFSET_COMMIT.Request.Topics(partitions=[OFFSET_COMMIT.Request.Topics.Partitions()]),
            ]
        ),
    }
    return bodies.get(api, api.Request)()


@pytest.mark.parametrize(
    ("api", "version"),
    [
        pytest.param(api, version, id=f"{api.name}-v{version}")
        for api in (*SERVED, GROUP_HISTORY)
        for version in api.versions
    ],
)
async def test_every_version_can_be_told_of_a_refusal(
    client: Client, link: ScriptedLink, api: Api, version: int
) -> None:
    op = ROUTES[api.key].op
    assert op is not None
    answer(link, op, DENIED)

    assert "error_code=30" in repr(await ask(client, api, version, a_request(api, version)))


# --- rafka's own -------------------------------------------------------------------------------------


async def keys_listed_to(client: Client, name: str, version: int = 4) -> set[int]:
    asked = API_VERSIONS.Request(client_software_name=name, client_software_version="1")
    return {each.api_key for each in (await ask(client, API_VERSIONS, version, asked)).api_keys}


async def test_the_history_is_listed_to_rafka_s_own_client_only(client: Client) -> None:
    assert await keys_listed_to(client, "rafka") - await keys_listed_to(client, "apache-kafka-java") == {
        30_000
    }
    assert 30_000 not in await keys_listed_to(client, "Rafka")
    assert 30_000 not in await keys_listed_to(client, "rafka", version=0)


async def test_the_history_of_a_group_goes_through_whole(client: Client, link: ScriptedLink) -> None:
    member = group.MovedMember(
        member_id="ann-1",
        group_instance_id="ann",
        client_id="ann",
        client_host="/127.0.0.1",
        joined=True,
        gained=3,
        lost=1,
        pause_ms=250,
    )
    rebalance = group.Rebalance(
        number=7,
        began_ms=1_700_000_000_000,
        trigger="member joined",
        trigger_member="bob-1",
        reason="deploy",
        outcome="stable",
        generation_id=4,
        protocol_type="consumer",
        protocol_name="range",
        leader="ann-1",
        join_ms=40,
        sync_ms=12,
        members_before=1,
        members_after=2,
        moved=2,
        members=[member],
        told_ms=1_700_000_000_060,
    )
    told = group.GroupHistoryReply(
        stable_id="cgp_x", locator="default/consumer-groups/g", rebalances=[rebalance]
    )
    answer(link, group.GroupHistory, told)
    asked = GROUP_HISTORY.Request(group_id="g", after=6, max_wait_ms=500)
    frame = request(GROUP_HISTORY, 0, asked)

    await client.send(frame)
    data = memoryview(await client.frame())

    reply, end = GROUP_HISTORY.response_decoder(0, group.GroupHistoryReply)(data, 5)
    assert end == len(data)
    assert reply == told
    assert link.asked == [group.GroupHistory(group_id="g", after=6, max_wait_ms=500)]
