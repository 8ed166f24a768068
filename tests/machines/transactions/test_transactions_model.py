"""Transactions under random producers: they begin, end, die, come back late, and so does their broker.

Several producers share a few transactional ids, and nobody tells them who was replaced. Whatever
they do, in whatever order: epochs only grow, a transaction has one outcome and is completed
once, whoever was replaced adds and ends nothing, and facts and snapshots lead to the same state.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
)

from rafka.errors import ErrorCode, KafkaError
from rafka.machines.transactions.model import LAST_EPOCH, Ending, TxnKey, TxnState
from rafka.types import DEFAULT_ORG

from .kit import World

NAMES = ["x", "y"]
PLACES = [("t", 0), ("t", 1), ("u", 0)]
AT_REST = {"Empty", "CompleteCommit", "CompleteAbort"}


@attrs.define(eq=False)
class Producer:
    """What a client knows. It may have been replaced long ago."""

    name: str
    producer_id: int
    epoch: int


@attrs.define
class Expected:
    """What a naive observer holds of one transactional id."""

    identity: tuple[int, int]  # (producer id, epoch) of the one who may write
    open: set[tuple[str, int]] | None = None
    opened_ms: int = 0
    timeout_ms: int = 0
    outcome: bool | None = None  # decided, and not completed
    completed: int = 0
    decided: int = 0


class TransactionsMachine(RuleBasedStateMachine):
    producers = Bundle("producers")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.expected: dict[str, Expected] = {}
        self.epochs: dict[tuple[str, int], int] = {}  # the greatest seen, of a producer id
        self.retired: set[tuple[str, int]] = set()  # ids whose epochs were used up

    # --- producers ---------------------------------------------------------------------

    @rule(
        target=producers,
        name=st.sampled_from(NAMES),
        timeout_ms=st.sampled_from([1_000, 60_000]),
    )
    def a_producer_comes(self, name: str, timeout_ms: int) -> object:
        return self._init(name, -1, -1, timeout_ms)

    @rule(target=producers, who=producers, timeout_ms=st.sampled_from([1_000, 60_000]))
    def a_producer_asks_for_its_next_epoch(self, who: Producer, timeout_ms: int) -> object:
        return self._init(who.name, who.producer_id, who.epoch, timeout_ms)

    def _init(self, name: str, producer_id: int, epoch: int, timeout_ms: int) -> object:
        expected = self.expected.get(name)
        try:
            reply = self.world.init(name, producer_id, epoch, timeout_ms)
        except KafkaError:
            assert expected is not None
            assert epoch >= 0 or expected.outcome is not None, "who asks for no epoch in particular gets one"
            return multiple()
        if reply.error_code is ErrorCode.CONCURRENT_TRANSACTIONS:  # what was open is being aborted
            assert expected is not None
            assert expected.open is not None
            self._decided(name, False, fenced=True)
            return multiple()
        assert 0 <= reply.producer_epoch <= LAST_EPOCH
        if expected is None:
            expected = self.expected[name] = Expected((reply.producer_id, reply.producer_epoch))
        assert expected.open is None
        assert expected.outcome is None
        if epoch < 0:  # who comes without an identity gets one that nobody else has
            assert reply.producer_epoch > self.epochs.get((name, reply.producer_id), -1)
        expected.identity = reply.producer_id, reply.producer_epoch
        expected.timeout_ms = timeout_ms
        return Producer(name, reply.producer_id, reply.producer_epoch)

    @rule(who=producers, places=st.lists(st.sampled_from(PLACES), max_size=3))
    def partitions_take_part(self, who: Producer, places: list[tuple[str, int]]) -> None:
        expected = self.expected[who.name]
        if not self._allowed(who, lambda: self.world.add(who.producer_id, who.epoch, *places, name=who.name)):
            return
        if expected.open is None:
            expected.open, expected.opened_ms = set(), self.world.now_ms
        expected.open |= set(places)

    @rule(who=producers, committed=st.booleans(), bumps=st.booleans())
    def a_producer_ends_its_transaction(self, who: Producer, committed: bool, bumps: bool) -> None:
        expected = self.expected[who.name]
        was_open, before = expected.open is not None, self._seen(who.name)
        identity = who.producer_id, who.epoch
        try:
            reply = self.world.end(who.producer_id, who.epoch, committed, bumps=bumps, name=who.name)
        except KafkaError:
            assert self._seen(who.name) == before
            assert not (was_open and identity == expected.identity), "the one who may has been refused"
            return
        if was_open:
            assert identity == expected.identity, "one who was replaced has ended a transaction"
            self._decided(who.name, committed)
        elif self._seen(who.name) != before:  # an abort of nothing takes the next epoch
            assert identity == expected.identity
            assert bumps
            assert not committed
            self._decided(who.name, False)
        else:  # the answer to an end that is over: the same outcome once more
            assert before == ("CompleteCommit" if committed else "CompleteAbort", *before[1:])
        if bumps:
            assert (reply.producer_id, reply.producer_epoch) != identity, (
                "the next transaction has no new epoch"
            )
            assert 0 <= reply.producer_epoch <= LAST_EPOCH
            who.producer_id, who.epoch = reply.producer_id, reply.producer_epoch

    @precondition(lambda self: self.expected)
    @rule(who=producers)
    def epochs_come_near_their_end(self, who: Producer) -> None:
        """As if the producer had begun again thirty thousand times."""
        if self._seen(who.name)[0] not in AT_REST:
            return
        for fact in [f for f in self.world.all.facts() if f.transactional_id == who.name]:
            late = attrs.evolve(fact, epoch=max(fact.epoch, LAST_EPOCH - 1), state="Empty", partitions=())  # type: ignore[union-attr,misc]
            self.world.all.apply(late)
            self.world.journal.append(late)
            self.expected[who.name].identity = late.producer_id, late.epoch  # type: ignore[union-attr]
            who.producer_id, who.epoch = late.producer_id, late.epoch  # type: ignore[union-attr]

    # --- the broker --------------------------------------------------------------------

    @rule()
    def markers_are_written(self) -> None:
        self._complete(self.world.complete())

    @rule()
    def one_ending_is_finished(self) -> None:
        for ending in list(self.world.all.endings())[:1]:
            self.world.journal += self.world.all.completed(ending.key, self.world.now_ms)
            self._complete([ending])

    @rule(ms=st.sampled_from([1, 999, 1_001, 70_000]))
    def time_passes(self, ms: int) -> None:
        due = [
            name
            for name, one in self.expected.items()
            if one.open is not None and one.opened_ms + one.timeout_ms < self.world.now_ms + ms
        ]
        self.world.pass_ms(ms)
        for name in due:
            self._decided(name, False, fenced=True)

    @rule()
    def the_broker_is_started_again(self) -> None:
        before = list(self.world.all.facts())
        self.world.restart()
        assert list(self.world.all.facts()) == before

    @rule()
    def the_journal_is_shortened_to_a_snapshot(self) -> None:
        before, deadline = list(self.world.all.facts()), self.world.all.deadline_ms
        self.world.journal = list(before)
        self.world.restart()
        assert sorted(map(repr, self.world.all.facts())) == sorted(map(repr, before))
        assert self.world.all.deadline_ms == deadline

    # --- what holds ----------------------------------------------------------------------

    @invariant()
    def the_machine_is_where_a_naive_observer_holds_it(self) -> None:
        for name, expected in self.expected.items():
            seen = self.world.seen(name)
            state = TxnState(seen.transaction_state)
            places = {(topic.topic, index) for topic in seen.topics for index in topic.partitions}
            if expected.open is not None:
                assert state is TxnState.ONGOING
                assert places == expected.open
                assert (seen.producer_id, seen.producer_epoch) == expected.identity
            elif expected.outcome is not None:
                assert state is (TxnState.PREPARE_COMMIT if expected.outcome else TxnState.PREPARE_ABORT)
            else:
                assert state.value in AT_REST
            assert expected.decided == expected.completed + (expected.outcome is not None)

    @invariant()
    def epochs_only_grow(self) -> None:
        for name in self.expected:
            seen = self.world.seen(name)
            key = name, seen.producer_id
            assert key not in self.retired
            assert seen.producer_epoch >= self.epochs.get(key, -1)
            self.retired |= {other for other in self.epochs if other[0] == name and other != key}
            self.epochs[key] = seen.producer_epoch

    @invariant()
    def there_is_a_deadline_as_long_as_anything_is_open(self) -> None:
        due = [e.opened_ms + e.timeout_ms for e in self.expected.values() if e.open is not None]
        assert self.world.all.deadline_ms == min(due, default=float("inf"))

    # --- smaller things ---------------------------------------------------------------------

    def _seen(self, name: str) -> tuple[str, int, int]:
        seen = self.world.seen(name)
        return seen.transaction_state, seen.producer_id, seen.producer_epoch

    def _allowed(self, who: Producer, act: Callable[[], None]) -> bool:
        """Whether it was done: exactly where this producer is the one, and nothing is being ended."""
        expected, before = self.expected[who.name], self._seen(who.name)
        entitled = before[1:] == (who.producer_id, who.epoch) and expected.outcome is None
        try:
            act()
        except KafkaError:
            assert not (entitled and who.epoch <= LAST_EPOCH), "the one who may has been refused"
            assert self._seen(who.name) == before
            return False
        assert entitled, "one who was replaced has added to a transaction"
        expected.identity = who.producer_id, who.epoch
        return True

    def _decided(self, name: str, outcome: bool, *, fenced: bool = False) -> None:
        expected = self.expected[name]
        assert not (fenced and self._seen(name)[1:] == expected.identity), "its producer may go on"
        assert expected.outcome is None, "a transaction was decided twice"
        expected.open, expected.outcome = None, outcome
        expected.decided += 1

    def _complete(self, endings: list[Ending]) -> None:
        keys: list[TxnKey] = [ending.key for ending in endings]
        assert len(keys) == len(set(keys))
        for ending in endings:
            org, name = ending.key
            expected = self.expected[name]
            assert org == DEFAULT_ORG
            assert ending.committed is expected.outcome
            expected.outcome = None
            expected.completed += 1
            expected.identity = self._seen(name)[1:]


TransactionsMachine.TestCase.settings = settings(max_examples=200, stateful_step_count=40)
TestTransactions = TransactionsMachine.TestCase
