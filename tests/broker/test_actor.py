"""What actors have in common: an inbox that is never too full, and waiters that are answered once."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.broker.actor import KEPT, ROUND_SIZE, Inbox, answer_all

# --- waiters -----------------------------------------------------------------------------------


async def test_a_task_that_waits_is_woken_by_the_answer() -> None:
    waiter = Inbox[str](1).waiter()
    answers = []

    async def wait() -> None:
        answers.append(await waiter.wait())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        answer_all([(waiter, "yes")])

    assert answers == ["yes"]


async def test_an_answer_that_is_there_is_not_waited_for() -> None:
    waiter = Inbox[str](1).waiter()
    assert not waiter.ready()

    waiter.put("yes")

    assert waiter.ready()
    assert await waiter.wait() == "yes"


async def test_a_bell_rings_when_all_answers_of_the_round_are_there() -> None:
    inbox = Inbox[str](2)
    first, second = inbox.waiter(), inbox.waiter()
    taken: list[str] = []

    def bell() -> None:
        if not taken:
            taken.extend((first.take(), second.take()))

    assert first.ring(bell)
    assert second.ring(bell)
    answer_all([(first, "one"), (second, "two")])

    assert taken == ["one", "two"]


async def test_a_channel_serves_again_and_a_second_answer_reaches_nobody() -> None:
    inbox = Inbox[str](2)
    old = inbox.waiter()
    old.put("mine")
    assert old.take() == "mine"

    new = inbox.waiter()
    old.put("too late")
    old.tell()

    assert new._channel is old._channel
    assert not new.ready()
    new.put("yours")
    assert new.take() == "yours"


async def test_the_channel_of_whoever_gave_up_waiting_serves_nobody_else() -> None:
    """It may be answered yet."""
    inbox = Inbox[str](2)
    gone = inbox.waiter()
    with trio.move_on_after(0):
        await gone.wait()

    new = inbox.waiter()
    gone.put("too late")

    assert new._channel is not gone._channel
    assert not new.ready()


async def test_whoever_has_gone_is_not_rung_and_not_missed() -> None:
    waiter = Inbox[str](1).waiter()
    waiter.ring(lambda: pytest.fail("it has gone"))
    waiter.forget()

    answer_all([(waiter, "too late")])


async def test_no_more_channels_are_kept_than_may_be() -> None:
    inbox = Inbox[str](1)
    waiters = [inbox.waiter() for _ in range(KEPT + 10)]
    for waiter in waiters:
        waiter.put(None)
        waiter.take()

    assert len(inbox._kept) == KEPT


# --- the inbox ------------------------------------------------------------------------------------


async def test_letters_come_out_as_they_came_in_a_round_at_a_time() -> None:
    inbox = Inbox[int](2 * ROUND_SIZE)
    for n in range(ROUND_SIZE + 5):
        assert inbox.offer(n)

    assert await inbox.drain() == list(range(ROUND_SIZE))
    assert await inbox.drain() == list(range(ROUND_SIZE, ROUND_SIZE + 5))


async def test_whoever_empties_it_sleeps_until_there_is_a_letter_a_poke_or_a_deadline(
    autojump_clock: MockClock,
) -> None:
    inbox = Inbox[str](1)
    rounds = []

    async def drain() -> None:
        for until in (100, 200, 10):
            rounds.append((await inbox.drain(until), trio.current_time()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain)
        await trio.sleep(1)
        inbox.offer("a letter")
        await trio.sleep(1)
        inbox.poke()

    assert rounds == [(["a letter"], 1), ([], 2), ([], 10)]


async def test_a_poke_before_it_is_looked_at_counts() -> None:
    inbox = Inbox[str](1)
    inbox.poke()

    assert await inbox.drain() == []


async def test_where_it_is_full_places_are_given_in_the_order_of_coming() -> None:
    inbox = Inbox[int](2)
    places = [inbox.post(n, inbox.waiter(), overlaps=True) for n in range(5)]
    assert [place.overlaps for place in places] == [True, True, False, False, False]
    rounds = []

    async with trio.open_nursery() as nursery:
        for place in places[2:]:
            nursery.start_soon(place.wait)
            await wait_all_tasks_blocked()
        assert inbox.crowd == 3
        assert not inbox.offer(99)
        for _ in range(3):
            rounds.append(await inbox.drain())
        nursery.cancel_scope.cancel()

    assert rounds == [[0, 1], [2, 3], [4]]
    assert inbox.offer(5)


async def test_a_letter_has_its_place_in_the_order_from_when_it_is_posted() -> None:
    """Whether or not anybody waits for its answer yet, or any more."""
    inbox = Inbox[int](1)
    _, second, third = (inbox.post(n, inbox.waiter()) for n in range(3))
    with trio.move_on_after(0):
        await third.wait()

    rounds = [await inbox.drain() for _ in range(3)]

    assert rounds == [[0], [1], [2]]
    assert inbox.crowd == 0
    assert not second.ready()
