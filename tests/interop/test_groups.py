"""Members of a group come and go while records are written: nothing is lost, nothing has two owners.

Each client plays alone with each of its ways to share, then all of them in one group.
"""

from __future__ import annotations

import contextlib
import itertools

import pytest

from tests.brokers import Broker

from .conftest import CHOSEN, client_called
from .members.diary import Plan
from .members.group import Company, member_of
from .members.load import Load
from .vocabulary import CannotAsk

PARTITIONS = 6
ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]
SEEN_BELOW = ("roundrobin", "sticky")  # shared alike among different libraries


@pytest.fixture(params=[*CHOSEN, "rafka"])
def library(request: pytest.FixtureRequest) -> str:
    library: str = request.param
    return library


@pytest.fixture
def shared_topic(broker: Broker, name: str) -> str:
    with client_called("kafka").admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=PARTITIONS)
    return name


@pytest.mark.parametrize(
    "assignor",
    [pytest.param(one, marks=[pytest.mark.slow] * (one in SEEN_BELOW)) for one in ASSIGNORS],
)
def test_members_come_and_go_under_load(
    broker: Broker, shared_topic: str, library: str, assignor: str
) -> None:
    company = Company(broker.bootstrap, f"of {shared_topic}", shared_topic, assignor=assignor)
    with company, Load(broker.bootstrap, shared_topic, PARTITIONS) as load:
        first = company.join(library)
        company.until_shared(PARTITIONS)
        company.join(library)
        company.join(library)
        company.until_shared(PARTITIONS)
        first.leave()
        company.until_shared(PARTITIONS)
        written = load.stop()
        company.until_read(written)
        company.leave()

    company.diary.check()
    company.diary.check_order()
    assert company.diary.values() == written
    assert company.diary.read_again() == []  # whoever leaves, or gives up, commits first


def libraries(assignor: str) -> list[str]:
    """Those that can share by this assignor, in the versions that are here."""
    plan = Plan(name="", bootstrap="", group="", topic="", assignor=assignor)
    found = []
    for library in [*CHOSEN, "rafka"]:
        with contextlib.suppress(CannotAsk):
            member_of(library, plan)
            found.append(library)
    return found


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_members_of_different_libraries_share_one_group(
    broker: Broker, shared_topic: str, assignor: str
) -> None:
    """The eldest shares out for all; the eldest leave one after the other, so that everybody leads once."""
    company = Company(broker.bootstrap, f"of {shared_topic}", shared_topic, assignor=assignor)
    with company, Load(broker.bootstrap, shared_topic, PARTITIONS) as load:
        for library in libraries(assignor):
            company.join(library)
        company.until_shared(PARTITIONS)
        for eldest in company.members[:-1]:
            eldest.leave()
            company.until_shared(PARTITIONS)
        written = load.stop()
        company.until_read(written)
        company.leave()

    company.diary.check()
    company.diary.check_order()
    assert company.diary.values() == written


def test_ten_members_come_in_crowds_and_leave_in_crowds(broker: Broker, shared_topic: str) -> None:
    """Of all libraries: one, four, ten, and fewer and fewer again."""
    partitions = 12
    topic = f"{shared_topic}-wide"
    with client_called("kafka").admin(broker.bootstrap) as admin:
        admin.create_topic(topic, partitions=partitions)
    kinds = itertools.cycle(libraries("range"))

    company = Company(broker.bootstrap, f"of {topic}", topic)
    with company, Load(broker.bootstrap, topic, partitions) as load:
        for crowd in (1, 3, 6):
            for _ in range(crowd):
                company.join(next(kinds))
            company.until_shared(partitions)
        for crowd in (2, 4):
            leaving = company.members[:crowd]
            for member in leaving:
                member.ask_to_leave()
            company.join(next(kinds))
            for member in leaving:
                member.leave()
            company.until_shared(partitions)
        for member in company.members[1:]:
            member.leave()
        company.until_shared(partitions)
        written = load.stop()
        company.until_read(written)
        company.leave()

    company.diary.check()
    company.diary.check_order()
    assert company.diary.values() == written


def test_what_a_group_has_read_no_later_member_reads_again(
    broker: Broker, shared_topic: str, library: str
) -> None:
    """The group is left by one library and entered by another: offsets are the group's."""
    everyone = libraries("range")
    later = everyone[(everyone.index(library) + 1) % len(everyone)]
    with Company(broker.bootstrap, f"of {shared_topic}", shared_topic) as company:
        for turn in (library, later):
            with Load(broker.bootstrap, shared_topic, PARTITIONS) as load:
                company.join(turn)
                company.until_shared(PARTITIONS)
                company.until_read(load.stop())
                company.leave()

    company.diary.check()
    assert company.diary.read_again() == []
