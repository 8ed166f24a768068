"""Members outlive what passes, give up what they lost, and say what is for good."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from rafka.client import BrokerRefused, GroupSettings
from rafka.errors import ErrorCode

from .group_broker import GroupBroker
from .group_kit import ONE, TWO, Diary, broker_with_records, fill, member, read, read_on, until
from .scripted import Network


@pytest.fixture
def broker() -> GroupBroker:
    return broker_with_records()


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
    with pytest.raises(ValueError, match="no such assignor: 'fair'"):
        GroupSettings(group_id="g", topics=["t"], assignors=["fair"])
    with pytest.raises(ValueError, match="needs a name"):
        GroupSettings(group_id="", topics=["t"])
