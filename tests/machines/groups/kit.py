"""One group, driven by hand: names for waiters, numbers for time, and a check that nobody hears twice.

A client's name is the token of what it asks last. `world.join("ann")` asks under a fresh token
`ann/1`, `ann/2`, ...; `world.heard["ann/1"]` is what was answered, if anything was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypedDict, TypeVar, Unpack

import attrs

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.facts import Fact, FactRegistry
from rafka.machines.groups.events import GroupEvent
from rafka.machines.groups.facts import GROUP_FACTS
from rafka.machines.groups.group import Group
from rafka.machines.groups.model import Caller, Decision, GroupRules, Moment, State
from rafka.ops.base import Op
from rafka.ops.group import (
    Heartbeat,
    HeartbeatReply,
    JoinGroup,
    JoinGroupReply,
    JoinProtocol,
    LeaveGroup,
    LeaveGroupReply,
    Leaver,
    MemberAssignment,
    SyncGroup,
    SyncGroupReply,
)
from rafka.ops.offsets import OffsetCommit, TxnOffsetCommit
from rafka.types import DEFAULT_ORG

R = TypeVar("R")

KEY: Final = (DEFAULT_ORG, "orders")
REGISTRY: Final = FactRegistry(GROUP_FACTS)
RANGE: Final = (("range", b"r"),)
BOTH: Final = (("range", b"r"), ("roundrobin", b"rr"))
HOST: Final = "/127.0.0.1"
BEGAN_MS: Final = 1_000_000


Offer = tuple[tuple[str, bytes], ...]


class JoinFields(TypedDict, total=False):
    """What a test may want otherwise in a JoinGroup."""

    group_id: str
    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    group_instance_id: str | None
    protocol_type: str
    protocols: Offer
    reason: str | None
    id_required: bool
    may_skip: bool


class SyncFields(TypedDict, total=False):
    group_id: str
    generation_id: int
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    too_large: bool


class Uuids:
    def __init__(self) -> None:
        self.given = 0

    def __call__(self) -> str:
        self.given += 1
        return f"{self.given:08}-0000-4000-8000-000000000000"


@attrs.define(repr=False)
class World:
    rules: GroupRules = attrs.Factory(lambda: GroupRules(new_uuid=Uuids()))
    at: float = 0.0
    journal: list[Fact] = attrs.Factory(list)
    events: list[GroupEvent] = attrs.Factory(list)
    heard: dict[str, object] = attrs.Factory(dict)
    asked: dict[str, int] = attrs.Factory(dict)
    group: Group[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.group = Group(KEY, "cgp_1", self.rules)

    # --- time -----------------------------------------------------------------------------

    @property
    def now(self) -> Moment:
        return Moment(self.at, BEGAN_MS + round(self.at * 1000))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, waking the group exactly when it wants to be woken."""
        until = self.at + seconds
        while (deadline := self.group.deadline) <= until:
            self.at = max(self.at, deadline)
            self.tick()
        self.at = until

    def keep_alive(self, seconds: int, *member_ids: str) -> None:
        """Let time pass while these send a heartbeat every second, whatever it is answered."""
        for _ in range(seconds):
            self.pass_time(1)
            for member_id in member_ids:
                self.heartbeat(member_id)

    def tick(self) -> None:
        self.take(self.group.tick(self.now))
        assert self.group.deadline > self.at, "a tick does all that is due"

    def restart(self) -> None:
        """The process is gone, with all who waited; another one begins from the journal."""
        self.group = Group(KEY, "cgp_1", self.rules)
        for fact in self.journal:
            self.group.apply(REGISTRY.unpack(*REGISTRY.pack(fact)))
        self.take(self.group.resume(self.now))

    def take(self, decision: Decision[str]) -> None:
        self.journal += decision.facts
        self.events += decision.events
        for reply in decision.replies:
            assert reply.to not in self.heard, f"{reply.to} is answered twice"
            self.heard[reply.to] = reply.answer

    def state(self) -> State:
        return self.group.state

    # --- asking ---------------------------------------------------------------------------

    def join(self, who: str, member_id: str = "", **more: Unpack[JoinFields]) -> str:
        """Ask to join; the token of the waiter."""
        token = self.token(who)
        op = join_op(member_id, **more)
        client_id = more.get("client_id", who)
        self.take_or_refuse(op, token, lambda: self.group.join(op, Caller(client_id, HOST), token, self.now))
        return token

    def sync(
        self,
        who: str,
        member_id: str,
        assignments: Mapping[str, bytes] | None = None,
        **more: Unpack[SyncFields],
    ) -> str:
        token = self.token(who)
        op = sync_op(member_id, self.group.generation, assignments or {}, **more)
        self.take_or_refuse(op, token, lambda: self.group.sync(op, token, self.now))
        return token

    def heartbeat(
        self, member_id: str, generation: int | None = None, instance: str | None = None
    ) -> ErrorCode:
        token = self.token("heartbeat")
        op = Heartbeat(
            group_id=KEY[1],
            generation_id=self.group.generation if generation is None else generation,
            member_id=member_id,
            group_instance_id=instance,
        )
        self.take_or_refuse(op, token, lambda: self.group.heartbeat(op, token, self.now))
        answer = self.heard[token]
        assert isinstance(answer, HeartbeatReply)
        return answer.error_code

    def leave(self, *leavers: tuple[str, str | None] | str) -> list[ErrorCode]:
        """Leave by member id, or by (member id, instance id); the code of each."""
        token = self.token("leave")
        named = [(leaver, None) if isinstance(leaver, str) else leaver for leaver in leavers]
        op = LeaveGroup(
            group_id=KEY[1],
            members=[Leaver(member_id=member, group_instance_id=instance) for member, instance in named],
        )
        self.take_or_refuse(op, token, lambda: self.group.leave(op, token, self.now))
        answer = self.heard[token]
        assert isinstance(answer, LeaveGroupReply)
        assert answer.error_code is ErrorCode.NONE
        assert [(m.member_id, m.group_instance_id) for m in answer.members] == named
        return [member.error_code for member in answer.members]

    def commit(self, member_id: str = "", generation: int = -1, instance: str | None = None) -> ErrorCode:
        op = OffsetCommit(
            group_id=KEY[1],
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[],
        )
        return code_of(lambda: self.group.check_commit(op, self.now))

    def txn_commit(self, member_id: str = "", generation: int = -1, instance: str | None = None) -> ErrorCode:
        op = TxnOffsetCommit(
            transactional_id="t",
            group_id=KEY[1],
            producer_id=1,
            producer_epoch=0,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            topics=[],
        )
        return code_of(lambda: self.group.check_txn_commit(op))

    def token(self, who: str) -> str:
        self.asked[who] = self.asked.get(who, 0) + 1
        return f"{who}/{self.asked[who]}"

    def take_or_refuse(self, op: Op[R], token: str, ask: Callable[[], Decision[str]]) -> None:
        try:
            decision = ask()
        except KafkaError as refused:
            assert token not in self.heard
            self.heard[token] = op.refusal(refused.code, refused.message)
        else:
            self.take(decision)

    # --- what was heard -----------------------------------------------------------------------

    def joined(self, token: str) -> JoinGroupReply:
        answer = self.heard[token]
        assert isinstance(answer, JoinGroupReply)
        return answer

    def synced(self, token: str) -> SyncGroupReply:
        answer = self.heard[token]
        assert isinstance(answer, SyncGroupReply)
        return answer

    def code(self, token: str) -> ErrorCode:
        answer = self.heard[token]
        assert isinstance(answer, JoinGroupReply | SyncGroupReply)
        return answer.error_code

    def parked(self, token: str) -> bool:
        return token not in self.heard

    # --- the usual beginnings -----------------------------------------------------------------

    def member(self, who: str, **more: Unpack[JoinFields]) -> str:
        """A new member, as an old client joins: without asking for an id. Parked, or in."""
        more.setdefault("id_required", False)
        token = self.join(who, **more)
        self.tick()
        if not self.parked(token):
            return self.joined(token).member_id
        return next(m.member_id for m in self.group.roster.by_id.values() if m.join_waiter == token)

    def stable(self, *names: str, static: bool = False, **more: Unpack[JoinFields]) -> list[str]:
        """These members in a stable group, the first its leader, each assigned its own name as bytes."""
        more.setdefault("id_required", False)
        tokens = []
        for name in names:
            if static:
                more["group_instance_id"] = f"i-{name}"
            tokens.append(self.join(name, **more))
        self.tick()
        ids = [self.joined(token).member_id for token in tokens]
        self.sync_all(dict(zip(ids, names, strict=True)))
        return ids

    def sync_all(self, assigned: Mapping[str, str]) -> None:
        """Everybody syncs, followers first."""
        leader = self.group.leader
        for member_id, name in assigned.items():
            if member_id != leader:
                self.sync(name, member_id)
        self.sync(assigned[leader], leader, {m: name.encode() for m, name in assigned.items()})
        assert self.group.state is State.STABLE
        assert not self.group.unsynced


def join_op(member_id: str = "", **more: Unpack[JoinFields]) -> JoinGroup:
    return JoinGroup(
        group_id=more.get("group_id", KEY[1]),
        member_id=member_id,
        session_timeout_ms=more.get("session_timeout_ms", 10_000),
        rebalance_timeout_ms=more.get("rebalance_timeout_ms", 10_000),
        group_instance_id=more.get("group_instance_id"),
        protocol_type=more.get("protocol_type", "consumer"),
        protocols=[JoinProtocol(name=name, metadata=data) for name, data in more.get("protocols", RANGE)],
        reason=more.get("reason"),
        id_required=more.get("id_required", True),
        may_skip=more.get("may_skip", True),
    )


def sync_op(
    member_id: str, generation: int, assignments: Mapping[str, bytes], **more: Unpack[SyncFields]
) -> SyncGroup:
    return SyncGroup(
        group_id=more.get("group_id", KEY[1]),
        generation_id=more.get("generation_id", generation),
        member_id=member_id,
        group_instance_id=more.get("group_instance_id"),
        protocol_type=more.get("protocol_type"),
        protocol_name=more.get("protocol_name"),
        assignments=[MemberAssignment(member_id=name, assignment=data) for name, data in assignments.items()],
        too_large=more.get("too_large", False),
    )


def code_of(check: Callable[[], None]) -> ErrorCode:
    """What a check refuses with, NONE where it does not."""
    try:
        check()
    except KafkaError as refused:
        return refused.code
    return ErrorCode.NONE
