"""Which topics there are: the rules of making, changing and deleting them.

    (nothing) ──create──▶ topic ──grow, configure──▶ topic ──delete──▶ (nothing)

The catalogue answers for every organisation at once; a topic is keyed (org, name) and,
beside that, by an id that is never used again. Methods that decide return facts and
change nothing; `apply` alone changes the catalogue, for a live decision and for a
replay alike. Configuration set on topics, brokers, groups and the like is kept here
as plain overrides: what they mean is `config_rules`' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import attrs

from ..errors import ErrorCode, KafkaError
from ..types import OrgId, TopicId
from .facts import fact
from .features import FeatureLevelSet, Features

INTERNAL_TOPICS: Final = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
METADATA_TOPIC: Final = "__cluster_metadata"
TOPIC_RESOURCE: Final = 2  # Kafka's number for topics among configuration resources
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)

Overrides: TypeAlias = Mapping[str, str]


# --- facts -----------------------------------------------------------------------


@fact("cluster-created")
class ClusterCreated:
    cluster_id: str


@fact("topic-created")
class TopicCreated:
    org: str
    name: str
    topic_id: bytes
    partitions: int
    configs: dict[str, str]


@fact("partitions-added")
class PartitionsAdded:
    org: str
    name: str
    partitions: int  # how many there are now


@fact("topic-deleted")
class TopicDeleted:
    org: str
    name: str


@fact("configs-set")
class ConfigsSet:
    """All that is set on a resource, replacing what was."""

    org: str
    resource_type: int
    resource_name: str
    configs: dict[str, str]


CatalogFact: TypeAlias = (
    ClusterCreated | TopicCreated | PartitionsAdded | TopicDeleted | ConfigsSet | FeatureLevelSet
)
CATALOG_FACTS: Final = (
    ClusterCreated,
    TopicCreated,
    PartitionsAdded,
    TopicDeleted,
    ConfigsSet,
    FeatureLevelSet,
)


# --- state -----------------------------------------------------------------------


@attrs.frozen
class Topic:
    org: OrgId
    name: str
    topic_id: TopicId
    partitions: int
    configs: Overrides


@attrs.define
class Catalog:
    cluster_id: str = ""
    topics: dict[tuple[OrgId, str], Topic] = attrs.Factory(dict)
    by_id: dict[TopicId, Topic] = attrs.Factory(dict)
    # What is set on resources other than topics, by (org, type, name).
    configs: dict[tuple[OrgId, int, str], Overrides] = attrs.Factory(dict)
    features: Features = attrs.Factory(Features)
    # Names with '.' read as '_', to find those that would collide.
    _folded: dict[tuple[OrgId, str], set[str]] = attrs.Factory(dict)

    def get(self, org: OrgId, name: str) -> Topic | None:
        return self.topics.get((org, name))

    def of(self, org: OrgId) -> Iterator[Topic]:
        return (topic for (owner, _), topic in self.topics.items() if owner == org)

    def overrides(self, org: OrgId, resource_type: int, name: str) -> Overrides:
        """What is set on a resource; nothing, where nothing is."""
        if resource_type == TOPIC_RESOURCE:
            topic = self.get(org, name)
            return topic.configs if topic else {}
        return self.configs.get((org, resource_type, name), {})

    # --- deciding ------------------------------------------------------------------

    def check_new_name(self, org: OrgId, name: str) -> None:
        """Raise unless a topic of this name can be made. Rules T2, T4, T5."""
        if name == METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{name} is not for clients to create")
        check_name(name)
        if (org, name) in self.topics or name in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} already exists")
        if other := self.colliding(org, name):
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"{name!r} differs from the existing topic {other!r} in '.' and '_' only",
            )

    def colliding(self, org: OrgId, name: str) -> str | None:
        """A topic whose name differs in '.' and '_' only, if there is one."""
        names = self._folded.get((org, _fold(name)), ())
        return next((other for other in sorted(names) if other != name), None)

    def delete(self, org: OrgId, name: str | None, topic_id: TopicId) -> Topic:
        """The topic to be deleted: by name where there is one, else by id. Raises where it is not there."""
        if name is not None:
            topic = self.get(org, name)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return topic
        return self.need_id(org, topic_id)

    def need_id(self, org: OrgId, topic_id: TopicId) -> Topic:
        topic = self.by_id.get(topic_id)
        if topic is None or topic.org != org:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
        return topic

    # --- applying ------------------------------------------------------------------

    def apply(self, fact: CatalogFact) -> None:
        match fact:
            case ClusterCreated():
                self.cluster_id = fact.cluster_id
            case TopicCreated():
                self._put(
                    Topic(OrgId(fact.org), fact.name, TopicId(fact.topic_id), fact.partitions, fact.configs)
                )
            case PartitionsAdded():
                topic = self.topics[OrgId(fact.org), fact.name]
                self._put(attrs.evolve(topic, partitions=fact.partitions))
            case TopicDeleted():
                self._remove(self.topics[OrgId(fact.org), fact.name])
            case ConfigsSet(resource_type=kind) if kind == TOPIC_RESOURCE:
                topic = self.topics[OrgId(fact.org), fact.resource_name]
                self._put(attrs.evolve(topic, configs=fact.configs))
            case ConfigsSet():
                key = OrgId(fact.org), fact.resource_type, fact.resource_name
                if fact.configs:
                    self.configs[key] = fact.configs
                else:
                    self.configs.pop(key, None)
            case FeatureLevelSet():
                self.features.apply(fact)

    def facts(self) -> Iterable[CatalogFact]:
        """The catalogue as the shortest history that leads to it: for a snapshot."""
        if self.cluster_id:
            yield ClusterCreated(cluster_id=self.cluster_id)
        yield from self.features.facts()
        for (org, kind, name), configs in self.configs.items():
            yield ConfigsSet(org=org, resource_type=kind, resource_name=name, configs=dict(configs))
        for topic in self.topics.values():
            yield TopicCreated(
                org=topic.org,
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=topic.partitions,
                configs=dict(topic.configs),
            )

    def _put(self, topic: Topic) -> None:
        self.topics[topic.org, topic.name] = self.by_id[topic.topic_id] = topic
        self._folded.setdefault((topic.org, _fold(topic.name)), set()).add(topic.name)

    def _remove(self, topic: Topic) -> None:
        del self.topics[topic.org, topic.name], self.by_id[topic.topic_id]
        key = topic.org, _fold(topic.name)
        self._folded[key].discard(topic.name)
        if not self._folded[key]:
            del self._folded[key]


def valid_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name not in (".", "..")


def check_name(name: str) -> None:
    if not valid_name(name):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{name[:260]!r} cannot be a topic's name: use 1 to 249 letters, digits, dots, '_' and '-'",
        )


def _fold(name: str) -> str:
    return name.replace(".", "_")
