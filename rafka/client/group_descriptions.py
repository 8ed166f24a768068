"""What a group is and who is in it, whichever of Kafka's two protocols its members speak.

Brokers describe classic groups and those of the next generation (KIP-848) by different APIs, and
each says of the other's groups that they are not there.
"""

from __future__ import annotations

from typing import Final

from ..errors import ErrorCode
from ..types import Buffer, message
from ..wire.errors import WireError
from .assignors import read_assignment
from .cluster import Cluster
from .coordinator import Coordinator
from .errors import BrokerRefused, UnknownGroup, UnsupportedVersion, group_named, refused
from .messages import ConsumerGroupDescribe, DescribeGroups
from .messages.consumer_group import (
    ConsumerGroupDescribeReply,
    ConsumerGroupEntry,
    ConsumerMember,
    ConsumerShare,
)
from .messages.group import DescribeGroupsReply, GroupEntry, GroupMember
from .model import Node, TopicPartition

CONSUMER: Final = "consumer"  # the protocol type of groups whose members are consumers
DEAD: Final = "Dead"
EMPTY: Final = "Empty"
CLASSIC: Final = "classic"
NEXT_GENERATION: Final = "consumer"  # Kafka's name for this type of group, in ListGroups too


@message
class MemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    epoch: int | None = None  # this and the next of members of the next generation only
    target: tuple[TopicPartition, ...] | None = None  # what it is to have, once others have given it up


@message
class GroupDescription:
    group_id: str
    state: str
    protocol_type: str
    protocol: str  # how its members share the partitions
    members: list[MemberDescription]
    coordinator: Node
    type: str = CLASSIC
    epoch: int | None = None  # this and the next of groups of the next generation only
    target_epoch: int | None = None  # for which the targets of its members were worked out


async def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Raises UnknownGroup where there is none, BrokerRefused where its kind is neither of the two."""
    coordinator = Coordinator(cluster, group_id)
    reply = await coordinator.ask(DescribeGroups(groups=[group_id]), _codes)
    [entry] = reply.groups
    if entry.error_code not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise refused(entry.error_code, group_named(group_id), entry.error_message)
    at = cluster.nodes[await coordinator.node_id()]
    if entry.error_code or entry.group_state == DEAD:  # Dead is how brokers said it before version 6
        newer = await _of_next_generation(coordinator)
        if newer is None:
            raise _absence(entry)
        return _described_newer(newer, at)
    return GroupDescription(
        group_id=entry.group_id,
        state=entry.group_state,
        protocol_type=entry.protocol_type,
        protocol=entry.protocol_data,
        members=[_member(entry.protocol_type, one) for one in entry.members],
        coordinator=at,
    )


async def _of_next_generation(coordinator: Coordinator) -> ConsumerGroupEntry | None:
    request = ConsumerGroupDescribe(group_ids=[coordinator.group_id])
    try:
        [entry] = (await coordinator.ask(request, _codes)).groups
    except UnsupportedVersion:  # a broker without such groups
        return None
    if entry.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    if entry.error_code:
        raise refused(entry.error_code, group_named(coordinator.group_id), entry.error_message)
    return entry


def _described_newer(entry: ConsumerGroupEntry, coordinator: Node) -> GroupDescription:
    return GroupDescription(
        group_id=entry.group_id,
        state=entry.group_state,
        protocol_type=CONSUMER,
        protocol=entry.assignor_name,
        members=[_newer_member(one) for one in entry.members],
        coordinator=coordinator,
        type=NEXT_GENERATION,
        epoch=entry.group_epoch,
        target_epoch=entry.assignment_epoch,
    )


def _newer_member(entry: ConsumerMember) -> MemberDescription:
    return MemberDescription(
        member_id=entry.member_id,
        instance_id=entry.instance_id,
        client_id=entry.client_id,
        host=entry.client_host,
        assignment=_partitions(entry.assignment),
        epoch=entry.member_epoch,
        target=_partitions(entry.target_assignment),
    )


def _partitions(share: ConsumerShare) -> tuple[TopicPartition, ...]:
    topics = share.topic_partitions
    return tuple(
        sorted(TopicPartition(one.topic_name, number) for one in topics for number in one.partitions)
    )


def _member(protocol_type: str, entry: GroupMember) -> MemberDescription:
    return MemberDescription(
        member_id=entry.member_id,
        instance_id=entry.group_instance_id,
        client_id=entry.client_id,
        host=entry.client_host,
        assignment=_assigned(entry.member_assignment) if protocol_type == CONSUMER else (),
    )


def _assigned(data: Buffer) -> tuple[TopicPartition, ...]:
    try:
        return tuple(sorted(read_assignment(data)))
    except WireError:  # members may write what they like
        return ()


def _absence(entry: GroupEntry) -> BrokerRefused:
    if "not a classic group" in (entry.error_message or ""):
        why = "it is of another kind than groups of consumers"
        return BrokerRefused(ErrorCode.GROUP_ID_NOT_FOUND, group_named(entry.group_id), why)
    return UnknownGroup(group_named(entry.group_id))


def _codes(reply: DescribeGroupsReply | ConsumerGroupDescribeReply) -> list[int]:
    return [one.error_code for one in reply.groups]
