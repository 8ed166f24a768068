"""What administrators do: topics, partitions, configs, records to delete, the cluster.

Calls for several topics give one `Outcome` for each, in the order asked; `Outcome.check` raises
what went wrong. Calls for one thing raise at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, TypeVar

import attrs

from ..errors import ErrorCode
from ..types import NO_TOPIC_ID, TopicId, message
from .cluster import Cluster
from .errors import BrokerRefused, refused, refused_if
from .messages import (
    AlterConfigs,
    ApiVersionsReply,
    CreatePartitions,
    CreateTopics,
    DeleteRecords,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    Request,
)
from .messages.admin import (
    ConfigChange,
    ConfigEntry,
    PartitionToTrim,
    ResourceToAlter,
    ResourceToDescribe,
    TopicConfig,
    TopicToCreate,
    TopicToDelete,
    TopicToGrow,
    TopicToTrim,
)
from .model import Node, TopicInfo, TopicPartition
from .offsets import FoundOffset, list_offsets

ReplyT = TypeVar("ReplyT")

TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4


class ConfigSource(IntEnum):
    """Where the value of a config comes from, most telling first."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5


SET: Final = 0
DELETE: Final = 1


@message
class Outcome:
    """What became of one topic or partition of a call."""

    subject: str
    error: BrokerRefused | None = None
    topic_id: TopicId = NO_TOPIC_ID
    partitions: int = -1
    replication_factor: int = -1

    def check(self) -> Outcome:
        if self.error is not None:
            raise self.error
        return self


@message
class NewTopic:
    """-1 leaves it to the broker."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = attrs.field(factory=dict)


@message
class Config:
    name: str
    value: str | None  # None: secret
    source: int
    read_only: bool
    sensitive: bool

    @property
    def is_default(self) -> bool:
        return self.source != ConfigSource.TOPIC


@message
class ClusterInfo:
    cluster_id: str
    controller_id: int | None
    nodes: list[Node]
    fenced: frozenset[int] = frozenset()


class Admin:
    """`Client.admin`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    # --- topics ------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False
    ) -> list[Outcome]:
        wanted = [
            TopicToCreate(
                name=topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication_factor,
                configs=[TopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in topics
        ]
        # Before version 4 the broker's defaults could not be asked for.
        defaults = any(-1 in (one.num_partitions, one.replication_factor) for one in wanted)
        reply = await self._ask_controller(
            CreateTopics(topics=wanted, timeout_ms=self._timeout_ms, validate_only=validate_only),
            lambda reply: [one.error_code for one in reply.topics],
            at_least=4 if defaults else 0,
        )
        return [
            Outcome(
                subject=one.name,
                error=refused_if(one.error_code, f"topic {one.name!r}", one.error_message),
                topic_id=TopicId(bytes(one.topic_id)),
                partitions=one.num_partitions,
                replication_factor=one.replication_factor,
            )
            for one in reply.topics
        ]

    async def delete_topics(self, names: Sequence[str]) -> list[Outcome]:
        reply = await self._ask_controller(
            DeleteTopics(
                topics=[TopicToDelete(name=name) for name in names],
                topic_names=list(names),
                timeout_ms=self._timeout_ms,
            ),
            lambda reply: [one.error_code for one in reply.responses],
        )
        for name in names:
            self._cluster.forget(name)
        return [
            Outcome(
                subject=one.name or "",
                error=refused_if(one.error_code, f"topic {one.name!r}", one.error_message),
            )
            for one in reply.responses
        ]

    async def list_topics(self) -> list[TopicInfo]:
        """All topics, internal ones too, by name."""
        return await self._cluster.all_topics()

    async def describe_topic(self, name: str) -> TopicInfo:
        """Raises UnknownTopic. Asks anew, whatever is known."""
        await self._cluster.learn([name])
        return await self._cluster.topic(name)

    async def create_partitions(self, name: str, count: int, *, validate_only: bool = False) -> None:
        """Have the topic have so many partitions. They can only become more."""
        reply = await self._ask_controller(
            CreatePartitions(
                topics=[TopicToGrow(name=name, count=count)],
                timeout_ms=self._timeout_ms,
                validate_only=validate_only,
            ),
            lambda reply: [one.error_code for one in reply.results],
        )
        for one in reply.results:
            if one.error_code:
                raise refused(one.error_code, f"topic {one.name!r}", one.error_message)

    # --- configs -----------------------------------------------------------------

    async def topic_configs(self, name: str) -> dict[str, Config]:
        return await self._configs(TOPIC_RESOURCE, name)

    async def broker_configs(self, node_id: int) -> dict[str, Config]:
        return await self._configs(BROKER_RESOURCE, str(node_id), node_id)

    async def alter_topic_configs(
        self, name: str, set_: Mapping[str, str], delete: Iterable[str] = (), *, validate_only: bool = False
    ) -> None:
        """Set some configs of a topic and take others back to their defaults; the rest stays."""
        changes = [ConfigChange(name=key, config_operation=SET, value=value) for key, value in set_.items()]
        changes += [ConfigChange(name=key, config_operation=DELETE) for key in delete]
        reply = await self._ask_controller(
            AlterConfigs(
                resources=[
                    ResourceToAlter(resource_type=TOPIC_RESOURCE, resource_name=name, configs=changes)
                ],
                validate_only=validate_only,
            ),
            lambda reply: [one.error_code for one in reply.responses],
        )
        for one in reply.responses:
            if one.error_code:
                raise refused(one.error_code, f"topic {name!r}", one.error_message)

    async def _configs(self, kind: int, name: str, node_id: int | None = None) -> dict[str, Config]:
        request = DescribeConfigs(resources=[ResourceToDescribe(resource_type=kind, resource_name=name)])
        if node_id is None:
            reply = await self._cluster.persist(lambda: self._cluster.ask_any(request))
        else:  # a broker's own configs only it can tell
            connection = await self._cluster.connection(node_id)
            reply = await connection.ask(request, within=self._cluster.settings.request_timeout)
        [result] = reply.results
        if result.error_code:
            what = "topic" if kind == TOPIC_RESOURCE else "broker"
            raise refused(result.error_code, f"{what} {name!r}", result.error_message)
        return {entry.name: _config(entry) for entry in sorted(result.configs, key=lambda one: one.name)}

    # --- offsets and records -----------------------------------------------------

    async def list_offsets(
        self, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, FoundOffset]:
        """The offset of a time, in milliseconds since 1970, or of offsets.EARLIEST, LATEST, MAX_TIMESTAMP."""
        return await list_offsets(self._cluster, wanted, read_committed=read_committed)

    async def delete_records(self, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Delete what lies before an offset, -1 being the end. Gives where each partition begins now."""
        starts: dict[TopicPartition, int] = {}

        async def delete_the_rest() -> None:
            failure: BrokerRefused | None = None
            for leader, part in (await self._by_leader(set(before) - set(starts))).items():
                connection = await self._cluster.connection(leader)
                request = DeleteRecords(topics=_to_trim(part, before), timeout_ms=self._timeout_ms)
                reply = await connection.ask(request, within=self._cluster.settings.request_timeout)
                for topic in reply.topics:
                    for one in topic.partitions:
                        target = TopicPartition(topic.name, one.partition_index)
                        failure = refused_if(one.error_code, str(target)) or failure
                        if not one.error_code:
                            starts[target] = one.low_watermark
            if failure is not None:
                raise failure

        await self._cluster.persist(delete_the_rest, {target.topic for target in before})
        return starts

    async def _by_leader(self, targets: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        parts: dict[int, list[TopicPartition]] = {}
        for target in sorted(targets):
            info = await self._cluster.topic(target.topic)
            if not 0 <= target.partition < len(info.partitions):
                raise refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(target))
            leader = info.partitions[target.partition].leader
            if leader is None:
                raise refused(ErrorCode.LEADER_NOT_AVAILABLE, str(target))
            parts.setdefault(leader, []).append(target)
        return parts

    # --- the cluster -------------------------------------------------------------

    async def cluster(self) -> ClusterInfo:
        reply = await self._cluster.persist(lambda: self._cluster.ask_any(DescribeCluster()))
        if reply.error_code:
            raise refused(reply.error_code, "cluster", reply.error_message)
        return ClusterInfo(
            cluster_id=reply.cluster_id,
            controller_id=reply.controller_id if reply.controller_id >= 0 else None,
            nodes=[
                Node(node_id=one.broker_id, host=one.host, port=one.port, rack=one.rack)
                for one in sorted(reply.brokers, key=lambda one: one.broker_id)
            ],
            fenced=frozenset(one.broker_id for one in reply.brokers if one.is_fenced),
        )

    async def api_versions(self, node_id: int | None = None) -> ApiVersionsReply:
        """What a broker speaks, and its features; of any broker where none is named."""
        if node_id is None:
            connection = await self._cluster.any_connection()
        else:
            connection = await self._cluster.connection(node_id)
        assert connection.versions is not None
        return connection.versions.reply

    # --- shared ------------------------------------------------------------------

    @property
    def _timeout_ms(self) -> int:
        """What the broker may take: less than we wait, so that it can still say that it was too slow."""
        return int(self._cluster.settings.request_timeout * 900)

    async def _ask_controller(
        self, request: Request[ReplyT], codes: Callable[[ReplyT], list[int]], *, at_least: int = 0
    ) -> ReplyT:
        """Ask the controller, and the next one where it has moved."""

        async def once() -> ReplyT:
            reply = await self._cluster.ask_controller(request, at_least=at_least)
            if ErrorCode.NOT_CONTROLLER in codes(reply):
                raise refused(ErrorCode.NOT_CONTROLLER, request.api.name)
            return reply

        return await self._cluster.persist(once)


def _to_trim(targets: Iterable[TopicPartition], before: Mapping[TopicPartition, int]) -> list[TopicToTrim]:
    topics: dict[str, list[PartitionToTrim]] = {}
    for target in targets:
        entry = PartitionToTrim(partition_index=target.partition, offset=before[target])
        topics.setdefault(target.topic, []).append(entry)
    return [TopicToTrim(name=name, partitions=entries) for name, entries in topics.items()]


def _config(entry: ConfigEntry) -> Config:
    return Config(
        name=entry.name,
        value=entry.value,
        source=entry.config_source,
        read_only=entry.read_only,
        sensitive=entry.is_sensitive,
    )
