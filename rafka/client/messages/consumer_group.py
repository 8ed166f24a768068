"""What brokers tell of groups of the next-generation protocol."""

from __future__ import annotations

from typing import ClassVar

from ...types import message
from ...wire.api import Api
from ...wire.apis.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from .base import Request


@message
class TopicShare:
    topic_name: str
    partitions: list[int]


@message
class ConsumerShare:
    topic_partitions: list[TopicShare]


@message
class ConsumerMember:
    member_id: str
    instance_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    assignment: ConsumerShare
    target_assignment: ConsumerShare


@message
class ConsumerGroupEntry:
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: list[ConsumerMember]


@message
class ConsumerGroupDescribeReply:
    groups: list[ConsumerGroupEntry]


@message
class ConsumerGroupDescribe(Request[ConsumerGroupDescribeReply]):
    api: ClassVar[Api] = CONSUMER_GROUP_DESCRIBE
    reply = ConsumerGroupDescribeReply

    group_ids: list[str]
