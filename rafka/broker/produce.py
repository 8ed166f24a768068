"""Produce: check, place and append, in the task of whoever asks.

Each partition stands for itself: one may take its batch while the next refuses. With
acks=all the reply waits until the batches are durable; by then they are appended, in
order, so that a connection may go on to its next request meanwhile. Before the first
batch of a transaction the `gate` is asked, and nothing is written until it has answered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from ..errors import ErrorCode, KafkaError
from ..machines.catalog import INTERNAL_TOPICS
from ..ops.base import Envelope, Later
from ..ops.log import (
    PartitionProduceReply,
    Produce,
    ProduceReply,
    RecordError,
    TopicData,
    TopicProduceReply,
)
from ..records.check import BadBatch, check, first_look
from ..types import Buffer, TopicId
from .admission import (
    Admission,
    NoTransactions,
    Refusals,
    TransactionGate,
    own_records,
    to_be_verified,
    transactional,
)
from .partition import Partition
from .topics import LiveTopic, Topics

log = logging.getLogger(__name__)

ACKS: Final = (-1, 0, 1)
ALL: Final = -1
ALWAYS_LOOKED_AT: Final = 100  # first batches of a sender whose records are looked at one by one
SAMPLE_EVERY: Final = 64  # of its batches after those
# With one replica Kafka is never late, whatever the client allows it. A sync may be: it
# is given at least this long, and at the most that.
TIMEOUT_MIN_S: Final = 5.0
TIMEOUT_MAX_S: Final = 60.0
FOUND_WHILE_APPENDING: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
)


class Writer:
    """Answers Produce."""

    def __init__(self, topics: Topics, now: Callable[[], float]) -> None:
        self.topics = topics
        self.gate: TransactionGate = NoTransactions()
        self._now = now

    def produce(self, envelope: Envelope, op: Produce) -> ProduceReply | Later[ProduceReply]:
        if transactional(op):
            return self._produce_in_transaction(envelope, op)
        return self._produce(envelope, op)

    def _produce_in_transaction(self, envelope: Envelope, op: Produce) -> ProduceReply | Later[ProduceReply]:
        if op.transactional_id is None:
            return op.refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        candidates = to_be_verified(self.topics, envelope.org_id, op)
        if not candidates:
            return self._produce(envelope, op)
        admission = Admission(envelope.org_id, op, candidates, int(self._now() * 1000))
        answer = self.gate.enter(admission.entrance) if admission.entrance.partitions else {}
        if isinstance(answer, Later):
            own_records(op)
            return Later(self._produce_once_admitted, envelope, op, admission, answer)
        admission.settle(answer)
        return self._produce(envelope, op, admission)

    async def _produce_once_admitted(
        self, envelope: Envelope, op: Produce, admission: Admission, answer: Later[Refusals]
    ) -> ProduceReply:
        admission.settle(await answer.wait())
        reply = self._produce(envelope, op, admission)
        return await reply.wait() if isinstance(reply, Later) else reply

    def _produce(
        self, envelope: Envelope, op: Produce, admission: Admission | None = None
    ) -> ProduceReply | Later[ProduceReply]:
        """Write what is not refused. Nothing awaits until all of it is in the logs."""
        now_ms = int(self._now() * 1000)
        pending: list[tuple[Partition, int, PartitionProduceReply]] = []
        responses = []
        for topic in op.topic_data if len(op.topic_data) == 1 else _each_once(op.topic_data):
            name, topic_id = topic.name, topic.topic_id
            try:
                live = (
                    self.topics.by_id(envelope.org_id, topic_id)
                    if op.by_id
                    else self.topics.by_name(envelope.org_id, name)
                )
            except KafkaError as unknown:
                code = unknown.code
                if name in INTERNAL_TOPICS:
                    code = ErrorCode.INVALID_TOPIC_EXCEPTION
                live = None
            partitions = topic.partition_data
            if len(partitions) > 1:  # named twice, the last one counts
                partitions = list({p.index: p for p in partitions}.values())
            replies = []
            for data in partitions:
                if live is None:
                    reply = PartitionProduceReply(index=data.index, error_code=code)
                else:
                    reply = self._write(
                        envelope, op, live, data.index, data.records, now_ms, pending, admission
                    )
                replies.append(reply)
            if replies:
                responses.append(TopicProduceReply(name=name, topic_id=topic_id, partition_responses=replies))
        reply_to_all = ProduceReply(responses=responses)
        if pending:
            if op.acks == ALL:
                durable = partial(_all_durable, pending)
                return Later(self._wait, op, reply_to_all, pending, overlaps=True, ready=durable)
            for partition, offset, _ in pending:
                partition.told(offset)
        return reply_to_all

    def _write(
        self,
        envelope: Envelope,
        op: Produce,
        live: LiveTopic,
        index: int,
        records: Buffer | None,
        now_ms: int,
        pending: list[tuple[Partition, int, PartitionProduceReply]],
        admission: Admission | None,
    ) -> PartitionProduceReply:
        """One partition's batch. What has to become durable first goes into `pending`."""
        verified = None
        if admission is not None:
            refusal = admission.refusal(live, index)
            if refusal is not None:
                return refusal
            verified = admission.pass_for(live, index)
        start_offset = -1
        try:
            partition = live.partition(index)
            plog = partition.log
            start_offset = plog.start_offset
            envelope.batches += 1
            sample = envelope.batches <= ALWAYS_LOOKED_AT or envelope.batches % SAMPLE_EVERY == 0
            rules = live.rules(op.zstd_allowed, sample)
            if op.acks not in ACKS:
                first_look(records, rules)
                start_offset = -1
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
            if rules.log_append_time:
                now_ms = partition.append_time(now_ms)
            accepted = check(records, rules, now_ms)
            appended = partition.append(accepted, rules.log_append_time, verified)
        except BadBatch as bad:
            log.debug("a batch for %s-%d was refused: %s", live.name, index, bad)
            return PartitionProduceReply(
                index=index,
                error_code=bad.code,
                log_start_offset=start_offset if bad.appending else -1,
                record_errors=[
                    RecordError(batch_index=at, batch_index_error_message=why)
                    for at, why in bad.record_errors
                ],
                error_message=bad.message,
            )
        except KafkaError as refused:
            known = refused.code in FOUND_WHILE_APPENDING
            return PartitionProduceReply(
                index=index,
                error_code=refused.code,
                log_start_offset=start_offset if known else -1,
            )
        reply = PartitionProduceReply(
            index=index,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=plog.start_offset,
        )
        if plog.durable and plog.flushed_offset < appended.next_offset:
            pending.append((partition, appended.next_offset, reply))
        return reply

    async def _wait(
        self,
        op: Produce,
        reply: ProduceReply,
        pending: list[tuple[Partition, int, PartitionProduceReply]],
    ) -> ProduceReply:
        """Answer when all is durable; those that are not in time are told so, though they may become so."""
        if _all_durable(pending):
            return reply
        timeout = min(max(op.timeout_ms / 1000, TIMEOUT_MIN_S), TIMEOUT_MAX_S)
        failed: dict[int, ErrorCode] = {}
        with trio.move_on_after(timeout):
            for partition, offset, told in pending:
                try:
                    await partition.wait_durable(offset)
                except KafkaError as broken:
                    failed[id(told)] = broken.code
        for partition, offset, told in pending:
            if partition.log.flushed_offset < offset:
                failed.setdefault(id(told), ErrorCode.REQUEST_TIMED_OUT)
        if not failed:
            return reply
        return ProduceReply(
            responses=[
                TopicProduceReply(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceReply(index=p.index, error_code=failed[id(p)])
                        if id(p) in failed
                        else p
                        for p in topic.partition_responses
                    ],
                )
                for topic in reply.responses
            ]
        )


def _all_durable(pending: list[tuple[Partition, int, PartitionProduceReply]]) -> bool:
    return all(partition.log.flushed_offset >= offset for partition, offset, _ in pending)


def _each_once(topics: list[TopicData]) -> list[TopicData]:
    """A topic that is named more than once under one heading: there the last word on a partition counts."""
    found: dict[tuple[str, TopicId], TopicData] = {}
    for topic in topics:
        key = topic.name, topic.topic_id
        before = found.get(key)
        if before is not None:
            data = [*before.partition_data, *topic.partition_data]
            topic = TopicData(name=topic.name, topic_id=topic.topic_id, partition_data=data)
        found[key] = topic
    return list(found.values())
