"""A transactional producer of real bytes that does as it is told, and nothing by itself."""

from __future__ import annotations

import time
from typing import Any

from rafka.errors import ErrorCode
from rafka.records.build import build
from rafka.records.record import Record
from rafka.wire.apis.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from rafka.wire.apis.end_txn import END_TXN
from rafka.wire.apis.init_producer_id import INIT_PRODUCER_ID
from rafka.wire.apis.produce import PRODUCE

from .simulation.clients import CODES
from .simulation.wire_client import Connect, WireClient

CLASSIC, BUMPING = 4, 5  # versions of EndTxn


class WireProducer:
    def __init__(self, connect: Connect, transactional_id: str) -> None:
        self.wire = WireClient(connect, "a test", timeout=20)
        self.name = transactional_id
        self.producer_id = self.epoch = -1
        self.sequence = 0

    async def init(self, timeout_ms: int = 60_000) -> ErrorCode:
        request = INIT_PRODUCER_ID.Request(
            transactional_id=self.name, transaction_timeout_ms=timeout_ms, producer_id=-1, producer_epoch=-1
        )
        reply = await self.wire.ask(INIT_PRODUCER_ID, 4, request)
        self.producer_id, self.epoch = reply.producer_id, reply.producer_epoch
        return CODES[reply.error_code]

    async def begin(self, topic: str, *partitions: int) -> ErrorCode:
        named = ADD_PARTITIONS_TO_TXN.Request.V3AndBelowTopics(name=topic, partitions=[*partitions])
        request = ADD_PARTITIONS_TO_TXN.Request(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[named],
        )
        reply = await self.wire.ask(ADD_PARTITIONS_TO_TXN, 3, request)
        [result] = reply.results_by_topic_v3_and_below
        return CODES[max(p.partition_error_code for p in result.results_by_partition)]

    async def write(self, topic: str, *values: bytes, partition: int = 0, version: int = 11) -> ErrorCode:
        """With version 12 the partition becomes part of the transaction by this."""
        now_ms = int(time.time() * 1000)
        data = build(
            [Record(0, now_ms, None, value) for value in values],
            transactional=True,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence,
        )
        named = PRODUCE.Request.TopicData
        request = PRODUCE.Request(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                named(name=topic, partition_data=[named.PartitionData(index=partition, records=data)])
            ],
        )
        reply: Any = await self.wire.ask(PRODUCE, version, request)
        code = CODES[reply.responses[0].partition_responses[0].error_code]
        if code is ErrorCode.NONE:
            self.sequence += len(values)
        return code

    async def end(self, committed: bool, version: int = CLASSIC) -> ErrorCode:
        request = END_TXN.Request(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        reply = await self.wire.ask(END_TXN, version, request)
        if version >= BUMPING and reply.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch, self.sequence = reply.producer_id, reply.producer_epoch, 0
        return CODES[reply.error_code]
