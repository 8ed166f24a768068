"""Fetch sessions against a naive model: what a client should see of its own."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rafka.errors import ErrorCode
from rafka.machines.fetch_sessions import Asked
from rafka.ops.log import (
    PartitionFetchReply,
)

from .session_kit import US, A, Named, ask, cache, refused, result, same, told, wanted


class Naive:
    """One session as its client should see it: what it reads, and what it was last told of each."""

    def __init__(self, partitions: list[Named]) -> None:
        self.order = list(dict.fromkeys(partitions))
        self.epoch = 1
        self.told: dict[Named, tuple[int, int] | None] = {}


NAMES = st.sampled_from([(topic, n) for topic in "ab" for n in range(3)])
SOME = st.lists(NAMES, max_size=4)


@settings(stateful_step_count=30)
class Reading(RuleBasedStateMachine):
    """Partitions grow, are cut and fail; sessions come, go on and go."""

    @initialize()
    def begin(self) -> None:
        self.sessions = cache()
        self.models: dict[int, Naive] = {}
        self.state: dict[Named, tuple[int, int, int]] = {}  # high watermark, start, error

    def results(self, asked: Asked, fresh: set[Named]) -> list[PartitionFetchReply]:
        found = []
        for w in asked.wanted:
            key = w.topic, w.asked.partition
            hw, start, code = self.state.get(key, (0, 0, 0))
            if code:
                found.append(result(key[1], -1, -1, code=code))
            else:
                found.append(result(key[1], hw, start, b"r" if key in fresh else b""))
        return found

    @rule(key=NAMES, hw=st.integers(0, 3), start=st.integers(0, 2), code=st.sampled_from([0, 0, 0, 3]))
    def change(self, key: Named, hw: int, start: int, code: int) -> None:
        self.state[key] = hw, start, code

    @rule(partitions=SOME, fresh=st.sets(NAMES))
    def open(self, partitions: list[Named], fresh: set[Named]) -> None:
        asked = self.sessions.open(ask(0, 0, *partitions), US, 0)
        reply = asked.reply(self.results(asked, fresh))
        model = Naive(partitions)
        assert told(reply) == model.order
        assert reply.session_id > 0
        for key in model.order:
            self.remember(model, key)
        self.models[reply.session_id] = model

    def remember(self, model: Naive, key: Named) -> None:
        hw, start, code = self.state.get(key, (0, 0, 0))
        model.told[key] = None if code else (hw, start)

    @precondition(lambda self: self.models)
    @rule(pick=st.integers(0, 99), add=SOME, forget=SOME, fresh=st.sets(NAMES))
    def go_on(self, pick: int, add: list[Named], forget: list[Named], fresh: set[Named]) -> None:
        session = sorted(self.models)[pick % len(self.models)]
        model = self.models[session]
        asked = self.sessions.open(ask(session, model.epoch, *add, forget=tuple(forget)), US, 0)
        model.epoch += 1
        for key in add:
            if key not in model.order:
                model.order.append(key)
                model.told[key] = None
        for key in forget:
            if key in model.order:
                model.order.remove(key)
        assert wanted(asked) == model.order
        reply = asked.reply(self.results(asked, fresh))
        if not model.order:
            assert (reply.session_id, told(reply)) == (0, [])
            del self.models[session]
            return
        expected, moved = [], []
        for key in model.order:
            hw, start, code = self.state.get(key, (0, 0, 0))
            has_records = key in fresh and not code
            if code or has_records or model.told[key] != (hw, start):
                expected.append(key)
            if has_records:
                moved.append(key)
            self.remember(model, key)
        assert told(reply) == expected
        for key in moved:
            model.order.remove(key)
            model.order.append(key)

    @precondition(lambda self: self.models)
    @rule(pick=st.integers(0, 99), off=st.sampled_from([-1, 1, 7]))
    def come_again(self, pick: int, off: int) -> None:
        session = sorted(self.models)[pick % len(self.models)]
        epoch = self.models[session].epoch + off
        if epoch > 0:
            assert refused(self.sessions, ask(session, epoch)) == ErrorCode.INVALID_FETCH_SESSION_EPOCH

    @precondition(lambda self: self.models)
    @rule(pick=st.integers(0, 99))
    def close(self, pick: int) -> None:
        session = sorted(self.models)[pick % len(self.models)]
        assert same(self.sessions.open(ask(session, -1, A), US, 0)).session_id == 0
        del self.models[session]
        assert refused(self.sessions, ask(session, 1)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    @invariant()
    def no_session_is_forgotten_or_left_behind(self) -> None:
        assert len(self.sessions) == len(self.models)


TestAgainstTheNaiveModel = Reading.TestCase
