"""Members share partitions, hand them over in good order, and read each record at least once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.client import (
    Beginning,
    BrokerRefused,
    ClientError,
    GroupConsumer,
    RebalanceListener,
    TopicPartition,
    connect,
)
from rafka.client.assignors.encoding import read_sticky_memory
from rafka.errors import ErrorCode
from rafka.records.build import build
from rafka.records.record import Record

from .group_broker import GroupBroker
from .scripted import Network

ONE = TopicPartition("orders", 0)
TWO = TopicPartition("orders", 1)
COOPERATIVE = {"assignors": ["cooperative-sticky"]}


@pytest.fixture
def broker() -> GroupBroker:
    broker = GroupBroker(topics={"orders": 2})
    for partition in (0, 1):
        fill(broker, partition)
    return broker


def fill(broker: GroupBroker, partition: int, count: int = 3) -> None:
    """Records in a batch each, so that each is a chunk of its own."""
    for number in range(count):
        broker.logs["orders", partition].append(build([Record(0, number, None, b"%d" % number)]))


class Diary(RebalanceListener):
    """Writes down what it is told, and when."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []

    def _note(self, what: str, targets: Iterable[TopicPartition]) -> None:
        self.entries.append((what, sorted(partition for _, partition in targets)))

    async def on_assigned(self, targets: frozenset[TopicPartition]) -> None:
        self._note("+", targets)

    async def on_revoked(self, targets: frozenset[TopicPartition]) -> None:
        self._note("-", targets)

    async def on_lost(self, targets: frozenset[TopicPartition]) -> None:
        self._note("lost", targets)


@asynccontextmanager
async def member(network: Network, **settings: Any) -> AsyncIterator[GroupConsumer]:
    defaults: dict[str, Any] = {"start": Beginning(), "heartbeat_interval": 1.0}
    topics = settings.pop("topics", ["orders"])
    async with (
        connect("broker", dial=network.dial) as client,
        client.group_consumer("billing", topics, **(defaults | settings)) as consumer,
    ):
        yield consumer


async def read(consumer: GroupConsumer, count: int) -> list[tuple[int, int]]:
    found = []
    async for record in consumer:
        found.append((record.partition, record.offset))
        if len(found) == count:
            break
    return found


async def read_on(consumer: GroupConsumer, found: list[tuple[int, int]]) -> None:
    async for record in consumer:
        found.append((record.partition, record.offset))


async def until(condition: Any) -> None:
    """Wait for it, in the clock's own steps."""
    with trio.fail_after(60):
        while not condition():  # noqa: ASYNC110  nobody tells when it comes true
            await trio.sleep(0.05)


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


# --- when it does not go well -------------------------------------------------------------------------


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
async def test_a_member_that_was_given_up_loses_its_partitions_and_comes_again(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, nursery: trio.Nursery, code: ErrorCode
) -> None:
    diary = Diary()

    async with member(network, listener=diary, auto_commit_interval=100) as consumer:
        nursery.start_soon(read_on, consumer, [])
        await until(lambda: consumer.assignment)
        broker.plant("Heartbeat", code)
        broker.remove("m1")
        await until(lambda: consumer.member_id == "m2" and consumer.assignment)

        assert diary.entries == [("+", [0, 1]), ("lost", [0, 1]), ("+", [0, 1])]
        assert broker.commits == []
        nursery.cancel_scope.cancel()


async def test_a_member_that_is_none_cannot_commit(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    """Without its member id the commit would pass for one from outside, and overwrite others'."""
    async with member(network, auto_commit=False) as consumer:
        await read(consumer, 1)
        broker.plant("JoinGroup", *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 9)
        broker.remove("m1")
        await until(lambda: not consumer.member_id)

        with pytest.raises(BrokerRefused, match="UNKNOWN_MEMBER_ID: it has to be joined again first"):
            await consumer.commit()
    assert broker.offsets == {}


async def test_a_member_whose_place_was_taken_stops(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    async with member(network, instance_id="pod-1") as consumer:
        await read(consumer, 6)
        broker.plant("Heartbeat", ErrorCode.FENCED_INSTANCE_ID)
        with pytest.raises(BrokerRefused, match="FENCED_INSTANCE_ID"):
            await read(consumer, 1)
        with pytest.raises(BrokerRefused, match="FENCED_INSTANCE_ID"):
            await read(consumer, 1)

    assert broker.generation == 1


async def test_a_static_member_does_not_say_goodbye(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    async with member(network, instance_id="pod-1") as consumer:
        await read(consumer, 6)

    assert [*broker.seats] == ["pod-1-1"]
    assert broker.offsets == {ONE: 3, TWO: 3}


@pytest.mark.parametrize("api", ["FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch"])
async def test_a_coordinator_that_is_still_loading_is_asked_again(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, api: str
) -> None:
    broker.plant(api, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)

    async with member(network) as consumer:
        assert len(await read(consumer, 6)) == 6


@pytest.mark.parametrize("api", ["FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch", "Heartbeat"])
async def test_a_connection_that_breaks_costs_no_record(
    network: Network, autojump_clock: MockClock, broker: GroupBroker, api: str
) -> None:
    async with member(network) as consumer:
        broker.close_on.append(api)
        found = await read(consumer, 6)
        await trio.sleep(5)
        fill(broker, 0, 1)
        found += await read(consumer, 1)

    assert sorted(found) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]
    assert broker.close_on == []


async def test_a_coordinator_that_is_away_for_a_while_finds_its_members_back(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    diary = Diary()

    async with member(network, listener=diary) as consumer:
        await read(consumer, 6)
        broker.plant("Heartbeat", *[ErrorCode.NOT_COORDINATOR] * 10)
        with trio.move_on_after(15):
            await read(consumer, 1)

        assert diary.entries == [("+", [0, 1])]
        assert broker.generation == 1


async def test_a_join_that_is_refused_for_good_is_told_to_the_reader(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.plant("JoinGroup", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)

    async with member(network) as consumer:
        with pytest.raises(BrokerRefused, match="INCONSISTENT_GROUP_PROTOCOL"):
            await read(consumer, 1)


async def test_a_coordinator_that_stays_away_is_told_now_and_again(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    broker.plant("JoinGroup", *[ErrorCode.COORDINATOR_NOT_AVAILABLE] * 60)

    async with member(network) as consumer:
        with pytest.raises(BrokerRefused, match="COORDINATOR_NOT_AVAILABLE"):
            await read(consumer, 1)
        assert 30 < trio.current_time() < 35
        assert len(await read(consumer, 6)) == 6


async def test_a_reader_that_stays_away_too_long_makes_room_for_others(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    diary = Diary()

    async with member(network, listener=diary, rebalance_timeout=30) as consumer:
        await read(consumer, 2)
        await trio.sleep(40)
        assert broker.seats == {}

        await read(consumer, 1)
        assert diary.entries == [("+", [0, 1]), ("lost", [0, 1]), ("+", [0, 1])]


async def test_leaving_does_not_wait_long_for_a_coordinator_that_does_not_answer(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    async with member(network, close_timeout=2) as consumer:
        await read(consumer, 6)
        broker.swallow += ["OffsetCommit", "LeaveGroup"]
        began = trio.current_time()

    assert trio.current_time() - began == pytest.approx(2)


async def test_a_member_that_is_cancelled_still_leaves(
    network: Network, autojump_clock: MockClock, broker: GroupBroker
) -> None:
    with trio.move_on_after(10):
        async with member(network) as consumer:
            await read_on(consumer, [])

    await wait_all_tasks_blocked()
    assert broker.seats == {}
    assert broker.offsets == {ONE: 3, TWO: 3}


def test_settings_that_make_no_sense_are_refused() -> None:
    from rafka.client import GroupSettings

    with pytest.raises(ValueError, match="no such assignor: 'fair'"):
        GroupSettings(group_id="g", topics=["t"], assignors=["fair"])
    with pytest.raises(ValueError, match="needs a name"):
        GroupSettings(group_id="", topics=["t"])
