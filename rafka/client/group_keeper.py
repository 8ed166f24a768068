"""Keeps a membership: joins, says that it is alive, and joins again when the group rebalances.

    give up -> join -> share, if it leads -> sync -> take over -> stay until the next one
       all, or with cooperative assignors only what has to go, and that after sync

One task runs through this circle. It gives nothing up that the reader is at work on, and heartbeats
go on while it waits for that. Passing errors it outlives: a coordinator that restarts within the
session finds its members where it left them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import trio

from ..wire.errors import WireError
from .assignors import Memory, Subscription, read_assignment, write_subscription
from .assignors.base import Assignment, Assignor
from .cluster import Cluster
from .errors import ClientError, group_named
from .group_commits import Commits
from .group_listener import RebalanceListener
from .group_reader import Reader, Targets
from .membership import Beat, GroupSettings, Joined, Membership, NotAMember, Rebalancing
from .model import TopicPartition
from .nursery import background
from .offsets import resolve


class Keeper:
    def __init__(
        self,
        cluster: Cluster,
        settings: GroupSettings,
        membership: Membership,
        reader: Reader,
        commits: Commits,
        listener: RebalanceListener,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._membership = membership
        self._reader = reader
        self._commits = commits
        self._listener = listener
        self._topics = settings.topics
        self._memory = Memory()
        self._led: dict[str, int] = {}  # the topics that this member shared as leader, and their sizes
        self._reason: str | None = None  # why this member itself would like a rebalance
        self._stirred = trio.Event()

    def subscribe(self, topics: tuple[str, ...]) -> None:
        self._topics = topics
        self._want_rebalance("the subscription changed")

    async def run(self) -> None:
        """Join, stay, join again, until that makes no sense any more."""
        failing_since: float | None = None
        tries = 0
        while not self._reader.broken:
            try:
                await self._round()
                failing_since, tries = None, 0
                await self._stay()
            except Rebalancing:
                continue
            except NotAMember:
                await self._lose()
            except ClientError as error:
                now = trio.current_time()
                failing_since = now if failing_since is None else failing_since
                late = now - failing_since > self._cluster.settings.retry_timeout
                if late or not error.retriable:
                    self._reader.fail(error)
                    failing_since = now
                await trio.sleep(self._cluster.settings.pause(tries))
                tries += 1

    async def _round(self) -> None:
        """One rebalance, from giving up to taking over."""
        reason, self._reason = self._reason, None
        if self._settings.cooperative:
            await self._give_up(frozenset(one for one in self._reader.owned if one.topic not in self._topics))
        else:
            await self._give_up(self._reader.owned)
        joined = await self._membership.join(self._metadata, reason)
        shared = await self._share(joined) if joined.leading else {}
        data = await self._membership.sync(joined, shared)
        try:
            assigned = frozenset(read_assignment(data))
        except WireError as error:
            raise ClientError(
                f"{group_named(self._settings.group_id)}: the leader wrote what cannot be read: {error}"
            ) from error
        async with self._pulsing():
            await self._adopt(joined, assigned)

    def _metadata(self, assignor: Assignor) -> bytes:
        subscription = Subscription(
            topics=self._topics,
            user_data=assignor.user_data(self._memory),
            owned=tuple(sorted(self._reader.owned)),
            generation=self._memory.generation,
        )
        return write_subscription(subscription)

    async def _share(self, joined: Joined) -> Assignment:
        """The leader's part. Its own metadata has to know the topics of all members."""
        topics = {topic for member in joined.members for topic in member.topics} | {*self._topics}
        await self._cluster.refresh(topics)
        self._led = {topic: self._size(topic) for topic in topics}
        return {} if joined.keep else joined.assignor.assign(self._led, joined.members)

    async def _adopt(self, joined: Joined, assigned: Targets) -> None:
        if not joined.leading:
            self._led = {}
        revoked = self._reader.owned - assigned
        if revoked:
            await self._give_up(revoked)
            self._want_rebalance("partitions were given up")  # so that their new owners may have them
        self._memory = Memory(tuple(sorted(assigned)), joined.generation)
        await self._take_over(assigned - self._reader.owned)

    async def _stay(self) -> None:
        """Say that this member is alive, until the group or this member wants a rebalance."""
        due = trio.current_time() + self._settings.heartbeat_interval
        while True:
            with trio.move_on_at(due):
                await self._stirred.wait()
            self._stirred = trio.Event()
            if self._reason is not None or self._reader.broken:
                return
            if trio.current_time() < due:
                continue
            await self._look_after_reader()
            await self._look_at_topics()
            match await self._beat():
                case Beat.REBALANCE:
                    return
                case Beat.GONE:
                    raise NotAMember
            due = trio.current_time() + self._settings.heartbeat_interval

    async def _beat(self) -> Beat:
        """One heartbeat. While the coordinator cannot be asked the membership is taken to last."""
        try:
            return await self._membership.heartbeat()
        except ClientError as error:
            if error.retriable:
                return Beat.FINE
            self._membership.forget()
            self._reader.fail(error)
            return Beat.GONE

    @asynccontextmanager
    async def _pulsing(self) -> AsyncIterator[None]:
        """Heartbeats while something else goes on, until the member is found to be none."""

        async def pulse() -> None:
            while await self._beat() is not Beat.GONE:  # noqa: ASYNC110
                await trio.sleep(self._settings.heartbeat_interval)

        async with background() as nursery:
            nursery.start_soon(pulse)
            yield

    def _want_rebalance(self, reason: str) -> None:
        self._reason = reason
        self._stirred.set()

    async def _look_at_topics(self) -> None:
        """Who shared the partitions sees to it that they are shared again when there are more."""
        if any(self._size(topic) == 0 for topic in self._led):
            try:
                await self._cluster.refresh(self._led)
            except ClientError:  # the heartbeat that follows meets it again
                return
        if any(self._size(topic) != size for topic, size in self._led.items()):
            self._want_rebalance("the topics have other partitions")

    def _size(self, topic: str) -> int:
        info = self._cluster.topics.get(topic)
        return 0 if info is None else len(info.partitions)

    async def _look_after_reader(self) -> None:
        """A reader who does not come back holds up what others could read."""
        since = self._reader.away_since
        if since is None or trio.current_time() - since <= self._settings.rebalance_timeout:
            return
        self._reader.consumer.pause(self._reader.owned)
        with suppress(ClientError):  # then the session ends by itself
            await self._membership.leave("the reader did not come back in time")
        await self._reader.came.wait()
        raise NotAMember

    # --- partitions come and go ------------------------------------------------------

    async def _take_over(self, targets: Targets) -> None:
        """Read these from where the group stands."""
        offsets = await self._starts(targets)
        self._reader.add(offsets)
        await self._tell(self._listener.on_assigned, targets)
        self._reader.consumer.resume(targets)

    async def _starts(self, targets: Targets) -> dict[TopicPartition, int]:
        offsets = await self._commits.known(targets)
        new = sorted(targets - offsets.keys())
        if not new:
            return offsets
        if self._settings.start is None:
            raise ClientError(
                f"{group_named(self._settings.group_id)} has no offset of {new[0]}: say where to start"
            )
        starts = dict.fromkeys(new, self._settings.start)
        committed = self._reader.consumer.settings.read_committed
        return offsets | await resolve(self._cluster, starts, read_committed=committed)

    async def _give_up(self, targets: Targets) -> None:
        """Let go of these, once the reader is done with what it has in hand."""
        if not targets:
            return
        async with self._pulsing():
            await self._reader.hold(targets)
            if self._membership.member_id:
                if self._settings.auto_commit:
                    await self._commits.commit_finished()
                await self._tell(self._listener.on_revoked, targets)
                self._drop(targets)
        if not self._membership.member_id:
            raise NotAMember

    async def _lose(self) -> None:
        """Others have what this member read."""
        targets = self._reader.owned
        if not targets:
            return
        self._reader.consumer.pause(targets)
        await self._reader.hold(targets)
        await self._tell(self._listener.on_lost, targets)
        self._drop(targets)

    def _drop(self, targets: Targets) -> None:
        self._reader.drop(targets)
        self._commits.forget(targets)

    async def _tell(self, listener: Callable[[Targets], Awaitable[None]], targets: Targets) -> None:
        try:
            await listener(targets)
        except Exception as error:  # it is the caller's own code: the reader is who should hear of it
            self._reader.fail(error)
