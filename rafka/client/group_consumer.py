"""Reads topics as a member of a group: who reads what is settled among the members.

    async with client.group_consumer("billing", ["orders"]) as consumer:
        async for record in consumer:
            ...

A task of its own keeps the membership: it joins, says that it is alive, and joins again when the
group rebalances. It never takes a partition from a reader who is at work on it: it waits until the
reader comes back for more, then commits, tells the listener, and lets go. A reader who does not
come back within `rebalance_timeout` is no member any more.

Offsets are committed as the reader comes back for more, at intervals, before partitions are given
up, and at the end; with `auto_commit=False` when `commit` is called. What the reader has in hand is
never committed for it, so whatever goes wrong, each record is read at least once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

import trio

from .cluster import Cluster
from .consumer import Chunk, ConsumedRecord, Consumer
from .errors import ClientError
from .group_commits import Commits
from .group_keeper import Keeper
from .group_listener import RebalanceListener
from .group_offsets import CommittedOffset, fetch_offsets
from .group_reader import Reader, Targets
from .membership import GroupSettings, Membership
from .model import TopicPartition


class GroupConsumer:
    """Made by `Client.group_consumer`."""

    def __init__(
        self,
        cluster: Cluster,
        consumer: Consumer,
        settings: GroupSettings,
        listener: RebalanceListener | None = None,
    ) -> None:
        self.settings: Final = settings
        self._consumer = consumer
        self._listener = listener or RebalanceListener()
        self._membership = Membership(cluster, settings)
        self._reader = Reader(consumer)
        self._commits = Commits(self._membership, self._reader)
        self._keeper = Keeper(
            cluster, settings, self._membership, self._reader, self._commits, self._listener
        )
        self._scope = trio.CancelScope()

    # --- who and where -------------------------------------------------------------

    @property
    def assignment(self) -> Targets:
        """What this member reads now."""
        return self._reader.owned

    @property
    def member_id(self) -> str:
        """What the coordinator calls this member; empty while it is none."""
        return self._membership.member_id

    @property
    def generation(self) -> int:
        return self._membership.generation

    def position(self, target: TopicPartition) -> int:
        """The offset behind the last record, or chunk, that was given to the reader."""
        return self._consumer.position(target)

    def seek(self, target: TopicPartition, offset: int) -> None:
        """Go on reading a partition of this member's from this offset."""
        self._consumer.seek(target, offset)

    async def end_offsets(self) -> dict[TopicPartition, int]:
        """Where each partition of this member's ends now."""
        return await self._consumer.end_offsets()

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics and no others, from the rebalance on that this begins."""
        self._keeper.subscribe(tuple(topics))

    # --- reading -----------------------------------------------------------------

    async def next_chunk(self) -> Chunk:
        """The next records of some partition, as many as came together."""
        return await self._reader.take(self._consumer.next_chunk, _first_of_chunk)

    def __aiter__(self) -> GroupConsumer:
        return self

    async def __anext__(self) -> ConsumedRecord:
        """One record after another, without end."""
        return await self._reader.take(self._consumer.__anext__, _place_of_record)

    # --- committing --------------------------------------------------------------

    async def commit(self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None) -> None:
        """Remember that everything given to the reader was read, the last record too; or these offsets.

        Raises BrokerRefused where the group has moved on: what was not committed will be read again.
        """
        if offsets is None:
            offsets = self._reader.given()
        await self._commits.commit(
            {
                target: CommittedOffset(offset=offset) if isinstance(offset, int) else offset
                for target, offset in offsets.items()
            }
        )

    async def committed(self, targets: Iterable[TopicPartition]) -> dict[TopicPartition, CommittedOffset]:
        """Where the group stands in these partitions; only those with an offset."""
        return await fetch_offsets(self._membership.coordinator, targets)

    # --- from beginning to end -------------------------------------------------------

    async def run(self) -> None:
        """The consumer's own task."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                if self.settings.auto_commit:
                    nursery.start_soon(self._commits.at_intervals, self.settings.auto_commit_interval)
                await self._keeper.run()
                nursery.cancel_scope.cancel()

    async def close(self, *, finished: bool) -> None:
        """Commit, tell the listener and leave. `finished`: the reader is done with what it has in hand."""
        self._scope.cancel()
        if finished:
            self._reader.done()
        with trio.move_on_after(self.settings.close_timeout, shield=True):
            try:
                await self._part(self.assignment)
            finally:
                self._membership.close()

    async def _part(self, targets: Targets) -> None:
        member = bool(self._membership.member_id)
        if member and self.settings.auto_commit:
            await self._commits.commit_finished()
        if targets:
            await (self._listener.on_revoked if member else self._listener.on_lost)(targets)
        self._reader.drop(targets)
        if self.settings.instance_id is not None:
            return  # a static member may be back before its session ends
        with suppress(ClientError):  # then the group finds out when the session ends
            await self._membership.leave("the consumer was closed")


def _first_of_chunk(chunk: Chunk) -> tuple[TopicPartition, int]:
    return chunk.target, chunk.records[0].offset if chunk.records else chunk.next_offset


def _place_of_record(record: ConsumedRecord) -> tuple[TopicPartition, int]:
    return TopicPartition(record.topic, record.partition), record.offset
