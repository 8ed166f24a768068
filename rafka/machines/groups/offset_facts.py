"""What must survive of a group's offsets.

A request is one fact, however many partitions it names: its offsets are nested tuples, as
short in the journal as on the wire. Topics are named by id and by name. The id tells a topic
from another of the same name that was made later; the name is what clients ask by.

    plain       OffsetsCommitted    OffsetsDeleted
    pending     PendingOffsets  ──  PendingSettled          of one producer's transaction
    snapshot    OffsetsKept, and PendingOffsets again
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ..facts import fact

# (partition, offset, leader epoch, metadata)
Entry: TypeAlias = tuple[int, int, int, str]
# (topic id, its name, the partitions of it)
TopicEntries: TypeAlias = tuple[bytes, str, tuple[Entry, ...]]
# (partition, offset, leader epoch, metadata, when it was committed, when it expires if that was said)
KeptEntry: TypeAlias = tuple[int, int, int, str, int, int | None]
# (topic id, partitions)
TopicPartitions: TypeAlias = tuple[bytes, tuple[int, ...]]


@fact("offsets-committed")
class OffsetsCommitted:
    org: str
    group_id: str
    at_ms: int
    topics: tuple[TopicEntries, ...]
    expire_ms: int | None = None  # only where an old client asked for a time of its own


@fact("offsets-deleted")
class OffsetsDeleted:
    """By request or by age. Pending ones of the same partitions go too."""

    org: str
    group_id: str
    topics: tuple[TopicPartitions, ...]


@fact("offsets-pending")
class PendingOffsets:
    """Committed within a transaction: they count once it commits, and never if it aborts."""

    org: str
    group_id: str
    producer_id: int
    producer_epoch: int
    at_ms: int
    topics: tuple[TopicEntries, ...]


@fact("offsets-settled")
class PendingSettled:
    """The transaction of this producer has ended."""

    org: str
    group_id: str
    producer_id: int
    committed: bool


@fact("offsets-kept")
class OffsetsKept:
    """One topic's offsets as they stood when a snapshot was taken."""

    org: str
    group_id: str
    topic_id: bytes
    name: str
    partitions: tuple[KeptEntry, ...]


OffsetFact: TypeAlias = OffsetsCommitted | OffsetsDeleted | PendingOffsets | PendingSettled | OffsetsKept
OFFSET_FACTS: Final = (OffsetsCommitted, OffsetsDeleted, PendingOffsets, PendingSettled, OffsetsKept)
