"""Bugs to plant: each a way in which brokers and disks have really lied, switched on for one run.

A judge who has never found anything proves nothing. Every bug here has to be found
within a hundred seeds, by the worlds that it concerns.
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
from rafka.storage.journal import Journal

Bug = Callable[[], AbstractContextManager[object]]


def _in_place_of(owner: Any, name: str, wrong: Any) -> Bug:
    return lambda: mock.patch.object(owner, name, wrong)


def _nothing(*_: object) -> None:
    return None


async def _at_once(*_: object) -> None:
    await trio.lowlevel.checkpoint()


@contextmanager
def _sync_error_passed_over() -> Iterator[None]:
    """The second sync after a failed one succeeds, and the data is gone: fsyncgate."""
    sync = SimFile.sync

    def retried(file: SimFile) -> None:
        try:
            sync(file)
        except OSError:
            file._content.settle()

    with mock.patch.object(SimFile, "sync", retried):
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
    "a failed sync is tried again": _sync_error_passed_over,
    "acknowledged before the sync": _in_place_of(Partition, "wait_durable", _at_once),
    "read before the sync": _in_place_of(Partition, "high_watermark", property(lambda p: p.log.end_offset)),
    "the journal does not wait": _journal_does_not_wait,
    "producers are not recovered": _in_place_of(Partition, "_restore", _nothing),
    "checksums are not looked at": _in_place_of(scan, "checksum", lambda *_: mock.ANY),
}

# What clients of the whole broker can see.
BROKER_BUGS: Final[Mapping[str, Bug]] = {
    name: bug
    for name, bug in STORAGE_BUGS.items()
    if name not in ("a failed sync is tried again", "the journal does not wait")
}
