"""What a group tells of its rebalances, for the rebalance journal, spans and log lines.

Plain events, in the order in which they happen; nothing hangs on them. One rebalance is

    RebalanceBegan → GenerationFormed → Assigned → Resumed, for each member that syncs later

and its outcome is *stable* where Assigned came, *empty* where the generation that formed has no
members, and *overtaken* where another RebalanceBegan comes first.

Assignments are the bytes that members exchange: `subscription.moves` tells how many partitions
lie between two of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from ...types import message

if TYPE_CHECKING:
    from .model import Moment


class Trigger(StrEnum):
    """Why a rebalance began."""

    MEMBER_JOINED = "member joined"
    MEMBER_LEFT = "member left"
    ID_GIVEN_BACK = "member id given back unused"
    SESSION_EXPIRED = "session expired"
    SYNC_TIMED_OUT = "member did not sync in time"
    LEADER_REJOINED = "leader rejoined"
    PROTOCOLS_CHANGED = "member changed what it offers"
    STATIC_MEMBER_REPLACED = "static member came back otherwise"
    ASSIGNMENTS_TOO_LARGE = "assignments too large"
    GROUP_TOO_LARGE = "more members than allowed"
    RESTARTED = "broker restarted during a rebalance"


@message
class Share:
    """A member, and what it may read: bytes of its own making, None where it was or is not in."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    before: bytes | None
    after: bytes | None
    pause_ms: int = -1  # since it found out or joined; -1 where it has not got its assignment yet


@message
class RebalanceBegan:
    at: Moment
    trigger: Trigger
    member_id: str  # whose doing it was; "" where it was nobody's
    reason: str  # what that member said, at most 255 letters
    members_before: int  # of the last generation that was stable


@message
class GenerationFormed:
    """The join phase is over. `gone` were in the last stable generation and are not in this."""

    at: Moment
    generation: int
    protocol_type: str
    protocol_name: str
    leader: str
    members: int  # none: the group is empty now
    gone: Sequence[Share]


@message
class Assigned:
    """The leader has brought the assignments: the group is stable. One share for each member."""

    at: Moment
    generation: int
    shares: Sequence[Share]


@message
class Resumed:
    """A member got its assignment after the group was stable already."""

    at: Moment
    generation: int
    member_id: str
    pause_ms: int


GroupEvent: TypeAlias = RebalanceBegan | GenerationFormed | Assigned | Resumed
