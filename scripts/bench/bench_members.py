"""Groups of raw connections: each a member that joins, syncs and beats, its frames packed by hand."""

from __future__ import annotations

import itertools
import os
import selectors
import statistics
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Final

import attrs
from bench_wire import Connection, array, create_topics, frame, text, wait_until

COMMIT, FIND, JOIN, HEARTBEAT, SYNC = 8, 10, 11, 12, 14
COORDINATOR_TROUBLE: Final = (14, 15, 16)  # loading, not there, not here
SESSION_MS: Final = 60_000
SHARE: Final = b"x" * 40  # what each member is assigned
_RUN: Final = f"{os.getpid()}-{int(time.time())}"
_COUNT: Final = itertools.count()


def group_name() -> str:
    return f"bench-{_RUN}-{next(_COUNT)}"


def sized(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def join(group: str, member: str, turn: int) -> bytes:
    """Other metadata at each turn: so the first to join begins a rebalance, whoever it is."""
    user_data = str(turn).encode()
    metadata = struct.pack(">hi", 1, 1) + text("t1") + sized(user_data)
    head = text(group) + struct.pack(">ii", SESSION_MS, SESSION_MS) + text(member) + text("consumer")
    return frame(JOIN, 3, head + array([text("range") + sized(metadata)]))


def sync(group: str, generation: int, member: str, members: Iterable[str] = ()) -> bytes:
    head = text(group) + struct.pack(">i", generation) + text(member)
    return frame(SYNC, 1, head + array([text(name) + sized(SHARE) for name in members]))


def heartbeat(group: str, generation: int, member: str) -> bytes:
    return frame(HEARTBEAT, 1, text(group) + struct.pack(">i", generation) + text(member))


def commit(group: str, topic: str) -> bytes:
    """One partition of a consumer that is no member."""
    partition = struct.pack(">iiq", 1, 0, 42) + text("")
    head = text(group) + struct.pack(">i", -1) + text("")
    return frame(COMMIT, 5, head + struct.pack(">i", 1) + text(topic) + partition)


def error_of(answer: bytes) -> int:
    """Of an answer that begins with a throttle time."""
    code: int = struct.unpack_from(">ih", answer)[1]
    return code


@attrs.frozen
class Joined:
    error: int
    generation: int
    member: str
    leads: bool

    @classmethod
    def read(cls, answer: bytes) -> Joined:
        _, error, generation = struct.unpack_from(">ihi", answer)
        at, words = 10, []
        for _ in range(3):  # protocol, leader, member
            (size,) = struct.unpack_from(">h", answer, at)
            words.append(answer[at + 2 : at + 2 + size].decode())
            at += 2 + size
        (members,) = struct.unpack_from(">i", answer, at)
        return cls(error, generation, words[2], members > 0)


class Group:
    """All its members in one thread. `form` makes it stable, `again` has all of them rejoin and sync."""

    def __init__(self, port: int, size: int, stack: ExitStack, name: str | None = None) -> None:
        self.name = name or group_name()
        self.connections = [stack.enter_context(Connection(port)) for _ in range(size)]
        self._selector = stack.enter_context(selectors.DefaultSelector())
        for index, connection in enumerate(self.connections):
            self._selector.register(connection.socket, selectors.EVENT_READ, index)
        self.members = [""] * size
        self.generation = 0
        self._leader = 0
        self._turn = 0
        self._wait_for_coordinator()

    def form(self, within: float = 60) -> None:
        """Join until everybody is in one generation, then sync."""
        deadline = time.monotonic() + within
        generations = dict.fromkeys(range(len(self.connections)), -1)
        self._send(generations)
        pending = set(generations)
        while pending or len(set(generations.values())) > 1:
            if time.monotonic() > deadline:
                raise TimeoutError(f"group {self.name} does not get stable")
            came = list(self._ready(pending, 0.2))
            for index in came:
                joined = Joined.read(self.connections[index].read())
                pending.discard(index)
                generations[index] = joined.generation
                self.members[index] = joined.member
                if joined.leads:
                    self._leader = index
            newest = max(generations.values())
            # Where nothing comes any more, those who wait do so for those who are answered.
            stuck = bool(pending) and not came
            late = [i for i, formed in generations.items() if i not in pending and (stuck or formed < newest)]
            self._send(late)
            pending.update(late)
        self.generation = newest
        self._sync()

    def again(self) -> float:
        """Milliseconds in which everybody joins again and syncs."""
        self._turn += 1
        frames = [join(self.name, member, self._turn) for member in self.members]
        began = time.perf_counter()
        for connection, request in zip(self.connections, frames, strict=True):
            connection.socket.sendall(request)
        for index, answer in self._answers():
            joined = Joined.read(answer)
            if joined.error:
                raise RuntimeError(f"a member may not join: error {joined.error}")
            self.generation = joined.generation
            if joined.leads:
                self._leader = index
        self._sync()
        return (time.perf_counter() - began) * 1000

    def beat(self) -> float:
        """Milliseconds of one heartbeat of its first member."""
        began = time.perf_counter()
        error_of(self.connections[0].ask(heartbeat(self.name, self.generation, self.members[0])))
        return (time.perf_counter() - began) * 1000

    def _sync(self) -> None:
        everybody = self.members
        leader = self.connections[self._leader].socket
        leader.sendall(sync(self.name, self.generation, everybody[self._leader], everybody))
        for index, connection in enumerate(self.connections):
            if index != self._leader:
                connection.socket.sendall(sync(self.name, self.generation, everybody[index]))
        for _, answer in self._answers():
            if error_of(answer):
                raise RuntimeError(f"a member may not sync: error {error_of(answer)}")

    def _send(self, indexes: Iterable[int]) -> None:
        for index in indexes:
            request = join(self.name, self.members[index], self._turn)
            self.connections[index].socket.sendall(request)

    def _answers(self) -> Iterator[tuple[int, bytes]]:
        left = set(range(len(self.connections)))
        while left:
            ready = list(self._ready(left, 30))
            if not ready:
                raise TimeoutError(f"{len(left)} members are not answered")
            for index in ready:
                left.discard(index)
                yield index, self.connections[index].read()

    def _ready(self, wanted: set[int], within: float) -> Iterator[int]:
        return (key.data for key, _ in self._selector.select(within) if key.data in wanted)

    def _wait_for_coordinator(self) -> None:
        first = self.connections[0]

        def there() -> bool:
            if struct.unpack_from(">h", first.ask(frame(FIND, 0, text(self.name))))[0]:
                return False
            return error_of(first.ask(heartbeat(self.name, 1, "nobody"))) not in COORDINATOR_TROUBLE

        wait_until(there, f"a coordinator of {self.name}")


def rejoin_ms(port: int, size: int, times: int) -> float:
    """The median of many rounds of a stable group; the first third are for warming up."""
    with ExitStack() as stack:
        group = Group(port, size, stack)
        group.form()
        return statistics.median([group.again() for _ in range(times)][times // 3 :])


def commits_a_second(port: int, depth: int, seconds: float) -> float:
    """Offset commits on one connection, so many on their way at any time."""
    topic = group_name()
    with ExitStack() as stack:
        asking = Group(port, 1, stack).connections[0]
        asking.ask(create_topics([topic], 1, {}))
        request = commit(topic, topic)
        wait_until(lambda: asking.ask(request)[-2:] == b"\0\0", "a topic to commit offsets of")
        _commit_for(asking, request, depth, seconds / 4)
        return _commit_for(asking, request, depth, seconds)


def _commit_for(asking: Connection, request: bytes, depth: int, seconds: float) -> float:
    done = 0
    asking.socket.sendall(request * depth)
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        if asking.read()[-2:] != b"\0\0":
            raise RuntimeError("an offset could not be committed")
        done += 1
        asking.socket.sendall(request)
    took = time.perf_counter() - began
    for _ in range(depth):
        asking.read()
    return done / took
