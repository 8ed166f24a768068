"""Topics at work: the catalogue's view, with each topic's configuration resolved and its logs at hand.

The catalog keeper publishes here what is durable, and everybody reads. A partition's
log is opened when it is first used, or at the start where there is something in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..errors import ErrorCode, KafkaError
from ..machines.catalog import (
    TOPIC_RESOURCE,
    Catalog,
    CatalogFact,
    ConfigsSet,
    PartitionsAdded,
    Topic,
    TopicCreated,
    TopicDeleted,
)
from ..machines.config_values import ResourceType
from ..machines.topic_configs import TopicConfig
from ..records.check import Rules
from ..storage.backend import LogBackend, LogName
from ..types import OrgId, TopicId
from .configs import ConfigKeeper
from .partition import Partition
from .settings import log_settings, rules

LOOKED_AT: Final = 1000  # records of a batch that is looked at as a sample


class LiveTopic:
    """One topic, as reading and writing see it."""

    __slots__ = ("_backend", "_full", "_partitions", "_rules", "config", "topic")

    def __init__(self, topic: Topic, config: TopicConfig, backend: LogBackend, full: bool) -> None:
        self._backend = backend
        self._partitions: list[Partition | None] = [None] * topic.partitions
        self._full = full
        self._rules: dict[tuple[bool, bool], Rules] = {}  # made when they are first asked for
        self.configure(topic, config)

    @property
    def name(self) -> str:
        return self.topic.name

    def configure(self, topic: Topic, config: TopicConfig) -> None:
        """Take up another number of partitions or another configuration, effective at once."""
        self.topic = topic
        self.config = config
        self._rules = {}
        self._partitions += [None] * (topic.partitions - len(self._partitions))
        settings = log_settings(config)
        for partition in self.opened():
            partition.log.settings = settings
            partition.log_append_time = config.log_append_time

    def rules(self, zstd_allowed: bool, deep: bool) -> Rules:
        key = zstd_allowed, deep or self._full
        found = self._rules.get(key)
        if found is None:
            limit = None if self._full else LOOKED_AT
            found = rules(self.config, zstd_allowed=zstd_allowed, deep=key[1], deep_limit=limit)
            self._rules[key] = found
        return found

    def partition(self, index: int) -> Partition:
        """KafkaError where there is none of that number."""
        if not 0 <= index < len(self._partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return self._partitions[index] or self._open(index)

    def _open(self, index: int) -> Partition:
        log = self._backend.open(log_name(self.topic.topic_id, index), log_settings(self.config))
        partition = self._partitions[index] = Partition(self.name, index, log)
        partition.log_append_time = self.config.log_append_time
        return partition

    def leader_epoch(self, index: int) -> int:
        """Of a partition that nobody has used yet it is 0, and need not be opened to say so."""
        partition = self._partitions[index]
        return partition.leader_epoch if partition is not None else 0

    def size(self, index: int) -> int:
        """Bytes of a partition; one that nobody has used yet has none."""
        partition = self._partitions[index]
        return partition.log.size if partition is not None else 0

    def settled(self, index: int) -> bool:
        """Whether all that was written to a partition may be read; so it is of one that is not there."""
        if not 0 <= index < len(self._partitions):
            return True
        partition = self._partitions[index]
        return partition is None or partition.settled

    def opened(self) -> Iterator[Partition]:
        return (partition for partition in self._partitions if partition is not None)

    def log_names(self) -> list[LogName]:
        return [log_name(self.topic.topic_id, index) for index in range(self.topic.partitions)]


class Topics:
    """All topics of all organisations."""

    def __init__(self, backend: LogBackend, configs: ConfigKeeper, full_validation: bool) -> None:
        self.catalog = Catalog()
        configs.published = self.catalog
        self._resolve = configs.resolve
        self._broker_changed = configs.broker_changed
        self._backend = backend
        self._full = full_validation
        self._by_name: dict[OrgId, dict[str, LiveTopic]] = {}
        self._by_id: dict[TopicId, LiveTopic] = {}

    def __iter__(self) -> Iterator[LiveTopic]:
        return iter(self._by_id.values())

    def by_name(self, org: OrgId, name: str) -> LiveTopic:
        try:
            return self._by_name[org][name]
        except KeyError:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) from None

    def by_id(self, org: OrgId, topic_id: TopicId) -> LiveTopic:
        live = self._by_id.get(topic_id)
        if live is None or live.topic.org != org:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return live

    def find(self, org: OrgId, name: str) -> LiveTopic | None:
        return self._by_name.get(org, {}).get(name)

    def of(self, org: OrgId) -> list[LiveTopic]:
        return list(self._by_name.get(org, {}).values())

    def publish(self, fact: CatalogFact) -> list[LogName]:
        """Let everybody see a fact that is durable. The logs that nobody needs any more are given back."""
        match fact:
            case TopicDeleted():
                live = self._by_name[OrgId(fact.org)].pop(fact.name)
                del self._by_id[live.topic.topic_id]
                self.catalog.apply(fact)
                for partition in live.opened():
                    partition.log.failed = "its topic was deleted"
                    partition.wake()
                return live.log_names()
            case TopicCreated() | PartitionsAdded():
                self.catalog.apply(fact)
                self._renew(OrgId(fact.org), fact.name)
            case ConfigsSet(resource_type=kind) if kind == TOPIC_RESOURCE:
                self.catalog.apply(fact)
                self._renew(OrgId(fact.org), fact.resource_name)
            case ConfigsSet():
                self.catalog.apply(fact)
                if fact.resource_type == ResourceType.BROKER:
                    self._broker_changed()
                    for live in list(self):  # what is set on the broker is what topics fall back on
                        self._renew(live.topic.org, live.name)
            case _:
                self.catalog.apply(fact)
        return []

    def _renew(self, org: OrgId, name: str) -> None:
        topic = self.catalog.topics[org, name]
        config = self._resolve(topic)
        live = self.find(org, name)
        if live is not None:
            live.configure(topic, config)
            return
        live = LiveTopic(topic, config, self._backend, self._full)
        self._by_name.setdefault(org, {})[name] = self._by_id[topic.topic_id] = live


def log_name(topic_id: TopicId, index: int) -> LogName:
    """Where a partition's log is kept: by id, so that no client's text ever becomes a path."""
    return LogName(f"topics/{topic_id.hex()}/{index}")
