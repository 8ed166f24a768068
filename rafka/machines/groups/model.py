"""What every machine of this package speaks: time, who asks, what is decided, and a group's states.

    EMPTY ──join──▶ PREPARING ──all joined, or deadline──▶ COMPLETING ──leader syncs──▶ STABLE
      ▲              ▲  │  ▲                                   │                          │
      └──nobody left────┘  └──a join, a leave, a silence───────┴──────────────────────────┘

`TRANSITIONS` says the same to the interpreter: what is not in it is refused, and the docs are
drawn from it. A *token* is whoever waits for an answer; machines keep it and never look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

import attrs

from ...types import OrgId
from ..facts import Fact
from .events import GroupEvent

GroupKey: TypeAlias = tuple[OrgId, str]  # whose it is, and its group.id

Token = TypeVar("Token")  # a channel in the broker, a name in a test


class Moment(NamedTuple):
    """Now, twice: a clock that never goes back, for deadlines, and the calendar, for what is kept."""

    at: float  # seconds
    wall_ms: int


class Caller(NamedTuple):
    """The client behind a request, as its connection tells it."""

    client_id: str
    client_host: str


@attrs.define
class Reply(Generic[Token]):
    to: Token
    answer: object


@attrs.define
class Decision(Generic[Token]):
    """What came of a call: facts to journal, then replies to send, and events for the curious.

    An answer that is not among the replies is parked; a later call releases it.
    """

    replies: list[Reply[Token]] = attrs.Factory(list)
    facts: list[Fact] = attrs.Factory(list)
    events: list[GroupEvent] = attrs.Factory(list)

    @classmethod
    def of(cls, to: Token, answer: object) -> Decision[Token]:
        return cls([Reply(to, answer)], [], [])

    def answer(self, to: Token, answer: object) -> None:
        self.replies.append(Reply(to, answer))

    def __iadd__(self, other: Decision[Token]) -> Decision[Token]:
        self.replies += other.replies
        self.facts += other.facts
        self.events += other.events
        return self


class State(Enum):
    """Where a group is. `shown` is Kafka's name for it."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    shown: str

    def __init__(self, shown: str) -> None:
        self.shown = shown


TRANSITIONS: Final[Mapping[State, Mapping[State, str]]] = {
    State.EMPTY: {
        State.PREPARING: "the first member joins",
        State.DEAD: "it is deleted, or its last offset has expired",
    },
    State.PREPARING: {
        State.COMPLETING: "all members have joined, or those that have not are out of time",
        State.EMPTY: "nobody is left",
        State.DEAD: "the broker closes",
    },
    State.COMPLETING: {
        State.STABLE: "the leader brings everybody's assignment",
        State.PREPARING: "a member joins, leaves, changes what it offers, or falls silent",
        State.DEAD: "the broker closes",
    },
    State.STABLE: {
        State.PREPARING: "as above, or the leader joins again",
        State.DEAD: "the broker closes",
    },
    State.DEAD: {},
}


@attrs.frozen(kw_only=True)
class GroupRules:
    """What is set for all groups of a broker. Replaceable at any time."""

    new_uuid: Callable[[], str]  # a lower-case RFC 4122 string
    min_session_ms: int = 6_000
    max_session_ms: int = 1_800_000
    initial_delay_ms: int = 0  # how long a group that was empty waits for company
    max_size: int = 2**31 - 1
    lexicographic_leader: bool = False  # else whoever came first leads while it rejoins
    max_pending: int = 10_000  # member ids given out that nobody has joined with yet
    max_name: int = 249  # characters of a group id, an instance id, a protocol's name or type
    max_protocols: int = 64  # that one member may offer
    max_metadata_bytes: int = 1 << 20  # of one member, over all its protocols
    max_group_bytes: int = 64 << 20  # of metadata of all members: a generation is kept as one fact
    max_assignment_bytes: int = 1 << 20  # of all members of one generation
