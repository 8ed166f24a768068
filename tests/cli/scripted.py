"""Runs `rafka` commands against a scripted broker: all is real but the network.

A command runs Trio by itself, so the broker is served in there, for as long as its client is connected.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest

from rafka.cli import connected, main
from rafka.client import Client, TopicPartition, connect
from rafka.client.nursery import background
from rafka.wire.apis.consumer_group_describe import CONSUMER_GROUP_DESCRIBE
from rafka.wire.apis.delete_groups import DELETE_GROUPS
from rafka.wire.apis.describe_groups import DESCRIBE_GROUPS
from rafka.wire.apis.leave_group import LEAVE_GROUP
from rafka.wire.apis.list_groups import LIST_GROUPS
from rafka.wire.apis.offset_delete import OFFSET_DELETE
from tests.client.group_broker import GroupBroker
from tests.client.scripted import Network

NOT_FOUND = 69
NON_EMPTY = 68


@attrs.define
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split() for line in self.out.splitlines()]


@attrs.define(eq=False)
class Administered(GroupBroker):
    """Knows of groups in whatever state; each stands where `offsets` says."""

    classic: dict[str, dict[str, Any]] = attrs.field(factory=dict)  # fields of the answer
    newer: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    shared: dict[str, str] = attrs.field(factory=dict)  # of a third kind, and their states

    def on_ListGroups(self, request: Any, version: int) -> Any:
        entry: Any = LIST_GROUPS.Response.Groups
        states = {name: one["group_state"] for name, one in (*self.classic.items(), *self.newer.items())}
        states |= self.shared
        return LIST_GROUPS.Response(
            groups=[entry(group_id=name, group_state=state) for name, state in states.items()]
        )

    def on_DescribeGroups(self, request: Any, version: int) -> Any:
        entry: Any = DESCRIBE_GROUPS.Response.Groups
        [name] = request.groups
        if name in self.classic:
            return DESCRIBE_GROUPS.Response(groups=[entry(group_id=name, **self.classic[name])])
        why = f"Group {name} not found."
        if name in (*self.newer, *self.shared):
            why = f"Group {name} is not a classic group."
        absent = entry(group_id=name, group_state="Dead", error_code=NOT_FOUND, error_message=why)
        return DESCRIBE_GROUPS.Response(groups=[absent])

    def on_ConsumerGroupDescribe(self, request: Any, version: int) -> Any:
        entry: Any = CONSUMER_GROUP_DESCRIBE.Response.Groups
        [name] = request.group_ids
        fields = self.newer.get(name, {"error_code": NOT_FOUND})
        return CONSUMER_GROUP_DESCRIBE.Response(groups=[entry(group_id=name, **fields)])

    def on_DeleteGroups(self, request: Any, version: int) -> Any:
        entry: Any = DELETE_GROUPS.Response.Results
        [name] = request.groups_names
        known = self.classic.get(name)
        code = NOT_FOUND if known is None else NON_EMPTY if known["group_state"] != "Empty" else 0
        return DELETE_GROUPS.Response(results=[entry(group_id=name, error_code=code)])

    def on_OffsetDelete(self, request: Any, version: int) -> Any:
        topic: Any = OFFSET_DELETE.Response.Topics
        topics = []
        for one in request.topics:
            numbers = [asked.partition_index for asked in one.partitions]
            for number in numbers:
                del self.offsets[TopicPartition(one.name, number)]
            parts = [topic.Partitions(partition_index=number) for number in numbers]
            topics.append(topic(name=one.name, partitions=parts))
        return OFFSET_DELETE.Response(topics=topics)

    def on_LeaveGroup(self, request: Any, version: int) -> Any:
        entry: Any = LEAVE_GROUP.Response.Members
        members = [
            entry(
                member_id=one.member_id,
                group_instance_id=one.group_instance_id,
                error_code=0 if one.member_id == "m" else 25,
            )
            for one in request.members
        ]
        return LEAVE_GROUP.Response(members=members)


class Shell:
    """`rafka` as it is typed, on that broker."""

    def __init__(
        self,
        broker: Administered,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._capsys = capsys

        @asynccontextmanager
        async def connect_to_it(bootstrap: str, **settings: Any) -> AsyncIterator[Client]:
            async with background() as nursery:
                dial = Network(nursery, {broker.address: broker}).dial
                async with connect(bootstrap, dial=dial, **settings) as client:
                    yield client

        monkeypatch.setattr(connected, "connect", connect_to_it)

    def __call__(self, *words: str) -> Said:
        code = main([*words, "-b", "broker"])
        return Said(code, *self._capsys.readouterr())
