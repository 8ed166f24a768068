"""A worker of a pipeline: it consumes, transforms and produces in transactions, and dies of any doubt.

It speaks either as classic clients do (partitions and groups are added first, the epoch stays), or
as those of KIP-890 (they are added by writing, each end takes the next epoch), in versions that
the dice choose. What is not answered is asked again on a new connection, with the same words.

In the classic protocol nothing tells a request that comes late from one of the transaction that
followed. So a classic worker that has lost an answer takes a new epoch before it goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import trio

from rafka.errors import ErrorCode
from rafka.records.build import build
from rafka.records.record import Record
from rafka.types import NO_TOPIC_ID
from rafka.wire.apis.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from rafka.wire.apis.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from rafka.wire.apis.end_txn import END_TXN
from rafka.wire.apis.init_producer_id import INIT_PRODUCER_ID
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.produce import PRODUCE
from rafka.wire.apis.txn_offset_commit import TXN_OFFSET_COMMIT

from .clients import BY_ID, CODES, Topic
from .txn_history import MARK, Attempt, PipelineHistory
from .txn_reader import CommittedReader
from .wire_client import GONE, Connect, WireClient

GROUP: Final = "pipeline"
NONE: Final = ErrorCode.NONE
TRY_AGAIN: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
# What somebody is told who was replaced, or whose transaction was aborted because it lasted too long.
OVER: Final = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
}


class Dead(Exception):
    """This worker's transactional id belongs to another, or its transaction is lost."""


class Worker:
    """One instance: it lives until it is replaced, or all is done."""

    def __init__(
        self,
        transactional_id: str,
        partition: int,
        connect: Connect,
        dice: random.Random,
        history: PipelineHistory,
        now: Callable[[], float],
    ) -> None:
        self.id = transactional_id
        self.partition = partition
        self.done = False
        self._connect = connect
        self._dice = dice
        self._history = history
        self._now = now
        self._wire = WireClient(connect, transactional_id)
        self._reader = CommittedReader(f"{transactional_id} in", connect, dice, history)
        self._bumps = dice.random() < 0.5
        self._timeout_ms = dice.choice((1_000, 2_000, 5_000))
        self._producer_id = self._epoch = -1
        self._sequences: dict[int, int] = {}
        self._doubt = False  # an answer was lost in this transaction

    async def run(self, source: Topic, target: Topic, ending: trio.Event, pause: float) -> None:
        """Until all input is in the output. `pause` is how long it may freeze, in the middle of anything."""
        try:
            await self._init()
            position = await self._committed(source)
            while True:
                values, after = await self._reader.records(source, self.partition, position)
                values = values[: self._dice.choice((1, 2, 5))]
                if not values:
                    if ending.is_set() and after >= await self._reader.end(source, self.partition):
                        self.done = True
                        break
                    await trio.sleep(self._dice.uniform(0.01, 0.2))
                    continue
                upto = values[-1].offset + 1
                if await self._transaction([seen.value for seen in values], upto, source, target, pause):
                    position = upto
                if self._doubt and not self._bumps:  # with the new epoch it may replace who has replaced it
                    await self._init(again=True)
                    position = await self._committed(source)
        except Dead:
            pass
        finally:
            with trio.CancelScope(shield=True):
                await self._wire.hang_up()
                await self._reader.wire.hang_up()

    async def leave_open(self, target: Topic) -> None:
        """Begin a transaction and vanish: nobody will come for this id any more."""
        await self._init()
        attempt = self._attempt()
        attempt.values.append(f"nothing{MARK}{attempt.name}")
        if not self._bumps:
            await self._add_partitions(target, {0: attempt.values})
        await self._produce(target, 0, attempt.values)
        await self._wire.hang_up()

    # --- one transaction ------------------------------------------------------------------

    async def _transaction(
        self, values: list[str], upto: int, source: Topic, target: Topic, pause: float
    ) -> bool:
        """Whether it was committed."""
        attempt = self._attempt()
        self._doubt = False
        before = self._producer_id, self._epoch
        parts: dict[int, list[str]] = {}
        for value in values:
            written = f"{value}{MARK}{attempt.name}"
            attempt.values.append(written)
            parts.setdefault(sum(value.encode()) % target.partitions, []).append(written)
        if not self._bumps:
            await self._add_partitions(target, parts)
        for partition, batch in parts.items():
            await self._freeze(pause)
            await self._produce(target, partition, batch)
        if not self._bumps:
            await self._add_group()
        await self._freeze(pause)
        await self._send_offset(source, upto)
        await self._freeze(pause)
        commit = self._dice.random() < 0.85
        await self._end(attempt, commit)
        if commit:
            attempt.fate = "commit"
        if self._bumps and self._dice.random() < 0.2:
            await self._end_once_more(before, commit, target)
        return commit

    def _attempt(self) -> Attempt:
        attempts = self._history.attempts
        attempts.append(Attempt(f"{self.id}.{self._epoch}.{len(attempts)}", self.id, self._epoch))
        return attempts[-1]

    async def _freeze(self, pause: float) -> None:
        """As a process that is stopped, or swapped out: it knows nothing of the time that has passed."""
        if pause and self._dice.random() < 0.1:
            await trio.sleep(self._dice.uniform(0, pause))

    async def _init(self, *, again: bool = False) -> None:
        version = self._dice.choice(INIT_PRODUCER_ID.versions)
        own = again and version >= 3 and self._dice.random() < 0.5
        request = INIT_PRODUCER_ID.Request(
            transactional_id=self.id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._producer_id if own else -1,
            producer_epoch=self._epoch if own else -1,
        )
        reply = await self._insist(INIT_PRODUCER_ID, version, request, lambda r: [r.error_code])
        self._producer_id, self._epoch = reply.producer_id, reply.producer_epoch
        self._sequences.clear()
        self._history.let_in[self.id].append((self._epoch, trio.current_time()))

    async def _add_partitions(self, target: Topic, parts: dict[int, list[str]]) -> None:
        named = ADD_PARTITIONS_TO_TXN.Request.V3AndBelowTopics
        request = ADD_PARTITIONS_TO_TXN.Request(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[named(name=target.name, partitions=[*parts])],
        )
        await self._insist(
            ADD_PARTITIONS_TO_TXN,
            self._dice.choice(range(4)),
            request,
            lambda r: [
                p.partition_error_code
                for t in r.results_by_topic_v3_and_below
                for p in t.results_by_partition
            ],
        )

    async def _produce(self, target: Topic, partition: int, values: list[str]) -> None:
        version = self._dice.choice((12, 13) if self._bumps else range(3, 12))
        by_id = version >= BY_ID
        now_ms = int(self._now() * 1000)
        data = build(
            [Record(0, now_ms, None, value.encode()) for value in values],
            transactional=True,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequences.get(partition, 0),
        )
        named = PRODUCE.Request.TopicData
        request = PRODUCE.Request(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=3000,
            topic_data=[
                named(
                    name="" if by_id else target.name,
                    topic_id=target.topic_id if by_id else NO_TOPIC_ID,
                    partition_data=[named.PartitionData(index=partition, records=data)],
                )
            ],
        )
        await self._insist(
            PRODUCE,
            version,
            request,
            lambda r: [p.error_code for t in r.responses for p in t.partition_responses],
        )
        self._sequences[partition] = self._sequences.get(partition, 0) + len(values)

    async def _add_group(self) -> None:
        request = ADD_OFFSETS_TO_TXN.Request(
            transactional_id=self.id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=GROUP,
        )
        version = self._dice.choice(ADD_OFFSETS_TO_TXN.versions)
        await self._insist(ADD_OFFSETS_TO_TXN, version, request, lambda r: [r.error_code])

    async def _send_offset(self, source: Topic, offset: int) -> None:
        named = TXN_OFFSET_COMMIT.Request.Topics
        part = named.Partitions(partition_index=self.partition, committed_offset=offset)
        request = TXN_OFFSET_COMMIT.Request(
            transactional_id=self.id,
            group_id=GROUP,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[named(name=source.name, partitions=[part])],
        )
        version = 5 if self._bumps else self._dice.choice(range(5))
        await self._insist(
            TXN_OFFSET_COMMIT,
            version,
            request,
            lambda r: [p.error_code for t in r.topics for p in t.partitions],
        )

    async def _end(self, attempt: Attempt, commit: bool) -> None:
        request = END_TXN.Request(
            transactional_id=self.id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commit,
        )
        if commit:
            attempt.fate, attempt.asked = "unknown", trio.current_time()
        version = 5 if self._bumps else self._dice.choice(range(5))
        reply = await self._insist(END_TXN, version, request, lambda r: [r.error_code])
        if self._bumps:
            self._producer_id, self._epoch = reply.producer_id, reply.producer_epoch
            self._sequences.clear()

    async def _end_once_more(self, before: tuple[int, int], commit: bool, target: Topic) -> None:
        """The same end comes once more, late: when the next transaction is open already."""
        attempt = self._attempt()
        attempt.values.append(f"nothing{MARK}{attempt.name}")
        await self._produce(target, 0, attempt.values)
        late = WireClient(self._connect, "late")
        request = END_TXN.Request(
            transactional_id=self.id, producer_id=before[0], producer_epoch=before[1], committed=commit
        )
        self._history.late += 1
        try:
            reply = await late.ask(END_TXN, 5, request)
            if reply.error_code == NONE:
                self._history.late_ends.append(f"the end of {before} was taken though {attempt.name} is open")
        except GONE:
            pass
        finally:
            await late.hang_up()
        await self._end(attempt, False)

    # --- how far it has come -------------------------------------------------------------------

    async def _committed(self, source: Topic) -> int:
        named = OFFSET_FETCH.Request.Topics(name=source.name, partition_indexes=[self.partition])
        request = OFFSET_FETCH.Request(group_id=GROUP, topics=[named], require_stable=True)
        reply = await self._insist(
            OFFSET_FETCH, 7, request, lambda r: [p.error_code for t in r.topics for p in t.partitions]
        )
        offset: int = reply.topics[0].partitions[0].committed_offset
        return max(offset, 0)

    async def _insist(self, api: Any, version: int, request: Any, codes: Callable[[Any], list[int]]) -> Any:
        """Ask until there is an answer that is one. `Dead` where it says that this worker's time is over."""
        while True:
            try:
                reply = await self._wire.ask(api, version, request)
            except GONE:
                self._doubt = True
                await self._wire.hang_up()
            else:
                found = [CODES[code] for code in codes(reply)]
                bad = next((code for code in found if code is not NONE), NONE)
                if bad is NONE:
                    return reply
                if bad in OVER:
                    raise Dead
                if bad not in TRY_AGAIN:
                    self._history.surprises.append(
                        f"{self.id} at {trio.current_time():.4f} s: {bad.name} from {api.name} v{version}"
                    )
                    raise Dead
            await trio.sleep(self._dice.uniform(0.01, 0.2))
