"""What consumers tell each other, as far as a broker reads it: topics, and assigned partitions.

Both are the bytes of Kafka's consumer protocol, a version number and then

    subscription   array of topics, user data, and more in later versions
    assignment     array of (topic, array of partitions), user data

Only what every version begins with is read, whatever version it says, and what follows is passed
over. Members may put anything there: bytes that cannot be read make the answer unknown (None),
and never an error. Nothing is allocated for a count before there are bytes for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error
from typing import Final

import attrs

MOST_TOPICS: Final = 50_000  # that members of a group name together: to read more would hold up others

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")

TopicPartition = tuple[str, int]


def topics_of(metadata: bytes, most: int = MOST_TOPICS) -> list[str] | None:
    """The topics of a subscription; None where it cannot be read, or names more."""
    try:
        count, at = _opening(metadata, least=2)
        if count > most:
            return None
        topics = []
        for _ in range(count):
            topic, at = _string(metadata, at)
            topics.append(topic)
    except (error, ValueError):
        return None
    return topics


def partitions_of(assignment: bytes) -> frozenset[TopicPartition] | None:
    """The partitions of an assignment, none for no bytes at all; None where it cannot be read."""
    if not assignment:
        return frozenset()
    try:
        count, at = _opening(assignment, least=6)
        found: set[TopicPartition] = set()
        for _ in range(count):
            topic, at = _string(assignment, at)
            (partitions,) = _INT32.unpack_from(assignment, at)
            numbers = Struct(f">{_possible(partitions, 4, assignment, at + 4)}i")
            found.update((topic, partition) for partition in numbers.unpack_from(assignment, at + 4))
            at += 4 + numbers.size
    except (error, ValueError):
        return None
    return frozenset(found)


def moves(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """How many partitions were gained and lost between two assignments; -1 each where unreadable."""
    if before == after:
        return 0, 0
    had, has = partitions_of(before or b""), partitions_of(after or b"")
    if had is None or has is None:
        return -1, -1
    return len(has - had), len(had - has)


@attrs.define
class Subscriptions:
    """The topics of one generation, read when somebody asks: most groups are never asked."""

    _metadata: list[bytes] = attrs.Factory(list)
    _topics: frozenset[str] | None = None
    _read: bool = False

    @classmethod
    def of(cls, metadata: Iterable[bytes]) -> Subscriptions:
        return cls(list(metadata))

    def includes(self, topic: str) -> bool | None:
        """None where any member's metadata cannot be read: it may mean every topic."""
        if not self._read:
            self._topics, self._read = self._union(), True
            self._metadata = []
        return None if self._topics is None else topic in self._topics

    def _union(self) -> frozenset[str] | None:
        topics: set[str] = set()
        left = MOST_TOPICS
        for metadata in set(self._metadata):
            if (named := topics_of(metadata, left)) is None:
                return None
            topics.update(named)
            left -= len(named)
        return frozenset(topics)


def _opening(data: bytes, least: int) -> tuple[int, int]:
    """The count of the array that follows the version, and where its first element is."""
    (version,) = _INT16.unpack_from(data)
    if version < 0:
        raise ValueError("a version below zero")
    (count,) = _INT32.unpack_from(data, 2)
    return _possible(count, least, data, 6), 6


def _possible(count: int, least: int, data: bytes, at: int) -> int:
    if not 0 <= count <= (len(data) - at) // least:
        raise ValueError("more elements than there are bytes for, or no array at all")
    return count


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _INT16.unpack_from(data, at)
    end = at + 2 + length
    if length < 0 or end > len(data):
        raise ValueError("a string longer than what is left, or none at all")
    return data[at + 2 : end].decode(errors="replace"), end
