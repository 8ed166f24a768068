"""Bugs to plant: each a way in which brokers and disks have really lied, switched on for one run.

A judge who has never found anything proves nothing. Every bug here has to be found
within a hundred seeds, by the judge of the worlds that it concerns: that a broker merely dies of it
will not do, but of those that are named for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest import mock

import trio

from rafka.broker.partition import Partition
from rafka.env.sim_disk import SimDisk, SimFile
from rafka.storage.embedded import scan
from rafka.storage.embedded.log import EmbeddedLog
from rafka.storage.journal import Journal

Bug = Callable[[], AbstractContextManager[object]]


def _in_place_of(owner: Any, name: str, wrong: Any) -> Bug:
    return lambda: mock.patch.object(owner, name, wrong)


def _nothing(*_: object) -> None:
    return None


@contextmanager
def _flushed_runs_ahead() -> Iterator[None]:
    """What is written counts as flushed: everybody is told, and may be told a lie."""
    append = EmbeddedLog.append

    def hasty(log: EmbeddedLog, pieces: Any, header: Any) -> None:
        append(log, pieces, header)
        log.flushed_offset = log.end_offset
        if log.on_flushed is not None:
            log.on_flushed()

    with mock.patch.object(EmbeddedLog, "append", hasty):
        yield


@contextmanager
def _read_before_sync() -> Iterator[None]:
    """Writers wait for the sync, readers do not."""
    append = Partition.append

    def waking(partition: Partition, *args: Any) -> Any:
        appended = append(partition, *args)
        partition.wake()
        return appended

    with (
        mock.patch.object(Partition, "append", waking),
        mock.patch.object(Partition, "high_watermark", property(lambda p: p.log.end_offset)),
    ):
        yield


@contextmanager
def _journal_does_not_wait() -> Iterator[None]:
    append = Journal.append

    async def hasty(journal: Journal, facts: Any) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await append(journal, facts)

    with mock.patch.object(Journal, "append", hasty):
        yield


# What storage alone can show.
STORAGE_BUGS: Final[Mapping[str, Bug]] = {
    "the disk lies about syncs": _in_place_of(SimFile, "sync", _nothing),
    "names are not synced": _in_place_of(SimDisk, "sync_dir", _nothing),
    "the flushed offset runs ahead of the sync": _flushed_runs_ahead,
    "readers do not wait for the sync": _read_before_sync,
    "the journal does not wait": _journal_does_not_wait,
    "producers are not recovered": _in_place_of(Partition, "_restore", _nothing),
    "checksums are not looked at": _in_place_of(scan, "checksum", lambda *_: mock.ANY),
}

# No judge hears of these: the world of storage looks at its journal as it opens it, and ends.
BREAKING_BUGS: Final = frozenset({"the journal does not wait"})

# What clients of the whole broker can see.
BROKER_BUGS: Final[Mapping[str, Bug]] = {
    name: bug for name, bug in STORAGE_BUGS.items() if name != "the journal does not wait"
}
