"""All groups of a broker, driven by hand: numbers for waiters and for time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

from rafka.errors import ErrorCode
from rafka.machines.facts import Fact, FactRegistry
from rafka.machines.groups.directory import Groups, Limits
from rafka.machines.groups.facts import GROUP_FACTS
from rafka.machines.groups.model import Caller, Decision, GroupKey, GroupRules, Moment
from rafka.machines.groups.offset_facts import OFFSET_FACTS
from rafka.ops import group as ops
from rafka.ops import offsets as offset_ops
from rafka.ops.base import Op
from rafka.ops.group import Rebalance
from rafka.types import DEFAULT_ORG, OrgId, TopicId

from .kit import Uuids, join_op, sync_op

R = TypeVar("R")

REGISTRY = FactRegistry((*GROUP_FACTS, *OFFSET_FACTS))
TOPIC = TopicId(b"t" * 16)
OTHER_TOPIC = TopicId(b"o" * 16)
NOBODY = Caller("client", "/127.0.0.1")
DAY_S = 86_400.0
PARKED = object()


@attrs.define
class World:
    limits: Limits = attrs.Factory(Limits)
    at: float = 0.0
    journal: list[Fact] = attrs.Factory(list)
    heard: dict[int, object] = attrs.Factory(dict)
    told: list[tuple[GroupKey, Rebalance]] = attrs.Factory(list)
    tokens: int = 0
    groups: Groups[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.groups = self.empty()

    def empty(self) -> Groups[int]:
        made = 0

        def entropy() -> bytes:
            nonlocal made
            made += 1
            return made.to_bytes(10, "big")

        rules = GroupRules(new_uuid=Uuids())
        return Groups(rules, self.limits, entropy, lambda key, told: self.told.append((key, told)))

    @property
    def now(self) -> Moment:
        return Moment(self.at, 1_000_000 + round(self.at * 1000))

    def ask(self, op: Op[R], org: OrgId = DEFAULT_ORG) -> int:
        """The token of whoever asks; the answer is heard, now or later."""
        self.tokens += 1
        self.take(self.groups.handle(op, org, NOBODY, self.tokens, self.now))
        return self.tokens

    def answer(self, op: Op[R], org: OrgId = DEFAULT_ORG) -> R:
        return self.heard[self.ask(op, org)]  # type: ignore[return-value]

    def take(self, decision: Decision[int]) -> None:
        assert len(self.groups) > 100 or self.groups.sound, "all facts are in the decision"
        self.journal += decision.facts
        for reply in decision.replies:
            assert reply.to not in self.heard, "answered twice"
            self.heard[reply.to] = reply.answer

    def pass_time(self, seconds: float) -> None:
        until = self.at + seconds
        while (deadline := self.groups.deadline) <= until:
            self.at = max(self.at, deadline)
            self.take(self.groups.tick(self.now))
        self.at = until

    def expire(self) -> None:
        for decision in self.groups.expire(self.now):
            self.take(decision)

    def restart(self, topics: Iterable[TopicId] = (TOPIC, OTHER_TOPIC)) -> None:
        """Another process, from the journal."""
        self.groups = self.empty()
        self.replay(self.journal, topics)

    def replay(self, facts: Iterable[Fact], topics: Iterable[TopicId] = (TOPIC, OTHER_TOPIC)) -> None:
        for fact in facts:
            self.groups.apply(REGISTRY.unpack(*REGISTRY.pack(fact)))
        self.take(self.groups.resume(self.now, set(topics).__contains__))

    # --- in short --------------------------------------------------------------------------

    def join(self, group_id: str = "g", member_id: str = "", org: OrgId = DEFAULT_ORG, **more: Any) -> str:
        """Join as an old client, form a generation at once; the member id."""
        token = self.ask(join_op(member_id, group_id=group_id, id_required=False, **more), org)
        self.pass_time(0)
        reply = self.heard[token]
        assert isinstance(reply, ops.JoinGroupReply)
        assert reply.error_code == 0, reply
        return reply.member_id

    def stable(self, group_id: str = "g", org: OrgId = DEFAULT_ORG, **more: Any) -> str:
        """A stable group of one."""
        member_id = self.join(group_id, org=org, **more)
        op = sync_op(member_id, self.generation(group_id, org), {member_id: b"mine"}, group_id=group_id)
        assert self.answer(op, org).error_code == 0
        return member_id

    def leave(self, group_id: str, member_id: str) -> None:
        op = ops.LeaveGroup(group_id=group_id, members=[ops.Leaver(member_id=member_id)])
        assert self.answer(op).members[0].error_code == 0

    def generation(self, group_id: str, org: OrgId = DEFAULT_ORG) -> int:
        return self.groups.need((org, group_id)).group.generation

    def commit(self, offsets: Mapping[int, int], group_id: str = "g", **more: Any) -> ErrorCode:
        """Commit offsets of partitions of the topic; the code of the first."""
        reply = self.answer(commit_op(offsets, group_id, **more))
        return reply.topics[0].partitions[0].error_code

    def offsets(self, group_id: str = "g", org: OrgId = DEFAULT_ORG) -> dict[int, int]:
        op = offset_ops.OffsetFetch(groups=[offset_ops.FetchOffsetsGroup(group_id=group_id)])
        (group,) = self.answer(op, org).groups
        return {p.partition_index: p.committed_offset for t in group.topics for p in t.partitions}

    def listed(self, org: OrgId = DEFAULT_ORG, **filters: Any) -> dict[str, str]:
        reply = self.answer(ops.ListGroups(**filters), org)
        return {group.group_id: group.group_state for group in reply.groups}

    def delete(self, *group_ids: str) -> list[tuple[str, ErrorCode]]:
        reply = self.answer(ops.DeleteGroups(groups_names=list(group_ids)))
        return [(result.group_id, result.error_code) for result in reply.results]


def commit_op(offsets: Mapping[int, int], group_id: str = "g", **more: Any) -> offset_ops.OffsetCommit:
    topic = offset_ops.CommitTopic(
        name="t",
        topic_id=TOPIC,
        partitions=[
            offset_ops.CommitPartition(partition_index=index, committed_offset=offset)
            for index, offset in offsets.items()
        ],
    )
    return offset_ops.OffsetCommit(group_id=group_id, topics=[topic], **more)


def txn_commit_op(offsets: Mapping[int, int], group_id: str = "g", producer: int = 7) -> Op[Any]:
    return offset_ops.TxnOffsetCommit(
        transactional_id="t",
        group_id=group_id,
        producer_id=producer,
        producer_epoch=0,
        topics=commit_op(offsets).topics,
    )


def fetch_op(*group_ids: str) -> offset_ops.OffsetFetch:
    return offset_ops.OffsetFetch(
        groups=[
            offset_ops.FetchOffsetsGroup(
                group_id=group_id,
                topics=[offset_ops.FetchOffsetsTopic(name="t", topic_id=TOPIC, partition_indexes=[0])],
            )
            for group_id in group_ids
        ]
    )
