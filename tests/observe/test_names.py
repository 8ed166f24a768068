"""Every op has a name for its spans, on both sides, and no two have the same."""

from __future__ import annotations

import pytest

from rafka.gateway.routes import ROUTES
from rafka.observe.names import BROKER, GATEWAY, span_name
from rafka.ops import cluster, group, log, offsets

OPS = [route.op for route in ROUTES.values() if route.op is not None]


@pytest.mark.parametrize(
    ("op", "name"),
    [
        (group.JoinGroup, "group.join"),
        (group.SyncGroup, "group.sync"),
        (group.Heartbeat, "group.heartbeat"),
        (group.LeaveGroup, "group.leave"),
        (offsets.OffsetCommit, "group.offset-commit"),
        (offsets.OffsetFetch, "group.offset-fetch"),
        (group.DescribeGroups, "group.describe"),
        (group.GroupHistory, "group.history"),
    ],
)
def test_what_is_about_groups_has_one_name_on_both_sides(op: type, name: str) -> None:
    assert span_name(GATEWAY, op) == f"rafka.gateway.{name}"
    assert span_name(BROKER, op) == f"rafka.broker.{name}"


@pytest.mark.parametrize(
    ("op", "asked", "done"),
    [
        (log.Produce, "produce", "log.append"),
        (log.Fetch, "fetch", "log.read"),
        (log.ListOffsets, "list-offsets", "log.list-offsets"),
        (cluster.DescribeCluster, "describe-cluster", "cluster.describe-cluster"),
    ],
)
def test_the_rest_is_called_as_it_is_asked_and_as_it_is_done(op: type, asked: str, done: str) -> None:
    assert span_name(GATEWAY, op) == f"rafka.gateway.kafka.{asked}"
    assert span_name(BROKER, op) == f"rafka.broker.{done}"


@pytest.mark.parametrize("side", [GATEWAY, BROKER])
def test_no_two_ops_share_a_name(side: str) -> None:
    names = [span_name(side, op) for op in OPS]

    assert len(set(names)) == len(names)
    assert all(name.startswith(side + ".") and name == name.lower() for name in names)
