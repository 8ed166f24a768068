"""A member of a group in a simulated world: it joins, shares, works, commits, falls silent, and goes.

It does what real consumers do, Kafka's own above all, on one connection and in bytes, in versions
that the dice choose: heartbeats three or more times in a session, commits sent ahead of their
answers, eager members that give up everything before they rejoin and cooperative ones that go on.
Now and then it sleeps past its session and wakes as a zombie that does not know it.

It trusts nobody and writes everything down. It reads no records: to process is to go forward by some
that are known to be there, which is all that a coordinator ever hears of it. Now and then it asks what
no right coordinator grants: in another generation than its own, or in the name of nobody.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Final

import attrs
import trio

from rafka.client.assignors import (
    ASSIGNORS,
    Memory,
    Subscription,
    member_of,
    read_assignment,
    write_assignment,
    write_subscription,
)
from rafka.client.model import TopicPartition
from rafka.errors import ErrorCode
from rafka.wire.api import Api
from rafka.wire.apis.heartbeat import HEARTBEAT
from rafka.wire.apis.join_group import JOIN_GROUP
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.offset_commit import OFFSET_COMMIT
from rafka.wire.apis.offset_fetch import OFFSET_FETCH
from rafka.wire.apis.sync_group import SYNC_GROUP
from rafka.wire.errors import WireError

from . import group_wire as wires
from .clients import CODES
from .group_history import (
    Beat,
    Change,
    Code,
    Committed,
    Fetched,
    GroupHistory,
    Joined,
    Left,
    Ownership,
    Place,
    Processed,
    Synced,
)
from .group_profile import QUIET, QUIET_SINCE, TOPICS, Profile
from .group_wire import Who
from .wire_client import GONE, Connect, WireClient

TRY_AGAIN: Final = frozenset(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
)
REJOIN: Final = ErrorCode.REBALANCE_IN_PROGRESS
SYNC_ATTEMPTS: Final = 8  # rejoining instead would cost everybody a rebalance, if it is the leader who does
SOON: Final = 5.0  # virtual seconds in which an answer comes that waits for nobody
FAR: Final = 1000  # generations: more than any group here has
PATIENCE: Final = 14.0  # virtual seconds beyond the rebalance timeout that a join or sync is waited for


class Fenced(Exception):
    """Another has taken over: this life is over."""


class Out(Exception):
    """The group has to be joined again. Whatever is known no more has been forgotten."""


class Member:
    """One life of a member."""

    def __init__(
        self, name: str, profile: Profile, connect: Connect, dice: random.Random, history: GroupHistory
    ) -> None:
        self.name = name
        self.profile = profile
        self.history = history
        self.leave_at = inf
        self.heard_at = 0.0  # when it last asked something that was granted
        self._dice = dice
        self._wire = WireClient(connect, name, profile.rebalance_s + PATIENCE)
        self._versions = {
            api: dice.choice([v for v in api.versions if profile.instance is None or v >= since])
            for api, since in wires.STATIC_SINCE.items()
        }
        self._versions[OFFSET_COMMIT] = min(self._versions[OFFSET_COMMIT], 9)  # by name
        self._versions[OFFSET_FETCH] = dice.choice(range(1, 10))
        self._member_id = ""
        self._generation = -1
        self._memory = Memory()
        self.owned: dict[TopicPartition, Ownership] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._marks = 0

    @property
    def generation(self) -> int:
        """The one that it has joined last; -1 for none."""
        return self._generation

    # --- one life ------------------------------------------------------------------------

    async def live(self) -> None:
        """Until it leaves, is fenced, or is cancelled, which is its sudden death."""
        self._changed("born")
        try:
            while True:
                try:
                    before = self._who
                    await self._join_and_sync()
                    if 0 <= before.generation < self._generation and self._dice.random() < 0.5:
                        await self._overstep(before)
                    if await self._work():
                        return
                except Out:
                    await trio.sleep(self._dice.uniform(0.01, 0.2))
        except Fenced:
            return
        finally:
            self._changed("gone")
            self._give_up(set(self.owned))
            if self._dice.random() >= self.profile.p_half_open:
                await self._wire.hang_up()

    async def _join_and_sync(self) -> None:
        """Be in a generation, with an assignment. `Out` where that did not come off."""
        if not self.profile.cooperative:
            self._give_up(set(self.owned))
        joined = await self._join()
        assigned = await self._sync(joined)
        targets = set(read_assignment(assigned))
        self._memory = Memory(tuple(sorted(targets)), self._generation)
        revoked = set(self.owned) - targets
        self._give_up(revoked)
        self._take_over(targets - set(self.owned))
        await self._fetch_positions(targets - set(self._positions))
        if revoked and self.profile.cooperative:
            self._changed("gave something up")
            raise Out

    async def _work(self) -> bool:
        """Process, commit and say so; whether it has left the group. `Out` when it has to rejoin."""
        while True:
            await trio.sleep(self._dice.uniform(0.3, 1) * self.profile.turn_s)
            if self._dice.random() < self.profile.p_stall:
                self._changed("slept")
                await trio.sleep(self.profile.session_s * self._dice.uniform(0.9, 2.5))
            await self._fetch_positions(set(self.owned) - set(self._positions))
            done = self._process()
            if trio.current_time() >= self.leave_at:
                await self._ask_many(self._some(done))
                return await self._leave()
            await self._ask_many(self._some(done) if self._dice.random() < 0.5 else [], beat=True)

    # --- joining -------------------------------------------------------------------------

    async def _join(self) -> Any:
        version, profile = self._versions[JOIN_GROUP], self.profile
        protocols = [
            JOIN_GROUP.Request.Protocols(name=name, metadata=self._subscription(name))
            for name in profile.assignors
        ]
        request = JOIN_GROUP.Request(
            group_id=profile.group,
            session_timeout_ms=int(profile.session_s * 1000),
            rebalance_timeout_ms=int(profile.rebalance_s * 1000) if version else -1,
            member_id=self._member_id,
            group_instance_id=profile.instance,
            protocol_type="consumer",
            protocols=protocols,
        )
        begun, reply = trio.current_time(), None
        impatient = self._dice.random() < profile.p_impatient
        patience = self._dice.uniform(0.1, 1.5) if impatient else inf
        try:
            reply = await self._asked(JOIN_GROUP, request, patience)
        finally:  # who dies while it waits may be in the next generation all the same
            self.history.joins.append(self._as_joined(begun, reply))
        if reply is None:
            raise Out
        if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = reply.member_id
            raise Out
        self._heed(reply.error_code, "JoinGroup", {REJOIN})
        self._member_id, self._generation = reply.member_id, reply.generation_id
        self.heard_at = begun
        return reply

    def _subscription(self, assignor: str) -> bytes:
        owned = tuple(sorted(self.owned)) if self.profile.cooperative else ()
        return write_subscription(
            Subscription(
                topics=tuple(self.profile.topics),
                user_data=ASSIGNORS[assignor].user_data(self._memory),
                owned=owned,
                generation=self._generation if owned else -1,
            )
        )

    def _as_joined(self, begun: float, reply: Any) -> Joined:
        ok = reply is not None and reply.error_code == 0
        return Joined(
            group=self.profile.group,
            client=self.name,
            member_id=reply.member_id if ok else self._member_id,
            generation=reply.generation_id if ok else self._generation,
            begun=begun,
            ended=trio.current_time(),
            code=None if reply is None else reply.error_code,
            instance=self.profile.instance,
            leader=reply.leader if ok else "",
            protocol=reply.protocol_name if ok else None,
            roll=tuple((m.member_id, m.group_instance_id) for m in reply.members) if ok else (),
            skip=bool(ok and reply.skip_assignment),
        )

    async def _sync(self, joined: Any) -> bytes:
        given = None
        if joined.leader == joined.member_id and not joined.skip_assignment:
            given = self._share(joined)
        request = wires.sync(self._who, ("consumer", joined.protocol_name), given)
        for _ in range(SYNC_ATTEMPTS):
            begun, reply = trio.current_time(), None
            try:
                reply = await self._asked(SYNC_GROUP, request, inf)
            finally:  # what a leader gave may have arrived, though it died before it heard so
                self.history.syncs.append(
                    Synced(
                        **self._said(begun, None if reply is None else reply.error_code),
                        given=given,
                        assignment=b"" if reply is None else bytes(reply.assignment),
                    )
                )
            if reply is not None:
                break
            await trio.sleep(self._dice.uniform(0.05, 0.4))
        else:
            raise Out
        self._heed(reply.error_code, "SyncGroup", {REJOIN})
        self.heard_at = begun
        return bytes(reply.assignment)

    def _share(self, joined: Any) -> dict[str, bytes]:
        members = [member_of(m.member_id, m.group_instance_id, m.metadata) for m in joined.members]
        names = {topic for member in members for topic in member.topics}
        partitions = {name: TOPICS[name] for name in sorted(names)}
        shares = ASSIGNORS[joined.protocol_name].assign(partitions, members)
        return {member_id: write_assignment(share) for member_id, share in shares.items()}

    # --- owning --------------------------------------------------------------------------

    def _take_over(self, targets: set[TopicPartition]) -> None:
        """They are its own from now on."""
        profile = self.profile
        for tp in sorted(targets):
            self.owned[tp] = Ownership(
                group=profile.group,
                client=self.name,
                instance=profile.instance,
                tp=tp,
                since=trio.current_time(),
                until=inf,
                patience=min(profile.session_s, profile.rebalance_s),
            )
            self.history.owned.append(self.owned[tp])

    async def _fetch_positions(self, targets: set[TopicPartition]) -> None:
        if not targets:
            return
        version = self._versions[OFFSET_FETCH]
        asked: dict[str, list[int]] = {}
        for topic, partition in sorted(targets):
            asked.setdefault(topic, []).append(partition)
        everything = version >= wires.FETCH_ALL_SINCE and self._dice.random() < 0.2
        request = wires.fetch(version, self.profile.group, None if everything else asked)
        begun = trio.current_time()
        reply = await self._asked(OFFSET_FETCH, request)
        if reply is None:
            return  # at the next turn, then
        code, found = wires.found(version, reply)
        self._heed(code, "OffsetFetch")
        values = {TopicPartition(one.topic, one.partition): (one.offset, one.mark) for one in found}
        for tp in sorted(targets if everything else values):
            offset, mark = values.get(tp, (-1, ""))
            place = Place(*tp)
            said = self._said(begun, 0)
            self.history.fetches.append(Fetched(**said, place=place, offset=offset, mark=mark))
            self._positions[tp] = max(0, offset)

    def _give_up(self, targets: Iterable[TopicPartition]) -> None:
        for tp in sorted(targets):
            self.owned.pop(tp).until = trio.current_time()
            self._positions.pop(tp, None)

    # --- working -------------------------------------------------------------------------

    def _process(self) -> dict[TopicPartition, int]:
        """Go forward in some of what is owned; where that leads to."""
        done = {}
        for tp in sorted(self._positions):
            there = self.history.written.get(tp, 0) - self._positions[tp]
            count = min(self._dice.choice((0, 1, 5)), there)
            if count > 0 and (tp != QUIET or trio.current_time() < QUIET_SINCE):
                first = self._positions[tp]
                done[tp] = self._positions[tp] = first + count
                self.history.processed.append(
                    Processed(
                        group=self.profile.group,
                        tp=tp,
                        first=first,
                        after=first + count,
                        at=trio.current_time(),
                    )
                )
        return done

    def _some(self, done: Mapping[TopicPartition, int]) -> list[list[tuple[Place, int, str]]]:
        """One commit of all that was done, or several that are sent one behind the other."""
        values = []
        for tp, after in done.items():
            self._marks += 1
            values.append((Place(*tp), after, f"{self.name}/{self._marks}"))
        if not values:
            return []
        if self._dice.random() < 0.3:
            return [[value] for value in values]
        return [values]

    async def _ask_many(self, commits: list[list[tuple[Place, int, str]]], beat: bool = False) -> None:
        """Send commits and a heartbeat, then hear what came of each. The gravest answer is heeded."""
        begun = trio.current_time()
        version = self._versions[OFFSET_COMMIT]
        codes: list[int] = []
        taken = 0
        beaten: Code = None
        try:
            with trio.fail_after(SOON):
                for values in commits:
                    await self._wire.send(OFFSET_COMMIT, version, wires.commit(version, self._who, values))
                if beat:
                    await self._wire.send(HEARTBEAT, self._versions[HEARTBEAT], wires.heartbeat(self._who))
                for values in commits:
                    codes += self._note_commit(begun, values, await self._wire.answer())
                    taken += 1
                if beat:
                    beaten = int((await self._wire.answer()).error_code)
                    codes.append(beaten)
        except GONE as gone:
            await self._lost(gone)
        finally:
            for values in commits[taken:]:
                self._note_commit(begun, values, None)
            if beat:
                self.history.beats.append(Beat(**self._said(begun, beaten)))
        if 0 in codes:
            self.heard_at = begun
        for code in sorted(set(codes) - TRY_AGAIN, key=_gravity):
            self._heed(code, "Heartbeat or OffsetCommit", {REJOIN})

    def _note_commit(self, begun: float, values: list[tuple[Place, int, str]], reply: Any) -> list[int]:
        codes: dict[tuple[str, int], Code] = {}
        if reply is not None:
            codes = {(t.name, p.partition_index): p.error_code for t in reply.topics for p in t.partitions}
        for place, offset, mark in values:
            said = self._said(begun, codes.get((place.topic, place.partition)))
            self.history.commits.append(Committed(**said, place=place, offset=offset, mark=mark))
        return [code for code in codes.values() if code is not None]

    async def _overstep(self, before: Who) -> None:
        """Ask what no right broker grants: out of the generation before, as nobody, and far ahead."""
        now = self._who
        for who in (before, attrs.evolve(now, member_id="nobody", instance=None)):
            self._marks += 1
            place, mark = Place("orders", 0), f"{self.name}/{self._marks}"
            begun = trio.current_time()
            request = wires.commit(self._versions[OFFSET_COMMIT], who, [(place, 0, mark)])
            reply = await self._asked(OFFSET_COMMIT, request)
            code = None if reply is None else reply.topics[0].partitions[0].error_code
            said = self._said(begun, code, who)
            self.history.commits.append(Committed(**said, place=place, offset=0, mark=mark))
        for who in (before, attrs.evolve(now, generation=now.generation + FAR)):
            begun = trio.current_time()
            reply = await self._asked(HEARTBEAT, wires.heartbeat(who))
            code = None if reply is None else reply.error_code
            self.history.beats.append(Beat(**self._said(begun, code, who)))

    async def _leave(self) -> bool:
        begun = trio.current_time()
        version = self._versions[LEAVE_GROUP]
        self._give_up(set(self.owned))
        reply = await self._asked(LEAVE_GROUP, wires.leave(version, self._who))
        code = None if reply is None else wires.left(version, reply)
        self.history.leaves.append(Left(**self._said(begun, code)))
        return True

    # --- asking --------------------------------------------------------------------------

    @property
    def _who(self) -> Who:
        return Who(self.profile.group, self._member_id, self._generation, self.profile.instance)

    async def _asked(self, api: Api, request: Any, patience: float = SOON) -> Any:
        """The answer, or None if none came; at the latest when the connection's own patience ends."""
        try:
            with trio.move_on_after(patience):
                return await self._wire.ask(api, self._versions[api], request)
            raise trio.TooSlowError
        except GONE as gone:
            await self._lost(gone)
            return None

    async def _lost(self, gone: BaseException) -> None:
        if isinstance(gone, WireError):
            self._astonished(f"an answer that cannot be read: {gone}")
        self._changed("lost an answer")
        await self._wire.hang_up()

    def _said(self, begun: float, code: Code, who: Who | None = None) -> dict[str, Any]:
        who = who or self._who
        return {
            "group": self.profile.group,
            "client": self.name,
            "member_id": who.member_id,
            "generation": who.generation,
            "begun": begun,
            "ended": trio.current_time(),
            "code": code,
        }

    def _heed(self, code: int, what: str, known: Iterable[int] = ()) -> None:
        """Forget what an error says is gone, and rejoin; or go on, where all is well."""
        if code == ErrorCode.NONE:
            return
        if code == ErrorCode.FENCED_INSTANCE_ID and self.profile.instance is not None:
            raise Fenced
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._generation = -1
            if code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            self._give_up(set(self.owned))
        elif code not in TRY_AGAIN and code not in known:
            self._astonished(f"{CODES[code].name} for {what}")
        if code != REJOIN:
            self._changed(f"was told {CODES[code].name}")
        raise Out

    def _changed(self, what: str) -> None:
        at = trio.current_time()
        self.history.changes.append(Change(group=self.profile.group, at=at, what=f"{self.name} {what}"))

    def _astonished(self, what: str) -> None:
        self.history.surprises.append(f"{self.name} at {trio.current_time():.4f} s: {what}")


def _gravity(code: int) -> int:
    """Who is fenced must not rejoin, and who is unknown must forget its id before it does."""
    grave = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
    return grave.index(CODES[code]) if code in grave else len(grave)
