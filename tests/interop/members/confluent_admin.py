"""An administrator of groups in the words of confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from ..confluent import answer_of
from ..vocabulary import READ_TIMEOUT, CannotAsk
from .admin import Described

# By what Kafka's answers call them.
STATES: Final = {
    "PREPARING_REBALANCING": "PreparingRebalance",
    "COMPLETING_REBALANCING": "CompletingRebalance",
}


@contextmanager
def admin(bootstrap: str) -> Iterator[Confluent]:
    yield Confluent(AdminClient({"bootstrap.servers": bootstrap}))


class Confluent:
    def __init__(self, client: Any) -> None:
        self.client = client

    def groups(self) -> set[str]:
        told = self.client.list_consumer_groups().result(READ_TIMEOUT)
        assert not told.errors, told.errors
        return {one.group_id for one in told.valid}

    def describe(self, group: str) -> Described:
        told = answer_of(self.client.describe_consumer_groups([group]))
        shares = {
            member.client_id: frozenset(at.partition for at in member.assignment.topic_partitions)
            for member in told.members
        }
        state = STATES.get(told.state.name, told.state.name.capitalize())
        return Described(state=state, assignor=told.partition_assignor, shares=shares)

    def offsets(self, group: str) -> dict[int, int]:
        told = answer_of(self.client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
        return {at.partition: at.offset for at in told.topic_partitions}

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = [TopicPartition(topic, at, offset) for at, offset in offsets.items()]
        told = answer_of(
            self.client.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])
        )
        assert all(at.error is None for at in told.topic_partitions), told.topic_partitions

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        raise CannotAsk("confluent-kafka deletes no offsets of groups")

    def remove_instances(self, group: str, instance_ids: Sequence[str]) -> None:
        raise CannotAsk("confluent-kafka removes no members of groups")

    def delete(self, group: str) -> None:
        answer_of(self.client.delete_consumer_groups([group]))
