"""What the markers of an administrator do to offsets that are pending within a transaction.

A group's offsets are in one partition of `__consumer_offsets`, as clients see it: a marker in that one
settles them, and one in another does not. It is judged as a marker beside records is: by
the epoch of what it would settle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...errors import ErrorCode
from ...ops.txn import Marker, MarkerPartitionResult, MarkerResult, MarkerTopicResult
from ..offsets_topic import offsets_partition
from ..producers import RAISES_EPOCHS
from .offset_facts import PendingSettled
from .offsets import Offsets


def settle(
    marker: Marker, pending: Iterable[Offsets], record: Callable[[PendingSettled], None]
) -> MarkerResult:
    """`pending`: the offsets of all groups in which the marker's producer may have some. Rows T8, T9, T11."""
    found: dict[int, list[Offsets]] = {}
    for offsets in pending:
        found.setdefault(offsets_partition(offsets.group_id), []).append(offsets)
    return MarkerResult(
        producer_id=marker.producer_id,
        topics=[
            MarkerTopicResult(
                name=topic.name,
                partitions=[
                    MarkerPartitionResult(
                        partition_index=index,
                        error_code=_settle_partition(marker, found.get(index, ()), record),
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


def _settle_partition(
    marker: Marker, groups: Sequence[Offsets], record: Callable[[PendingSettled], None]
) -> ErrorCode:
    """All groups of the partition or none: one epoch is too old for the partition, not for a group."""
    epochs = [offsets.pending_epoch(marker.producer_id) for offsets in groups]
    newest = max((epoch for epoch in epochs if epoch is not None), default=None)
    if newest is None:
        return ErrorCode.NONE
    # Where each end raises the epoch, a marker without that is one of an earlier end that comes late.
    lowest = newest + 1 if marker.transaction_version >= RAISES_EPOCHS else newest
    if marker.producer_epoch < lowest:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    for offsets in groups:
        fact = offsets.settle(marker.producer_id, marker.transaction_result)
        if fact is not None:
            record(fact)
    return ErrorCode.NONE
