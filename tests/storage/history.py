"""A broker's life with its logs, by a seed, up to the moment at which it ends badly; and what must be left.

`History` appends to a few logs, waits for flushes, rolls, checkpoints, expires, deletes
records, compacts, deletes logs and makes them anew; and remembers what it was told.
After the end, `check` opens the folder again and compares: nothing that was flushed is
lost, nothing is there twice or out of order, nothing is there that was never written.
"""

from __future__ import annotations

from itertools import count
from random import Random

import trio

from rafka.env.sim_disk import PowerCut, SimDisk
from rafka.errors import KafkaError
from rafka.storage.backend import LogName, LogSettings
from rafka.storage.embedded import EmbeddedBackend, EmbeddedConfig
from rafka.storage.embedded.log import EmbeddedLog

from .batches import everything_cold, headers_in, put, sim_env

SETTINGS = LogSettings(segment_bytes=700, index_interval_bytes=150, file_delete_delay_ms=500)
PREALLOCATED = LogSettings(
    segment_bytes=700, index_interval_bytes=150, file_delete_delay_ms=500, preallocate=True
)
NAMES = [LogName("topics/aa/0"), LogName("topics/aa/1"), LogName("topics/bb/0"), LogName("journal")]


def small(*, durable: bool = True) -> EmbeddedConfig:
    """Limits so low that a short life meets them all."""
    return EmbeddedConfig(
        durable=durable,
        max_open_files=3,
        max_loaded_indexes=2,
        checkpoint_bytes=2000,
        checkpoint_interval=5,
    )


class Story:
    """One log as it was told: its batches by base offset, and what was promised of them."""

    def __init__(self) -> None:
        self.batches: dict[int, bytes] = {}
        self.removable: set[int] = set()  # base offsets of batches that a compaction may have taken
        self.flushed = 0
        self.start = 0  # the highest that the start offset has been
        self.unsure = False  # being deleted: it may be there or not


class History:
    """What was done, and what was promised."""

    def __init__(self, disk: SimDisk, seed: int, config: EmbeddedConfig) -> None:
        self.disk = disk
        self.config = config
        self.rng = Random(seed)
        self.numbers = count()
        self.stories: dict[LogName, Story] = {}
        self.compacting: set[LogName] = set()  # one at a time per log, as compaction promises
        # Whose deletion was cut short: a loss of power may bring back what seems to be gone. Brokers
        # never use the name of a deleted log again, and delete at the next start what nobody owns.
        self.retired: set[LogName] = set()

    async def live(self, steps: int) -> None:
        """One life, up to so many steps or the end of all power."""
        backend = EmbeddedBackend(sim_env(self.disk, self.rng.randrange(1 << 30)), "data", self.config)
        try:
            await backend.start()
            async with trio.open_nursery() as nursery:
                await nursery.start(backend.run)
                async with trio.open_nursery() as both:
                    both.start_soon(self._walk, backend, steps)
                    both.start_soon(self._walk, backend, steps // 2)
                nursery.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            if group.split(PowerCut)[1] is not None:
                raise
        except PowerCut:
            pass

    async def _walk(self, backend: EmbeddedBackend, steps: int) -> None:
        for _ in range(steps):
            try:
                await self._step(backend)
            except KafkaError as refusal:
                if "deleted" not in str(refusal):  # by the other one, meanwhile
                    raise

    async def _step(self, backend: EmbeddedBackend) -> None:
        rng = self.rng
        name = rng.choice(NAMES)
        if name in self.retired:
            return
        log = backend.open(name, PREALLOCATED if name == NAMES[2] else SETTINGS)
        story = self.stories.setdefault(name, Story())
        log.on_flushed = lambda: self._flushed(log, story)
        log.state_source = lambda: b"state at %d" % log.end_offset
        what = rng.random()
        if what < 0.6:
            self._append(log, story)
        elif what < 0.75:
            if rng.random() < 0.5:
                await log.wait_flushed(log.end_offset)
                self._flushed(log, story)
            else:
                await trio.sleep(rng.choice([0, 0.1, 3]))
        elif what < 0.8:
            log.roll()
        elif what < 0.84:
            await backend.checkpoint()
        elif what < 0.88:
            log.advance_start(rng.randint(log.start_offset, log.end_offset))
            story.start = max(story.start, log.start_offset)
        elif what < 0.91:
            upto = log.flushed_offset if log.durable else log.end_offset
            log.expire(0, -1, rng.choice([0, 500, 2000]), upto)
            story.start = max(story.start, log.start_offset)
        elif what < 0.94:
            await self._compact(log, story, rng.randint(1, 3))
        elif what < 0.97:
            await backend.remove_deleted(int(backend._shared.now_ms()) + rng.choice([0, 1000]))
        elif what < 0.98:
            story.unsure = True
            log.on_flushed = None
            await backend.delete(name)
            self.stories[name] = Story()

    def _append(self, log: EmbeddedLog, story: Story) -> None:
        number = next(self.numbers)
        value = b"%d " % number + bytes(self.rng.randrange(1, 200))
        base, epoch = log.end_offset, log.epochs[-1][0] if log.epochs else 0
        times = [1000 + number] * self.rng.randint(1, 3)
        story.batches[base] = b"?"  # from here on it may be there
        story.batches[base] = put(log, times=times, value=value, epoch=epoch)

    def _flushed(self, log: EmbeddedLog, story: Story) -> None:
        story.flushed = max(story.flushed, log.flushed_offset)

    async def _compact(self, log: EmbeddedLog, story: Story, segments: int) -> None:
        old = log.closed_segments()[:segments]
        if not old or old[-1].next_offset > log.flushed_offset or log.name in self.compacting:
            return
        self.compacting.add(log.name)
        new = log.replacement(old)
        for segment in old:
            data = segment.read(0, segment.size)
            at = 0
            for header in headers_in(data):
                if self._keeps(header.base_offset):
                    new.write(data[at : at + header.size])
                else:
                    story.removable.add(header.base_offset)
                at += header.size
        try:
            await log.replace_segments(old, new)
        finally:
            self.compacting.remove(log.name)

    def _keeps(self, base_offset: int) -> bool:
        """Whether a batch outlives compaction."""
        return self.rng.random() < 0.5

    # Afterwards

    async def check(self, *, lossless: bool) -> None:
        """Open what is left, compare, and go on from there. `lossless`: the page cache has survived."""
        env = sim_env(self.disk)
        backend = EmbeddedBackend(env, "data", self.config)
        there = await backend.start()
        for name, story in list(self.stories.items()):
            if name not in there:
                expected = story.flushed or (
                    lossless and any(batch != b"?" for batch in story.batches.values())
                )
                assert not expected or story.unsure, f"{name} is gone"
                if story.unsure:
                    self.retired.add(name)
                del self.stories[name]
                continue
            log = backend.open(name, SETTINGS)
            assert log.failed is None, log.failed
            if story.unsure and log.end_offset < story.flushed:
                story = self.stories[name] = Story()  # deleted, and begun anew or half removed
            await self._compare(log, story, lossless=lossless)
        assert set(there) >= set(self.stories)
        backend._shared.files.close_all()
        self.disk.kill()

    async def _compare(self, log: EmbeddedLog, story: Story, *, lossless: bool) -> None:
        assert log.end_offset >= story.flushed, "flushed offsets are gone"
        assert log.start_offset <= story.start
        data = await everything_cold(log)
        found = {header.base_offset: header for header in headers_in(data)}
        offsets = [header.base_offset for header in headers_in(data)]
        assert offsets == sorted(set(offsets)), "doubled or out of order"
        at = 0
        for header in headers_in(data):
            written = story.batches.get(header.base_offset)
            if written is not None and written != b"?":
                batch = data[at : at + header.size]
                if (
                    header.base_offset >= story.flushed
                ):  # the epoch lies outside the checksum: one bit of it may be wrong
                    batch = batch[:12] + written[12:16] + batch[16:]
                assert batch == written, "other bytes than were written"
            else:
                assert written == b"?", "nobody wrote this"
            at += header.size
        assert at == len(data)
        for base, batch in story.batches.items():
            if batch == b"?":
                continue
            end = headers_in(batch)[-1].next_offset
            expected = end > log.start_offset and (base < story.flushed or lossless)
            if expected and base not in story.removable:
                assert base in found, f"{log.name} has lost the batch at {base}"
            if base < log.end_offset and end > log.start_offset and base not in story.removable:
                assert base in found, f"{log.name} has a hole at {base}"
        assert sum(header.size for header in log.headers(0)) == log.size
        state = log.saved_state
        assert state is None or state == (state[0], b"state at %d" % state[0])
        assert state is None or state[0] <= log.end_offset
        await self._find_times(log, list(found))
        story.batches = {base: batch for base, batch in story.batches.items() if base < log.end_offset}
        story.batches |= {base: b"?" for base in found if base not in story.batches}
        self._trim(log, story, data)
        story.flushed = log.flushed_offset
        story.start = log.start_offset
        story.unsure = False

    def _trim(self, log: EmbeddedLog, story: Story, data: bytes) -> None:
        """What was being written when the power went is now as certain as the rest."""
        at = 0
        for header in headers_in(data):
            story.batches[header.base_offset] = data[at : at + header.size]
            at += header.size
        story.batches = {base: batch for base, batch in story.batches.items() if batch != b"?"}

    async def _find_times(self, log: EmbeddedLog, bases: list[int]) -> None:
        for base in self.rng.sample(bases, min(3, len(bases))):
            header = next(log.headers(base))
            found = await log.find_time(header.max_timestamp)
            expected = next(
                max(other.base_offset, log.start_offset)
                for other in log.headers(log.start_offset)
                if other.max_timestamp >= header.max_timestamp
            )
            assert found is not None
            assert found.offset == expected, (header.base_offset, log.start_offset)


async def survive(disk: SimDisk, seed: int, *, lives: int, steps: int, config: EmbeddedConfig) -> None:
    """Several lives on one disk, each ending in a kill or a loss of power."""
    history = History(disk, seed, config)
    rng = Random(seed)
    for _ in range(lives):
        if rng.random() < 0.5:
            disk.cut_power_after(rng.randrange(1, 150))
        await history.live(rng.randint(1, steps))
        if lossless := rng.random() < 0.3:
            disk.kill()
        else:
            disk.power_loss()
        await history.check(lossless=lossless)
