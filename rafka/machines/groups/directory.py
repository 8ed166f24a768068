"""All that may be asked about groups and their offsets, whether the group is there or not.

    JoinGroup, OffsetCommit ──▶ made ──▶ joined, committed to, ... ──▶ deleted, or expired

A group is made when somebody joins it or commits to it, and lives on without members for as long as
it has offsets. Here it is said what an absent group answers, and who has to be told what;
`group` and `offsets` say the rest.

As with a single group, every method gives a `Decision`, whose facts are applied already. A question
that cannot be granted is answered by its refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any, Final

from ...errors import ErrorCode, KafkaError
from ...ops import group as ops
from ...ops import offsets as offset_ops
from ...ops.base import Op
from ...ops.txn import WriteTxnMarkers, WriteTxnMarkersReply
from ...types import OrgId, TopicId
from ..room import EACH, Room, written
from . import expiry, markers
from .describe import described_absent, size
from .history import Watch, Watches
from .join import check_join
from .leave import leave_nothing
from .model import Caller, Decision, GroupKey, GroupRules, Moment, State, Token
from .offsets import Offsets
from .registry import Entry, Limits, Registry
from .slug import locator

__all__ = ["Groups", "Limits"]

LONGEST_WATCH_MS: Final = 60_000
AT_ONCE: Final = 500  # groups that are looked through for old offsets before others have their turn
OPERATIONS: Final = 3400  # READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: nobody is kept from any


class Groups(Registry[Token]):
    def __init__(
        self,
        rules: GroupRules,
        limits: Limits,
        entropy: Callable[[], bytes],
        on_rebalance: Callable[[GroupKey, ops.Rebalance], None],
    ) -> None:
        super().__init__(rules, limits, entropy, on_rebalance)
        self._watches: Watches[Token] = Watches()
        self._closed = False
        self._handlers: dict[type, Callable[[GroupKey, Any, Caller, Token, Moment], Decision[Token]]] = {
            ops.Heartbeat: self._heartbeat,
            offset_ops.OffsetCommit: self._commit,
            offset_ops.TxnOffsetCommit: self._commit_pending,
            ops.JoinGroup: self._join,
            ops.SyncGroup: self._sync,
            ops.LeaveGroup: self._leave,
            offset_ops.OffsetDelete: self._delete_offsets,
            ops.GroupHistory: self._tell_history,
        }
        self._handlers_of_many: dict[type, Callable[[OrgId, Any], object]] = {
            offset_ops.OffsetFetch: self._fetch,
            ops.DescribeGroups: self._describe,
            ops.ListGroups: self._list,
        }

    def handle(self, op: Op[Any], org: OrgId, caller: Caller, token: Token, now: Moment) -> Decision[Token]:
        kind = type(op)
        try:
            if self._closed:
                raise KafkaError(ErrorCode.NOT_COORDINATOR)
            handler = self._handlers.get(kind)
            if handler is not None:
                decision = handler((org, op.group_id), op, caller, token, now)  # type: ignore[attr-defined]
            elif isinstance(op, ops.DeleteGroups):
                decision = self._delete(org, op, token)
            elif isinstance(op, WriteTxnMarkers):
                decision = self._mark(org, op, token)
            else:
                decision = Decision.of(token, self._handlers_of_many[kind](org, op))
        except KafkaError as refused:
            return Decision.of(token, op.refusal(refused.code, refused.message))
        self._unsaid = 0
        return decision

    # --- members ----------------------------------------------------------------------------

    def _join(
        self, key: GroupKey, op: ops.JoinGroup, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        entry = self._entries.get(key)
        if entry is not None:
            return self._noted(key, entry, entry.group.join(op, caller, token, now))
        check_join(op, self.rules)
        if op.member_id:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        entry = self.new(key, now)
        try:
            decision = entry.group.join(op, caller, token, now)
        except KafkaError as refused:  # the group is made all the same, as Kafka's clients see it
            decision = Decision.of(token, op.refusal(refused.code, refused.message))
        self.enter(key, entry, decision)
        return self._noted(key, entry, decision)

    def _sync(
        self, key: GroupKey, op: ops.SyncGroup, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        entry = self._with_members(key)
        return self._noted(key, entry, entry.group.sync(op, token, now))

    def _heartbeat(
        self, key: GroupKey, op: ops.Heartbeat, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        entry = self._with_members(key)
        decision = entry.group.heartbeat(op, token, now)
        self.set_alarm(key, entry)
        return decision

    def _leave(
        self, key: GroupKey, op: ops.LeaveGroup, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        entry = self.get(key)
        if entry is None:
            return Decision.of(token, leave_nothing(op))
        return self._noted(key, entry, entry.group.leave(op, token, now))

    def _with_members(self, key: GroupKey) -> Entry[Token]:
        """For what only members ask: an absent group has none."""
        entry = self._entries.get(key)
        if entry is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID if key[1] else ErrorCode.INVALID_GROUP_ID)
        return entry

    def _noted(self, key: GroupKey, entry: Entry[Token], decision: Decision[Token]) -> Decision[Token]:
        """What a group has decided by itself: its alarm, its history, and who waits for that."""
        if self.settled(key, entry, decision):
            for watch in self._watches.of(key):
                decision.answer(watch.token, self._news(key, watch))
        return decision

    # --- offsets ------------------------------------------------------------------------------

    def _commit(
        self, key: GroupKey, op: offset_ops.OffsetCommit, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        known = self._entries.get(key)
        if known is not None:
            known.group.check_commit(op, now)
            self.set_alarm(key, known)
        elif op.generation_id_or_member_epoch >= 0:
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND if op.epochs_known else ErrorCode.ILLEGAL_GENERATION
            )
        entry = known or self.new(key, now)
        fact, topics = entry.offsets.commit(
            op.topics, now.wall_ms, self.limits.metadata_max, op.retention_time_ms
        )
        decision = Decision.of(token, offset_ops.OffsetCommitReply(topics=topics))
        if known is None:
            self.enter(key, entry, decision)
        if fact is not None:
            self.record(fact, decision)
        return decision

    def _commit_pending(
        self, key: GroupKey, op: offset_ops.TxnOffsetCommit, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        if not op.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        known = self.get(key)
        if known is not None:
            known.group.check_txn_commit(op)
        elif op.generation_id >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        entry = known or self.new(key, now)
        fact, topics = entry.offsets.commit_pending(
            op.topics, op.producer_id, op.producer_epoch, now.wall_ms, self.limits.metadata_max
        )
        decision = Decision.of(token, offset_ops.OffsetCommitReply(topics=topics))
        if known is None:
            self.enter(key, entry, decision)
        if fact is not None:
            self.record(fact, decision)
        return decision

    def _fetch(self, org: OrgId, op: offset_ops.OffsetFetch) -> offset_ops.OffsetFetchReply:
        groups: list[offset_ops.FetchedGroup] = []
        room = Room(self.limits.max_reply_bytes)
        for asked in op.groups:
            room.must = not groups and asked.topics is None
            entry = self.get((org, asked.group_id))
            offsets = entry.offsets if entry is not None else Offsets(org, asked.group_id)
            try:
                room.take(EACH + written(asked.group_id))
                topics = offsets.fetch(asked.topics, op.require_stable, room)
                groups.append(offset_ops.FetchedGroup(group_id=asked.group_id, topics=topics))
            except KafkaError as full:
                groups.append(offset_ops.FetchedGroup(group_id=asked.group_id, error_code=full.code))
        return offset_ops.OffsetFetchReply(groups=groups)

    def _delete_offsets(
        self, key: GroupKey, op: offset_ops.OffsetDelete, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        if not op.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        group, offsets = (entry := self.need(key)).group, entry.offsets
        if group.state is not State.EMPTY and group.protocol_type != expiry.CONSUMER:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        fact, topics = offsets.delete(op.topics, group.subscribed_to)
        decision = Decision.of(token, offset_ops.OffsetDeleteReply(topics=topics))
        if fact is not None:
            self.record(fact, decision)
        return decision

    def settle_transaction(self, org: OrgId, producer_id: int, committed: bool) -> Decision[Token]:
        """What a producer has pending, in whatever group, counts from now on; or is forgotten."""
        decision: Decision[Token] = Decision()
        for _, entry in self.pending_of(org, producer_id):
            fact = entry.offsets.settle(producer_id, committed)
            if fact is not None:
                self.record(fact, decision)
        self._unsaid = 0
        return decision

    def _mark(self, org: OrgId, op: WriteTxnMarkers, token: Token) -> Decision[Token]:
        """The same by an administrator, for the groups of the partitions that are named."""
        decision: Decision[Token] = Decision()
        results = [
            markers.settle(
                marker,
                [entry.offsets for _, entry in self.pending_of(org, marker.producer_id)],
                lambda fact: self.record(fact, decision),
            )
            for marker in op.markers
        ]
        decision.answer(token, WriteTxnMarkersReply(markers=results))
        return decision

    # --- administration -----------------------------------------------------------------------

    def _describe(self, org: OrgId, op: ops.DescribeGroups) -> ops.DescribeGroupsReply:
        told: list[ops.DescribedGroup] = []
        room = Room(self.limits.max_reply_bytes)
        for group_id in op.groups:
            room.must = not told
            try:
                room.take(EACH)  # where nothing is left, nothing is made
                entry = self.get((org, group_id))
                if entry is None:
                    described = described_absent(group_id, op.absence_told)
                else:
                    described = entry.group.describe(op.absence_told)
                room.take(size(described))
            except KafkaError as full:
                told.append(
                    ops.DescribedGroup(group_id=group_id, error_code=full.code, error_message=full.message)
                )
                continue
            if op.include_authorized_operations and described.error_code is ErrorCode.NONE:
                described.authorized_operations = OPERATIONS  # type: ignore[misc]  # made above
            told.append(described)
        return ops.DescribeGroupsReply(groups=told)

    def _list(self, org: OrgId, op: ops.ListGroups) -> ops.ListGroupsReply:
        states = {state.strip().lower() for state in op.states_filter}
        types = {kind.lower() for kind in op.types_filter}
        listed = (entry.group.listed() for key, entry in self if key[0] == org)
        return ops.ListGroupsReply(
            groups=[
                group
                for group in listed
                if (not states or group.group_state.lower() in states)
                and (not types or group.group_type.lower() in types)
            ]
        )

    def _delete(self, org: OrgId, op: ops.DeleteGroups, token: Token) -> Decision[Token]:
        decision: Decision[Token] = Decision()
        results = []
        for group_id in dict.fromkeys(op.groups_names):
            code = ErrorCode.NONE
            try:
                self._end((org, group_id), decision)
            except KafkaError as refused:
                code = refused.code
            results.append(ops.DeletedGroup(group_id=group_id, error_code=code))
        decision.answer(token, ops.DeleteGroupsReply(results=results))
        return decision

    def _end(self, key: GroupKey, decision: Decision[Token]) -> None:
        """The group and its offsets are no more. KafkaError where it has members."""
        self.record(self.need(key).group.begin_deletion(), decision)
        for watch in self._watches.of(key):
            decision.answer(watch.token, self._news(key, watch))

    # --- history ------------------------------------------------------------------------------

    def _tell_history(
        self, key: GroupKey, op: ops.GroupHistory, caller: Caller, token: Token, now: Moment
    ) -> Decision[Token]:
        self.need(key)
        watch = Watch(token, op.after)
        reply = self._news(key, watch)
        if reply.rebalances or op.max_wait_ms <= 0:
            return Decision.of(token, reply)
        self._watches.park(key, watch, now.at + min(op.max_wait_ms, LONGEST_WATCH_MS) / 1000)
        return Decision()

    def _news(self, key: GroupKey, watch: Watch[Token]) -> ops.GroupHistoryReply:
        entry = self.get(key)
        if entry is None:
            return ops.GroupHistoryReply(
                error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=f"Group {key[1]} not found."
            )
        return ops.GroupHistoryReply(
            stable_id=entry.group.stable_id,
            locator=locator(*key),
            rebalances=self.history.since(key, watch.after),
        )

    # --- time ---------------------------------------------------------------------------------

    @property
    def deadline(self) -> float:
        return inf if self._closed else min(self.next_alarm, self._watches.deadline)

    def tick(self, now: Moment) -> Decision[Token]:
        """Let each group do what is due."""
        decision: Decision[Token] = Decision()
        for key, entry in self.due(now):
            decision += self._noted(key, entry, entry.group.tick(now))
        for key, watch in self._watches.due(now.at):
            decision.answer(watch.token, self._news(key, watch))
        return decision

    def expire(self, now: Moment) -> Iterator[Decision[Token]]:
        """Let go of old offsets, and of empty groups that have none; some groups at a time."""
        keys = [] if self._closed else self.keys()
        for first in range(0, len(keys), AT_ONCE):
            decision: Decision[Token] = Decision()
            for key in keys[first : first + AT_ONCE]:
                if (entry := self.get(key)) is not None and not self._closed:
                    self._expire_one(key, entry, now, decision)
            self._unsaid = 0
            yield decision

    def _expire_one(self, key: GroupKey, entry: Entry[Token], now: Moment, decision: Decision[Token]) -> None:
        group, offsets = entry.group, entry.offsets
        ageing = expiry.ageing(
            protocol_type=group.protocol_type,
            empty=group.state is State.EMPTY,
            stable=group.state is State.STABLE,
            empty_since_ms=group.empty_since_ms,
            subscribed_to=group.subscribed_to,
        )
        if ageing is None:
            return
        fact = offsets.expire(now.wall_ms, self.limits.retention_ms, ageing)
        if fact is not None:
            self.record(fact, decision)
        if group.state is State.EMPTY and not len(offsets) and not offsets.unsettled:
            self._end(key, decision)

    # --- beginning and end ----------------------------------------------------------------------

    def resume(self, now: Moment, topic_exists: Callable[[TopicId], bool]) -> Decision[Token]:
        """After a replay: members have their whole session to come back; offsets of no topic are let go."""
        decision: Decision[Token] = Decision()
        for key, entry in self:
            for topic_id in entry.offsets.topic_ids():
                if not topic_exists(topic_id):
                    entry.offsets.forget_topic(topic_id)
            decision += self._noted(key, entry, entry.group.resume(now))
        return decision

    def abandon(self) -> Decision[Token]:
        """The broker closes. Whoever waits is told to look for another coordinator, as are all who ask."""
        self._closed = True
        decision: Decision[Token] = Decision()
        for _, entry in self:
            decision.replies += entry.group.abandon()
        for key, watch in self._watches.all():
            decision.answer(watch.token, self._news(key, watch))
        return decision
