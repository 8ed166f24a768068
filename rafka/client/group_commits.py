"""A member's commits: one at a time, only what is new, and only while it is a member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import trio

from ..errors import ErrorCode
from .errors import BrokerRefused, ClientError, group_named
from .group_offsets import CommittedOffset, commit_offsets, fetch_offsets
from .group_reader import Reader, Targets
from .membership import NOT_A_MEMBER, Membership
from .model import TopicPartition

OUT_OF_STEP: Final = (*NOT_A_MEMBER, ErrorCode.REBALANCE_IN_PROGRESS)


class Commits:
    def __init__(self, membership: Membership, reader: Reader) -> None:
        self._membership = membership
        self._reader = reader
        self._committed: dict[TopicPartition, int] = {}
        self._turn = trio.Lock()  # so that an older commit never overtakes a newer one

    async def known(self, targets: Targets) -> dict[TopicPartition, int]:
        """Where the group stands, once no open transaction could change it; only those with an offset."""
        if not targets:
            return {}
        found = await fetch_offsets(self._membership.coordinator, targets, require_stable=True)
        offsets = {target: one.offset for target, one in found.items()}
        self._committed |= offsets
        return offsets

    def forget(self, targets: Targets) -> None:
        """Others may commit for these from now on."""
        for target in targets:
            self._committed.pop(target, None)

    async def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> None:
        """Raises BrokerRefused where the group has moved on."""
        async with self._turn:
            if not offsets:
                return
            membership = self._membership
            if not membership.member_id:
                # Without a member id it would be taken for a commit from outside the group.
                subject = group_named(membership.coordinator.group_id)
                raise BrokerRefused(ErrorCode.UNKNOWN_MEMBER_ID, subject, "it has to be joined again first")
            refusals = await commit_offsets(membership.coordinator, offsets, membership.committer)
            for error in refusals.values():
                if error is not None:
                    raise error
            self._committed |= {target: one.offset for target, one in offsets.items()}

    async def commit_finished(self) -> None:
        """Commit what the reader is done with. What is out of step is let be: it will be read again."""
        news = {
            target: CommittedOffset(offset=offset)
            for target, offset in self._reader.finished().items()
            if self._committed.get(target) != offset
        }
        try:
            await self.commit(news)
        except ClientError as error:
            out_of_step = isinstance(error, BrokerRefused) and error.code in OUT_OF_STEP
            if not out_of_step and not error.retriable:
                self._reader.fail(error)

    async def at_intervals(self, interval: float) -> None:
        """A task of the consumer's."""
        while True:
            await trio.sleep(interval)
            await self.commit_finished()
