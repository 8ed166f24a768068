"""What members of groups saw, written down as they saw it: the material of `group_judge`.

Every question that a client asks a coordinator is one entry, with the virtual times of its
beginning and its end and the code that came back; None where nothing came back, so that it may have
been done, may be done yet, or never. What clients hold between questions - who owns a partition,
who is dead - is written down too. The judge needs nothing else and knows neither the broker nor the faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import attrs

from rafka.client.assignors import read_assignment
from rafka.client.model import TopicPartition

Code: TypeAlias = int | None  # an error code, 0 among them; None: no answer


@attrs.frozen
class Place:
    """A partition of one incarnation of a topic: made again under its name it is another."""

    topic: str
    partition: int
    incarnation: str = ""  # a topic id, of topics that come and go


@attrs.frozen(kw_only=True)
class Asked:
    """What all questions have in common."""

    group: str
    client: str  # one life of one member
    member_id: str
    generation: int
    begun: float
    ended: float
    code: Code

    @property
    def ok(self) -> bool:
        return self.code == 0


@attrs.frozen(kw_only=True)
class Joined(Asked):
    """`member_id` and `generation` are those of the answer, if there is one."""

    instance: str | None = None
    leader: str = ""
    protocol: str | None = None
    roll: tuple[tuple[str, str | None], ...] = ()  # of a leader: member ids and instance ids
    skip: bool = False  # a leader that is to leave the assignment as it is


@attrs.frozen(kw_only=True)
class Synced(Asked):
    given: Mapping[str, bytes] | None = None  # what a leader handed in, for each member id
    assignment: bytes = b""

    @property
    def targets(self) -> tuple[TopicPartition, ...]:
        return read_assignment(self.assignment)


@attrs.frozen(kw_only=True)
class Beat(Asked):
    """A heartbeat."""


@attrs.frozen(kw_only=True)
class Left(Asked):
    """A member said goodbye."""


@attrs.frozen(kw_only=True)
class Committed(Asked):
    """One partition's part in a commit. `mark`, its metadata, is nobody else's."""

    place: Place
    offset: int
    mark: str


@attrs.frozen(kw_only=True)
class Fetched(Asked):
    """One partition's part in an answer; offset -1 and no mark where nothing is committed."""

    place: Place
    offset: int
    mark: str


@attrs.frozen(kw_only=True)
class Told:
    """DescribeGroups, answered without error."""

    group: str
    begun: float
    ended: float
    state: str
    members: tuple[str, ...]


@attrs.define(kw_only=True)
class Ownership:
    """One client took a partition for its own, from the first moment to the last, unless it lives on."""

    group: str
    client: str
    instance: str | None
    tp: TopicPartition
    since: float
    until: float
    patience: float  # its session and rebalance timeout, whichever is shorter


@attrs.frozen(kw_only=True)
class Processed:
    """A client has done the work of these offsets."""

    group: str
    tp: TopicPartition
    first: int
    after: int
    at: float


@attrs.frozen(kw_only=True)
class LogEnd:
    """How far a partition's log went: somebody asked, and was told."""

    place: Place
    begun: float
    ended: float
    offset: int


@attrs.frozen(kw_only=True)
class Change:
    """A reason for a group to rebalance, as the member knows it that came, went, or lost an answer."""

    group: str
    at: float
    what: str


@attrs.frozen(kw_only=True)
class Ending:
    """A look at a group when everybody has to own something and nobody may disagree.

    In calm, nothing has happened to anybody since then. Else one member has been silent since then,
    and at the time of looking the others must have noticed.
    """

    group: str
    calm: bool
    since: float
    due_at: float
    wanted: frozenset[TopicPartition]
    living: frozenset[str]


@attrs.define
class GroupHistory:
    """Everything, in the order in which it was answered."""

    joins: list[Joined] = attrs.field(factory=list)
    syncs: list[Synced] = attrs.field(factory=list)
    beats: list[Beat] = attrs.field(factory=list)
    leaves: list[Left] = attrs.field(factory=list)
    commits: list[Committed] = attrs.field(factory=list)
    fetches: list[Fetched] = attrs.field(factory=list)
    told: list[Told] = attrs.field(factory=list)
    owned: list[Ownership] = attrs.field(factory=list)
    processed: list[Processed] = attrs.field(factory=list)
    ends: list[LogEnd] = attrs.field(factory=list)
    changes: list[Change] = attrs.field(factory=list)
    endings: list[Ending] = attrs.field(factory=list)
    deleted: dict[str, float] = attrs.field(factory=dict)  # incarnations, and when they were surely gone
    faults: list[tuple[float, str]] = attrs.field(factory=list)
    surprises: list[str] = attrs.field(factory=list)
    steady: dict[str, tuple[float, float]] = attrs.field(factory=dict)
    """Groups, and the time in which nobody of them comes, goes or sleeps past its session."""

    longest_rebalance: float = 0.0  # that any member of any group asks for
    longest_session: float = 0.0
    slack: float = 4.0  # seconds, in which an answer comes that waits for nothing any more

    written: dict[TopicPartition, int] = attrs.field(factory=dict)
    """Up to where records are acknowledged. No witness, but what members can have read."""
