"""Administrators' questions go to the broker that coordinates the group, in whichever version it speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from rafka.client import (
    Address,
    BrokerRefused,
    Client,
    CommittedOffset,
    MemberDescription,
    MemberRef,
    TopicPartition,
    UnknownGroup,
    UnsupportedVersion,
    connect,
)
from rafka.client.assignors import write_assignment
from rafka.errors import ErrorCode
from rafka.wire.apis.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from rafka.wire.apis.delete_groups import DELETE_GROUPS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.find_coordinator import FIND_COORDINATOR
from rafka.wire.apis.group_history import GROUP_HISTORY
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.list_groups import LIST_GROUPS
from rafka.wire.apis.offset_delete import OFFSET_DELETE
from rafka.wire.apis.offset_fetch import OFFSET_FETCH

from .group_broker import GroupBroker
from .scripted import Handler, Network, ScriptedBroker

ONE = TopicPartition("orders", 0)
TWO = TopicPartition("orders", 1)
OTHER = Address("other", 9092)


@pytest.fixture
def broker() -> GroupBroker:
    return GroupBroker(topics={"orders": 2})


@pytest.fixture
async def client(network: Network) -> AsyncIterator[Client]:
    async with connect("broker", dial=network.dial) as client:
        yield client


def described(broker: ScriptedBroker, **fields: Any) -> None:
    response: Any = DESCRIBE_GROUPS.Response

    def answer(request: Any, version: int) -> Any:
        return response(groups=[response.Groups(group_id=request.groups[0], **fields)])

    broker.answers["DescribeGroups"] = answer


# --- finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("newest", [0, 3, 4, 6])
async def test_the_coordinator_is_found_in_every_version(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, newest: int
) -> None:
    broker.versions[FIND_COORDINATOR.key] = (0, newest)
    broker.offsets = {ONE: 5}

    async with connect("broker", dial=network.dial) as client:
        assert await client.groups.offsets("billing", [ONE]) == {ONE: CommittedOffset(offset=5)}
    assert [version for name, version, _ in broker.asked if name == "FindCoordinator"] == [newest]


async def test_a_question_goes_to_the_coordinator_and_to_no_other(
    client: Client, broker: GroupBroker, network: Network
) -> None:
    coordinator = GroupBroker(node_id=2, address=OTHER, nodes={1: broker.address, 2: OTHER}, offsets={ONE: 5})
    network.brokers[OTHER] = coordinator
    broker.nodes, broker.node_id = coordinator.nodes, 2

    await client.groups.offsets("billing")

    assert "OffsetFetch" in coordinator.names()
    assert "OffsetFetch" not in broker.names()


async def test_a_coordinator_that_moved_is_found_again(
    client: Client, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.plant("OffsetFetch", ErrorCode.NOT_COORDINATOR)
    broker.plant("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    broker.offsets = {ONE: 5}

    assert await client.groups.offsets("billing") == {ONE: CommittedOffset(offset=5)}
    assert broker.names().count("FindCoordinator") == 3


async def test_a_coordinator_that_never_comes_is_told_when_the_time_is_up(
    client: Client, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.plant("FindCoordinator", *[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 100)
    began = trio.current_time()

    with pytest.raises(BrokerRefused, match="group 'billing': COORDINATOR_NOT_AVAILABLE"):
        await client.groups.offsets("billing")
    assert 28 < trio.current_time() - began <= 30


# --- listing and describing --------------------------------------------------------------------


async def test_groups_of_all_brokers_are_listed(
    client: Client, broker: GroupBroker, network: Network
) -> None:
    response: Any = LIST_GROUPS.Response
    second = GroupBroker(node_id=2, address=OTHER, nodes={1: broker.address, 2: OTHER})
    network.brokers[OTHER] = second
    broker.nodes = second.nodes

    def listing(name: str) -> Handler:
        entry = response.Groups(group_id=name, protocol_type="consumer", group_state="Stable")
        return lambda request, version: response(groups=[entry])

    broker.answers["ListGroups"], second.answers["ListGroups"] = listing("b"), listing("a")

    listed = await client.groups.list_all(["Stable"])

    assert [(one.group_id, one.state) for one in listed] == [("a", "Stable"), ("b", "Stable")]


async def test_a_broker_that_cannot_filter_by_state_is_not_asked_to(
    client: Client, broker: GroupBroker
) -> None:
    broker.versions[LIST_GROUPS.key] = (0, 3)
    broker.answers["ListGroups"] = lambda request, version: LIST_GROUPS.Response()

    assert await client.groups.list_all() == []
    with pytest.raises(UnsupportedVersion):
        await client.groups.list_all(["Stable"])


async def test_members_are_described_with_what_they_read(client: Client, broker: GroupBroker) -> None:
    entry: Any = DESCRIBE_GROUPS.Response.Groups.Members
    described(
        broker,
        group_state="Stable",
        protocol_type="consumer",
        protocol_data="range",
        members=[
            entry(member_id="m", client_id="c", client_host="/h", member_assignment=write_assignment([TWO])),
            entry(member_id="n", member_assignment=b"\0"),  # whatever that is
        ],
    )

    group = await client.groups.describe("billing")

    assert (group.state, group.protocol, group.coordinator.node_id) == ("Stable", "range", 1)
    assert [(one.member_id, one.assignment) for one in group.members] == [("m", (TWO,)), ("n", ())]


async def test_what_is_not_of_consumers_is_not_read(client: Client, broker: GroupBroker) -> None:
    entry: Any = DESCRIBE_GROUPS.Response.Groups.Members
    members = [entry(member_id="m", member_assignment=write_assignment([TWO]))]
    described(broker, group_state="Stable", protocol_type="connect", members=members)

    assert (await client.groups.describe("workers")).members[0].assignment == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"error_code": 69, "error_message": "Group billing not found.", "group_state": "Dead"},
        {"group_state": "Dead"},  # before version 6
    ],
)
async def test_a_group_that_is_not_there_is_said_so(
    client: Client, broker: GroupBroker, fields: dict[str, Any]
) -> None:
    described(broker, **fields)

    with pytest.raises(UnknownGroup, match=r"group 'billing'.*it does not exist"):
        await client.groups.describe("billing")


async def test_a_group_of_another_protocol_is_not_taken_for_missing(
    client: Client, broker: GroupBroker
) -> None:
    described(broker, error_code=69, error_message="Group billing is not a classic group.")

    with pytest.raises(BrokerRefused, match="it is of another kind") as caught:
        await client.groups.describe("billing")
    assert not isinstance(caught.value, UnknownGroup)


ABSENT = {"error_code": 69, "error_message": "Group billing is not a classic group.", "group_state": "Dead"}


@pytest.mark.parametrize("fields", [ABSENT, {"group_state": "Dead"}], ids=["now", "before version 6"])
async def test_a_group_of_the_next_generation_is_described_by_its_own_api(
    client: Client, broker: GroupBroker, fields: dict[str, Any]
) -> None:
    described(broker, **fields)
    response: Any = CONSUMER_GROUP_DESCRIBE.Response
    entry = response.Groups.Members

    def share(*partitions: int) -> Any:
        topic = entry.Assignment.TopicPartitions(topic_name="orders", partitions=list(partitions))
        return entry.Assignment(topic_partitions=[topic])

    member = entry(
        member_id="m",
        instance_id="pod-1",
        member_epoch=6,
        client_id="c",
        client_host="/h",
        assignment=share(1),
        target_assignment=share(1, 0),
    )
    broker.answers["ConsumerGroupDescribe"] = lambda request, version: response(
        groups=[
            response.Groups(
                group_id="billing",
                group_state="Reconciling",
                group_epoch=7,
                assignment_epoch=7,
                assignor_name="uniform",
                members=[member],
            )
        ]
    )

    group = await client.groups.describe("billing")

    assert (group.type, group.state, group.protocol) == ("consumer", "Reconciling", "uniform")
    assert (group.epoch, group.target_epoch, group.coordinator.node_id) == (7, 7, 1)
    assert group.members == [
        MemberDescription(
            member_id="m",
            instance_id="pod-1",
            client_id="c",
            host="/h",
            assignment=(TWO,),
            epoch=6,
            target=(ONE, TWO),
        )
    ]


@pytest.mark.parametrize(("code", "error"), [(69, UnknownGroup), (30, BrokerRefused)])
async def test_what_both_apis_refuse_is_refused(
    client: Client, broker: GroupBroker, code: int, error: type[BrokerRefused]
) -> None:
    described(broker, error_code=69, error_message="Group billing not found.", group_state="Dead")
    response: Any = CONSUMER_GROUP_DESCRIBE.Response
    entry = response.Groups(group_id="billing", error_code=code)
    broker.answers["ConsumerGroupDescribe"] = lambda request, version: response(groups=[entry])

    with pytest.raises(error) as caught:
        await client.groups.describe("billing")
    assert caught.value.code == code


async def test_a_broker_without_such_groups_is_not_asked_for_them(
    client: Client, broker: GroupBroker
) -> None:
    described(broker, error_code=69, error_message="Group billing not found.", group_state="Dead")
    broker.versions[CONSUMER_GROUP_DESCRIBE.key] = (0, -1)

    with pytest.raises(UnknownGroup):
        await client.groups.describe("billing")
    assert "ConsumerGroupDescribe" not in broker.names()


# --- offsets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("newest", [1, 7, 9])
async def test_offsets_are_asked_for_in_every_shape(client: Client, broker: GroupBroker, newest: int) -> None:
    broker.versions[OFFSET_FETCH.key] = (1, newest)
    broker.offsets = {TWO: 7}

    assert await client.groups.offsets("billing", [ONE, TWO]) == {TWO: CommittedOffset(offset=7)}


async def test_all_offsets_need_a_broker_that_can_be_asked_for_all(
    client: Client, broker: GroupBroker
) -> None:
    broker.versions[OFFSET_FETCH.key] = (1, 1)

    with pytest.raises(UnsupportedVersion, match="OffsetFetch"):
        await client.groups.offsets("billing")


async def test_an_offset_that_a_transaction_may_move_is_waited_for(
    client: Client, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.plant("OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    broker.offsets = {ONE: 7}

    assert await client.groups.offsets("billing", require_stable=True) == {ONE: CommittedOffset(offset=7)}
    assert all(request.require_stable for name, _, request in broker.asked if name == "OffsetFetch")


async def test_moving_a_group_is_a_commit_from_outside(client: Client, broker: GroupBroker) -> None:
    assert await client.groups.alter_offsets("billing", {ONE: 5, TWO: CommittedOffset(offset=6)}) == {
        ONE: None,
        TWO: None,
    }

    [asked] = [request for name, _, request in broker.asked if name == "OffsetCommit"]
    assert (asked.generation_id_or_member_epoch, asked.member_id) == (-1, "")
    assert broker.offsets == {ONE: 5, TWO: 6}


async def test_each_partition_tells_whether_it_was_moved(client: Client, broker: GroupBroker) -> None:
    broker.plant("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID)

    [(target, error)] = (await client.groups.alter_offsets("billing", {ONE: 5})).items()

    assert target == ONE
    assert isinstance(error, BrokerRefused)
    assert str(error).startswith("group 'billing', orders-0: UNKNOWN_MEMBER_ID")


async def test_offsets_are_forgotten_one_by_one(client: Client, broker: GroupBroker) -> None:
    response: Any = OFFSET_DELETE.Response
    entry = response.Topics.Partitions
    broker.answers["OffsetDelete"] = lambda request, version: response(
        topics=[
            response.Topics(
                name="orders",
                partitions=[entry(partition_index=0), entry(partition_index=1, error_code=86)],
            )
        ]
    )

    refusals = await client.groups.delete_offsets("billing", [ONE, TWO])

    assert refusals[ONE] is None
    assert isinstance(refusals[TWO], BrokerRefused)
    assert "GROUP_SUBSCRIBED_TO_TOPIC" in str(refusals[TWO])

    broker.answers["OffsetDelete"] = lambda request, version: response(error_code=69)
    with pytest.raises(UnknownGroup):
        await client.groups.delete_offsets("billing", [ONE])


# --- taking away -----------------------------------------------------------------------------------


async def test_each_group_tells_whether_it_was_deleted(client: Client, broker: GroupBroker) -> None:
    response: Any = DELETE_GROUPS.Response
    codes = {"gone": 0, "busy": 68}
    broker.answers["DeleteGroups"] = lambda request, version: response(
        results=[
            response.Results(group_id=name, error_code=codes.get(name, 69)) for name in request.groups_names
        ]
    )

    outcomes = await client.groups.delete(["gone", "busy", "never", "gone"])

    assert [(one.subject, one.error and one.error.code) for one in outcomes] == [
        ("gone", None),
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("never", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


async def test_members_are_removed_by_id_or_by_instance(client: Client, broker: GroupBroker) -> None:
    response: Any = LEAVE_GROUP.Response
    broker.answers["LeaveGroup"] = lambda request, version: response(
        members=[
            response.Members(member_id=one.member_id, error_code=0 if one.member_id else 25)
            for one in request.members
        ]
    )

    outcomes = await client.groups.remove_members(
        "billing", [MemberRef(member_id="m"), MemberRef(instance_id="pod-1")], reason="moved"
    )

    assert outcomes[0].error is None
    assert str(outcomes[1].error).startswith("group 'billing', instance 'pod-1': UNKNOWN_MEMBER_ID")
    [asked] = [request for name, _, request in broker.asked if name == "LeaveGroup"]
    assert [one.reason for one in asked.members] == ["moved", "moved"]


async def test_history_is_only_asked_of_who_keeps_it(client: Client, broker: GroupBroker) -> None:
    broker.versions[GROUP_HISTORY.key] = (0, -1)

    with pytest.raises(UnsupportedVersion, match="GroupHistory"):
        await client.groups.history("billing")
