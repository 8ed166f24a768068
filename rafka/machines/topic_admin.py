"""The rules of making, growing and deleting topics: what a request comes to, decided against the catalogue.

Each method takes an op and gives facts and a reply. A topic of a request stands for
itself: one may be made while the next is refused. The catalogue is changed by
applying the facts, not here. Rule numbers are those of Kafka's behaviour as we wrote it
down for the tests: T for creating, D for deleting, P for growing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from ..errors import ErrorCode, KafkaError
from ..ops.topics import (
    CreatedConfig,
    CreatedTopic,
    CreatePartitions,
    CreatePartitionsReply,
    CreateTopics,
    CreateTopicsReply,
    DeletedTopic,
    DeleteTopics,
    DeleteTopicsReply,
    DoomedTopic,
    GrownTopic,
    GrownTopicReply,
    NewTopic,
)
from ..types import NO_TOPIC_ID, OrgId, TopicId
from .catalog import Catalog, CatalogFact, PartitionsAdded, TopicCreated, TopicDeleted

PARTITIONS_PER_REQUEST: Final = 10_000
BY_DEFAULT: Final = -1

Facts: TypeAlias = list[CatalogFact]


@attrs.frozen(kw_only=True)
class TopicRules:
    """What the broker's configuration says about topics, and what may not be decided without it."""

    node_id: int
    default_partitions: int
    default_replication: int
    deletable: bool
    check_configs: Callable[[Mapping[str, str]], None]  # raises KafkaError(INVALID_CONFIG)
    describe_configs: Callable[[Mapping[str, str]], Sequence[CreatedConfig]]
    new_id: Callable[[], TopicId]


@attrs.frozen
class TopicAdmin:
    catalog: Catalog
    rules: TopicRules

    # --- making ------------------------------------------------------------------------

    def create(self, op: CreateTopics, org: OrgId) -> tuple[Facts, CreateTopicsReply]:
        if op.timeout_ms <= 0:
            return [], op.refusal(ErrorCode.REQUEST_TIMED_OUT)
        if self._wanted(op) >= PARTITIONS_PER_REQUEST:
            return [], op.refusal(
                ErrorCode.POLICY_VIOLATION,
                f"{PARTITIONS_PER_REQUEST} partitions or more in one request",
            )
        facts: Facts = []
        replies = []
        times = Counter(topic.name for topic in op.topics)
        for topic in {topic.name: topic for topic in op.topics}.values():
            try:
                if times[topic.name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic is named more than once")
                created = self._create(topic, org)
            except KafkaError as refused:
                replies.append(
                    CreatedTopic(
                        name=topic.name,
                        error_code=refused.code,
                        error_message=refused.message or refused.code.meaning,
                    )
                )
                continue
            if not op.validate_only:
                facts.append(created)
            replies.append(
                CreatedTopic(
                    name=topic.name,
                    topic_id=TopicId(created.topic_id),
                    num_partitions=created.partitions,
                    replication_factor=1,
                    configs=self.rules.describe_configs(created.configs),
                )
            )
        return facts, CreateTopicsReply(topics=replies)

    def create_by_use(self, names: Iterable[str], org: OrgId) -> Facts:
        """Topics that a client asked about and that may be made for that. Names that may not are left out."""
        facts: Facts = []
        for name in names:
            try:
                facts.append(self._create(NewTopic(name=name, num_partitions=-1, replication_factor=-1), org))
            except KafkaError:
                continue  # Metadata has told the client, or will tell it again
        return facts

    def _create(self, topic: NewTopic, org: OrgId) -> TopicCreated:
        self.catalog.check_new_name(org, topic.name)
        configs: dict[str, str] = {}
        for config in topic.configs:
            if config.value is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"no value for {config.name}")
            configs[config.name] = config.value
        self.rules.check_configs(configs)
        return TopicCreated(
            org=org,
            name=topic.name,
            topic_id=self.rules.new_id(),
            partitions=self._partitions(topic),
            configs=configs,
        )

    def _partitions(self, topic: NewTopic) -> int:
        """How many there will be; raises where number and placing of replicas cannot be had on one node."""
        if topic.assignments:
            return self._assigned(topic)
        count, replicas = topic.num_partitions, topic.replication_factor
        if replicas == 0 or replicas < BY_DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR, "the replication factor must be at least 1, or -1"
            )
        if count == 0 or count < BY_DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, "the number of partitions must be at least 1, or -1"
            )
        if replicas == BY_DEFAULT:
            replicas = self.rules.default_replication
        if replicas > 1:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{replicas} replicas wanted, and there is 1 broker",
            )
        return self.rules.default_partitions if count == BY_DEFAULT else count

    def _assigned(self, topic: NewTopic) -> int:
        if topic.replication_factor != BY_DEFAULT or topic.num_partitions != BY_DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "replicas are placed by hand: number of partitions and replication factor have to be -1",
            )
        indexes = [assignment.partition_index for assignment in topic.assignments]
        if sorted(indexes) != list(range(len(indexes))):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without gaps"
            )
        for assignment in topic.assignments:
            self._check_replicas(assignment.broker_ids)
        return len(indexes)

    def _check_replicas(self, broker_ids: Sequence[int]) -> None:
        if list(broker_ids) != [self.rules.node_id]:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"a partition has one replica here, on node {self.rules.node_id}, not {list(broker_ids)[:8]}",
            )

    def _wanted(self, op: CreateTopics) -> int:
        times = Counter(topic.name for topic in op.topics)
        return sum(
            len(topic.assignments)
            or (
                self.rules.default_partitions
                if topic.num_partitions == BY_DEFAULT
                else max(0, topic.num_partitions)
            )
            for topic in op.topics
            if times[topic.name] == 1
        )

    # --- deleting ------------------------------------------------------------------------

    def delete(self, op: DeleteTopics, org: OrgId) -> tuple[Facts, DeleteTopicsReply]:
        if op.timeout_ms <= 0:
            return [], op.refusal(ErrorCode.REQUEST_TIMED_OUT)
        if not self.rules.deletable:
            code = ErrorCode.TOPIC_DELETION_DISABLED
            return [], op.refusal(code, "delete.topic.enable is false")
        facts: Facts = []
        replies = []
        for topic, times in self._each_once(op, org):
            try:
                if (topic.name is None) == (topic.topic_id == NO_TOPIC_ID) and times == 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "a topic is named by name or by id")
                if times > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic is named more than once")
                found = self.catalog.delete(org, topic.name, topic.topic_id)
            except KafkaError as refused:
                replies.append(
                    DeletedTopic(
                        name=topic.name,
                        topic_id=topic.topic_id,
                        error_code=refused.code,
                        error_message=refused.message or refused.code.meaning,
                    )
                )
                continue
            facts.append(TopicDeleted(org=org, name=found.name))
            replies.append(DeletedTopic(name=found.name, topic_id=found.topic_id))
        return facts, DeleteTopicsReply(responses=replies)

    def _each_once(self, op: DeleteTopics, org: OrgId) -> list[tuple[DoomedTopic, int]]:
        """Each topic with how often it is named; by its name here and its id there, it has both."""
        found: dict[object, tuple[DoomedTopic, int]] = {}
        for at, topic in enumerate(op.doomed()):
            if (topic.name is None) == (topic.topic_id == NO_TOPIC_ID):
                found[at] = topic, 1  # both in one place, or neither: stands for itself
                continue
            key = self._key(topic, org)
            before, times = found.get(key, (topic, 0))
            both = DoomedTopic(
                name=before.name if topic.name is None else topic.name,
                topic_id=before.topic_id if topic.topic_id == NO_TOPIC_ID else topic.topic_id,
            )
            found[key] = both, times + 1
        return list(found.values())

    def _key(self, doomed: DoomedTopic, org: OrgId) -> object:
        """The same for a topic's name and its id, so that naming it in both ways is noticed."""
        if doomed.name is not None:
            return doomed.name
        topic = self.catalog.by_id.get(doomed.topic_id)
        return topic.name if topic is not None and topic.org == org else doomed.topic_id

    # --- growing -------------------------------------------------------------------------

    def grow(self, op: CreatePartitions, org: OrgId) -> tuple[Facts, CreatePartitionsReply]:
        if op.timeout_ms <= 0:
            return [], op.refusal(ErrorCode.REQUEST_TIMED_OUT)
        facts: Facts = []
        replies = []
        times = Counter(topic.name for topic in op.topics)
        for topic in {topic.name: topic for topic in op.topics}.values():
            try:
                if times[topic.name] > 1:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic is named more than once")
                self._grow(topic, org)
            except KafkaError as refused:
                replies.append(
                    GrownTopicReply(
                        name=topic.name,
                        error_code=refused.code,
                        error_message=refused.message or refused.code.meaning,
                    )
                )
                continue
            if not op.validate_only:
                facts.append(PartitionsAdded(org=org, name=topic.name, partitions=topic.count))
            replies.append(GrownTopicReply(name=topic.name))
        return facts, CreatePartitionsReply(results=replies)

    def _grow(self, topic: GrownTopic, org: OrgId) -> None:
        known = self.catalog.get(org, topic.name)
        if known is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        more = topic.count - known.partitions
        if more <= 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"the topic has {known.partitions} partitions, which {topic.count} would not be more than",
            )
        if more >= PARTITIONS_PER_REQUEST:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"{PARTITIONS_PER_REQUEST} partitions or more in one request"
            )
        if topic.assignments is not None:
            if len(topic.assignments) != more:
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"{len(topic.assignments)} partitions are placed, and {more} are to be added",
                )
            for assignment in topic.assignments:
                self._check_replicas(assignment.broker_ids)
