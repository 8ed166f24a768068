"""The settings of consumer groups: their names from the environment, and what cannot go together."""

from __future__ import annotations

import pytest

from rafka.config import Config, ConfigError, load


def test_a_new_group_is_not_kept_waiting_unless_that_is_asked_for() -> None:
    asked = load(environ={"RAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "3000"})

    assert Config().groups.initial_delay_ms == 0
    assert asked.groups.initial_delay_ms == 3000


def test_kafkas_names_work_from_a_compose_file() -> None:
    config = load(environ={"KAFKA_GROUP_MAX_SIZE": "3", "KAFKA_OFFSETS_RETENTION_MINUTES": "5"})

    assert config.groups.max_size == 3
    assert config.groups.retention_minutes == 5


def test_the_shortest_session_cannot_be_longer_than_the_longest() -> None:
    with pytest.raises(ConfigError, match=r"at most group\.max\.session\.timeout\.ms, which is 5000"):
        load(flags=[("group.max.session.timeout.ms", "5000", "--set")])


def test_who_leads_is_one_of_two_ways() -> None:
    with pytest.raises(ConfigError, match="first-joined or lexicographic"):
        load(flags=[("group.leader.election", "oldest", "--set")])


def test_only_what_is_rafkas_own_may_change_while_it_runs() -> None:
    changeable = {
        row.name for row in Config().shown() if row.dynamic and row.name.startswith(("group", "off"))
    }

    assert changeable == {
        "group.leader.election",
        "group.max.count",
        "group.max.pending",
        "group.max.bytes",
        "group.max.name.length",
        "group.max.protocols",
        "group.max.metadata.bytes",
        "group.max.assignment.bytes",
        "group.max.reply.bytes",
        "group.history.size",
        "group.history.rows",
    }
