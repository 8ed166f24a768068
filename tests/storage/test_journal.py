"""The journal gives back, after a restart, what was appended: all of it, in order, or it says why not.

A restart is `open_journal` on the same backend. The disk's own part in it (kills, losses
of power, damaged files) is in `test_journal_on_disk.py`.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager

import msgpack
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rafka.env import Env
from rafka.env.sim_disk import SimDisk
from rafka.errors import ErrorCode, KafkaError
from rafka.machines.facts import FactRegistry, fact
from rafka.records.batch import read_header
from rafka.records.build import build
from rafka.records.record import Record
from rafka.storage import journal as journals
from rafka.storage.journal import JOURNAL, Journal, JournalDamaged, open_journal
from rafka.storage.memory import MemoryBackend, MemoryLog


@fact("counted")
class Counted:
    number: int
    note: bytes = b""


@fact("renamed")
class Renamed:
    name: str


CODEC = FactRegistry([Counted, Renamed])


async def in_place(fn, *args, limiter=None):  # type: ignore[no-untyped-def]
    return fn(*args)


@pytest.fixture
def env() -> Env:
    dice = random.Random(1)
    return Env(lambda: 1_700_000_000.0, dice, SimDisk(dice), in_place)


@pytest.fixture
def backend(env: Env) -> MemoryBackend:
    return MemoryBackend(env)


async def reopened(backend: MemoryBackend, env: Env) -> tuple[Journal, list[object]]:
    journal = await open_journal(backend, CODEC, env)
    return journal, list(journal.replay())


def log_of(backend: MemoryBackend) -> MemoryLog:
    return backend._logs[JOURNAL]


def counted(*numbers: int) -> list[Counted]:
    return [Counted(number) for number in numbers]


async def test_a_new_journal_has_nothing_to_replay(backend: MemoryBackend, env: Env) -> None:
    _, facts = await reopened(backend, env)

    assert facts == []


async def test_facts_come_back_in_order(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append([Counted(1, b"\x00\xff"), Renamed("ann")])
    await journal.append([Counted(2)])

    _, facts = await reopened(backend, env)

    assert facts == [Counted(1, b"\x00\xff"), Renamed("ann"), Counted(2)]


async def test_the_facts_of_a_round_are_one_batch(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1, 2, 3))
    await journal.append([])
    await journal.append(counted(4))

    assert [header.count for header in log_of(backend).headers(0)] == [3, 1]


async def test_what_is_owed_is_written_as_one_batch_when_it_is_paid(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    journal.owe(counted(1))
    journal.owe(counted(2, 3))
    assert log_of(backend).end_offset == 0
    assert journal.rests, "nobody has to wait for it"

    journal.pay()
    journal.pay()

    assert [header.count for header in log_of(backend).headers(0)] == [3]
    assert (await reopened(backend, env))[1] == counted(1, 2, 3)


@pytest.mark.parametrize("by", ["put", "append", "settled", "snapshot"])
async def test_what_is_owed_goes_before_whatever_comes_next(
    backend: MemoryBackend, env: Env, by: str
) -> None:
    journal, _ = await reopened(backend, env)
    journal.owe(counted(1))

    match by:
        case "put":
            journal.put(counted(2))
        case "append":
            await journal.append(counted(2))
        case "settled":
            await journal.settled()
        case "snapshot":
            await journal.snapshot(counted(1))

    _, facts = await reopened(backend, env)
    assert facts == counted(1, 2)[: len(facts)]
    assert log_of(backend).end_offset == journal.end


async def test_where_the_disk_is_waited_for_nothing_is_owed(backend: MemoryBackend, env: Env) -> None:
    """The next sync takes what is there, whoever asks for it."""
    journal, _ = await reopened(backend, env)
    log = log_of(backend)
    log.durable = True
    asked = []
    log.flush_soon = lambda: asked.append("a sync")  # type: ignore[method-assign]

    journal.owe(counted(1))
    journal.pay()

    assert asked == ["a sync"]
    assert not journal.rests


async def test_many_may_append_at_once(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(journal.append, counted(number, number))

    _, facts = await reopened(backend, env)
    assert sorted(fact.number for fact in facts) == [n for n in range(20) for _ in "ab"]  # type: ignore[attr-defined]
    assert facts[::2] == facts[1::2]


async def test_an_append_that_is_cancelled_while_it_waits_is_kept(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)

    with trio.CancelScope() as scope:
        scope.cancel()
        await journal.append(counted(1))

    assert (await reopened(backend, env))[1] == counted(1)


async def test_an_append_that_storage_refuses_is_an_error(backend: MemoryBackend, env: Env) -> None:
    """The actor that gets it lets it out, and dies."""
    journal, _ = await reopened(backend, env)
    log_of(backend).failed = "the disk is full"
    log_of(backend).append = refusing  # type: ignore[assignment,method-assign]

    with pytest.raises(KafkaError, match="full") as refused:
        await journal.append(counted(1))

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def refusing(*_: object) -> None:
    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")


# --- snapshots ---------------------------------------------------------------------


@asynccontextmanager
async def while_a_snapshot_is_saved(
    backend: MemoryBackend, journal: Journal, facts: Iterable[object]
) -> AsyncIterator[None]:
    """Inside, `snapshot` has been called and waits for the disk; afterwards it is done."""
    save, disk = backend.blobs.save, trio.Event()

    async def slow_save(name: str, blob: bytes) -> None:
        await disk.wait()
        await save(name, blob)

    backend.blobs.save = slow_save  # type: ignore[method-assign]
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(journal.snapshot, facts)
            await wait_all_tasks_blocked()
            yield
            disk.set()
    finally:
        backend.blobs.save = save  # type: ignore[method-assign]


async def test_after_a_snapshot_its_facts_come_first_and_then_the_tail(
    backend: MemoryBackend, env: Env
) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1, 2, 3))
    await journal.snapshot(counted(6))
    await journal.append(counted(4))

    _, facts = await reopened(backend, env)

    assert facts == counted(6, 4)


async def test_what_is_appended_during_a_snapshot_is_in_the_tail(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1))

    async with while_a_snapshot_is_saved(backend, journal, counted(*range(2000))):
        await journal.append(counted(-1))

    _, facts = await reopened(backend, env)
    assert facts == counted(*range(2000), -1)


async def test_the_facts_of_a_snapshot_are_taken_before_anything_waits(
    backend: MemoryBackend, env: Env
) -> None:
    journal, _ = await reopened(backend, env)
    state = counted(1)

    def facts() -> Iterator[object]:
        yield from state

    async with while_a_snapshot_is_saved(backend, journal, facts()):
        state += counted(2)

    assert (await reopened(backend, env))[1] == counted(1)


async def test_a_snapshot_of_nothing_replaces_everything(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1))
    await journal.snapshot([])

    assert (await reopened(backend, env))[1] == []


async def test_the_head_is_cut_at_the_snapshot_before_the_newest(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SEGMENT_BYTES", 1)
    journal, _ = await reopened(backend, env)
    for round_ in range(1, 5):
        await journal.append(counted(round_))
        await journal.append(counted(round_))
        await journal.snapshot(counted(100 + round_))

    assert log_of(backend).start_offset == 6
    assert len(backend.blobs.names()) == 2
    assert (await reopened(backend, env))[1] == counted(104)


async def test_a_damaged_snapshot_falls_back_to_the_one_before_and_a_longer_replay(
    backend: MemoryBackend, env: Env, caplog: pytest.LogCaptureFixture
) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1))
    await journal.snapshot(counted(10))
    await journal.append(counted(2))
    await journal.snapshot(counted(20))
    await journal.append(counted(3))
    lose(backend, backend.blobs.names()[-1])

    journal, facts = await reopened(backend, env)

    assert facts == counted(10, 2, 3)
    assert "snapshot at offset 2 is damaged" in caplog.text

    # And the good one is not given up before there are two good ones again.
    await journal.snapshot(counted(30))
    lose(backend, backend.blobs.names()[-1])
    assert (await reopened(backend, env))[1] == counted(10, 2, 3)


async def test_without_any_good_snapshot_and_without_the_head_it_does_not_start(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SEGMENT_BYTES", 1)
    journal, _ = await reopened(backend, env)
    for number in range(3):
        await journal.append(counted(number))
        await journal.snapshot(counted(10 + number))
    for name in backend.blobs.names():
        lose(backend, name)

    with pytest.raises(
        JournalDamaged, match="begins at offset 2, but its newest readable snapshot ends at 0"
    ):
        await reopened(backend, env)


def lose(backend: MemoryBackend, name: str) -> None:
    """As a damaged blob: the name is there, the contents are not."""
    backend.blobs._blobs[name] = None  # type: ignore[attr-defined]


async def test_two_snapshots_at_once_are_a_mistake(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)

    async with while_a_snapshot_is_saved(backend, journal, counted(1)):
        with pytest.raises(RuntimeError, match="already"):
            await journal.snapshot(counted(2))


async def test_a_snapshot_that_failed_leaves_all_as_it_was(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1))

    async def save(name: str, blob: bytes) -> None:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is full")

    with monkeypatch.context() as full:
        full.setattr(backend.blobs, "save", save)
        with pytest.raises(KafkaError):
            await journal.snapshot(counted(9))
    await journal.append(counted(2))

    assert (await reopened(backend, env))[1] == counted(1, 2)
    await journal.snapshot(counted(3))
    assert (await reopened(backend, env))[1] == counted(3)


# --- when a snapshot is due --------------------------------------------------------


async def test_a_snapshot_is_due_after_so_many_facts(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_FACTS", 5)
    journal, _ = await reopened(backend, env)

    await journal.append(counted(*range(4)))
    assert not journal.due
    await journal.append(counted(5))
    assert journal.due

    journal, _ = await reopened(backend, env)  # what was replayed counts too
    assert journal.due
    await journal.snapshot([])
    assert not journal.due


async def test_a_snapshot_is_due_after_so_many_bytes_but_not_before_the_size_of_the_last(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_BYTES", 1000)
    journal, _ = await reopened(backend, env)

    await journal.append([Counted(1, bytes(1000))])
    assert journal.due
    await journal.snapshot([Counted(1, bytes(5000))])
    assert not journal.due
    await journal.append([Counted(1, bytes(4000))])
    assert not journal.due
    await journal.append([Counted(1, bytes(2000))])
    assert journal.due


async def test_no_snapshot_is_due_while_one_is_written(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SNAPSHOT_FACTS", 1)
    journal, _ = await reopened(backend, env)

    async with while_a_snapshot_is_saved(backend, journal, []):
        await journal.append(counted(1))
        assert not journal.due
    assert journal.due


# --- what cannot be read -----------------------------------------------------------


async def test_a_fact_of_a_newer_version_refuses_the_start(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    await journal.append([Counted(1), Renamed("ann")])

    older = FactRegistry([Counted])
    with pytest.raises(JournalDamaged, match=r"offset 1: facts of the kind 'renamed' are unknown"):
        list((await open_journal(backend, older, env)).replay())


async def test_a_log_that_storage_refuses_is_not_taken_for_an_empty_one(
    backend: MemoryBackend, env: Env
) -> None:
    await reopened(backend, env)
    log_of(backend).failed = "journal/00000000000000000000.log is missing"

    with pytest.raises(JournalDamaged, match=r"cannot be read: journal/0+\.log is missing"):
        await reopened(backend, env)


async def test_a_damaged_batch_refuses_the_start_and_says_where(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    for number in range(5):
        await journal.append([Counted(number, b"note")])
    batches = log_of(backend)._segments[0].batches
    batches[3] = batches[3].replace(b"note", b"nope")

    with pytest.raises(JournalDamaged, match="damaged at offset 3, and ends at 5"):
        await reopened(backend, env)


async def test_a_missing_batch_refuses_the_start(backend: MemoryBackend, env: Env) -> None:
    journal, _ = await reopened(backend, env)
    for number in range(5):
        await journal.append(counted(number))
    segment = log_of(backend)._segments[0]
    for column in segment.batches, segment.nexts, segment.ends, segment.timestamps:
        del column[2]

    with pytest.raises(JournalDamaged, match="damaged at offset 2"):
        await reopened(backend, env)


async def test_a_long_journal_is_read_piece_by_piece(
    backend: MemoryBackend, env: Env, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "_READ_BYTES", 300)
    journal, _ = await reopened(backend, env)
    for number in range(50):
        await journal.append([Counted(number, bytes(number * 10))])

    _, facts = await reopened(backend, env)

    assert facts == [Counted(number, bytes(number * 10)) for number in range(50)]


async def test_the_journal_goes_on_in_the_epoch_that_its_log_has(backend: MemoryBackend, env: Env) -> None:
    """A bit of it may have flipped in a torn tail; batches of a lower epoch would be taken for damage."""
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1))
    log = log_of(backend)
    batch = build([Record(0, 0, b"renamed", msgpack.packb({"name": "x"}))], base_offset=1, leader_epoch=65536)
    log.append([batch], read_header(batch))

    journal, _ = await reopened(backend, env)
    await journal.append(counted(2))

    assert [header.leader_epoch for header in log.headers(0)] == [0, 65536, 65536]


async def test_a_log_that_lost_its_tail_goes_on_after_its_snapshot(
    backend: MemoryBackend, env: Env, caplog: pytest.LogCaptureFixture
) -> None:
    """In page-cache mode, a loss of power may take the log back behind the snapshot, which was synced."""
    journal, _ = await reopened(backend, env)
    await journal.append(counted(1, 2, 3))
    await journal.snapshot(counted(6))
    await backend.delete(JOURNAL)

    journal, facts = await reopened(backend, env)
    assert facts == counted(6)
    assert "ends at offset 0, before its snapshot at 3" in caplog.text

    await journal.append(counted(4))
    assert (await reopened(backend, env))[1] == counted(6, 4)
