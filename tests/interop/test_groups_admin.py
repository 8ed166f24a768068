"""Administrators look at groups, move them, empty them and delete them, each in the words of its library."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.brokers import EXTERNAL, ROOT, Broker

from .conftest import CHOSEN, client_called
from .members.admin import GroupAdmin, group_admin
from .members.group import Company
from .vocabulary import Refused, numbered

PARTITIONS = 4
RECORDS = 10  # in each partition


@pytest.fixture(params=CHOSEN)
def admin(request: pytest.FixtureRequest, broker: Broker) -> Iterator[GroupAdmin]:
    with group_admin(request.param, broker.bootstrap) as admin:
        yield admin


@pytest.fixture
def company(broker: Broker, name: str) -> Iterator[Company]:
    """Nobody yet, in a group whose topic has records."""
    client = client_called("kafka")
    with client.admin(broker.bootstrap) as admin:
        admin.create_topic(name, partitions=PARTITIONS)
    for partition in range(PARTITIONS):
        client.produce(broker.bootstrap, name, numbered(RECORDS), partition=partition)
    with Company(broker.bootstrap, f"of {name}", name) as company:
        yield company


def read_everything(company: Company, *libraries: str, **changes: Any) -> None:
    for library in libraries:
        company.join(library, **changes)
    company.until_shared(PARTITIONS)
    company.until("all records to be read", lambda: len(company.diary.read_places()) == PARTITIONS * RECORDS)


def test_a_group_is_listed_and_described_while_it_reads(admin: GroupAdmin, company: Company) -> None:
    read_everything(company, "kafka", "rafka")

    described = admin.describe(company.plan.group)

    assert company.plan.group in admin.groups()
    assert described.state == "Stable"
    assert described.assignor == "range"
    assert described.shares == company.diary.shares()
    company.leave()
    assert admin.describe(company.plan.group).state == "Empty"
    assert admin.describe(company.plan.group).shares == {}
    assert admin.offsets(company.plan.group) == dict.fromkeys(range(PARTITIONS), RECORDS)


def test_a_group_is_deleted_once_nobody_is_in_it(admin: GroupAdmin, company: Company) -> None:
    read_everything(company, "kafka")

    with pytest.raises(Refused):
        admin.delete(company.plan.group)
    assert company.plan.group in admin.groups()
    company.leave()
    admin.delete(company.plan.group)

    assert company.plan.group not in admin.groups()
    with pytest.raises(Refused):
        admin.delete(company.plan.group)


def test_a_group_is_moved_while_nobody_is_in_it(admin: GroupAdmin, company: Company) -> None:
    read_everything(company, "kafka")
    company.leave()

    admin.alter_offsets(company.plan.group, company.plan.topic, {0: 7, 1: 9})

    assert admin.offsets(company.plan.group) == {0: 7, 1: 9, 2: RECORDS, 3: RECORDS}
    company.join("kafka")
    company.until("the four records to be read again", lambda: len(company.diary.read_again()) == 4)
    assert set(company.diary.read_again()) == {(0, 7), (0, 8), (0, 9), (1, 9)}


def test_offsets_are_forgotten_once_nobody_reads_the_topic(admin: GroupAdmin, company: Company) -> None:
    read_everything(company, "kafka")

    with pytest.raises(Refused) as refusal:
        admin.delete_offsets(company.plan.group, company.plan.topic, [0])
    assert refusal.value.code == 86  # GROUP_SUBSCRIBED_TO_TOPIC
    company.leave()
    admin.delete_offsets(company.plan.group, company.plan.topic, [0, 2])

    assert admin.offsets(company.plan.group) == {1: RECORDS, 3: RECORDS}


def test_a_static_member_that_will_not_come_back_is_removed(admin: GroupAdmin, company: Company) -> None:
    company.join("kafka", instance_id="pod-0")
    company.join("kafka", instance_id="pod-1")
    company.until_shared(PARTITIONS)
    company.members[0].leave()

    admin.remove_instances(company.plan.group, ["pod-0"])

    company.until_shared(PARTITIONS)
    with pytest.raises(Refused):
        admin.remove_instances(company.plan.group, ["pod-0"])


@pytest.mark.skipif(EXTERNAL is not None, reason="only rafka keeps the history of its groups")
def test_rafkas_own_commands_tell_what_other_members_do(broker: Broker, company: Company) -> None:
    def rafka(*words: str) -> Any:
        command = [sys.executable, "-m", "rafka", "group", *words, "-b", broker.bootstrap]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    group = company.plan.group
    read_everything(company, "kafka")
    company.join(CHOSEN[-1])
    company.until_shared(PARTITIONS)

    first, second = company.members
    shares = company.diary.shares()
    first.leave()
    company.until_shared(PARTITIONS)

    history = rafka("history", group, "--json")["rebalances"]
    # kafka-python's leader comes again by itself, so there may be others between.
    assert [one["trigger"] for one in history].count("member joined") == 2
    last = history[-1]
    assert (last["trigger"], last["members_before"], last["members_after"]) == ("member left", 2, 1)
    moves = {one["client_id"]: (one["gained"], one["lost"]) for one in last["members"]}
    lost = len(shares[first.name])
    assert moves == {first.name: (0, lost), second.name: (lost, 0)}

    company.leave()
    rafka("reset-offsets", group, "--to-offset", "4", "--topic", company.plan.topic, "--execute", "--json")
    lag = rafka("lag", group, "--json")
    assert {one["lag"] for one in lag} == {RECORDS - 4}
