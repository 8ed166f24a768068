"""The broker dies under fifty live members, by kill -9 or with the power, and is back within their sessions.

Nobody has to join again for it, and no committed offset is lost. The members are those of the
simulated worlds, over real sockets, real time and a real disk, and the same judge looks at what they saw.
RAFKA_GROUP_CRASH_ROUNDS says how often the broker dies (10), RAFKA_CRASH_SEED repeats a run's moments.
"""

from __future__ import annotations

import os
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.brokers import RafkaProcess
from tests.simulation.group_history import GroupHistory
from tests.simulation.group_judge import judge_groups
from tests.simulation.group_member import Member
from tests.simulation.group_profile import TOPICS, Profile
from tests.simulation.group_simple import Observer, Supplier

from .load import create_topic
from .test_power_loss import Outages

pytestmark = [pytest.mark.crash, pytest.mark.filterwarnings("ignore")]

ROUNDS: Final = int(os.environ.get("RAFKA_GROUP_CRASH_ROUNDS", "10"))
SEED: Final = int(os.environ.get("RAFKA_CRASH_SEED", str(random.randrange(1 << 32))))
GROUPS: Final = ("range", "sticky", "cooperative-sticky", "static", "roundrobin")
MEMBERS: Final = 10  # of each group
SESSION_S: Final = 10.0
POWERLESS_S: Final = 30.0  # a session that outlives the copying of a disk
TURNS_A_SECOND: Final = 2.0
SLACK_S: Final = 6.0  # a real machine takes its time


class Crowd:
    """All members of all groups, and what they saw."""

    def __init__(self, broker: RafkaProcess, session_s: float) -> None:
        self.history = GroupHistory(longest_rebalance=2 * session_s, longest_session=session_s, slack=SLACK_S)
        self.dice = random.Random(SEED)
        self.members = [
            Member(
                f"{group}-{number}",
                self._profile(group, number, session_s),
                self.connect,
                self._own_dice(),
                self.history,
            )
            for group in GROUPS
            for number in range(MEMBERS)
        ]
        self._broker = broker

    async def connect(self) -> trio.abc.Stream:
        return await trio.open_tcp_stream("127.0.0.1", self._broker.port)

    def _own_dice(self) -> random.Random:
        return random.Random(self.dice.random())

    def _profile(self, group: str, number: int, session_s: float) -> Profile:
        static = group == "static"
        return Profile(
            group=group,
            topics=TOPICS,
            assignors=("range" if static else group,),
            session_s=session_s,
            rebalance_s=2 * session_s,
            instance=f"instance-{number}" if static else None,
            p_half_open=0.0,
            turns=session_s * TURNS_A_SECOND,
        )

    async def settle(self) -> None:
        """Return when every group is of one generation, and has been for a while."""
        settled: dict[str, int] = {}
        with trio.fail_after(90):
            while True:
                await trio.sleep(3)
                now = self._generations()
                if len(now) == len(GROUPS) and now == settled:
                    return
                settled = now

    def _generations(self) -> dict[str, int]:
        """Of the groups whose members have all synced in the generation that they are in."""
        found = {}
        for group in GROUPS:
            generations = {m.generation for m in self.members if m.profile.group == group}
            synced = {
                s.client
                for s in self.history.syncs
                if s.group == group and s.ok and {s.generation} == generations
            }
            if len(generations) == 1 and len(synced) == MEMBERS:
                found[group] = generations.pop()
        return found

    async def live_through(self, deaths: Callable[[], Awaitable[None]]) -> None:
        """Let them live while the broker dies again and again; then ask what is committed."""
        async with trio.open_nursery() as people:
            for member in self.members:
                people.start_soon(member.live, name=member.name)
            observer = Observer("observer", self.connect, self._own_dice(), self.history)
            people.start_soon(observer.run, GROUPS)
            supplier = Supplier("supplier", self.connect, self._own_dice(), self.history)
            people.start_soon(supplier.run)
            await self.settle()
            since = trio.current_time()
            await deaths()
            await trio.sleep(3 / TURNS_A_SECOND)
            self.history.steady = dict.fromkeys(GROUPS, (since, trio.current_time()))
            people.cancel_scope.cancel()
        auditor = Observer("auditor", self.connect, self._own_dice(), self.history)
        with trio.fail_after(30):
            await auditor.audit(GROUPS)

    def check(self) -> None:
        verdict = judge_groups(self.history)
        assert not verdict.anomalies, f"seed {SEED}: {verdict}"
        assert verdict.commits > 20 * ROUNDS, f"too little for the run to mean anything: {verdict}"


@pytest.mark.parametrize("durability", ["fsync", "page-cache"])
async def test_kill_9_costs_fifty_members_no_rebalance_and_no_offset(durability: str, tmp_path: Path) -> None:
    with RafkaProcess(tmp_path, durability=durability) as broker:
        for name, partitions in TOPICS.items():
            create_topic(broker.bootstrap, name, partitions)
        crowd = Crowd(broker, SESSION_S)

        def die() -> None:
            broker.kill()
            broker.start()

        async def deaths() -> None:
            for _ in range(ROUNDS):
                await trio.sleep(crowd.dice.uniform(0.1, 2))
                crowd.history.faults.append((trio.current_time(), "kill"))
                await trio.to_thread.run_sync(die)

        await crowd.live_through(deaths)
    crowd.check()


async def test_a_power_loss_costs_fifty_members_no_rebalance_and_no_offset(tmp_path: Path) -> None:
    outages = Outages(tmp_path, "fsync")
    powered = outages.powered()
    broker = await trio.to_thread.run_sync(powered.__enter__)
    try:
        for name, partitions in TOPICS.items():
            create_topic(broker.bootstrap, name, partitions)
        crowd = Crowd(broker, POWERLESS_S)

        async def deaths() -> None:
            nonlocal powered
            for _ in range(ROUNDS):
                await trio.sleep(crowd.dice.uniform(0.1, 2))
                crowd.history.faults.append((trio.current_time(), "power loss"))
                await trio.to_thread.run_sync(powered.__exit__, None, None, None)
                powered = outages.powered()
                await trio.to_thread.run_sync(powered.__enter__)

        await crowd.live_through(deaths)
    finally:
        await trio.to_thread.run_sync(partial(powered.__exit__, None, None, None))
    crowd.check()
