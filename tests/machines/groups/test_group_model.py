"""A group under random clients: they join, sync, leave, fall silent, come back, and the broker dies.

Whatever they do: each partition has one owner in a generation, a generation's number is never used
again, every waiter is answered once or still waits in the group, there is a deadline ahead while
anybody is in, what is counted fits what is there, and a replay leads to where the live group is.
"""

from __future__ import annotations

from collections import Counter
from math import inf

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rafka.errors import ErrorCode
from rafka.machines.groups.events import Assigned, GenerationFormed, RebalanceBegan, Resumed
from rafka.machines.groups.group import Group
from rafka.machines.groups.kept import Kept
from rafka.machines.groups.model import GroupRules, State
from rafka.machines.groups.roster import ITSELF
from rafka.ops.group import JoinGroupReply, SyncGroupReply

from .kit import BOTH, KEY, Offer, Uuids, World

PARTITIONS = 5
OFFERS = [BOTH, BOTH[::-1], BOTH[:1], BOTH[1:], (("range", b"new"), *BOTH[1:])]

clients = st.integers(0, 4)


@attrs.define
class Client:
    """What a client knows: its ids, what it asked last, and whom it leads."""

    name: str
    instance: str | None
    member_id: str = ""
    generation: int = -1
    waits: str | None = None  # the token of a join or sync
    roll: tuple[str, ...] = ()
    offer: Offer = BOTH
    slow: bool = False
    next: str = "join"  # what a proper client would do now: join, sync, or read


class GroupMachine(RuleBasedStateMachine):
    @initialize(
        delay_ms=st.sampled_from([0, 0, 3_000]),
        max_size=st.sampled_from([2, 4, 100]),
        by_name=st.booleans(),
    )
    def begin(self, delay_ms: int, max_size: int, by_name: bool) -> None:
        rules = GroupRules(
            new_uuid=Uuids(),
            initial_delay_ms=delay_ms,
            max_size=max_size,
            lexicographic_leader=by_name,
            max_pending=3,
            max_assignment_bytes=PARTITIONS,
        )
        self.world = World(rules)
        self.clients = [Client(f"c{at}", f"i{at}" if at in (1, 2) else None) for at in range(5)]
        self.owners: dict[tuple[int, int], str] = {}
        self.asked: dict[str, tuple[Client, int]] = {}  # tokens of syncs: who, and in which generation
        self.waiting: set[str] = set()  # tokens that were not answered at once
        self.formed = 0
        self.looked = 0

    # --- what clients do -----------------------------------------------------------------

    @rule(alive=st.sets(clients, min_size=1), rounds=st.integers(1, 6))
    def behave(self, alive: set[int], rounds: int) -> None:
        """These do as clients do, for some seconds."""
        for _ in range(rounds):
            for who in sorted(alive):
                self.step(self.clients[who])
            self.world.pass_time(0.5)
            self.answers_are_heard()

    def step(self, client: Client) -> None:
        if client.waits in self.waiting:
            return
        if client.next == "read":
            code = self.world.heartbeat(client.member_id, client.generation, client.instance)
            if code is not ErrorCode.NONE:
                client.next = "join"
            if code not in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
                client.member_id = ""
        elif client.next == "sync":
            self.ask_to_sync(client, 0, False)
        else:
            self.ask_to_join(client)

    @rule(who=clients, offer=st.sampled_from(OFFERS), slow=st.booleans())
    def change(self, who: int, offer: Offer, slow: bool) -> None:
        self.clients[who].offer, self.clients[who].slow = offer, slow

    @rule(who=clients, old=st.booleans())
    def join(self, who: int, old: bool) -> None:
        self.ask_to_join(self.clients[who], old)

    def ask_to_join(self, client: Client, old: bool = False) -> None:
        token = self.world.join(
            client.name,
            client.member_id,
            group_instance_id=client.instance,
            protocols=client.offer,
            id_required=not old,
            may_skip=not old,
            session_timeout_ms=30_000 if client.slow else 6_000,
            rebalance_timeout_ms=20_000 if client.slow else 5_000,
        )
        self.wait(client, token)

    @rule(who=clients)
    def forget(self, who: int) -> None:
        """The client's process dies, and another begins."""
        client = self.clients[who]
        client.member_id, client.generation, client.waits = "", -1, None
        client.roll, client.next = (), "join"

    @rule(who=clients, skew=st.integers(0, PARTITIONS), leave_out=st.booleans())
    def sync(self, who: int, skew: int, leave_out: bool) -> None:
        if self.clients[who].generation >= 0:
            self.ask_to_sync(self.clients[who], skew, leave_out)

    def ask_to_sync(self, client: Client, skew: int, leave_out: bool) -> None:
        roll = client.roll[leave_out:]
        given = {member_id: bytearray() for member_id in roll}
        for partition in range(PARTITIONS if roll else 0):
            given[roll[(partition + skew) % len(roll)]].append(partition)
        self.sync_with(client, {member_id: bytes(numbers) for member_id, numbers in given.items()})

    def sync_with(self, client: Client, assignments: dict[str, bytes]) -> None:
        token = self.world.sync(
            client.name,
            client.member_id,
            assignments,
            generation_id=client.generation,
            group_instance_id=client.instance,
        )
        self.asked[token] = (client, client.generation)
        self.wait(client, token)

    @rule(who=clients)
    def bring_too_much(self, who: int) -> None:
        if self.clients[who].generation >= 0:
            self.sync_with(self.clients[who], {"x": bytes(PARTITIONS + 1)})

    @rule(who=clients)
    def heartbeat(self, who: int) -> None:
        client = self.clients[who]
        self.world.heartbeat(client.member_id, client.generation, client.instance)

    @rule(who=clients)
    def commit(self, who: int) -> None:
        client = self.clients[who]
        self.world.commit(client.member_id, client.generation, client.instance)

    @rule(some=st.lists(clients, max_size=3), by_instance=st.booleans())
    def leave(self, some: list[int], by_instance: bool) -> None:
        leaving = [self.clients[who] for who in some]
        self.world.leave(*[("" if by_instance else c.member_id, c.instance) for c in leaving])

    # --- what happens to them -----------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.0, 0.001, 1.0, 3.0, 5.0, 31.0]))
    def silence(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(leap=st.sampled_from([0.5, 400.0]))
    def the_machine_sleeps(self, leap: float) -> None:
        self.world.at += leap

    @rule(snapshot=st.booleans())
    def restart(self, snapshot: bool) -> None:
        if snapshot:
            self.world.journal = list(self.world.group.facts())
        self.world.restart()
        self.waiting.clear()  # their connections have gone with the process
        for client in self.clients:
            if client.waits is not None:
                client.waits, client.next = None, "join"

    @precondition(lambda self: self.world.group.state is State.EMPTY)
    @rule()
    def retune(self) -> None:
        rules = attrs.evolve(self.world.group.rules, initial_delay_ms=1_000)
        self.world.rules = self.world.group.rules = rules

    # --- keeping track ----------------------------------------------------------------------

    def wait(self, client: Client, token: str) -> None:
        client.waits = token
        self.waiting.add(token)

    @invariant()
    def answers_are_heard(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.tick()
        answered = {token for token in self.waiting if token in self.world.heard}
        self.waiting -= answered
        for token in answered:
            answer = self.world.heard[token]
            if isinstance(answer, SyncGroupReply) and answer.error_code is ErrorCode.NONE:
                client, generation = self.asked[token]
                for partition in answer.assignment:
                    owner = self.owners.setdefault((generation, partition), client.name)
                    assert owner == client.name, f"{partition} has two owners in generation {generation}"
        for client in self.clients:
            if client.waits in answered:
                self.hear(client, self.world.heard[client.waits])
                client.waits = None

    @staticmethod
    def hear(client: Client, answer: object) -> None:
        if isinstance(answer, SyncGroupReply):
            client.next = "read" if answer.error_code is ErrorCode.NONE else "join"
            return
        assert isinstance(answer, JoinGroupReply)
        match answer.error_code:
            case ErrorCode.NONE:
                client.member_id, client.generation = answer.member_id, answer.generation_id
                client.roll = tuple(member.member_id for member in answer.members)
                client.next = "sync"
                assert bool(client.roll) <= (answer.leader == answer.member_id)
            case ErrorCode.MEMBER_ID_REQUIRED:
                client.member_id = answer.member_id
            case ErrorCode.REBALANCE_IN_PROGRESS:
                client.next = "join"
            case _:
                client.member_id, client.generation, client.roll, client.next = "", -1, (), "join"

    @invariant()
    def every_waiter_is_in_the_group(self) -> None:
        if hasattr(self, "world"):
            members = self.world.group.roster.by_id.values()
            parked = [t for m in members for t in (m.join_waiter, m.sync_waiter) if t is not None]
            assert sorted(parked) == sorted(self.waiting)

    @invariant()
    def generations_only_grow(self) -> None:
        if not hasattr(self, "world"):
            return
        for event in self.world.events[self.looked :]:
            if isinstance(event, GenerationFormed):
                assert event.generation > self.formed
                self.formed = event.generation
            elif isinstance(event, Assigned | Resumed):
                assert event.generation <= self.formed
            else:
                assert isinstance(event, RebalanceBegan)
        self.looked = len(self.world.events)

    @invariant()
    def there_is_a_deadline_ahead(self) -> None:
        if hasattr(self, "world"):
            group = self.world.group
            assert group.deadline > self.world.at
            if group.roster or group.pending:
                assert group.deadline < inf

    @invariant()
    def what_is_counted_is_there(self) -> None:
        if not hasattr(self, "world"):
            return
        group = self.world.group
        members = group.roster.by_id
        assert group.joined == sum(m.join_waiter is not None for m in members.values())
        offered = Counter(name for m in members.values() for name in dict(m.protocols))
        assert group.roster._supporters == offered
        brought = [name.encode() + metadata for m in members.values() for name, metadata in m.protocols]
        assert group.roster.weight == ITSELF * len(members) + sum(map(len, brought))
        static = {m.group_instance_id: m for m in members.values() if m.group_instance_id is not None}
        assert group.roster.by_instance == static
        assert group.unsynced <= set(members)
        assert bool(group.unsynced) == (group.sync_until < inf)
        assert (group.leader in members) if members else group.leader == ""
        assert (group.state in (State.EMPTY, State.DEAD)) <= (not members)
        assert (group.state is State.PREPARING) == (group.join_until < inf)
        assert not group.pending & set(members)
        for name, member in members.items():
            waits = member.join_waiter is not None or member.sync_waiter is not None
            assert (name in group.sessions._until) == (not waits or member.is_new)
            assert member.join_waiter is None or group.state is State.PREPARING
            assert member.sync_waiter is None or group.state is State.COMPLETING
        assert set(group.sessions._until) <= set(members) | group.pending

    @invariant()
    def a_replay_leads_here(self) -> None:
        if hasattr(self, "world"):
            replayed = Kept("cgp_1")
            for fact in self.world.journal:
                replayed.apply(fact)
            assert replayed == self.world.group.kept
            group: Group[str] = Group(KEY, "cgp_1", self.world.rules)
            for fact in self.world.group.facts():
                group.apply(fact)
            assert group.kept == replayed


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
