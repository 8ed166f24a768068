"""What members of a group write to each other: Kafka's embedded consumer protocol, versions 0-3.

A version in two bytes, then a struct that is never flexible. Fields are only ever added at the
end, so whoever reads a higher version than it knows reads it as its own highest. Subscriptions are
written as version 3, as the Java client does, assignments as version 0: they have never changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ...types import Buffer, message
from ...wire.compile import decoder_of, encoder_of
from ...wire.decoding import REPLY_BUDGET
from ...wire.errors import WireError
from ...wire.schema import (
    INT32,
    STRING,
    Struct,
    array,
    int16,
    int32,
    nullable_bytes,
    nullable_string,
    string,
    struct,
)
from ..model import TopicPartition
from .base import NO_GENERATION, Member

NEWEST: Final = 3

_PARTITIONS = struct(string("topic"), array("partitions", INT32))
_VERSION = struct(int16("version"))
_SUBSCRIPTION = struct(
    array("topics", STRING),
    nullable_bytes("user_data", default=None),
    array("owned_partitions", _PARTITIONS, since=1),
    int32("generation_id", since=2, default=NO_GENERATION),
    nullable_string("rack_id", since=3),
)
_ASSIGNMENT = struct(array("assigned_partitions", _PARTITIONS), nullable_bytes("user_data", default=None))
_STICKY_MEMORY = struct(array("previous_assignment", _PARTITIONS), int32("generation", since=1))
_GENERATION = struct(int32("generation"))


@message
class Subscription:
    """What a member tells the leader about itself."""

    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack_id: str | None = None


def write_subscription(subscription: Subscription) -> bytes:
    out = _begun(NEWEST)
    wire = _Subscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=_by_topic(subscription.owned),
        generation_id=subscription.generation,
        rack_id=subscription.rack_id,
    )
    _write(_SUBSCRIPTION, NEWEST, wire, out)
    return bytes(out)


def read_subscription(data: Buffer) -> Subscription:
    """WireError where it cannot be read."""
    wire = _read_versioned(_SUBSCRIPTION, _Subscription, data)
    return Subscription(
        topics=tuple(wire.topics),
        user_data=None if wire.user_data is None else bytes(wire.user_data),
        owned=_targets(wire.owned_partitions),
        generation=wire.generation_id,
        rack_id=wire.rack_id,
    )


def member_of(member_id: str, instance_id: str | None, metadata: Buffer) -> Member:
    """A member as assignors see it. One whose metadata cannot be read is subscribed to nothing."""
    try:
        told = read_subscription(metadata)
    except WireError:
        return Member(member_id=member_id, instance_id=instance_id)
    return Member(
        member_id=member_id,
        instance_id=instance_id,
        topics=told.topics,
        owned=told.owned,
        generation=told.generation,
        user_data=told.user_data,
    )


def write_assignment(targets: Iterable[TopicPartition]) -> bytes:
    out = _begun(0)
    _write(_ASSIGNMENT, 0, _Assignment(assigned_partitions=_by_topic(targets)), out)
    return bytes(out)


def read_assignment(data: Buffer) -> tuple[TopicPartition, ...]:
    """No bytes at all are an assignment of nothing: brokers give them to whom the leader forgot."""
    if not len(data):
        return ()
    return _targets(_read_versioned(_ASSIGNMENT, _Assignment, data).assigned_partitions)


# --- what the sticky assignors say of themselves -----------------------------------------


def write_sticky_memory(targets: Sequence[TopicPartition], generation: int) -> bytes:
    """The user data of `sticky`: what the member last had, and in which generation."""
    out = bytearray()
    memory = _StickyMemory(previous_assignment=_by_topic(targets), generation=generation)
    _write(_STICKY_MEMORY, 1, memory, out)
    return bytes(out)


def read_sticky_memory(data: Buffer) -> tuple[tuple[TopicPartition, ...], int]:
    """Clients before 2.3 wrote no generation."""
    try:
        memory = _read(_STICKY_MEMORY, 1, _StickyMemory, data)
    except WireError:
        memory = _read(_STICKY_MEMORY, 0, _StickyMemory, data)
        memory.generation = NO_GENERATION
    return _targets(memory.previous_assignment), memory.generation


def write_generation(generation: int) -> bytes:
    """The user data of `cooperative-sticky`."""
    out = bytearray()
    _write(_GENERATION, 0, _Generation(generation=generation), out)
    return bytes(out)


def read_generation(data: Buffer) -> int:
    return int(_read(_GENERATION, 0, _Generation, data).generation)


# --- the structs as the wire has them ------------------------------------------------------


@message
class _Partitions:
    topic: str
    partitions: list[int]


@message
class _Version:
    version: int


@message
class _Subscription:
    topics: list[str]
    user_data: Buffer | None = None
    owned_partitions: list[_Partitions] = attrs.field(factory=list)
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


@message
class _Assignment:
    assigned_partitions: list[_Partitions]
    user_data: Buffer | None = None


@attrs.define(kw_only=True)
class _StickyMemory:
    previous_assignment: list[_Partitions]
    generation: int


@message
class _Generation:
    generation: int


def _begun(version: int) -> bytearray:
    out = bytearray()
    _write(_VERSION, 0, _Version(version=version), out)
    return out


def _write(layout: Struct, version: int, value: object, out: bytearray) -> None:
    encoder_of(layout, version, False, type(value), type(value).__name__)(value, out)


def _read(layout: Struct, version: int, cls: type[Any], data: Buffer, at: int = 0) -> Any:
    value, _ = decoder_of(layout, version, False, cls, cls.__name__, REPLY_BUDGET)(memoryview(data), at)
    return value


def _read_versioned(layout: Struct, cls: type[Any], data: Buffer) -> Any:
    version = _read(_VERSION, 0, _Version, data).version
    if version < 0:
        raise WireError(f"version {version} of the consumer protocol")
    return _read(layout, min(version, NEWEST), cls, data, 2)


def _by_topic(targets: Iterable[TopicPartition]) -> list[_Partitions]:
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(targets):
        topics[topic].append(partition)
    return [_Partitions(topic=topic, partitions=partitions) for topic, partitions in topics.items()]


def _targets(parts: Iterable[_Partitions]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(part.topic, number) for part in parts for number in part.partitions)
