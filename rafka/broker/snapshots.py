"""Snapshots of the journal: when it has grown enough, all state is written anew, as few facts.

Several keepers share one journal, and a snapshot has to hold what all of them remember. Each gives a
source of facts. They are asked one after the other without an await between, and each has put
in the journal whatever it decided before: so together they are one moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn, TypeAlias

import trio

from ..machines.facts import Fact
from ..storage.journal import Journal

Source: TypeAlias = Callable[[], Iterable[Fact]]


class Snapshots:
    def __init__(self, journal: Journal) -> None:
        self.sources: list[Source] = []
        self._journal = journal
        self._due = trio.Event()
        journal.on_due = self._look

    def _look(self) -> None:
        """Have a snapshot written if it is time."""
        if self._journal.due:
            self._due.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        task_status.started()
        while True:
            await self._due.wait()
            self._due = trio.Event()
            await self._journal.snapshot([fact for source in self.sources for fact in source()])
            self._look()
