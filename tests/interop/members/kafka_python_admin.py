"""An administrator of groups in the words of kafka-python: 2 and 3 differ in every name and every shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from ..kafka_python import VERSION, refused
from ..vocabulary import CannotAsk, Refused
from .admin import Described


@contextmanager
def admin(bootstrap: str) -> Iterator[KafkaPython2 | KafkaPython3]:
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        yield KafkaPython3(client) if VERSION >= (3, 0) else KafkaPython2(client)


class KafkaPython2:
    def __init__(self, client: Any) -> None:
        self.client = client

    def groups(self) -> set[str]:
        return {name for name, _ in self.client.list_consumer_groups()}

    def describe(self, group: str) -> Described:
        try:
            (told,) = self.client.describe_consumer_groups([group])
        except KafkaError as error:
            raise refused(error) from error
        shares = {
            member.client_id: frozenset(
                partition
                for _, partitions in assigned_in(member.member_assignment)
                for partition in partitions
            )
            for member in told.members
        }
        return Described(state=told.state, assignor=told.protocol, shares=shares)

    def offsets(self, group: str) -> dict[int, int]:
        told = self.client.list_consumer_group_offsets(group)
        return {at.partition: one.offset for at, one in told.items() if one.offset >= 0}

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        raise CannotAsk("kafka-python 2 alters no offsets of groups")

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        raise CannotAsk("kafka-python 2 deletes no offsets of groups")

    def remove_instances(self, group: str, instance_ids: Sequence[str]) -> None:
        raise CannotAsk("kafka-python 2 removes no members of groups")

    def delete(self, group: str) -> None:
        ((_, error),) = self.client.delete_consumer_groups([group])
        check(error)


def assigned_in(assignment: Any) -> Sequence[tuple[str, Sequence[int]]]:
    """Bytes that hold nothing are left as they are."""
    return getattr(assignment, "assignment", ()) if assignment else ()


class KafkaPython3:
    def __init__(self, client: Any) -> None:
        self.client = client

    def groups(self) -> set[str]:
        return {one["group_id"] for one in self.client.list_groups()}

    def describe(self, group: str) -> Described:
        told = self.client.describe_groups([group])[group]
        if told["error"]:
            raise Refused(-1, told["error"])
        shares = {
            member["client_id"]: frozenset(
                partition
                for topic in (member["member_assignment"] or {}).get("assigned_partitions", ())
                for partition in topic["partitions"]
            )
            for member in told["members"]
        }
        return Described(state=told["group_state"], assignor=told["protocol_data"], shares=shares)

    def offsets(self, group: str) -> dict[int, int]:
        told = self._ask("list_group_offsets", group)[group]
        return {at.partition: one.offset for at, one in told.items()}

    def alter_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = {
            TopicPartition(topic, at): OffsetAndMetadata(offset, "", -1) for at, offset in offsets.items()
        }
        self._check_all(self._ask("alter_group_offsets", group, wanted))

    def delete_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> None:
        targets = [TopicPartition(topic, at) for at in partitions]
        self._check_all(self._ask("delete_group_offsets", group, targets))

    def remove_instances(self, group: str, instance_ids: Sequence[str]) -> None:
        from kafka.admin import MemberToRemove

        targets = [MemberToRemove(group_instance_id=one) for one in instance_ids]
        self._check_all(self._ask("remove_group_members", group, targets))

    def delete(self, group: str) -> None:
        told = self._ask("delete_groups", [group])[group]
        if told != "OK":
            raise Refused(-1, told)

    def _check_all(self, told: Mapping[Any, Any]) -> None:
        for error in told.values():
            check(error)

    def _ask(self, verb: str, *args: Any) -> Any:
        try:
            return getattr(self.client, verb)(*args)
        except KafkaError as error:
            raise refused(error) from error


def check(error: Any) -> None:
    """An error class of kafka-python's, which may be the one that says there was none."""
    if error.errno:
        raise Refused(error.errno, error)
