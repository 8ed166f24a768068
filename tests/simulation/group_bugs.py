"""Bugs of coordinators to plant, each for one run: ways in which groups have really gone wrong.

A judge who has never found anything proves nothing. Every bug here has to be found within a
hundred seeds, by the judge of one of the worlds of groups: that a broker merely dies of it will not do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from math import inf
from typing import Any, Final
from unittest import mock

from rafka.broker.coordinator import Coordinator
from rafka.broker.held import Held
from rafka.env.sim_disk import SimFile
from rafka.errors import ErrorCode, KafkaError
from rafka.machines.groups import commits, expiry, heartbeat, rebalance, restart, sync
from rafka.machines.groups.core import Core
from rafka.machines.groups.facts import GenerationBegun, MembersRemoved, StaticMemberReplaced
from rafka.machines.groups.model import Decision
from rafka.machines.groups.offsets import Offsets
from rafka.machines.groups.roster import Roster
from rafka.machines.groups.sessions import Sessions
from rafka.storage.journal import Journal

Bug = Callable[[], AbstractContextManager[object]]

EVERY: Final = 7  # of so many answers, one is dropped


def _in_place_of(owner: Any, name: str, wrong: Any) -> Bug:
    return lambda: mock.patch.object(owner, name, wrong)


def _never_written(*kinds: type) -> Bug:
    """Facts of these kinds are applied and not put in the journal."""
    put = Journal.put

    def forgetful(journal: Journal, facts: Any) -> bool:
        return put(journal, [fact for fact in facts if not isinstance(fact, kinds)])

    return lambda: mock.patch.object(Journal, "put", forgetful)


@contextmanager
def _rounds_answered_at_once() -> Iterator[None]:
    """Who joins or syncs is answered while the facts are still on their way to the disk."""
    keep = Coordinator._journal_and_answer

    async def hasty(coordinator: Coordinator, decision: Any) -> None:
        replies, decision.replies = decision.replies, []
        await coordinator._held.tell(replies)
        await keep(coordinator, decision)

    with mock.patch.object(Coordinator, "_journal_and_answer", hasty):
        yield


@contextmanager
def _some_held_answers_dropped() -> Iterator[None]:
    """Whoever commits while the disk is busy may wait for ever."""
    hold, held = Held.hold, count(1)

    def careless(answers: Held, waiter: Any, answer: object) -> None:
        if next(held) % EVERY:
            hold(answers, waiter, answer)

    with mock.patch.object(Held, "hold", careless):
        yield


def _any_generation(core: Core[Any], op: Any, now: Any) -> None:
    if op.generation_id_or_member_epoch >= 0:
        core.heard_from(core.roster.identify(op.member_id, op.group_instance_id), now)


def _anybody(core: Core[Any], op: Any, now: Any) -> None:
    """Commits are taken from members and from those who were."""


@contextmanager
def _heartbeats_of_any_generation() -> Iterator[None]:
    beat = heartbeat.heartbeat

    def lenient(core: Core[Any], op: Any, token: Any, now: Any) -> Any:
        op.generation_id = core.generation
        return beat(core, op, token, now)

    with mock.patch.object(heartbeat, "heartbeat", lenient):
        yield


@contextmanager
def _sessions_do_not_end() -> Iterator[None]:
    """Whoever is silent is not noticed: its deadline passes, and nothing comes of it."""
    due = Sessions.due

    def blind(sessions: Sessions, now: float) -> list[str]:
        due(sessions, now)
        return []

    with mock.patch.object(Sessions, "due", blind):
        yield


@contextmanager
def _the_leaders_share() -> Iterator[None]:
    """Who syncs after the leader is answered with what the leader got."""
    answer = sync._assignment

    def wrong(core: Core[Any], member: Any) -> Any:
        return answer(core, core.roster.by_id[core.leader])

    with mock.patch.object(sync, "_assignment", wrong):
        yield


@contextmanager
def _second_waiter_dropped() -> Iterator[None]:
    """Of a member that asks again on a new connection, the old one goes on being waited for."""
    park = Core.park_join

    def stubborn(core: Core[Any], member: Any, token: Any, now: Any, out: Any) -> None:
        park(core, member, token if member.join_waiter is None else member.join_waiter, now, out)

    with mock.patch.object(Core, "park_join", stubborn):
        yield


def _not_fenced(roster: Roster[Any], member_id: str, instance_id: str | None) -> Any:
    """Whoever says the instance id is taken for its holder."""
    member = roster.by_instance.get(instance_id or "") or roster.by_id.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def _all_kept(core: Core[Any], now: Any) -> Any:
    """After a restart the members are not known, though the generation is."""
    core.generation = core.kept.generation
    core.protocol_type = core.kept.protocol_type
    return Decision()


@contextmanager
def _forming_without_the_rest() -> Iterator[None]:
    """The first to rejoin forms the next generation alone: all others are out."""
    with mock.patch.object(Core, "all_joined", property(lambda core: core.joined > 0)):
        yield


@contextmanager
def _forming_with_the_absent() -> Iterator[None]:
    """The first to rejoin forms the next generation, and whoever has not is in it all the same."""
    complete = rebalance.complete_join

    def lenient(core: Core[Any], now: Any, out: Any) -> None:
        if core.joined:
            core.join_until, core.gathering = inf, False
            rebalance._form(core, now, out)
        else:
            complete(core, now, out)

    with _forming_without_the_rest(), mock.patch.object(rebalance, "complete_join", lenient):
        yield


@contextmanager
def _offsets_by_name() -> Iterator[None]:
    """A topic that is made again inherits what its namesake left: offsets are kept by name."""

    fetch = Offsets.fetch

    def by_name(offsets: Offsets, topics: Any, require_stable: bool = False, room: Any = None) -> Any:
        for topic in topics or ():
            same = [known for known, kept in offsets._topics.items() if kept.name == topic.name]
            if same and topic.topic_id not in offsets._topics:
                topic.topic_id = same[-1]
        return fetch(offsets, topics, require_stable, room)

    with (
        mock.patch.object(Offsets, "fetch", by_name),
        mock.patch.object(Offsets, "forget_topic"),
    ):
        yield


@contextmanager
def _live_groups_age() -> Iterator[None]:
    """Offsets go by the time of their commit alone, whether or not somebody reads the topic."""
    ageing = expiry.ageing

    def careless(**how: Any) -> Any:
        return ageing(**{**how, "protocol_type": None, "empty": True})

    with mock.patch.object(expiry, "ageing", careless):
        yield


@contextmanager
def _records_are_not_synced() -> Iterator[None]:
    """Nor is what says how far they are: members may commit what a loss of power takes away again."""
    sync = SimFile.sync

    def lying(file: SimFile) -> None:
        if not file._path.startswith(("/data/topics/", "/data/checkpoint")):
            sync(file)

    with mock.patch.object(SimFile, "sync", lying):
        yield


GROUP_BUGS: Final[Mapping[str, Bug]] = {
    "generations are not durable": _never_written(GenerationBegun),
    "removals are not durable": _never_written(MembersRemoved),
    "new ids of static members are not durable": _never_written(StaticMemberReplaced),
    "answers do not wait for the journal": _rounds_answered_at_once,
    "held answers do not wait for the journal": _in_place_of(Coordinator, "_hold", lambda _, answer: answer),
    "some held answers are dropped": _some_held_answers_dropped,
    "commits are taken in any generation": _in_place_of(commits, "check_commit", _any_generation),
    "commits are taken from anybody": _in_place_of(commits, "check_commit", _anybody),
    "heartbeats are taken in any generation": _heartbeats_of_any_generation,
    "sessions do not end": _sessions_do_not_end,
    "everybody gets the leader's share": _the_leaders_share,
    "a second waiter is dropped": _second_waiter_dropped,
    "static members are not fenced": _in_place_of(Roster, "identify", _not_fenced),
    "members do not outlive a restart": _in_place_of(restart, "resume", _all_kept),
    "a generation forms without the rest": _forming_without_the_rest,
    "a generation forms with those who did not join": _forming_with_the_absent,
    "snapshots hold no offsets": _in_place_of(Offsets, "facts", lambda offsets: iter(())),
    "offsets are kept by the names of topics": _offsets_by_name,
    "offsets of live groups expire": _live_groups_age,
    "records are not synced": _records_are_not_synced,
}
