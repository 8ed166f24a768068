"""A world of storage alone: one partition's log and the journal, on a machine that dies.

Writers send batches and note facts until each is acknowledged; a reader follows the
log; housekeeping checkpoints, writes snapshots, compacts nothing. In between, kills and
losses of power. There is no network and no broker here, so that what goes wrong is
storage's: the store below does only what any broker does with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar
from zlib import crc32

import attrs
import trio

from rafka.broker.partition import Partition
from rafka.env import Env
from rafka.errors import KafkaError
from rafka.machines.facts import FactRegistry, fact
from rafka.records.batch import OVERHEAD, crc_of, read_header, walk
from rafka.records.build import build
from rafka.records.check import Accepted
from rafka.records.record import Record, iterate
from rafka.storage.backend import LogBackend, LogName, LogSettings, StorageFailed
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig
from rafka.storage.journal import Journal, JournalDamaged, open_journal

from .history import History, Poll, Seen, Send
from .kit.machine import Machine
from .kit.runner import Chance, wall_clock

ORDERS: Final = LogName("topics/orders/0")
TP: Final = ("orders", 0)

# What a process may die of where syncs fail. If the damage lasts, so does the world: `NoProgress` finds it.
FAIL_STOP: Final = (StorageFailed, OSError, KafkaError, JournalDamaged)

T = TypeVar("T")


@fact("noted")
class Noted:
    writer: str
    number: int


@attrs.frozen
class Scenario:
    writers: int = 3
    batches: int = 50  # of each writer, and as many facts
    fault_every: float = 0.2  # mean virtual seconds
    preallocate: bool = False
    p_sync_error: float = 0.0


class Store:
    """One life of the storage, used as a broker uses it."""

    def __init__(self, partition: Partition, journal: Journal, calls: trio.Nursery) -> None:
        self.partition = partition
        self.journal = journal
        self.calls = calls
        self.noted: dict[str, int] = {}
        for note in journal.replay():
            self.apply(note)

    async def append(self, batch: bytes) -> int:
        """The batch's base offset, once it is durable: whether it is new or was here before."""
        header, body = read_header(batch), memoryview(batch)[OVERHEAD:]
        appended = self.partition.append(Accepted(header=header, pieces=[body]), False)
        await self.partition.wait_durable(appended.next_offset)
        return appended.base_offset

    def apply(self, note: Noted) -> None:
        """Facts of one writer are numbered without a gap, however often the journal was replayed."""
        if note.number != self.noted.get(note.writer, -1) + 1:
            raise JournalDamaged(f"{note} after {self.noted.get(note.writer)}")
        self.noted[note.writer] = note.number

    async def note(self, writer: str, number: int) -> int:
        """Make it a fact, if it is none yet."""
        if number > self.noted.get(writer, -1):
            note = Noted(writer, number)
            self.apply(note)
            await self.journal.append([note])
        return number

    def facts(self) -> list[Noted]:
        """All notes: a real machine would tell fewer that lead to the same."""
        return [Noted(writer, number) for writer, last in self.noted.items() for number in range(last + 1)]


class World:
    """Whoever is alive, and who outlives it: writers, a reader, the history."""

    def __init__(self, chance: Chance, scenario: Scenario) -> None:
        self.chance = chance
        self.scenario = scenario
        self.history = History(full_readers={"reader"})
        self.machine = Machine(chance)
        self.machine.disk.p_sync_error = scenario.p_sync_error
        self.store: Store | None = None
        self.done = trio.Event()

    async def play(self) -> History:
        async with trio.open_nursery() as world:
            world.start_soon(self._supervise, name="supervisor")
            nemesis = trio.CancelScope()
            world.start_soon(self._nemesis, nemesis, name="nemesis")
            async with trio.open_nursery() as people:
                people.start_soon(self._reader, name="reader")
                async with trio.open_nursery() as writers:
                    for number in range(self.scenario.writers):
                        writers.start_soon(self._writer, number, name=f"writer-{number}")
                nemesis.cancel()
                self.done.set()
            await self._final()
            world.cancel_scope.cancel()
        return self.history

    # --- the process -------------------------------------------------------------------

    async def _supervise(self) -> None:
        while True:
            cause = await self.machine.live(self._process)
            if isinstance(cause, FAIL_STOP) and self.scenario.p_sync_error:
                self._fault("storage failed")
                self.machine.disk.power_loss()  # what a failed sync lost is nowhere but in the page cache
            elif cause is not None:
                raise cause
            await trio.sleep(self.machine.dice.uniform(0.01, 0.2))

    async def _process(self, env: Env) -> None:
        dice = self.machine.dice
        config = EmbeddedConfig(
            reserve_bytes=0,
            reserve_percent=0.0,
            max_open_files=dice.choice((4, 512)),
            checkpoint_bytes=dice.choice((2000, 1 << 20)),
        )
        backend = EmbeddedBackend(env, "/data", config)
        await backend.start()
        async with trio.open_nursery() as storage:
            await storage.start(backend.run)
            settings = LogSettings(
                segment_bytes=dice.choice((1000, 5000, 1 << 20)),
                index_interval_bytes=dice.choice((0, 500, 4096)),
                preallocate=self.scenario.preallocate,
                file_delete_delay_ms=0,
            )
            journal = await open_journal(backend, FactRegistry([Noted]), env)
            partition = Partition("orders", 0, backend.open(ORDERS, settings))
            async with trio.open_nursery() as calls:
                calls.start_soon(self._keep_house, backend, journal, name="housekeeper")
                self.store = Store(partition, journal, calls)
                try:
                    await trio.sleep_forever()
                finally:
                    self.store = None

    async def _keep_house(self, backend: LogBackend, journal: Journal) -> None:
        dice = self.machine.dice
        while True:
            await trio.sleep(dice.expovariate(10))
            if dice.random() < 0.5:
                await backend.checkpoint()
            elif self.store is not None:
                await journal.snapshot(self.store.facts())

    async def ask(self, question: Callable[[Store], Awaitable[T]]) -> T:
        """What the store of the moment answers; asked again, of the next one, if it dies before."""
        while True:
            if self.store is not None:
                tell, told = trio.open_memory_channel[T | KafkaError](1)
                self.store.calls.start_soon(_answer, question, self.store, tell, name="call")
                with suppress(trio.EndOfChannel):
                    answer = await told.receive()
                    if not isinstance(answer, KafkaError):
                        return answer
                    if not answer.code.retriable:
                        raise answer
            await trio.sleep(0.01)  # the dead answer nobody, though some of their tasks may still run

    # --- people ------------------------------------------------------------------------

    async def _writer(self, number: int) -> None:
        try:
            await self._write(number)
        except KafkaError as refused:
            self.history.surprises.append(f"writer-{number}: {refused}")

    async def _write(self, number: int) -> None:
        name, dice = f"writer-{number}", self.chance.stream(f"writer-{number}")
        for sequence in range(self.scenario.batches):
            value = f"{name}:{sequence}"
            record = Record(0, int(wall_clock() * 1000), value.encode(), dice.randbytes(dice.randint(0, 400)))
            batch = build([record], producer_id=number, producer_epoch=0, base_sequence=sequence)
            begun = trio.current_time()
            offset = await self.ask(partial(Store.append, batch=batch))
            self.history.sends.append(
                Send(name, TP, value, _crc(record), sequence, begun, trio.current_time(), "ok", offset)
            )
            noted = await self.ask(partial(Store.note, writer=name, number=sequence))
            assert noted == sequence
            if dice.random() < 0.3:
                await trio.sleep(dice.expovariate(20))

    async def _reader(self) -> None:
        position = idle = 0
        while idle < 10:
            begun = trio.current_time()
            seen, end = await self.ask(partial(_read, position=position))
            self.history.polls.append(
                Poll("reader", 0, TP, position, begun, trio.current_time(), tuple(seen), end, end)
            )
            position = seen[-1].offset + 1 if seen else position
            idle = idle + 1 if self.done.is_set() and not seen else 0

    async def _final(self) -> None:
        """After one more restart: everything, and every note."""
        self.machine.kill()
        await trio.sleep(1)
        found: list[Seen] = []
        while True:
            seen, _ = await self.ask(partial(_read, position=len(found)))
            if not seen:
                break
            found += seen
        self.history.finals[TP] = found
        notes = await self.ask(_notes)
        for number in range(self.scenario.writers):
            last = notes.get(f"writer-{number}", -1)
            if last != self.scenario.batches - 1:
                self.history.surprises.append(
                    f"writer-{number} noted all, and {last} is the last that is left"
                )

    # --- faults ------------------------------------------------------------------------

    async def _nemesis(self, scope: trio.CancelScope) -> None:
        dice = self.chance.stream("nemesis")
        with scope:
            while True:
                await trio.sleep(dice.expovariate(1 / self.scenario.fault_every))
                fault = dice.choice(("kill", "power loss", "power cut"))
                self._fault(fault)
                if fault == "kill":
                    self.machine.kill()
                elif fault == "power loss":
                    self.machine.power_loss()
                else:
                    self.machine.cut_power_at_change(dice.choice((1, 1, 1, 1, 2, 3, 10, 40)))

    def _fault(self, what: str) -> None:
        self.history.faults.append((trio.current_time(), what))


async def storage_world(chance: Chance, scenario: Scenario) -> History:
    return await World(chance, scenario).play()


async def _answer(
    question: Callable[[Store], Awaitable[T]], store: Store, tell: trio.MemorySendChannel[T | KafkaError]
) -> None:
    async with tell:
        try:
            tell.send_nowait(await question(store))
        except KafkaError as refused:
            tell.send_nowait(refused)


async def _notes(store: Store) -> dict[str, int]:
    return dict(store.noted)


async def _read(store: Store, position: int) -> tuple[list[Seen], int]:
    """The records from `position` up to the high watermark, of one segment; and the high watermark.

    Where there is nothing to read, it waits a while until there is, as a fetch does.
    """
    partition = store.partition
    if partition.high_watermark <= position:
        await _growth(partition)
    upto = partition.high_watermark
    data = partition.log.read(position, upto, 1 << 20)
    if data is None:
        data = await partition.log.read_cold(position, upto, 1 << 20)
    seen = []
    for at, header in walk(data):
        sound = crc_of(data, at, header.size) == header.crc
        for record in iterate(memoryview(data)[at : at + header.size]) if sound else ():
            seen.append(Seen(record.offset, (record.key or b"").decode(), _crc(record)))
    return [record for record in seen if record.offset >= position], upto


async def _growth(partition: Partition) -> None:
    watcher = _Watcher()
    partition.watchers.add(watcher)
    try:
        with trio.move_on_after(0.05):
            await watcher.poked.wait()
    finally:
        partition.watchers.discard(watcher)


class _Watcher:
    """As `broker.partition.Watcher`."""

    def __init__(self) -> None:
        self.poked = trio.Event()

    def poke(self) -> None:
        self.poked.set()


def _crc(record: Record) -> int:
    return crc32(repr((record.timestamp, record.key, record.value)).encode())
