"""Members share partitions, hand them over in good order, and read each record at least once."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from rafka.client import ClientError, RebalanceListener, TopicPartition
from rafka.client.assignors.encoding import read_sticky_memory

from .group_broker import GroupBroker
from .group_kit import COOPERATIVE, ONE, TWO, Diary, broker_with_records, fill, member, read, read_on, until
from .scripted import Network


@pytest.fixture
def broker() -> GroupBroker:
    return broker_with_records()


# --- alone ---------------------------------------------------------------------------------


async def test_a_lone_member_reads_everything_and_commits_as_it_leaves(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    async with member(network) as consumer:
        found = await read(consumer, 6)
        assert consumer.assignment == {ONE, TWO}
        assert (consumer.member_id, consumer.generation) == ("m1", 1)

    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert broker.offsets == {ONE: 3, TWO: 3}
    assert broker.seats == {}


async def test_reading_goes_on_where_the_group_stands(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.offsets = {ONE: 2, TWO: 3}

    async with member(network) as consumer:
        assert await read(consumer, 1) == [(0, 2)]


async def test_a_group_without_an_offset_needs_to_be_told_where_to_start(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    async with member(network, start=None) as consumer:
        with pytest.raises(ClientError, match="'billing' has no offset of orders-0: say where to start"):
            await read(consumer, 1)


async def test_offsets_are_committed_at_intervals_but_for_what_is_in_hand(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.offsets = {TWO: 3}

    async with member(network, auto_commit_interval=5) as consumer:
        await read(consumer, 2)
        await trio.sleep(6)

        assert broker.commits == [{ONE: 1}]


async def test_what_was_in_hand_when_it_went_wrong_is_read_again(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.offsets = {TWO: 3}

    async def fail_at_the_second() -> None:
        async with member(network) as consumer:
            async for record in consumer:
                1 / (record.offset - 1)

    with pytest.raises(ZeroDivisionError):
        await fail_at_the_second()

    assert broker.offsets[ONE] == 1


async def test_nothing_is_committed_unasked_where_that_is_wished(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    async with member(network, auto_commit=False) as consumer:
        await read(consumer, 6)
        await consumer.commit({ONE: 2})
        await trio.sleep(20)

    assert broker.commits == [{ONE: 2}]


async def test_a_commit_by_hand_includes_the_last_record(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.offsets = {TWO: 3}

    async with member(network, auto_commit=False) as consumer:
        await read(consumer, 2)
        await consumer.commit()

        assert broker.offsets == {ONE: 2, TWO: 3}
        assert (await consumer.committed([ONE]))[ONE].offset == 2


async def test_a_reader_that_gives_up_waiting_stays_a_member(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.offsets = {ONE: 3, TWO: 3}

    async with member(network) as consumer:
        for _ in range(20):
            with trio.move_on_after(0.7):
                await consumer.next_chunk()
        fill(broker, 0, 1)
        assert await read(consumer, 1) == [(0, 3)]

        assert broker.generation == 1


# --- together ------------------------------------------------------------------------------------


async def test_eager_members_give_up_everything_and_share_anew(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    diary = Diary()
    found: list[tuple[int, int]] = []

    async with member(network, listener=diary) as first:
        nursery.start_soon(read_on, first, found)
        await until(lambda: len(found) == 6)
        async with member(network) as second:
            await until(lambda: second.assignment)

            assert first.assignment | second.assignment == {ONE, TWO}
            assert diary.entries == [("+", [0, 1]), ("-", [0, 1]), ("+", [0])]
            fill(broker, 1, 1)
            assert await read(second, 1) == [(1, 3)]
        await until(lambda: len(first.assignment) == 2)
        nursery.cancel_scope.cancel()

    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


async def test_nothing_is_taken_from_a_reader_who_is_at_work(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    diary = Diary()

    async with member(network, listener=diary) as first:
        [in_hand] = await read(first, 1)
        async with member(network) as second:
            await trio.sleep(30)
            assert first.assignment == {ONE, TWO}
            assert diary.entries == [("+", [0, 1])]
            assert not second.assignment

            nursery.start_soon(read_on, first, [])
            await until(lambda: second.assignment)
            nursery.cancel_scope.cancel()

    assert diary.entries[1] == ("-", [0, 1])
    assert broker.commits[0] == {ONE: int(in_hand[0] == 0), TWO: int(in_hand[0] == 1)}


async def test_cooperative_members_give_up_only_what_moves(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    diary = Diary()

    async with member(network, listener=diary, **COOPERATIVE) as first:
        nursery.start_soon(read_on, first, [])
        await until(lambda: first.assignment)
        async with member(network, **COOPERATIVE) as second:
            await until(lambda: second.assignment)

            assert diary.entries[:3] == [("+", [0, 1]), ("-", [1]), ("+", [])]
            assert first.assignment == {ONE}
            assert second.assignment == {TWO}
            assert broker.offsets[TWO] == 3
            assert broker.told("m1").owned == (ONE,)
        nursery.cancel_scope.cancel()


async def test_cooperative_readers_go_on_while_the_group_waits_for_others(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    found: list[tuple[int, int]] = []

    async with member(network, **COOPERATIVE) as first, trio.open_nursery() as nursery:
        nursery.start_soon(read_on, first, found)
        await until(lambda: len(found) == 6)
        broker.seats["slow"] = broker.seats["m1"].__class__({"cooperative-sticky": b""})
        broker._rebalance()
        await until(lambda: broker.seats["m1"].joined)
        fill(broker, 0, 2)
        await until(lambda: len(found) == 8)

        assert broker.generation == 1
        nursery.cancel_scope.cancel()


async def test_sticky_members_tell_the_leader_what_they_had(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    async with member(network, assignors=["sticky"]) as first:
        nursery.start_soon(read_on, first, [])
        await until(lambda: first.assignment)
        async with member(network, assignors=["sticky"]) as second:
            await until(lambda: second.assignment)

            told = broker.told("m1")
            assert told.owned == ()
            assert read_sticky_memory(told.user_data) == ((ONE, TWO), 1)
            assert first.assignment == {ONE}
            assert second.assignment == {TWO}
        nursery.cancel_scope.cancel()


async def test_the_leader_shares_again_when_a_topic_grows(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    async with member(network) as consumer:
        nursery.start_soon(read_on, consumer, [])
        await until(lambda: consumer.assignment)
        broker.topics["orders"] = 3
        await trio.sleep(301)  # the age at which metadata is asked anew

        assert len(consumer.assignment) == 3
        nursery.cancel_scope.cancel()


async def test_a_topic_that_comes_later_is_read_soon_after(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    async with member(network, topics=["later"]) as consumer:
        nursery.start_soon(read_on, consumer, [])
        await trio.sleep(5)
        broker.topics["later"] = 1
        await trio.sleep(5)

        assert consumer.assignment == {TopicPartition("later", 0)}
        nursery.cancel_scope.cancel()


async def test_a_changed_subscription_is_told_to_the_group(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery
) -> None:
    broker.topics["payments"] = 1
    diary = Diary()

    async with member(network, listener=diary, **COOPERATIVE) as consumer:
        nursery.start_soon(read_on, consumer, [])
        await until(lambda: consumer.assignment)
        consumer.subscribe(["payments"])
        await until(lambda: consumer.assignment == {TopicPartition("payments", 0)})

        assert diary.entries == [("+", [0, 1]), ("-", [0, 1]), ("+", [0])]
        nursery.cancel_scope.cancel()


# --- listeners --------------------------------------------------------------------------------------


async def test_a_listener_may_choose_where_to_begin(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    class ToTheLast(RebalanceListener):
        async def on_assigned(self, targets: frozenset[TopicPartition]) -> None:
            await trio.sleep(3)  # nothing is given out meanwhile
            for target in targets:
                consumer.seek(target, 2)

    async with member(network, listener=ToTheLast()) as consumer:
        assert sorted(await read(consumer, 2)) == [(0, 2), (1, 2)]


async def test_what_a_listener_raises_the_reader_gets(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    class Broken(RebalanceListener):
        async def on_assigned(self, targets: frozenset[TopicPartition]) -> None:
            raise LookupError("where was I")

    async with member(network, listener=Broken()) as consumer:
        with pytest.raises(LookupError, match="where was I"):
            await read(consumer, 1)

    assert broker.seats == {}
