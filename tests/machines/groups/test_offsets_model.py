"""Offsets against a model that only knows who spoke last, through restarts of both kinds."""

from __future__ import annotations

from typing import Any, TypeAlias

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rafka.errors import ErrorCode
from rafka.machines.groups.offset_facts import OffsetFact
from rafka.ops.offsets import DeleteOffsetsPartition, DeleteOffsetsTopic
from rafka.types import TopicId

from .offset_kit import (
    METADATA_MAX,
    NOW,
    Place,
    commit_topics,
    everything,
    fetch,
    kept,
    new,
    replayed,
    topic_id,
)

TOPICS = ("t", "u")
PLACES: tuple[Place, ...] = (("t", 0), ("t", 1), ("u", 0))  # few, so that things meet
Said: TypeAlias = tuple[int, int]  # when it was said, counting up, and the offset

wanted = st.dictionaries(st.sampled_from(PLACES), st.integers(0, 99), min_size=1, max_size=2)
producers = st.integers(1, 2)


class OffsetsAsTheyShouldBe(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.offsets = new()
        self.journal: list[OffsetFact | TopicId] = []  # a topic's id: it was deleted
        self.said = 0
        self.committed: dict[Place, Said] = {}
        self.pending: dict[int, dict[Place, Said]] = {}

    def keep(self, fact: OffsetFact | None) -> None:
        if fact is not None:
            self.journal.append(fact)
        kept(self.offsets, fact)

    def saying(self, offsets: dict[Place, int]) -> dict[Place, Said]:
        self.said += 1
        return {place: (self.said, offset) for place, offset in offsets.items()}

    # --- what may happen --------------------------------------------------------------------

    @rule(offsets=wanted)
    def commit(self, offsets: dict[Place, int]) -> None:
        fact, _ = self.offsets.commit(commit_topics(offsets), NOW, METADATA_MAX)
        self.keep(fact)
        self.committed |= self.saying(offsets)

    @rule(producer=producers, offsets=wanted)
    def commit_pending(self, producer: int, offsets: dict[Place, int]) -> None:
        fact, _ = self.offsets.commit_pending(commit_topics(offsets), producer, 0, NOW, METADATA_MAX)
        self.keep(fact)
        self.pending.setdefault(producer, {}).update(self.saying(offsets))

    @rule(producer=producers, committed=st.booleans())
    def settle(self, producer: int, committed: bool) -> None:
        self.keep(self.offsets.settle(producer, committed))
        for place, said in self.pending.pop(producer, {}).items():
            if committed and said > self.committed.get(place, (0, 0)):
                self.committed[place] = said

    @rule(places=st.sets(st.sampled_from(PLACES), min_size=1))
    def delete(self, places: set[Place]) -> None:
        topics = [
            DeleteOffsetsTopic(
                name=name,
                topic_id=topic_id(name),
                partitions=[DeleteOffsetsPartition(partition_index=index)],
            )
            for name, index in sorted(places)
        ]
        fact, _ = self.offsets.delete(topics, lambda name: False)
        self.keep(fact)
        self.drop(places)

    @rule(name=st.sampled_from(TOPICS))
    def topic_ends(self, name: str) -> None:
        self.journal.append(topic_id(name))
        self.offsets.forget_topic(topic_id(name))
        self.drop({place for place in PLACES if place[0] == name})

    def drop(self, places: set[Place]) -> None:
        for held in (self.committed, *self.pending.values()):
            for place in places:
                held.pop(place, None)

    @rule()
    def restart_from_a_snapshot(self) -> None:
        self.journal = list(self.offsets.facts())
        self.offsets = replayed(self.offsets)

    @rule()
    def restart_from_the_journal(self) -> None:
        self.offsets = new()
        for entry in self.journal:
            if isinstance(entry, bytes):
                self.offsets.forget_topic(TopicId(entry))
            else:
                kept(self.offsets, entry)

    # --- what must hold -----------------------------------------------------------------------

    @invariant()
    def what_is_fetched_is_what_was_said_last(self) -> None:
        unstable = {place for held in self.pending.values() for place in held}
        plain: dict[Place, Any] = {place: offset for place, (_, offset) in self.committed.items()}

        assert everything(self.offsets) == plain
        assert fetch(self.offsets, *PLACES) == [plain.get(place, -1) for place in PLACES]
        assert fetch(self.offsets, *PLACES, stable=True) == [
            ErrorCode.UNSTABLE_OFFSET_COMMIT if place in unstable else plain.get(place, -1)
            for place in PLACES
        ]
        assert len(self.offsets) == len(plain)
        assert self.offsets.unsettled == bool(unstable)


OffsetsAsTheyShouldBe.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestOffsetsAsTheyShouldBe = OffsetsAsTheyShouldBe.TestCase
