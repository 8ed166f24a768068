"""An administrator of groups in the words of aiokafka, which can look and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from ..vocabulary import CannotAsk, Refused
from .admin import Described


@contextmanager
def admin(bootstrap: str) -> Iterator[Aio]:
    async def make() -> Any:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        return client

    with asyncio.Runner() as runner:
        client = runner.run(make())
        try:
            yield Aio(runner, client)
        finally:
            runner.run(client.close())


class Aio:
    def __init__(self, runner: asyncio.Runner, client: Any) -> None:
        self.runner = runner
        self.client = client

    def groups(self) -> set[str]:
        return {name for name, *_ in self.runner.run(self.client.list_consumer_groups())}

    def describe(self, group: str) -> Described:
        (answer,) = self.runner.run(self.client.describe_consumer_groups([group]))
        ((code, _, state, _, assignor, members, *_),) = answer.groups
        if code:
            raise Refused(code, answer)
        shares = {}
        for _, client_id, _, _, assignment, *_ in members:
            told = ConsumerProtocolMemberAssignment.decode(assignment).assignment if assignment else ()
            shares[client_id] = frozenset(at for _, partitions in told for at in partitions)
        return Described(state=state, assignor=assignor, shares=shares)

    def offsets(self, group: str) -> dict[int, int]:
        told = self.runner.run(self.client.list_consumer_group_offsets(group))
        return {at.partition: one.offset for at, one in told.items() if one.offset >= 0}

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        raise CannotAsk("aiokafka alters no offsets of groups")

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        raise CannotAsk("aiokafka deletes no offsets of groups")

    def remove_instances(self, group: str, instance_ids: Sequence[str]) -> None:
        raise CannotAsk("aiokafka removes no members of groups")

    def delete(self, group: str) -> None:
        raise CannotAsk("aiokafka deletes no groups")
