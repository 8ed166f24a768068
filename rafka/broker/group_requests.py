"""What requests about a group's offsets have to do with topics, before and after the coordinator.

The coordinator knows groups and no catalogue. So topics are looked up here, in the view that
the catalog keeper publishes: each gets the id or the name that the client did not say,
and what does not exist is answered here, beside what the coordinator says of the rest. Where
nothing remains the coordinator is not asked, and no group is made or looked at - but for
OffsetDelete, which always tells of its group first, as Kafka does.

An op in which all exists, as nearly always, goes on as it is: the blanks in it are filled in,
and the answer is the coordinator's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Generic, Protocol, TypeAlias, TypeVar

import attrs

from ..errors import ErrorCode, KafkaError
from ..ops.base import Envelope, Later, Op, R
from ..ops.offsets import (
    CommittedPartition,
    CommittedTopic,
    CommitTopic,
    DeleteOffsetsTopic,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    FetchOffsetsGroup,
    FetchOffsetsTopic,
    OffsetCommit,
    OffsetCommitReply,
    OffsetDelete,
    OffsetDeleteReply,
    OffsetFetch,
    OffsetFetchReply,
    TxnOffsetCommit,
)
from ..types import NO_TOPIC_ID, OrgId, TopicId
from .topics import LiveTopic, Topics

Commit = TypeVar("Commit", OffsetCommit, TxnOffsetCommit)
Named = TypeVar("Named", CommitTopic, DeleteOffsetsTopic)
M = TypeVar("M")
AnyTopic: TypeAlias = CommitTopic | DeleteOffsetsTopic | FetchOffsetsTopic


class Coordinator(Protocol):
    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]: ...


class GroupRequests:
    """Answers OffsetCommit, TxnOffsetCommit, OffsetFetch and OffsetDelete."""

    def __init__(self, topics: Topics, coordinator: Coordinator) -> None:
        self._topics = topics
        self._coordinator = coordinator

    # --- commit -------------------------------------------------------------------------

    def commit(self, envelope: Envelope, op: OffsetCommit) -> OffsetCommitReply | Later[OffsetCommitReply]:
        return self._commit(envelope, op, op.by_id)

    def commit_pending(
        self, envelope: Envelope, op: TxnOffsetCommit
    ) -> OffsetCommitReply | Later[OffsetCommitReply]:
        return self._commit(envelope, op, False)

    def _commit(
        self, envelope: Envelope, op: Commit, by_id: bool
    ) -> OffsetCommitReply | Later[OffsetCommitReply]:
        org, topics = envelope.org_id, op.topics
        if topics and self._all_there(org, topics, by_id):
            return self._coordinator.ask(envelope, op)
        verdicts = [_verdict(topic, self._find(org, topic, by_id), by_id) for topic in topics]

        def merge(reply: OffsetCommitReply) -> OffsetCommitReply:
            return OffsetCommitReply(topics=_merged(verdicts, reply.topics, by_id))

        known = [verdict.known for verdict in verdicts if verdict.known is not None]
        if not known:
            return merge(OffsetCommitReply(topics=()))
        return self._ask(envelope, _but(op, topics=known), merge)

    # --- delete --------------------------------------------------------------------------

    def delete(self, envelope: Envelope, op: OffsetDelete) -> OffsetDeleteReply | Later[OffsetDeleteReply]:
        org, topics = envelope.org_id, op.topics
        if self._all_there(org, topics, False):
            return self._coordinator.ask(envelope, op)
        verdicts = [_verdict(topic, self._find(org, topic, False), False) for topic in topics]

        def merge(reply: OffsetDeleteReply) -> OffsetDeleteReply:
            if reply.error_code != ErrorCode.NONE:
                return reply
            return OffsetDeleteReply(topics=_merged(verdicts, reply.topics, False))

        known = [verdict.known for verdict in verdicts if verdict.known is not None]
        return self._ask(envelope, _but(op, topics=known), merge)

    # --- fetch ------------------------------------------------------------------------------

    def fetch(self, envelope: Envelope, op: OffsetFetch) -> OffsetFetchReply | Later[OffsetFetchReply]:
        """Asked for by name, what does not exist has no offsets; by id, it is unknown."""
        org = envelope.org_id
        asked = [self._asked(org, group, op.by_id) for group in op.groups]
        forwarded = [group.forwarded for group in asked if group.forwarded is not None]
        if forwarded and all(group.whole for group in asked):
            return self._coordinator.ask(envelope, op)

        def merge(reply: OffsetFetchReply) -> OffsetFetchReply:
            answers = iter(reply.groups)
            return OffsetFetchReply(groups=[self._answer(org, group, answers) for group in asked])

        if not forwarded:
            return merge(OffsetFetchReply(groups=()))
        return self._ask(envelope, _but(op, groups=forwarded), merge)

    def _asked(self, org: OrgId, group: FetchOffsetsGroup, by_id: bool) -> _AskedGroup:
        if group.topics is None:
            return _AskedGroup(group, [], group, whole=False)
        known = []
        for topic in group.topics:
            live = self._find(org, topic, by_id)
            if live is not None:
                _fill_in(topic, live)
            elif by_id:
                continue
            else:
                topic.topic_id = NO_TOPIC_ID  # type: ignore[misc]
            known.append(topic)
        if len(known) == len(group.topics):
            return _AskedGroup(group, known, group, whole=True)
        return _AskedGroup(group, known, _but(group, topics=known) if known else None, whole=False)

    def _answer(self, org: OrgId, asked: _AskedGroup, answers: Iterator[FetchedGroup]) -> FetchedGroup:
        group = asked.group
        found = FetchedGroup(group_id=group.group_id) if asked.forwarded is None else next(answers)
        if found.error_code != ErrorCode.NONE:
            return found
        if group.topics is None:  # between a topic's end and the coordinator's hearing of it
            topics = [topic for topic in found.topics if self._by_id(org, topic.topic_id) is not None]
        else:
            of_known = iter(found.topics)
            known = set(map(id, asked.known))
            topics = [next(of_known) if id(topic) in known else _unknown(topic) for topic in group.topics]
        return FetchedGroup(group_id=group.group_id, topics=topics)

    # --- looking up ---------------------------------------------------------------------------

    def _all_there(
        self, org: OrgId, topics: Sequence[CommitTopic] | Sequence[DeleteOffsetsTopic], by_id: bool
    ) -> bool:
        """Whether every topic has partitions, and all of them exist. Blanks are filled in on the way."""
        for topic in topics:
            live = self._by_id(org, topic.topic_id) if by_id else self._topics.find(org, topic.name)
            if live is None or not topic.partitions:
                return False
            count = live.topic.partitions
            for partition in topic.partitions:
                if not 0 <= partition.partition_index < count:
                    return False
            _fill_in(topic, live)
        return True

    def _find(self, org: OrgId, topic: AnyTopic, by_id: bool) -> LiveTopic | None:
        return self._by_id(org, topic.topic_id) if by_id else self._topics.find(org, topic.name)

    def _by_id(self, org: OrgId, topic_id: TopicId) -> LiveTopic | None:
        try:
            return self._topics.by_id(org, topic_id)
        except KafkaError:
            return None

    def _ask(self, envelope: Envelope, op: Op[R], merge: Callable[[R], R]) -> R | Later[R]:
        answer = self._coordinator.ask(envelope, op)
        if isinstance(answer, Later):
            return _Merged(answer, op, merge)
        return merge(answer)


class _Merged(Later[R]):
    """A refusal concerns what the coordinator was asked about, and not what is merged with it."""

    __slots__ = ("_later", "_merge", "_op")

    def __init__(self, later: Later[R], op: Op[R], merge: Callable[[R], R]) -> None:
        self._later = later
        self._op = op
        self._merge = merge
        self.overlaps = later.overlaps

    def ready(self) -> bool:
        return self._later.ready()

    async def wait(self) -> R:
        try:
            reply = await self._later.wait()
        except KafkaError as refused:
            reply = self._op.refusal(refused.code, refused.message)
        return self._merge(reply)

    def ring(self, bell: Callable[[], None]) -> bool:
        return self._later.ring(bell)

    def take(self) -> R:
        try:
            reply = self._later.take()
        except KafkaError as refused:
            reply = self._op.refusal(refused.code, refused.message)
        return self._merge(reply)

    def forget(self) -> None:
        self._later.forget()


def _fill_in(topic: AnyTopic, live: LiveTopic) -> None:
    """An op is asked once, and nobody reads these fields before the coordinator does."""
    topic.name = live.topic.name  # type: ignore[misc]
    topic.topic_id = live.topic.topic_id  # type: ignore[misc]


def _but(message: M, **changes: object) -> M:
    """The same message with other values in some fields."""
    made = copy(message)
    for field, value in changes.items():
        setattr(made, field, value)
    return made


# --- what exists and what does not ----------------------------------------------------------------


@attrs.frozen
class _Verdict(Generic[Named]):
    """One topic of a request: which of its partitions are refused here, and what is left of it."""

    topic: Named
    codes: list[ErrorCode]  # for each partition; NONE where the coordinator is to say
    known: Named | None
    silent: bool = False  # the answer does not mention it


def _verdict(topic: Named, live: LiveTopic | None, by_id: bool) -> _Verdict[Named]:
    if live is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _Verdict(topic, [code] * len(topic.partitions), None)
    count = live.topic.partitions
    there = [p for p in topic.partitions if 0 <= p.partition_index < count]
    codes = [
        ErrorCode.NONE if 0 <= p.partition_index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for p in topic.partitions
    ]
    if not there:
        return _Verdict(topic, codes, None, silent=not codes)
    left = _but(topic, name=live.topic.name, topic_id=live.topic.topic_id, partitions=there)
    return _Verdict(topic, codes, left)


def _merged(
    verdicts: Sequence[_Verdict[Named]], answer: Sequence[CommittedTopic], by_id: bool
) -> list[CommittedTopic]:
    """In the order of the request, a topic that it names twice under one heading.

    One without partitions is not mentioned, but where there is no such topic: so Kafka does it.
    """
    told = iter([partition for topic in answer for partition in topic.partitions])
    headings: dict[str | TopicId, tuple[Named, list[CommittedPartition]]] = {}
    for verdict in verdicts:
        if verdict.silent:
            continue
        topic = verdict.topic
        _, partitions = headings.setdefault(topic.topic_id if by_id else topic.name, (topic, []))
        for asked, code in zip(topic.partitions, verdict.codes, strict=True):
            if code == ErrorCode.NONE:
                partitions.append(next(told))
            else:
                partitions.append(CommittedPartition(partition_index=asked.partition_index, error_code=code))
    return [
        CommittedTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)
        for topic, partitions in headings.values()
    ]


@attrs.frozen
class _AskedGroup:
    """One group of an OffsetFetch: what was asked, and what of it the coordinator is asked."""

    group: FetchOffsetsGroup
    known: list[FetchOffsetsTopic]
    forwarded: FetchOffsetsGroup | None
    whole: bool  # the coordinator's answer is the answer


def _unknown(topic: FetchOffsetsTopic) -> FetchedTopic:
    code = ErrorCode.UNKNOWN_TOPIC_ID
    return FetchedTopic(
        topic_id=topic.topic_id,
        partitions=[FetchedPartition(partition_index=i, error_code=code) for i in topic.partition_indexes],
    )
