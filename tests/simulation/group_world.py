"""A world of groups: their members come and go around one broker that dies, and a bad network.

    groups    `eager`      range, roundrobin, sticky; members of one life after the other
              `coop`       cooperative-sticky
              `static`     members with instance ids, who restart, and now and then have a twin
              `simple`     no members at all: one who commits to a topic that comes and goes
    chaos     the nemesis kills the broker, pulls the plug, cuts and resets connections, while
              members die, leave, and sleep past their sessions
    calm      all is healed; every group has to settle, share out everything, and stay as it is
    silence   one member of each group dies without a word, and the others have to notice in time

In a *steady* world nobody but the broker dies, and static members, who are back at once: then no
group may rebalance at all, however often the broker restarts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final
from unittest import mock

import attrs
import trio

from rafka import server
from rafka.broker import coordinator, group_settings
from rafka.client.model import TopicPartition
from rafka.config import Config
from rafka.env import Env
from rafka.machines.groups.registry import Limits
from rafka.storage import journal
from rafka.storage.backend import LogBackend

from .broker_world import Scenario, config_of, small_segments, supervise, unleash
from .clients import Client, create_topic
from .group_history import Ending, GroupHistory, Place
from .group_member import Member
from .group_profile import TOPICS, Profile
from .group_simple import Observer, SimpleCommitter, Supplier
from .history import History
from .kit.machine import Machine
from .kit.net import SimNet
from .kit.runner import Chance
from .wire_client import Connect

SESSIONS: Final = (2.0, 3.0, 4.0, 6.0)
STEADY_SESSIONS: Final = (5.0, 6.0, 8.0)
REBALANCES: Final = (6.0, 8.0)
SETTLING: Final = 2 * max(SESSIONS) + max(REBALANCES) + 4  # in which all that was stirred up comes to rest
WATCHED: Final = 8.0  # for so long calm is looked at
NOTICED: Final = 1.5  # a silence has to be noticed so soon after the session, and a turn of the others
BOTH: Final = ("orders", "payments")
GROUPS: Final = ("eager", "coop", "static")
EAGER: Final = (("range",), ("roundrobin", "range"), ("range", "roundrobin"), ("sticky", "range"))


@attrs.frozen
class GroupScenario:
    broker: Scenario
    members: int = 3  # of each group
    steady: bool = False
    lifetime_s: float = 12.0  # mean, of a member
    chaos_s: float = 25.0
    p_stall: float = 0.04


def rough() -> GroupScenario:
    faults = ("kill", "power loss", "power cut", "power cut", "reset", "reset", "partition")
    return GroupScenario(Scenario(faults=faults, fault_every=1.5, settings=SETTINGS))


def in_memory() -> GroupScenario:
    """No broker in memory survives a death: the network is bad, and members die."""
    faults = ("reset", "partition")
    return GroupScenario(Scenario(storage="memory:", faults=faults, fault_every=1.5, settings=SETTINGS))


def page_cache() -> GroupScenario:
    """Nothing waits for a sync: what is acknowledged outlives the process, and the power holds."""
    faults = ("kill", "kill", "reset", "partition")
    settings = {**SETTINGS, "durability": "page-cache"}
    return GroupScenario(Scenario(faults=faults, fault_every=1.5, settings=settings))


def steady() -> GroupScenario:
    faults = ("kill", "power loss", "power cut", "reset")
    return GroupScenario(
        Scenario(faults=faults, fault_every=1.2, settings=SETTINGS), steady=True, p_stall=0.0, lifetime_s=4.0
    )


RETENTION_MS: Final = 20_000  # of offsets: less than anybody may ask for, and than a world lasts
SETTINGS: Final = {
    "group.min.session.timeout.ms": "1000",
    "offsets.retention.check.interval.ms": "3000",
}


async def group_world(chance: Chance, scenario: GroupScenario) -> GroupHistory:
    history = GroupHistory()
    dice = chance.stream("config")
    config, segment_bytes = config_of(dice, scenario.broker), dice.choice((2000, 20_000, 1 << 20))
    with _small(segment_bytes, dice.choice((10, 60, 100_000))):
        await _World(chance, scenario, history).play(config)
    return history


@contextmanager
def _small(segment_bytes: int, snapshot_facts: int) -> Iterator[None]:
    """Small segments, frequent snapshots of the journal and impatience make rare ways common."""
    make_backend, limits = server.make_backend, group_settings.limits

    def made(config: Config, env: Env) -> LogBackend:
        return small_segments(make_backend(config, env), segment_bytes)

    def short(config: Config) -> Limits:
        return attrs.evolve(limits(config), retention_ms=RETENTION_MS)

    with (
        mock.patch.object(server, "make_backend", made),
        mock.patch.object(coordinator, "limits", short),
        mock.patch.object(journal, "SNAPSHOT_FACTS", snapshot_facts),
    ):
        yield


class _Slot:
    """Where one member lives after the other, with the same profile."""

    def __init__(self, name: str, profile: Profile, mean_life_s: float) -> None:
        self.name = name
        self.profile = profile
        self.mean_life_s = mean_life_s
        self.member: Member | None = None
        self.scope = trio.CancelScope()
        self.lives = 0
        self.closed = False  # nobody lives here any more once this one is dead


class _World:
    def __init__(self, chance: Chance, scenario: GroupScenario, history: GroupHistory) -> None:
        self.chance = chance
        self.scenario = scenario
        self.history = history
        self.machine = Machine(chance)
        self.slots: list[_Slot] = []
        self.chaos = False  # it has begun; it ends with the calm
        self.calm = False

    async def play(self, config: Config) -> None:
        async with trio.open_nursery() as world:
            net = SimNet(world, self.chance.stream("net"))
            world.start_soon(supervise, self.machine, net, config, self.history.faults, name="supervisor")

            async def connect() -> trio.abc.Stream:
                return await net.connect()

            admin = Client("admin", connect, self.chance.stream("admin"), History())
            for name, partitions in TOPICS.items():
                await create_topic(admin, name, partitions)
            await admin.wire.hang_up()
            await self._anchor(connect)
            self._people(world, connect)
            await self._chaos(world, net)
            await self._calm()
            await self._silence()
            await Observer("auditor", connect, self.chance.stream("auditor"), self.history).audit(GROUPS)
            world.cancel_scope.cancel()

    async def _anchor(self, connect: Connect) -> None:
        """A group that never had an offset may be forgotten while it is empty, and begins again with 1."""
        for group in GROUPS:
            anchor = SimpleCommitter(f"anchor-{group}", connect, self.chance.stream("anchor"), self.history)
            await anchor.commit_once(group, Place("orders", 3))
            await anchor.wire.hang_up()

    # --- who lives here ------------------------------------------------------------------

    def _people(self, world: trio.Nursery, connect: Connect) -> None:
        dice = self.chance.stream("profiles")
        for group in GROUPS:
            for number in range(self.scenario.members):
                slot = self._slot(group, number, dice)
                self.slots.append(slot)
                world.start_soon(self._inhabit, slot, connect, name=slot.name)
        supplier = Supplier("supplier", connect, self.chance.stream("supplier"), self.history)
        world.start_soon(supplier.run, name="supplier")
        for name, someone in (("observer", Observer), ("simple", SimpleCommitter)):
            one = someone(name, connect, self.chance.stream(name), self.history)
            world.start_soon(one.run, GROUPS, name=name)
        if not self.scenario.steady:
            world.start_soon(self._twins, connect, name="twins")

    def _slot(self, group: str, number: int, dice: random.Random) -> _Slot:
        steady = self.scenario.steady
        static = group == "static"
        # The offsets of what nobody reads any more may go. Somebody of each group dies in the end, even in
        # a steady world: one member may read less than all there, and elsewhere nobody.
        topics = dice.choice((("orders",), BOTH)) if steady and number == 0 else BOTH
        profile = Profile(
            group=group,
            topics={name: TOPICS[name] for name in topics},
            assignors=("cooperative-sticky",) if group == "coop" else dice.choice(EAGER),
            session_s=dice.choice(STEADY_SESSIONS if steady else SESSIONS),
            rebalance_s=dice.choice(REBALANCES) + (2.0 if steady else 0.0),
            instance=f"instance-{number}" if static else None,
            p_stall=self.scenario.p_stall,
            p_impatient=0.0 if steady else 0.15,
        )
        if steady and static:
            # Range says the same in every life. A sticky member that has forgotten says something else.
            profile = attrs.evolve(profile, assignors=("range",))
        self.history.longest_session = max(self.history.longest_session, profile.session_s)
        self.history.longest_rebalance = max(self.history.longest_rebalance, profile.rebalance_s)
        return _Slot(f"{group}-{number}", profile, self.scenario.lifetime_s if static or not steady else inf)

    async def _inhabit(self, slot: _Slot, connect: Connect) -> None:
        """One life after the other: some end suddenly, some in good order."""
        dice = self.chance.stream(slot.name)
        while not slot.closed:
            slot.lives += 1
            member = self._born(f"{slot.name}.{slot.lives}", slot.profile, connect, dice)
            with trio.CancelScope() as slot.scope:
                slot.member = member
                if self._mortal(slot):
                    ends = trio.current_time() + dice.expovariate(1 / slot.mean_life_s)
                    if self.scenario.steady or dice.random() < 0.6:
                        slot.scope.deadline = ends
                    else:
                        member.leave_at = ends
                await member.live()
            slot.member = None
            await trio.sleep(dice.uniform(0.05, 1.0 if self.scenario.steady or self.calm else 4.0))

    def _mortal(self, slot: _Slot) -> bool:
        begun = self.chaos or not self.scenario.steady
        return begun and not self.calm and slot.mean_life_s < inf

    def _born(self, name: str, profile: Profile, connect: Connect, dice: random.Random) -> Member:
        if self.calm:
            profile = attrs.evolve(profile, p_stall=0.0, p_impatient=0.0)
        return Member(name, profile, connect, dice, self.history)

    async def _twins(self, connect: Connect) -> None:
        """Now and then somebody starts a second process with an instance id that is in use."""
        dice = self.chance.stream("twins")
        number = 0
        while True:
            await trio.sleep(dice.expovariate(1 / 6))
            if self.calm:
                return
            number += 1
            twin = dice.choice([slot for slot in self.slots if slot.profile.instance is not None])
            with trio.move_on_after(dice.uniform(0.5, 6)):
                await self._born(f"twin-{number}", twin.profile, connect, dice).live()

    # --- chaos, calm, silence ------------------------------------------------------------

    async def _chaos(self, world: trio.Nursery, net: SimNet) -> None:
        if self.scenario.steady:
            await trio.sleep(SETTLING)
            steady_at = trio.current_time()
            self.history.steady.update(dict.fromkeys(GROUPS, (steady_at, inf)))
            for slot in self.slots:
                if slot.mean_life_s < inf:
                    slot.scope.deadline = trio.current_time() + self.chance.stream("first").uniform(0, 8)
        self.chaos = True
        nemesis = trio.CancelScope()
        dice = self.chance.stream("nemesis")
        faults = self.history.faults
        world.start_soon(unleash, nemesis, dice, self.scenario.broker, self.machine, net, faults)
        await trio.sleep(self.scenario.chaos_s)
        nemesis.cancel()
        net.partitioned = False
        self.machine.cut_power_at_change(1 << 60)

    async def _calm(self) -> None:
        self.calm = True
        for slot in self.slots:
            slot.scope.deadline = inf
            if slot.member is not None:
                slot.member.leave_at = inf
                slot.member.profile = attrs.evolve(slot.member.profile, p_stall=0.0, p_impatient=0.0)
        await trio.sleep(SETTLING)
        calm_at = trio.current_time()
        await trio.sleep(WATCHED)
        for group in GROUPS:
            self._look(group, calm_at, trio.current_time(), lambda slot: True)

    async def _silence(self) -> None:
        """Somebody of each group dies; it is looked at when the last must have been missed."""
        for group, (since, _) in self.history.steady.items():
            self.history.steady[group] = since, trio.current_time()
        dice = self.chance.stream("silence")
        dead: dict[str, tuple[_Slot, float]] = {}
        for group in GROUPS:
            slot = dice.choice([slot for slot in self.slots if slot.profile.group == group])
            slot.closed = True
            dead[group] = slot, slot.member.heard_at if slot.member else trio.current_time()
            slot.scope.cancel()
        turn = max(slot.profile.turn_s for slot in self.slots)
        dues = {
            # What cooperative members have to give each other takes them another round.
            group: heard + slot.profile.session_s + (1 + slot.profile.cooperative) * turn + NOTICED
            for group, (slot, heard) in dead.items()
        }
        for group, due in sorted(dues.items(), key=lambda item: item[1]):
            await trio.sleep_until(due)
            silent = dead[group]
            self._look(group, silent[1], due, lambda slot, one=silent[0]: slot is not one)  # type: ignore[misc]

    def _look(self, group: str, since: float, due: float, lives: Callable[[_Slot], bool]) -> None:
        living = [slot for slot in self.slots if slot.profile.group == group and lives(slot)]
        wanted = {
            TopicPartition(topic, number)
            for slot in living
            for topic, count in slot.profile.topics.items()
            for number in range(count)
        }
        names = frozenset(slot.member.name for slot in living if slot.member is not None)
        all_live = len(living) == self.scenario.members
        self.history.endings.append(
            Ending(
                group=group, calm=all_live, since=since, due_at=due, wanted=frozenset(wanted), living=names
            )
        )
