"""A transactional producer that speaks in ops, and what readers and administrators see of what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import trio

from rafka.broker.partition import Appended, Partition
from rafka.env import Env
from rafka.errors import ErrorCode, KafkaError
from rafka.ops import log, txn
from rafka.ops import offsets as offset_ops
from rafka.records.batch import walk
from rafka.records.control import Marker, read_marker
from rafka.records.record import iterate
from rafka.storage.memory import MemoryBackend

from .kit import NOW, World, batch, fetch, found, produce, told

CLASSIC, BUMPING = 3, 12  # versions of Produce: partitions are added first, or by writing


@attrs.define
class Producer:
    """As a client library behaves; each step gives the error code."""

    world: World
    name: str = "x"
    producer_id: int = -1
    epoch: int = -1
    bumps: bool = False  # by EndTxn 5, Produce 12 and TxnOffsetCommit 5
    sequences: dict[tuple[str, int], int] = attrs.Factory(dict)

    async def init(self, timeout_ms: int = 60_000, **who: int) -> ErrorCode:
        op = log.InitProducerId(transactional_id=self.name, transaction_timeout_ms=timeout_ms, **who)
        reply = await self.world.ask(op)
        if reply.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
            self.sequences.clear()
        code: ErrorCode = reply.error_code
        return code

    async def begin(self, *indexes: int, topic: str = "t") -> ErrorCode:
        [result] = (await self.world.ask(self.addition(*indexes, topic=topic))).results_by_transaction
        codes = [p.partition_error_code for t in result.topic_results for p in t.results_by_partition]
        return max(codes, default=ErrorCode.NONE)

    def addition(self, *indexes: int, topic: str = "t") -> txn.AddPartitionsToTxn:
        asked = txn.TxnAddition(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[txn.TxnTopic(name=topic, partitions=[*indexes])],
        )
        return txn.AddPartitionsToTxn(transactions=[asked])

    async def write(self, *values: bytes, index: int = 0, topic: str = "t") -> ErrorCode:
        [reply] = told(await self.world.ask(self.batch(*values, index=index, topic=topic)))
        if reply.error_code == ErrorCode.NONE:
            self.sequences[topic, index] = self.sequences.get((topic, index), 0) + len(values)
        code: ErrorCode = reply.error_code
        return code

    def batch(self, *values: bytes, index: int = 0, topic: str = "t", acks: int = 1) -> log.Produce:
        records = batch(
            *values,
            transactional=True,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences.get((topic, index), 0),
            at_ms=NOW * 1000,
        )
        return produce(
            records,
            topic=topic,
            index=index,
            acks=acks,
            transactional_id=self.name,
            adds_partitions=self.bumps,
            abortable_told=self.bumps,
        )

    async def add_group(self, group_id: str = "g") -> ErrorCode:
        op = txn.AddOffsetsToTxn(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        reply = await self.world.ask(op)
        code: ErrorCode = reply.error_code
        return code

    async def send_offset(self, offset: int, group_id: str = "g", topic: str = "t", **more: Any) -> ErrorCode:
        reply = await self.world.ask(self.sending(offset, group_id, topic, **more))
        code: ErrorCode = reply.topics[0].partitions[0].error_code
        return code

    def sending(
        self, offset: int, group_id: str = "g", topic: str = "t", **more: Any
    ) -> offset_ops.TxnOffsetCommit:
        partition = offset_ops.CommitPartition(partition_index=0, committed_offset=offset)
        fields: dict[str, Any] = {"adds_group": self.bumps, "abortable_known": self.bumps} | more
        return offset_ops.TxnOffsetCommit(
            transactional_id=self.name,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[offset_ops.CommitTopic(name=topic, partitions=[partition])],
            **fields,
        )

    def ending(self, committed: bool = True) -> txn.EndTxn:
        return txn.EndTxn(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
            bumps_epoch=self.bumps,
        )

    async def end(self, committed: bool = True) -> ErrorCode:
        reply = await self.world.ask(self.ending(committed))
        if reply.error_code == ErrorCode.NONE and self.bumps:
            self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
            self.sequences.clear()
        code: ErrorCode = reply.error_code
        return code

    async def seen(self) -> txn.DescribedTransaction:
        [one] = (
            await self.world.ask(txn.DescribeTransactions(transactional_ids=[self.name]))
        ).transaction_states
        assert isinstance(one, txn.DescribedTransaction)
        return one

    async def state(self) -> str:
        return (await self.seen()).transaction_state

    async def complete(self) -> str:
        """The state, once nothing is being ended any more."""
        for _ in range(1000):
            state = await self.state()
            if not state.startswith("Prepare"):
                return state
            await trio.sleep(0.01)
        raise AssertionError(f"{self.name} is not complete")


async def a_producer(
    world: World, name: str = "x", *, bumps: bool = False, timeout_ms: int = 60_000
) -> Producer:
    producer = Producer(world, name, bumps=bumps)
    assert await producer.init(timeout_ms) is ErrorCode.NONE
    return producer


async def committed_values(world: World, topic: str = "t", index: int = 0) -> list[bytes | None]:
    """What a reader of committed records makes of a partition."""
    [reply] = found(await world.ask(fetch((topic, index, 0), isolation_level=1)))
    aborted = sorted((one.first_offset, one.producer_id) for one in reply.aborted_transactions or ())
    skipped: set[int] = set()
    values: list[bytes | None] = []
    records = memoryview(reply.records or b"")
    for at, header in walk(records):
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        one = records[at : at + header.size]
        if header.control:
            if not marker_of(one).committed:
                skipped.discard(header.producer_id)
        elif not (header.transactional and header.producer_id in skipped):
            values += [record.value for record in iterate(one)]
    return values


def marker_of(records: memoryview) -> Marker:
    marker = read_marker(records)
    assert marker is not None
    return marker


async def markers(world: World, topic: str = "t", index: int = 0) -> list[tuple[int, bool]]:
    """(epoch, committed) of each marker of a partition."""
    partition = world.partition(topic, index)
    data = await partition.log.read_cold(0, partition.log.end_offset, 1 << 20)
    return [
        (header.producer_epoch, marker_of(memoryview(data)[at : at + header.size]).committed)
        for at, header in walk(data)
        if header.control
    ]


async def group_offset(world: World, group_id: str = "g", *, stable: bool = False) -> int | ErrorCode:
    """What the group has committed of t-0; the error code, if there is one."""
    topics = [offset_ops.FetchOffsetsTopic(name="t", partition_indexes=[0])]
    op = offset_ops.OffsetFetch(
        groups=[offset_ops.FetchOffsetsGroup(group_id=group_id, topics=topics)], require_stable=stable
    )
    [group] = (await world.ask(op)).groups
    [topic] = group.topics
    [partition] = topic.partitions
    told: int | ErrorCode = partition.error_code or partition.committed_offset
    return told


def marker_request(
    producer: Producer, committed: bool, places: Sequence[tuple[str, int]], **more: Any
) -> txn.WriteTxnMarkers:
    fields: dict[str, Any] = {"producer_epoch": producer.epoch, "coordinator_epoch": 0} | more
    topics = [txn.MarkerTopic(name=topic, partition_indexes=[index]) for topic, index in places]
    marker = txn.Marker(
        producer_id=producer.producer_id, transaction_result=committed, topics=topics, **fields
    )
    return txn.WriteTxnMarkers(markers=[marker])


# --- what befalls a broker ---------------------------------------------------------------


@attrs.frozen
class Home:
    """What outlives a broker: its logs, and the time."""

    env: Env
    backend: MemoryBackend


class Refusing:
    """Partitions that take no marker, for as long as a test wants."""

    def __init__(self) -> None:
        self.places: set[tuple[str, int]] = set()
        self.asked = 0
        real = Partition.write_marker

        def write_marker(partition: Partition, *args: int, **options: int) -> Appended:
            if (partition.name, partition.index) in self.places:
                self.asked += 1
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "there is no room")
            return real(partition, *args, **options)  # type: ignore[arg-type]

        self.write_marker = write_marker
