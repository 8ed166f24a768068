"""The coordinator: the one task that owns every group.

Nobody else touches a group, so nothing here is locked. Callers leave a letter, an op and a
channel to answer on; the task goes round the four verbs of an actor:

    drain    take what came in, or wake at the next deadline of any group
    decide   let the machines say what follows, with no await
    journal  make the facts durable, all of the round in one append
    answer   send each reply to whoever waits for it

While one round is being made durable the next one gathers in the inbox. Where the page cache will
do there is nothing to wait for, and a round is answered in the step in which it was drained.
Waiting is never a task or a timer: an unanswered caller is a channel, parked in a machine as its
token, and all deadlines together are one.

Most requests are about one member or its offsets, and release nobody else. Such a one is a round of
its own in the step in which it is asked, unless a letter about its group lies in the inbox: nobody
has to be woken for it, and no group feels how busy another is. Its answer is held until the
journal is kept up to there.

What others tell (a topic is gone, the broker closes) they leave without waiting: the actors
from which it comes are outside this one, and must not depend on it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, NoReturn

import attrs
import trio

from ..config import Config
from ..env import Env
from ..errors import ErrorCode
from ..machines.groups.directory import Groups
from ..machines.groups.history import line
from ..machines.groups.model import Caller, Decision, GroupKey, Moment
from ..ops.base import Envelope, Later, Op, R
from ..ops.group import GroupHistory, Heartbeat, JoinGroup, Rebalance, SyncGroup
from ..ops.offsets import OffsetCommit, OffsetFetch, TxnOffsetCommit
from ..storage.journal import Journal
from ..types import DEFAULT_ORG, OrgId, TopicId
from .actor import Inbox, Waiter
from .group_settings import limits, rules
from .held import Held

log = logging.getLogger(__name__)

INBOX_SIZE: Final = 1024  # past this, connections wait to hand in their letter, and read no further
PARKED: Final = frozenset((JoinGroup, SyncGroup, GroupHistory))  # may be answered much later
BRIEF: Final = frozenset((Heartbeat, OffsetCommit, OffsetFetch, TxnOffsetCommit))  # release nobody else
HELD: Final = 1024  # answers; past this, requests have to take the way through the inbox
LATE_S: Final = 0.1  # how long a deadline may be put off
STREAM_S: Final = 0.08  # and how long while letters keep coming, none of them being kept waiting
AFTER_A_MISTAKE_S: Final = 1.0
GROUP_ID_SHOWN: Final = 250


@attrs.frozen
class Settle:
    """What this producer's transaction holds of any group counts from now on, or is gone."""

    producer_id: int
    committed: bool


@attrs.define(eq=False)
class Letter:
    org: OrgId
    op: Op[Any] | Settle
    caller: Caller
    waiter: Waiter
    about: GroupKey | None  # None: all groups


OURSELVES: Final = Caller("", "")  # also where it makes no difference who asks
NOBODY: Final = Waiter(trio.open_memory_channel(1), [])  # the token of what is answered where it is asked
NOBODY.forget()


class Coordinator:
    def __init__(
        self,
        config: Config,
        env: Env,
        journal: Journal,
        topic_exists: Callable[[TopicId], bool],
    ) -> None:
        self.on_rebalance: list[Callable[[GroupKey, Rebalance], None]] = [tell]
        self.groups: Groups[Waiter] = Groups(
            rules(config, env), limits(config), lambda: env.rng.randbytes(10), self._rebalanced
        )
        self._env = env
        self._journal = journal
        self._owes = False  # what was decided at once is not in the journal yet
        self._topic_exists = topic_exists
        self._inbox: Inbox[Letter] = Inbox(INBOX_SIZE)
        self._held = Held(journal, self._inbox.poke)
        self._expire_every_s = config.groups.retention_check_interval_ms / 1000
        self._expire_at = inf
        self._expiring: Iterator[Decision[Waiter]] | None = None
        self._not_before = -inf  # no deadline is met sooner than this
        self._excused = -inf  # the last deadline that was put off because we were late
        self._ready = False  # the journal has been replayed, and nothing is in the way of deciding
        self._ahead: dict[GroupKey | None, int] = {}  # letters that are not decided yet, by group
        self._wakes = inf  # until when the task sleeps
        self._failed: Exception | None = None
        self._clock = trio.current_time
        self._gone: list[TopicId] = []
        self._untold: list[tuple[GroupKey, Rebalance]] = []
        self._closing = self._closed = False

    # --- asking ---------------------------------------------------------------------------

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]:
        org, kind = envelope.org_id, type(op)
        if kind in BRIEF and self._ready and not (self._ahead and self._is_behind(org, op)):
            answer = self._at_once(envelope, op)
            return answer if self._journal.rests else self._hold(answer)
        waiter = self._inbox.waiter()
        caller = Caller(envelope.client_id, envelope.client_host)
        group_id: str | None = None if kind is OffsetFetch else getattr(op, "group_id", None)
        about = (org, group_id) if group_id is not None else None  # a fetch may ask about several
        self._ahead[about] = self._ahead.get(about, 0) + 1
        letter = Letter(org, op, caller, waiter, about)
        return self._inbox.post(letter, waiter, overlaps=kind not in PARKED)

    async def settle_transaction(self, org: OrgId, producer_id: int, committed: bool) -> None:
        """Return when the offsets of a transaction that has ended are durably committed, or gone."""
        waiter = self._inbox.waiter()
        self._ahead[None] = self._ahead.get(None, 0) + 1
        letter = Letter(org, Settle(producer_id, committed), OURSELVES, waiter, None)
        await self._inbox.post(letter, waiter).wait()

    def _is_behind(self, org: OrgId, op: Op[Any]) -> bool:
        """Whether there is a letter that this must not overtake."""
        ahead = self._ahead
        if None in ahead:
            return True
        if isinstance(op, OffsetFetch):
            return any((org, group.group_id) in ahead for group in op.groups)
        return (org, op.group_id) in ahead  # type: ignore[attr-defined]

    def _decided(self, letters: Iterable[Letter]) -> None:
        ahead = self._ahead
        if not len(self._inbox):
            ahead.clear()
            return
        for letter in letters:
            if (left := ahead.get(letter.about, 0) - 1) > 0:
                ahead[letter.about] = left
            else:
                ahead.pop(letter.about, None)

    def _at_once(self, envelope: Envelope, op: Op[R]) -> R:
        """A round for this alone; what it comes to is in the journal when the answer leaves: see `keep`."""
        try:
            try:
                decision = self.groups.handle(op, envelope.org_id, OURSELVES, NOBODY, self._now())
            except Exception:
                decision = self._apology(op, envelope.client_host, NOBODY)
            if decision.facts:
                self._journal.owe(decision.facts)
                self._owes = True
        except Exception as error:
            self._fail(error)
            raise
        if self.groups.next_alarm < self._wakes and self._deadline() < self._wakes:
            self._poke()
        [reply] = decision.replies
        return reply.answer  # type: ignore[return-value]

    def keep(self) -> None:
        """Answers are about to leave: write what was decided for them, all in one batch.

        Once that has failed none leaves any more: it may rest on what was in the batch.
        """
        if self._failed is not None:
            raise self._failed
        if not self._owes:
            return
        self._owes = False
        try:
            self._journal.pay()
        except Exception as error:
            self._fail(error)
            raise

    def _fail(self, error: Exception) -> None:
        """Memory is ahead of the journal: the task has to end, and all with it."""
        self._failed = error
        self._poke()

    def _hold(self, answer: R) -> Later[R]:
        waiter = self._inbox.waiter()
        waiter.overlaps = True
        self._held.hold(waiter, answer)
        if len(self._held) >= HELD:
            self._ready = False
        return waiter

    def forget_topic(self, topic_id: TopicId) -> None:
        """The topic has been deleted: so are its offsets, in every group."""
        self._gone.append(topic_id)
        self._poke()

    def reconfigure(self, config: Config) -> None:
        self.groups.reconfigure(rules(config, self._env), limits(config))

    def close(self) -> None:
        """Let everybody go who waits for others: they are told to look for another coordinator."""
        self._closing = True
        self._poke()

    def _poke(self) -> None:
        self._ready = False
        self._inbox.poke()

    # --- the actor ------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> NoReturn:
        self._clock = trio.lowlevel.current_clock().current_time  # the same, by a shorter way
        await self._journal_and_answer(self.groups.resume(self._now(), self._topic_exists))
        self._expire_at = trio.current_time() + self._expire_every_s
        task_status.started()
        while True:
            self._wakes = self._deadline()
            self._ready = not self._closing and len(self._held) < HELD
            letters = await self._inbox.drain(self._wakes)
            if self._failed is not None:
                raise self._failed
            await self._journal_and_answer(self._decide(letters, self._now()))

    async def _journal_and_answer(self, decision: Decision[Waiter]) -> None:
        if decision.facts:
            self._journal.put(decision.facts)
        if (decision.facts or decision.replies) and not self._journal.rests:  # also what was put for others
            await self._journal.settled()
        await self._held.tell(decision.replies)
        if self._untold:
            self._tell()

    # --- deciding: nothing here awaits ------------------------------------------------------

    def _decide(self, letters: Sequence[Letter], now: Moment) -> Decision[Waiter]:
        """Letters before deadlines: whoever has sent a sign of life in time is not silent."""
        decision: Decision[Waiter] = Decision()
        self._decided(letters)
        for letter in letters:
            part = self._handle(letter.op, letter.org, letter.caller, letter.waiter, now)
            if part.replies or part.facts or part.events:  # most are parked
                decision += part
        while self._gone:
            self.groups.forget_topic(self._gone.pop())
        if self._is_time(now, bool(letters)):
            self._meet_deadlines(now, decision)
        if self._closing and not self._closed:
            self._closed = True
            decision += self.groups.abandon()
        return decision

    def _handle(
        self, op: Op[Any] | Settle, org: OrgId, caller: Caller, waiter: Waiter, now: Moment
    ) -> Decision[Waiter]:
        try:
            if isinstance(op, Settle):
                settled = self.groups.settle_transaction(org, op.producer_id, op.committed)
                settled.answer(waiter, None)
                return settled
            return self.groups.handle(op, org, caller, waiter, now)
        except Exception:
            return self._apology(op, caller.client_host, waiter)

    def _apology(self, op: Op[Any] | Settle, host: str, waiter: Waiter) -> Decision[Waiter]:
        """A mistake of ours, in hand as an exception: who asks is told so, if nothing was changed by it."""
        if isinstance(op, Settle) or not self.groups.sound:
            raise  # memory is ahead of the journal and cannot go back: only a restart helps
        log.exception("%s failed for %s", type(op).__name__, host)
        return Decision.of(waiter, op.refusal(ErrorCode.UNKNOWN_SERVER_ERROR))

    def _is_time(self, now: Moment, busy: bool) -> bool:
        """Whether deadlines are met now. They wait for letters that are here or come, but not for long.

        A new group that waits for nobody gathers by this all who have come already: Kafka's
        timer likewise has its turn behind the requests that are in its queue.

        Who comes late to one was away: the disk took its time, or the machine slept. Then members were
        not heard, and not silent: what they have sent meanwhile has a moment to come in, once.
        """
        due = min(self.groups.deadline, self._expire_at)
        if due > now.at or self._not_before > now.at:
            return False
        if now.at - due > LATE_S and due != self._excused:
            self._excused, self._not_before = due, now.at + LATE_S
            return False
        late = now.at - max(due, self._not_before)
        return late >= LATE_S or (not len(self._inbox) and (not busy or late >= STREAM_S))

    def _meet_deadlines(self, now: Moment, decision: Decision[Waiter]) -> None:
        try:
            if self.groups.deadline <= now.at:
                decision += self.groups.tick(now)
            if self._expire_at <= now.at:
                self._expire(now, decision)
        except Exception:
            if not self.groups.sound:
                raise
            log.exception("a deadline of a group could not be met")
            self._expiring, self._expire_at = None, now.at + self._expire_every_s
            self._not_before = now.at + AFTER_A_MISTAKE_S

    def _expire(self, now: Moment, decision: Decision[Waiter]) -> None:
        """Let go of what is too old in some groups, and of others in the next round."""
        if self._expiring is None:
            self._expiring = self.groups.expire(now)
        some = next(self._expiring, None)
        if some is not None:
            decision += some
        else:
            self._expiring, self._expire_at = None, now.at + self._expire_every_s

    def _deadline(self) -> float:
        return max(min(self.groups.deadline, self._expire_at), self._not_before)

    def _now(self) -> Moment:
        return Moment(self._clock(), int(self._env.now() * 1000))

    def _rebalanced(self, key: GroupKey, rebalance: Rebalance) -> None:
        self._untold.append((key, rebalance))

    def _tell(self) -> None:
        """What rebalances came to: once it is durable, and nobody waits for it any more."""
        untold, self._untold = self._untold, []
        for key, rebalance in untold:
            for told in self.on_rebalance:
                told(key, rebalance)


def tell(key: GroupKey, rebalance: Rebalance) -> None:
    """A line in the broker's own log."""
    org, group_id = key
    about = {"group": group_id[:GROUP_ID_SHOWN]}
    log.info(line(rebalance), extra=about if org == DEFAULT_ORG else {"org": org, **about})
