"""What rafka tells of the rebalances of a group. Kafka has no such request."""

from __future__ import annotations

from typing import ClassVar

from ...types import message
from ...wire.api import Api
from ...wire.apis.group_history import GROUP_HISTORY
from .base import Request


@message
class MovedMember:
    """What one member went through. -1 where it cannot be told."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    joined: bool  # in the generation that formed; otherwise it was in the one before and is gone
    gained: int
    lost: int
    pause_ms: int


@message
class Rebalance:
    """One rebalance: why it began, how long its phases took, and what came of it."""

    number: int
    began_ms: int
    trigger: str
    trigger_member: str
    reason: str
    outcome: str
    generation_id: int
    protocol_type: str
    protocol_name: str
    leader: str
    join_ms: int
    sync_ms: int
    members_before: int
    members_after: int
    moved: int
    members: list[MovedMember]
    told_ms: int


@message
class GroupHistoryReply:
    error_code: int
    error_message: str | None
    stable_id: str
    locator: str
    rebalances: list[Rebalance]


@message
class GroupHistory(Request[GroupHistoryReply]):
    api: ClassVar[Api] = GROUP_HISTORY
    reply = GroupHistoryReply

    group_id: str
    after: int = 0
    max_wait_ms: int = 0
