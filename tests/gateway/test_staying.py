"""Between requests that come one by one the gateway stays awake, and nobody else waits longer for it."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import pytest
import trio

from rafka.gateway.inside_trio import Inside, look_inside
from rafka.gateway.readiness import HAS_EPOLL, IN_A_ROW, LOOKS, ROUNDS, STAY_MS, Readiness, Staying

pytestmark = pytest.mark.skipif(not HAS_EPOLL, reason="plain sockets need epoll")


@attrs.define(eq=False)
class Sleeps(trio.abc.Instrument):
    """How often Trio's loop went to sleep, or looked whether it may."""

    count: int = 0

    def before_io_wait(self, timeout: float) -> None:
        self.count += 1


@attrs.define(eq=False)
class Chatter:
    """A client that sends one byte more as soon as it is served, so many times."""

    readiness: Readiness
    ours: socket.socket
    theirs: socket.socket
    left: int = 0
    served: int = 0
    done: trio.Event = attrs.Factory(trio.Event)
    meanwhile: Callable[[int], object] = lambda served: None

    def begin(self, times: int) -> None:
        self.left = times
        self.readiness.register(self.ours.fileno(), self.on_edge)
        self.theirs.send(b"x")

    def on_edge(self, gone: bool) -> None:
        self.ours.recv(10)
        self.served += 1
        self.left -= 1
        self.meanwhile(self.served)
        if self.left > 0:
            self.theirs.send(b"x")
        else:
            self.done.set()


@contextmanager
def lively(ours: socket.socket, theirs: socket.socket, serve: Callable[[], bool]) -> Iterator[Staying]:
    """Somebody was served just now, and there is more from them."""
    with select.epoll() as epoll:
        epoll.register(ours.fileno(), select.EPOLLIN)
        theirs.send(b"x")
        staying = Staying(Inside(epoll.fileno(), ()), serve)
        staying.on_served()
        staying.on_served()
        yield staying


@pytest.fixture
def chatter(readiness: Readiness) -> Iterator[Chatter]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield Chatter(readiness, ours, theirs)
        readiness.unregister(ours.fileno())


async def test_there_is_something_to_see_inside_of_the_trio_that_we_run_on() -> None:
    """Else all is well but slower, and somebody should look where Trio keeps it now."""
    inside = look_inside()

    assert inside is not None
    assert len(inside.runnable) == 0
    trio.lowlevel.spawn_system_task(trio.lowlevel.checkpoint)
    assert len(inside.runnable) == 1


async def test_requests_that_come_soon_after_each_other_hardly_wake_trio(chatter: Chatter) -> None:
    sleeps = Sleeps()
    trio.lowlevel.add_instrument(sleeps)

    chatter.begin(800)
    await chatter.done.wait()

    trio.lowlevel.remove_instrument(sleeps)
    assert sleeps.count < 2 * 800 / (ROUNDS * IN_A_ROW) + 10


async def test_without_a_look_inside_they_are_served_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rafka.gateway.readiness.look_inside", lambda: None)
    readiness = Readiness()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        chatter = Chatter(readiness, ours, theirs)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(readiness.run)
            chatter.begin(100)
            await chatter.done.wait()
            nursery.cancel_scope.cancel()
        readiness.unregister(ours.fileno())
    readiness.close()

    assert chatter.served == 100


async def test_a_task_that_can_run_has_its_turn(chatter: Chatter) -> None:
    called = trio.Event()
    ran_at = -1

    async def waiting() -> None:
        nonlocal ran_at
        await called.wait()
        ran_at = chatter.served

    chatter.meanwhile = lambda served: called.set() if served == 400 else None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(waiting)
        chatter.begin(800)

    assert 400 <= ran_at <= 400 + 2 * ROUNDS


async def test_what_trio_waits_for_is_seen(chatter: Chatter) -> None:
    reading, writing = os.pipe()
    seen_at = -1

    async def watch() -> None:
        nonlocal seen_at
        await trio.lowlevel.wait_readable(reading)
        seen_at = chatter.served

    chatter.meanwhile = lambda served: os.write(writing, b"x") if served == 400 else None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        chatter.begin(800)
    os.close(reading)
    os.close(writing)

    assert 400 <= seen_at <= 400 + 2 * ROUNDS * (IN_A_ROW + 1)


@pytest.mark.parametrize(("sleeps_for", "served"), [(0.0, 0), (STAY_MS / 2000, 0), (1.0, IN_A_ROW)])
async def test_whoever_sleeps_shortly_is_not_kept_waiting(sleeps_for: float, served: int) -> None:
    calls = []

    def serve() -> bool:
        calls.append(trio.current_time())
        return True

    ours, theirs = socket.socketpair()
    with ours, theirs, lively(ours, theirs, serve) as staying:
        staying.before_io_wait(sleeps_for)

    assert len(calls) == served


async def test_where_requests_are_rare_nobody_stays_for_them() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, select.epoll() as epoll:
        epoll.register(ours.fileno(), select.EPOLLIN)
        theirs.send(b"x")
        staying = Staying(Inside(epoll.fileno(), ()), lambda: pytest.fail("we stayed"))
        staying.on_served()

        staying.before_io_wait(60)


@pytest.mark.parametrize(("cpus", "looks"), [(2, 3), (1, 0)])
async def test_who_comes_at_once_is_looked_out_for_before_we_sleep(
    monkeypatch: pytest.MonkeyPatch, cpus: int, looks: int
) -> None:
    monkeypatch.setattr("rafka.gateway.readiness.cpus", lambda: cpus)
    ours, theirs = socket.socketpair()
    calls: list[int] = []

    def serve() -> bool:
        calls.append(len(calls))
        if len(calls) == 1:
            ours.recv(1)  # from now on there is nothing to wake us
        return len(calls) in (1, 4)

    with ours, theirs, lively(ours, theirs, serve) as staying:
        staying.before_io_wait(60)

    assert len(calls) == 1 + looks + (LOOKS if looks else 0)
