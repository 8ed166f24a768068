"""What the tests of Fetch share."""

from __future__ import annotations

from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.log import DeleteRecords, DeleteRecordsPartition, DeleteRecordsTopic

from .kit import World, fetch, found


async def one(world: World, op: log.Fetch) -> log.PartitionFetchReply:
    [partition] = found(await world.ask(op))
    return partition


def asking(**fields: int) -> log.Fetch:
    """The one partition of t from 0, with these fields of the partition."""
    op = fetch(("t", 0, 0))
    for name, value in fields.items():
        setattr(op.topics[0].partitions[0], name, value)
    return op


def assert_error(partition: log.PartitionFetchReply, code: ErrorCode) -> None:
    """-1 with any error, and records that are empty and never null."""
    assert partition.error_code == code
    assert (partition.high_watermark, partition.last_stable_offset, partition.log_start_offset) == (-1,) * 3
    assert partition.records == b""


async def delete_to(world: World, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    await world.ask(
        DeleteRecords(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=1000)
    )
