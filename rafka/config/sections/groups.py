"""Consumer groups: how long members may be silent, how large groups may grow, how long offsets are kept.

Names are Kafka's where it has one. Kafka lets nobody change those while a broker runs, and so it is
here; the bounds that are rafka's own may be changed at any time.
"""

from __future__ import annotations

from typing import Literal

import attrs

from ..setting import INT_MAX, ConfigError, Kind, Section, setting


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Groups(Section):
    min_session_ms: int = setting(
        "group.min.session.timeout.ms",
        6_000,
        "The shortest session timeout that a member may ask for.",
        unit="ms",
        at_least=1,
    )
    max_session_ms: int = setting(
        "group.max.session.timeout.ms",
        1_800_000,
        "The longest session timeout that a member may ask for.",
        unit="ms",
        at_least=1,
    )
    initial_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        0,
        "How long an empty group waits for more members after its first, before it shares out partitions.",
        unit="ms",
        at_least=0,
    )
    max_size: int = setting("group.max.size", INT_MAX, "The most members of a group.", at_least=1)
    leader_election: Literal["first-joined", "lexicographic"] = setting(
        "group.leader.election",
        "first-joined",
        "Which member leads a group: the first to join, for as long as it stays, as in Kafka;"
        " or the one whose id comes first.",
        Kind.STRING,
        one_of=("first-joined", "lexicographic"),
        dynamic=True,
    )
    max_count: int = setting(
        "group.max.count",
        100_000,
        "The most groups. With so many a new one is refused with COORDINATOR_NOT_AVAILABLE.",
        at_least=1,
        dynamic=True,
    )
    max_pending: int = setting(
        "group.max.pending",
        10_000,
        "The most member ids of a group that were given out and not joined with. With so many a client is"
        " told to try again.",
        at_least=1,
        dynamic=True,
    )
    max_group_bytes: int = setting(
        "group.max.bytes",
        67_108_864,
        "The most that the members of a group may tell about themselves together, each with a kilobyte for"
        " itself. Who does not fit in is refused as by a group that is full.",
        Kind.LONG,
        unit="bytes",
        at_least=65_536,
        dynamic=True,
    )
    max_name: int = setting(
        "group.max.name.length",
        249,
        "The most characters of a group's id, an instance id, and the name or type of a protocol.",
        at_least=1,
        dynamic=True,
    )
    max_protocols: int = setting(
        "group.max.protocols",
        64,
        "The most ways of sharing partitions that a member may offer.",
        at_least=1,
        dynamic=True,
    )
    max_metadata_bytes: int = setting(
        "group.max.metadata.bytes",
        1_048_576,
        "The most that a member may tell about itself, all its protocols together.",
        unit="bytes",
        at_least=1024,
        dynamic=True,
    )
    max_assignment_bytes: int = setting(
        "group.max.assignment.bytes",
        1_048_576,
        "The most that the assignments of a group may hold together, as its leader sends them.",
        unit="bytes",
        at_least=1024,
        dynamic=True,
    )
    max_reply_bytes: int = setting(
        "group.max.reply.bytes",
        67_108_864,
        "The most that one answer tells of groups or of their offsets, with 100 bytes for each entry. What is"
        " asked beyond it is refused with INVALID_REQUEST, but for a whole group that is asked for first.",
        Kind.LONG,
        unit="bytes",
        at_least=1024,
        dynamic=True,
    )
    history_size: int = setting(
        "group.history.size",
        20,
        "How many of its last rebalances each group remembers. 0 remembers none.",
        at_least=0,
        dynamic=True,
    )
    history_rows: int = setting(
        "group.history.rows",
        50_000,
        "How much of past rebalances is remembered of all groups together: a row for each rebalance,"
        " and one for each of its members. The oldest go first.",
        at_least=0,
        dynamic=True,
    )
    metadata_max_bytes: int = setting(
        "offset.metadata.max.bytes",
        4096,
        "The longest note that may be committed with an offset.",
        unit="bytes",
        at_least=0,
    )
    retention_minutes: int = setting(
        "offsets.retention.minutes",
        10_080,
        "How long the offsets of a group are kept after its last member has gone.",
        unit="minutes",
        at_least=1,
    )
    retention_check_interval_ms: int = setting(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often offsets are looked through for those that are due to go.",
        Kind.LONG,
        unit="ms",
        at_least=1,
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.min_session_ms > self.max_session_ms:
            raise ConfigError(
                "group.min.session.timeout.ms",
                self.min_session_ms,
                f"must be at most group.max.session.timeout.ms, which is {self.max_session_ms}",
            )
