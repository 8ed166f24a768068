"""Partitions that are written to in transactions while their broker dies again and again: what must be left.

A `Tale` keeps what was written to one partition, as a list, and knows nothing of how
rafka does it: what is open, stable and committed it finds by going through that list.
`Story` lives several lives over one disk and compares, after each of them and within.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import attrs
import pytest
import trio

from rafka.broker.partition import Partition
from rafka.env.sim_disk import PowerCut, SimDisk
from rafka.errors import KafkaError
from rafka.ops.log import AbortedTransaction
from rafka.records.batch import OVERHEAD, read_header, walk
from rafka.records.build import build
from rafka.records.check import Accepted
from rafka.records.control import read_marker
from rafka.records.record import Record, iterate
from rafka.storage.backend import LogName, LogSettings
from rafka.storage.compaction import CompactionPolicy, compact
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig

from ..storage.batches import sim_env

NAMES: Final = (LogName("topics/aa/0"), LogName("topics/aa/1"))
SETTINGS: Final = LogSettings(segment_bytes=500, index_interval_bytes=150, file_delete_delay_ms=0)

Action: TypeAlias = tuple[str, int, int, int, bool]  # what, partition, producer, a number, a yes or no
Ending: TypeAlias = Literal["close", "kill", "power loss"]
Damage: TypeAlias = Literal["", ".txnindex", ".snapshot", "checkpoint"]


@attrs.frozen
class Written:
    """A batch. `committed` is what it says if it is a marker."""

    base: int
    count: int
    pid: int
    epoch: int
    sequence: int
    transactional: bool
    committed: bool | None = None

    @property
    def end(self) -> int:
        return self.base + self.count

    @property
    def offsets(self) -> range:
        return range(self.base, self.end)


@attrs.define
class Tale:
    """What was written to a partition."""

    written: list[Written] = attrs.Factory(list)
    flushed: int = 0
    start: int = 0
    physical: int = 0  # below this, segments are gone
    forgotten: list[Written] = attrs.Factory(list)

    @property
    def end(self) -> int:
        return self.written[-1].end if self.written else 0

    def of(self, pid: int) -> list[Written]:
        return [one for one in self.written if one.pid == pid]

    def epoch(self, pid: int) -> int:
        return max((one.epoch for one in self.of(pid)), default=-1)

    def last_sequence(self, pid: int) -> int:
        data = [one for one in self.of(pid) if one.committed is None and one.epoch == self.epoch(pid)]
        return data[-1].sequence + data[-1].count - 1 if data else -1

    def transactions(self) -> Iterator[tuple[list[Written], Written | None]]:
        """The batches of each transaction, and its marker if it has one."""
        for pid in sorted({one.pid for one in self.written}):
            data: list[Written] = []
            for one in self.of(pid):
                if one.committed is not None:
                    if data:
                        yield data, one
                    data = []
                elif one.transactional:
                    data.append(one)
            if data:
                yield data, None

    def open(self) -> dict[int, int]:
        """Producer -> first offset."""
        return {data[0].pid: data[0].base for data, marker in self.transactions() if marker is None}

    def stable(self, high_watermark: int) -> int:
        firsts = [
            data[0].base
            for data, marker in self.transactions()
            if marker is None or marker.base >= high_watermark
        ]
        first = min(firsts, default=high_watermark)
        return max(first, self.start) if first < high_watermark else high_watermark

    def committed(self, upto: int) -> list[int]:
        """The offsets of all records that readers of committed records get, below `upto`."""
        found = [n for one in self.written if not one.transactional for n in one.offsets]
        for data, marker in self.transactions():
            if marker is not None and marker.committed:
                found += [n for one in data for n in one.offsets]
        return sorted(n for n in found if self.start <= n < upto)

    def cut(self, end: int) -> None:
        self.written = [one for one in self.written if one.end <= end]

    def forget_what_is_gone(self) -> None:
        self.forgotten += [one for one in self.written if one.end <= self.physical]
        self.written = [one for one in self.written if one.end > self.physical]

    def remember(self) -> None:
        self.written[:0], self.forgotten = self.forgotten, []


class Story:
    """Several lives of two partitions."""

    def __init__(self, disk: SimDisk, *, durable: bool, fetch_bytes: int) -> None:
        self.disk = disk
        self.durable = durable
        self.fetch_bytes = fetch_bytes
        self.tales = [Tale() for _ in NAMES]
        self.now_ms = 1_700_000_000_000

    async def live(self, actions: Sequence[Action], ending: Ending, cut_after: int | None) -> None:
        """A life that begins by comparing what is there with the tales.

        With `cut_after` it ends at the change to the disk after so many, wherever that is.
        """
        config = EmbeddedConfig(
            durable=self.durable, max_open_files=3, checkpoint_bytes=3000, reserve_bytes=0, reserve_percent=0
        )
        backend = EmbeddedBackend(sim_env(self.disk), "data", config)
        if cut_after is not None:
            self.disk.cut_power_after(cut_after)
        try:
            await backend.start()
            async with trio.open_nursery() as nursery:
                await nursery.start(backend.run)
                partitions = [Partition("t", n, backend.open(name, SETTINGS)) for n, name in enumerate(NAMES)]
                for partition, tale in zip(partitions, self.tales, strict=True):
                    await self._recovered(partition, tale)
                for action in actions:
                    await self._act(backend, partitions[action[1]], self.tales[action[1]], action)
                for partition, tale in zip(partitions, self.tales, strict=True):
                    await self._compare(partition, tale)
                nursery.cancel_scope.cancel()
            if ending == "close":
                await backend.close()
        except BaseExceptionGroup as group:
            if group.split(PowerCut)[1] is not None:
                raise
        except PowerCut:
            pass
        if ending == "power loss":
            self.disk.power_loss()
        else:
            self.disk.kill()

    def damage(self, what: Damage) -> None:
        """Harm files while nobody is there: what can be had from the batches must not be missed."""
        paths = [f"data/{name}/{file}" for name in NAMES for file in self.disk.list(f"data/{name}")]
        for path in [*paths, "data/checkpoint"]:
            if what and path.endswith(what) and self.disk.exists(path) and self.disk.contents(path):
                self.disk.damage(path, _flip)

    # --- what is done ------------------------------------------------------------------------

    async def _act(self, backend: EmbeddedBackend, partition: Partition, tale: Tale, action: Action) -> None:
        what, _, pid, number, yes = action
        log = partition.log
        self.now_ms += 1000
        match what:
            case "write":
                self._write(partition, tale, pid, 1 + number % 3, transactional=yes)
            case "end":
                self._end(partition, tale, pid, committed=yes, raised=number % 2)
            case "flush":
                await log.wait_flushed(log.end_offset)
            case "checkpoint":
                await backend.checkpoint()
                await backend.remove_deleted(self.now_ms * 2)
            case "roll":
                log.roll()
            case "compact":
                keys = (1, 2, 5, 1000)[number % 4]  # with few, a pass ends in the middle of transactions
                await compact(
                    log,
                    CompactionPolicy(min_dirty_ratio=0.0, delete_retention_ms=0, max_map_entries=keys),
                    self.now_ms,
                    partition.last_stable_offset,
                    sim_env(self.disk),
                    aborted=partition.aborted_ranges(),
                    producers=partition.last_writes(),
                )
            case "delete":
                upto = tale.start + (partition.high_watermark - tale.start) * number // 10
                tale.start = max(tale.start, upto)
                log.advance_start(tale.start)
            case "expire":
                log.expire(self.now_ms, -1, -1, partition.high_watermark)
                tale.physical = next(log.headers(0)).base_offset if log.size else log.end_offset
        tale.flushed = max(tale.flushed, log.flushed_offset)
        assert partition.last_stable_offset == tale.stable(partition.high_watermark)

    def _write(self, partition: Partition, tale: Tale, pid: int, count: int, *, transactional: bool) -> None:
        epoch = max(0, tale.epoch(pid))
        written = Written(tale.end, count, pid, epoch, tale.last_sequence(pid) + 1, transactional)
        records = [
            Record(n, self.now_ms, f"{partition.index}:{n}".encode(), bytes(n % 60)) for n in written.offsets
        ]
        batch = build(
            records,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=written.sequence,
            transactional=transactional,
        )
        header = read_header(batch)
        passed = None
        if transactional and not partition.producers.has_open(pid, epoch):
            passed = partition.producers.verify(header, adds=False, now_ms=self.now_ms)
        if pid in tale.open() and not transactional:
            with pytest.raises(KafkaError, match="a transaction is open"):
                partition.append(Accepted(header=header, pieces=[batch[OVERHEAD:]]), False)
            return
        tale.written.append(written)  # from here on it may be there
        appended = partition.append(Accepted(header=header, pieces=[batch[OVERHEAD:]]), False, passed)
        assert appended.base_offset == written.base

    def _end(self, partition: Partition, tale: Tale, pid: int, *, committed: bool, raised: int) -> None:
        epoch = max(0, tale.epoch(pid)) + raised
        tale.written.append(Written(tale.end, 1, pid, epoch, -1, True, committed))
        partition.write_marker(pid, epoch, committed=committed, coordinator_epoch=0, now_ms=self.now_ms)

    # --- what has to be so ---------------------------------------------------------------------

    async def _recovered(self, partition: Partition, tale: Tale) -> None:
        """After a start: what was flushed is there, and the state is what the log says."""
        log = partition.log
        assert log.end_offset >= tale.flushed, "something flushed is lost"
        tale.cut(log.end_offset)
        tale.start = log.start_offset  # one that was moved since the checkpoint may have come back
        tale.physical = next(log.headers(0)).base_offset if log.size else log.end_offset
        tale.flushed = log.flushed_offset
        restored = {
            pid: producer.first_open_offset
            for pid, producer in partition.producers.by_id.items()
            if producer.first_open_offset >= 0
        }
        if log.saved_state is None:
            tale.forget_what_is_gone()  # the state was had from what is left of the log
        elif restored != tale.open():
            tale.remember()  # a loss of power has brought back an older state, which knows more
        assert restored == tale.open()
        await self._compare(partition, tale)

    async def _compare(self, partition: Partition, tale: Tale) -> None:
        stable = partition.last_stable_offset
        assert stable == tale.stable(partition.high_watermark)
        for pid in {one.pid for one in tale.written if one.end > tale.physical}:
            producer = partition.producers.by_id[pid]
            assert (producer.epoch, producer.last_sequence) == (tale.epoch(pid), tale.last_sequence(pid))
        assert await self._committed(partition, stable) == tale.committed(stable)

    async def _committed(self, partition: Partition, upto: int) -> list[int]:
        """The offsets of the records that a consumer of committed ones gets below `upto`, fetch by fetch."""
        log, got = partition.log, list[int]()
        offset = log.start_offset
        while offset < upto:
            data = await log.read_cold(offset, upto, self.fetch_bytes)
            if not data:
                break
            got += _consumed(data, offset, list(partition.aborted(offset, data)))
            offset = max(header.next_offset for _, header in walk(data))
        return got


def _consumed(data: bytes, since: int, aborted: list[AbortedTransaction]) -> Iterator[int]:
    """As Kafka's own consumer goes through what it has fetched."""
    aborted.sort(key=lambda one: one.first_offset, reverse=True)
    skipped: set[int] = set()
    for at, header in walk(data):
        while aborted and aborted[-1].first_offset <= header.last_offset:
            skipped.add(aborted.pop().producer_id)
        batch = data[at : at + header.size]
        if header.control:
            marker = read_marker(batch)
            if marker is not None and not marker.committed:
                skipped.discard(header.producer_id)
        elif not (header.transactional and header.producer_id in skipped):
            yield from (record.offset for record in iterate(batch) if record.offset >= since)


def _flip(data: bytearray) -> None:
    data[len(data) // 2] ^= 0x40
