"""What only the version of a request says: told to the op before it is asked, and to the reply after.

Ops are the same for all versions. Where an old client means something else by the
same bytes, or expects something else in the answer, it is said here and nowhere else.
An op that has just been decoded is nobody else's yet: only here are its fields set.
"""

from __future__ import annotations

from typing import Final

from ..errors import ErrorCode, KafkaError
from ..ops.cluster import ListConfigResources
from ..ops.log import Fetch, ListOffsets, Produce, ProduceReply
from ..ops.topics import Metadata
from ..types import NO_TOPIC_ID

# The special timestamps of ListOffsets, and the version that brought each.
LOWEST_TIMESTAMP: Final = (-2, -2, -2, -2, -2, -2, -2, -3, -4, -5, -5, -6)


class Unanswered(Exception):
    """The client asked for no reply. `failed`: it learns of an error by losing its connection."""

    def __init__(self, failed: bool) -> None:
        super().__init__(failed)
        self.failed = failed


def prepare_produce(op: Produce, version: int) -> None:
    op.by_id = version >= 13  # type: ignore[misc]
    op.zstd_allowed = version >= 7  # type: ignore[misc]


def settle_produce(op: Produce, reply: ProduceReply, version: int) -> ProduceReply:
    """acks=0 is never answered; a write that failed closes the connection instead."""
    if op.acks != 0:
        return reply
    raise Unanswered(failed=any(p.error_code for topic in reply.responses for p in topic.partition_responses))


def prepare_fetch(op: Fetch, version: int) -> None:
    op.by_id = version >= 13  # type: ignore[misc]
    op.leader_told = version >= 16  # type: ignore[misc]
    if op.replica_state is not None:
        op.replica_id = op.replica_state.replica_id  # type: ignore[misc]


def prepare_list_offsets(op: ListOffsets, version: int) -> None:
    op.lowest_timestamp = LOWEST_TIMESTAMP[version]  # type: ignore[misc]


def prepare_metadata(op: Metadata, version: int) -> None:
    """Version 0 says "all" with an empty list. Only from 12 on may a topic be asked for by id."""
    if version == 0 and not op.topics:
        op.topics = None  # type: ignore[misc]
    for topic in op.topics or ():
        if version < 12 and (topic.name is None or topic.topic_id != NO_TOPIC_ID):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Metadata v{version} cannot name a topic by its id")
        if topic.name is None and topic.topic_id == NO_TOPIC_ID:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "a topic has neither name nor id")


def prepare_list_config_resources(op: ListConfigResources, version: int) -> None:
    """Version 0 is ListClientMetricsResources."""
    if version == 0:
        op.resource_types = None  # type: ignore[misc]
