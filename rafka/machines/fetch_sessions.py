"""Incremental fetch sessions (KIP-227): the broker remembers what a client reads.

A client with a session says only what has changed since it last asked, and is told
only of partitions that have something to tell. Sessions belong to no connection; they
are kept in a cache of bounded size, where the one idle longest makes room.

    (0, -1) no session            (id, n) the n-th request of a session
    (0, 0)  full, make one        (id, -1) close it
    (id, 0) close it, make one
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import attrs

from ..errors import ErrorCode, KafkaError
from ..ops.log import Fetch, FetchPartition, FetchReply, PartitionFetchReply, TopicFetchReply
from ..types import NO_TOPIC_ID, OrgId, TopicId

CLOSE: Final = -1  # the epoch that ends a session
FIRST: Final = 0  # the epoch that begins one
LAST_EPOCH: Final = 2**31 - 1  # after it comes 1
# Beyond these the original's cache fails.
HIGHEST_ID: Final = 2147483639
LOWEST_ID: Final = -268435454
# What was read is told first, then ids that nobody knows, then names.
_TOLD_LAST: Final = {ErrorCode.UNKNOWN_TOPIC_ID: 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 2}
IDLE_S: Final = 120.0  # a session may be pushed out once it has been idle so long

Key: TypeAlias = tuple[str, TopicId, int]


@attrs.define
class Wanted:
    """A partition that somebody reads, and what a session last told of it."""

    topic: str
    topic_id: TopicId
    asked: FetchPartition
    told_high_watermark: int = -1
    told_log_start: int = -1
    known_as: str | None = None  # the topic's name, once it has been there to be read


@attrs.define
class Session:
    session_id: int
    org_id: OrgId
    by_id: bool
    partitions: dict[Key, Wanted]
    last_used: float
    made: float
    next_epoch: int = 1


@attrs.define
class Asked:
    """What one request comes to: the partitions to read, and the session it goes by, if any."""

    wanted: list[Wanted]
    session: Session | None = None
    incremental: bool = False
    next_epoch: int = 1  # of the session, once it has taken up this request

    def reply(self, results: Iterable[PartitionFetchReply], *, unknown_last: bool = False) -> FetchReply:
        """Put together what was read, leaving out what a session need not be told again."""
        session = self.session
        answers: Iterable[tuple[Wanted, PartitionFetchReply]] = zip(self.wanted, results, strict=True)
        if unknown_last:
            answers = sorted(answers, key=lambda answer: _TOLD_LAST.get(answer[1].error_code, 0))
        if session is None:
            return FetchReply(responses=_by_topic(answers))
        if self.incremental and session.next_epoch != self.next_epoch:
            code = ErrorCode.INVALID_FETCH_SESSION_EPOCH  # it went on while this request waited
            return FetchReply(error_code=code, session_id=session.session_id, responses=[])
        told = []
        for wanted, result in answers:
            news = _news(wanted, result)
            if news or not self.incremental:
                told.append((wanted, result))
                if self.incremental and result.records:
                    key = wanted.topic, wanted.topic_id, wanted.asked.partition
                    if session.partitions.pop(key, None) is not None:
                        session.partitions[key] = wanted  # to the end of the line
        return FetchReply(session_id=session.session_id, responses=_by_topic(told))


@attrs.define
class FetchSessions:
    """The cache."""

    slots: int
    new_id: Callable[[], int]
    _sessions: dict[int, Session] = attrs.Factory(dict)

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, op: Fetch, org_id: OrgId, now: float) -> Asked:
        """What the request asks for. Raises KafkaError with the code for the whole request."""
        if not LOWEST_ID <= op.session_id <= HIGHEST_ID:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no session has such an id")
        if op.session_epoch in (FIRST, CLOSE):
            if op.session_id:
                self._close(op.session_id, org_id)
            asked = Asked(list(_wanted(op).values()))
            if op.session_epoch == FIRST:
                asked.session = self._make(op, asked.wanted, org_id, now)
            return asked
        return self._continue(op, org_id, now)

    def _continue(self, op: Fetch, org_id: OrgId, now: float) -> Asked:
        session = self._sessions.get(op.session_id)
        if session is None or session.org_id != org_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if op.session_epoch != session.next_epoch:
            raise KafkaError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if op.by_id != session.by_id:
            raise KafkaError(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        _update(session.partitions, op)
        session.last_used = now
        session.next_epoch = 1 if session.next_epoch == LAST_EPOCH else session.next_epoch + 1
        wanted = list(session.partitions.values())
        if not wanted:
            del self._sessions[session.session_id]
            return Asked(wanted)
        return Asked(wanted, session, incremental=True, next_epoch=session.next_epoch)

    def _make(self, op: Fetch, wanted: list[Wanted], org_id: OrgId, now: float) -> Session | None:
        if not self._has_room(len(wanted), now):
            return None
        session_id = self.new_id() % HIGHEST_ID + 1
        while session_id in self._sessions:
            session_id = self.new_id() % HIGHEST_ID + 1
        partitions = {(w.topic, w.topic_id, w.asked.partition): w for w in wanted}
        session = Session(session_id, org_id, op.by_id, partitions, last_used=now, made=now)
        self._sessions[session_id] = session
        return session

    def _has_room(self, size: int, now: float) -> bool:
        """Make room if need be: at the cost of one idle for long, or of an older one that reads less."""
        if len(self._sessions) < self.slots:
            return True
        if not self._sessions:
            return False
        least = min(self._sessions.values(), key=lambda session: session.last_used)
        if now - least.last_used <= IDLE_S:
            old = [session for session in self._sessions.values() if now - session.made > IDLE_S]
            if not old:
                return False
            least = min(old, key=lambda session: len(session.partitions))
            if len(least.partitions) >= size:
                return False
        del self._sessions[least.session_id]
        return True

    def _close(self, session_id: int, org_id: OrgId) -> None:
        session = self._sessions.get(session_id)
        if session is not None and session.org_id == org_id:
            del self._sessions[session_id]


def _wanted(op: Fetch) -> dict[Key, Wanted]:
    """The partitions of a request in its order. One named twice counts as it was named last."""
    return {
        (topic.topic, topic.topic_id, asked.partition): Wanted(topic.topic, topic.topic_id, asked)
        for topic in op.topics
        for asked in topic.partitions
    }


def _update(partitions: dict[Key, Wanted], op: Fetch) -> None:
    for key, new in _wanted(op).items():
        known = partitions.get(key)
        if known is None:
            partitions[key] = new
        else:
            known.asked = new.asked
    for topic in op.forgotten_topics_data:
        for index in topic.partitions:
            partitions.pop((topic.topic, topic.topic_id, index), None)


def _news(wanted: Wanted, result: PartitionFetchReply) -> bool:
    """Whether a session has to be told; remembers what it will have been told."""
    news = (
        len(result.records) > 0
        or result.high_watermark != wanted.told_high_watermark
        or result.log_start_offset != wanted.told_log_start
        or result.error_code != ErrorCode.NONE
        or result.diverging_epoch is not None
    )
    # After an error the next good answer is sent even if there is nothing new in it.
    wanted.told_high_watermark = -1 if result.error_code else result.high_watermark
    wanted.told_log_start = result.log_start_offset
    return news


def _by_topic(results: Iterable[tuple[Wanted, PartitionFetchReply]]) -> list[TopicFetchReply]:
    """Neighbours of one topic under one heading."""
    topics: list[TopicFetchReply] = []
    topic, topic_id = None, NO_TOPIC_ID
    for wanted, result in results:
        if wanted.topic != topic or wanted.topic_id != topic_id:
            topic, topic_id = wanted.topic, wanted.topic_id
            topics.append(TopicFetchReply(topic=topic, topic_id=topic_id, partitions=[]))
        topics[-1].partitions.append(result)
    return topics
