"""Members, or their broker, end between two heartbeats: others take over, and a static one is waited for."""

from __future__ import annotations

import pytest

from tests.brokers import EXTERNAL, Broker, RafkaProcess

from .conftest import CHOSEN, client_called
from .members.diary import Did
from .members.group import Company
from .members.load import Load
from .members.rebalances import rebalances

PARTITIONS = 6
SESSION = 6.0  # seconds: the shortest that a broker grants as it is delivered
EVERYONE = [*CHOSEN, "rafka"]


def topic_on(broker: Broker, name: str, partitions: int = PARTITIONS) -> str:
    with client_called("kafka").admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=partitions)
    return name


def test_partitions_of_a_killed_member_are_taken_over_when_its_session_ends(
    broker: Broker, name: str
) -> None:
    topic = topic_on(broker, name)
    company = Company(broker.bootstrap, f"of {topic}", topic, session_timeout=SESSION)
    with company, Load(broker.bootstrap, topic, PARTITIONS) as load:
        victims = [company.join_apart(library) for library in EVERYONE[:2]]
        for library in EVERYONE:
            company.join(library)
        company.until_shared(PARTITIONS)

        last = max(victim.kill() for victim in victims)
        company.until_shared(PARTITIONS, within=SESSION + 1)

        written = load.stop()
        company.until_read(written)
        company.leave()

    company.diary.check()
    assert min(one.at for one in company.diary.entries(Did.REVOKED) if one.at > last) > last + SESSION - 1
    assert company.diary.values() == written


@pytest.mark.parametrize("ending", ["a kind stop", "kill -9"])
@pytest.mark.parametrize(
    "kinds",
    [pytest.param(EVERYONE, id="all together")]
    + [pytest.param([one] * 3, id=f"three of {one}", marks=pytest.mark.slow) for one in EVERYONE],
)
def test_a_group_goes_on_when_its_broker_is_back(
    own_broker: RafkaProcess, name: str, kinds: list[str], ending: str
) -> None:
    """Members and offsets are the journal's: nobody joins again, nothing is read from the beginning."""
    topic = topic_on(own_broker, name)
    company = Company(own_broker.bootstrap, f"of {topic}", topic, session_timeout=20.0)
    with company, Load(own_broker.bootstrap, topic, PARTITIONS) as load:
        for kind in kinds:
            company.join(kind)
        company.until_shared(PARTITIONS)
        before = rebalances(own_broker.bootstrap, company.plan.group)[-1].generation_id
        shares = company.diary.shares()

        if ending == "kill -9":
            own_broker.kill()
            own_broker.start()
        else:
            own_broker.restart()

        company.until_read(load.stop())
        assert company.diary.shares() == shares
        since = rebalances(own_broker.bootstrap, company.plan.group)
        assert [one for one in since if one.generation_id > before] == []
        company.leave()
        with Load(own_broker.bootstrap, topic, PARTITIONS) as more:
            company.join(kinds[0])
            company.until_shared(PARTITIONS)
            company.until_read(more.stop())
            company.leave()

    company.diary.check()
    company.diary.check_order()
    assert company.diary.read_again() == []


@pytest.mark.parametrize("library", EVERYONE)
def test_static_members_restart_one_after_the_other_without_a_rebalance(
    broker: Broker, name: str, library: str
) -> None:
    topic = topic_on(broker, name)
    company = Company(broker.bootstrap, f"of {topic}", topic, session_timeout=30.0)
    with company, Load(broker.bootstrap, topic, PARTITIONS) as load:
        pods = [f"pod-{number}" for number in range(5)]
        for pod in pods:
            company.join(library, instance_id=pod)
        company.until_shared(PARTITIONS)
        shares = company.diary.shares()
        assigned = {one.name: company.diary.times(Did.ASSIGNED, one.name) for one in company.members}
        formed = [] if EXTERNAL else rebalances(broker.bootstrap, company.plan.group)

        for pod, elder in zip(pods, company.members, strict=True):
            elder.leave()
            successor = company.join(library, instance_id=pod)
            company.until_shared(PARTITIONS)
            assert company.diary.shares()[successor.name] == shares[elder.name]

        company.until_read(load.stop())
        again = [] if EXTERNAL else rebalances(broker.bootstrap, company.plan.group)

    company.diary.check()
    assert [one.generation_id for one in again] == [one.generation_id for one in formed]
    for name, times in assigned.items():
        assert company.diary.times(Did.ASSIGNED, name) == times
