"""Threads for calls that block: one of our own, and one that is lent."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from rafka.env import OneThread
from rafka.env.threads import HAS_EVENTFD, LentThread, OwnThread

needs_eventfd = pytest.mark.skipif(not HAS_EVENTFD, reason="this system has no eventfd")


def lent(name: str) -> OneThread:
    async def runner(fn: Callable[..., Any], *args: Any, limiter: trio.CapacityLimiter | None = None) -> Any:
        return await trio.to_thread.run_sync(fn, *args, limiter=limiter)

    return LentThread(runner)


@pytest.fixture(params=[pytest.param(OwnThread, marks=needs_eventfd), lent])
def thread(request: pytest.FixtureRequest) -> Iterator[OneThread]:
    made: OneThread = request.param("rafka test")
    yield made
    made.close()


def named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


async def test_a_call_runs_elsewhere_and_its_result_comes_back(thread: OneThread) -> None:
    assert await thread.run(threading.get_ident) != threading.get_ident()


async def test_what_a_call_raises_is_raised_and_the_next_one_runs(thread: OneThread) -> None:
    def fail() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        await thread.run(fail)
    assert await thread.run(lambda: 5) == 5


async def test_calls_run_one_after_the_other_while_the_loop_goes_on(thread: OneThread) -> None:
    gates = [threading.Event() for _ in range(3)]
    done: list[int] = []

    async def call(number: int) -> None:
        await thread.run(gates[number].wait)
        done.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, 0)
        await wait_all_tasks_blocked()
        for number in (1, 2):
            gates[number].set()  # but the first one keeps them waiting
            nursery.start_soon(call, number)
        await wait_all_tasks_blocked()
        assert done == []
        gates[0].set()

    assert done[0] == 0
    assert sorted(done) == [0, 1, 2]


async def test_who_is_cancelled_waits_for_the_end_of_the_call(thread: OneThread) -> None:
    gate = threading.Event()
    ended = False

    def work() -> None:
        nonlocal ended
        gate.wait()
        ended = True

    async with trio.open_nursery() as nursery:
        nursery.start_soon(thread.run, work)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
        gate.set()

    assert ended


@needs_eventfd
async def test_a_thread_of_ones_own_ends_when_it_is_closed_and_another_may_begin() -> None:
    thread = OwnThread("rafka closing")
    assert not named("rafka closing"), "it begins with the first call"
    await thread.run(lambda: None)
    (first,) = named("rafka closing")

    thread.close()
    thread.close()

    await trio.to_thread.run_sync(first.join)
    assert await thread.run(threading.current_thread) is not first
    thread.close()


@needs_eventfd
async def test_a_signal_that_lands_on_a_thread_of_ones_own_does_it_no_harm() -> None:
    """The kernel chooses any thread that takes it, and the one that sleeps is as good as another."""
    thread = OwnThread("rafka signalled")
    await thread.run(lambda: None)
    (ours,) = named("rafka signalled")
    assert ours.ident is not None

    with trio.open_signal_receiver(signal.SIGUSR1) as came:
        signal.pthread_kill(ours.ident, signal.SIGUSR1)
        assert await came.__anext__() == signal.SIGUSR1
        assert await thread.run(threading.current_thread) is ours

    thread.close()


@needs_eventfd
async def test_a_thread_that_has_ended_by_itself_is_not_waited_for() -> None:
    """Nothing is known that could end it; but who asks it is shielded, and would wait for ever."""
    thread = OwnThread("rafka ended")
    await thread.run(lambda: None)
    (ours,) = named("rafka ended")
    end_by_itself(ours)

    for _ in range(2):
        with pytest.raises(RuntimeError, match="the thread 'rafka ended' has ended"):
            await thread.run(lambda: None)
    thread.close()


def end_by_itself(thread: threading.Thread) -> None:
    """It comes to it when it next does anything."""
    raised = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
    )
    assert raised == 1


@needs_eventfd
async def test_a_thread_that_is_closed_while_a_call_runs_ends_after_it() -> None:
    thread, gate = OwnThread("rafka busy"), threading.Event()
    results: list[bool] = []

    async def call() -> None:
        results.append(await thread.run(gate.wait))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await wait_all_tasks_blocked()
        (ours,) = named("rafka busy")
        thread.close()
        gate.set()

    assert results == [True]
    await trio.to_thread.run_sync(ours.join)
