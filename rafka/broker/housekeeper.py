"""The housekeeper: all that has to be done now and then, and that nobody waits for.

Old records are removed and logs compacted, what was removed is taken off the disk,
idle producers are forgotten. Nothing here is urgent.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NoReturn

import trio

from ..config import Config
from ..env import Env
from ..errors import KafkaError
from ..storage.backend import LogBackend, LogName
from ..storage.compaction import CompactionPolicy, compact
from .configs import ConfigKeeper
from .partition import Partition
from .topics import LiveTopic, Topics

log = logging.getLogger(__name__)

FIRST_S: Final = 30.0  # at most so long after the start everything is done once, as in Kafka
PRODUCERS_EVERY_MS: Final = 600_000
REMOVE_EVERY_MS: Final = 15_000
DELETED_AT_ONCE: Final = 64  # logs
MAP_ENTRY_BYTES: Final = 200  # of memory for each key of a log that is being compacted


class Housekeeper:
    def __init__(self, configs: ConfigKeeper, topics: Topics, backend: LogBackend, env: Env) -> None:
        self._configs = configs
        self._topics = topics
        self._backend = backend
        self._env = env
        self._doomed: list[LogName] = []
        self._doom = trio.Event()

    def discard(self, names: Iterable[LogName]) -> None:
        """Have these logs deleted: their topic is gone."""
        self._doomed += names
        if self._doomed:
            self._doom.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._delete_logs)
            nursery.start_soon(self._every, lambda now: now.log.retention_check_interval_ms, self._expire)
            nursery.start_soon(self._every, lambda now: now.cleaner.backoff_ms, self._compact)
            nursery.start_soon(self._every, lambda _: REMOVE_EVERY_MS, self._remove)
            nursery.start_soon(self._every, lambda _: PRODUCERS_EVERY_MS, self._forget_producers)
            task_status.started()
        raise AssertionError("unreachable")

    async def _every(
        self, interval_ms: Callable[[Config], int], work: Callable[[], Awaitable[object]]
    ) -> NoReturn:
        """Do it again and again; how often may be changed while the broker runs."""
        await trio.sleep(min(interval_ms(self._configs.current) / 1000, FIRST_S))
        while True:
            await work()
            await trio.sleep(interval_ms(self._configs.current) / 1000)

    async def _delete_logs(self) -> NoReturn:
        while True:
            await self._doom.wait()
            self._doom = trio.Event()
            while self._doomed:
                some, self._doomed = self._doomed[:DELETED_AT_ONCE], self._doomed[DELETED_AT_ONCE:]
                async with trio.open_nursery() as nursery:  # side by side, since they share checkpoints
                    for name in some:
                        nursery.start_soon(self._backend.delete, name)

    async def _remove(self) -> None:
        await self._backend.remove_deleted(self._now_ms())

    async def _expire(self) -> None:
        """Remove what is older, or more, than its topic keeps."""
        for live in list(self._topics):
            for partition in list(live.opened()):
                if partition.log.failed is None:
                    self._expire_partition(live, partition)
            await trio.lowlevel.checkpoint()

    def _expire_partition(self, live: LiveTopic, partition: Partition) -> None:
        plog, config = partition.log, live.config
        try:
            # A topic that is only compacted gives up what lies below its start and nothing else.
            removed = plog.expire(
                self._now_ms(),
                config.retention_ms if config.delete else -1,
                config.retention_bytes if config.delete else -1,
                partition.high_watermark,
            )
        except KafkaError as broken:  # one log's trouble, and nobody else's
            log.error("%s-%d: retention failed: %s", live.name, partition.index, broken)
            return
        if removed:
            log.info(
                "%s-%d: %d segments removed, the log begins at offset %d",
                live.name,
                partition.index,
                removed,
                plog.start_offset,
            )
            partition.wake()

    async def _compact(self) -> None:
        if not self._configs.current.cleaner.enabled:
            return
        for live in list(self._topics):
            if live.config.compact:
                await self._compact_topic(live)

    async def _compact_topic(self, live: LiveTopic) -> None:
        config = live.config
        policy = CompactionPolicy(
            min_dirty_ratio=config.min_cleanable_dirty_ratio,
            min_lag_ms=config.min_compaction_lag_ms,
            max_lag_ms=config.max_compaction_lag_ms,
            delete_retention_ms=config.delete_retention_ms,
            max_map_entries=self._configs.current.cleaner.dedupe_buffer_bytes // MAP_ENTRY_BYTES,
        )
        for partition in list(live.opened()):
            try:
                result = await compact(
                    partition.log,
                    policy,
                    self._now_ms(),
                    partition.last_stable_offset,
                    self._env,
                    aborted=partition.aborted_ranges(),
                    producers=partition.last_writes(),
                )
            except KafkaError as broken:
                log.error("%s-%d could not be compacted: %s", live.name, partition.index, broken)
                continue
            log.debug("%s-%d: %s", live.name, partition.index, result)

    async def _forget_producers(self) -> None:
        idle_ms = self._configs.current.producers.id_expiration_ms
        for live in list(self._topics):
            for partition in live.opened():
                partition.producers.forget_idle(self._now_ms(), idle_ms)
            await trio.lowlevel.checkpoint()

    def _now_ms(self) -> int:
        return int(self._env.now() * 1000)
