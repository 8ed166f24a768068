"""Configuration at work: what topics, the broker, groups and loggers have set, and what that adds up to.

The rules are `machines.config_rules` and `config_changes`; here they meet the catalogue,
which keeps what is set, and the settings with which the broker was started. Deciding
goes by the catalog keeper's copy of the catalogue, describing by the published one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from ..config import Config, ConfigError
from ..errors import ErrorCode, KafkaError
from ..machines import config_changes, config_rules
from ..machines.catalog import TOPIC_RESOURCE, Catalog, CatalogFact, ConfigsSet, Topic, check_name
from ..machines.config_layers import Layers
from ..machines.config_rules import ConfigState
from ..machines.config_values import ResourceType
from ..machines.topic_configs import TopicConfig, check_overrides, resolve
from ..ops.base import Envelope
from ..ops.cluster import (
    AlterConfigs,
    AlterConfigsReply,
    DescribeConfigs,
    DescribeConfigsReply,
    IncrementalAlterConfigs,
    ListConfigResources,
    ListConfigResourcesReply,
)
from ..ops.topics import CreatedConfig
from ..types import DEFAULT_ORG, OrgId
from .loggers import kafka_levels, set_level

RESOLVED_MAX = 1000  # different sets of overrides whose result is remembered

Decided: TypeAlias = tuple[Sequence[CatalogFact], AlterConfigsReply]


class ConfigKeeper:
    def __init__(self, config: Config, catalog: Catalog) -> None:
        self.published = catalog
        self.started_with = config
        self.current = config  # with what was changed while running
        self.on_change: list[Callable[[Config], None]] = []
        self._deciding = catalog
        self._settings = {shown.name: shown for shown in config.shown()}
        self._resolved: dict[tuple[tuple[str, str], ...], TopicConfig] = {}
        self._created: dict[tuple[tuple[str, str], ...], Sequence[CreatedConfig]] = {}
        self._layers: Layers | None = None

    # --- topics ------------------------------------------------------------------------

    def resolve(self, topic: Topic) -> TopicConfig:
        """What counts for a topic. Topics with the same overrides share the result."""
        key = tuple(sorted(topic.configs.items()))
        known = self._resolved.get(key)
        if known is None:
            if len(self._resolved) >= RESOLVED_MAX:
                self._resolved.clear()
            known = self._resolved[key] = resolve(topic.configs, self.layers())
        return known

    def check_topic(self, overrides: Mapping[str, str]) -> None:
        """Raise unless a topic may have these."""
        check_overrides(overrides, self.layers())

    def describe_created(self, overrides: Mapping[str, str]) -> Sequence[CreatedConfig]:
        """All configs of a new topic. Topics with the same overrides share the answer."""
        key = tuple(sorted(overrides.items()))
        known = self._created.get(key)
        if known is None:
            if len(self._created) >= RESOLVED_MAX:
                self._created.clear()
            known = self._created[key] = config_rules.created_configs(overrides, self.layers())
        return known

    def layers(self) -> Layers:
        """What topics fall back on, as it is published."""
        if self._layers is None:
            self._layers = self._state(self.published, DEFAULT_ORG).layers
        return self._layers

    def broker_changed(self) -> None:
        """Something was set on the broker: let everybody go by it from now on."""
        self._layers = None
        self._resolved.clear()
        self._created.clear()
        state = self._state(self.published, DEFAULT_ORG)
        everywhere = state.set_on(ResourceType.BROKER, "")
        here = state.set_on(ResourceType.BROKER, str(state.node_id))
        values = {key: value for key, value in {**everywhere, **here}.items() if key in self._settings}
        self.current = self.started_with.changed(values)
        for told in self.on_change:
            told(self.current)

    # --- ops ---------------------------------------------------------------------------

    def describe(self, envelope: Envelope, op: DescribeConfigs) -> DescribeConfigsReply:
        state = self._state(self.published, envelope.org_id)
        return config_rules.describe(op, state, self.started_with.broker.max_reply_bytes)

    def list_resources(self, envelope: Envelope, op: ListConfigResources) -> ListConfigResourcesReply:
        return config_rules.list_resources(op, self._state(self.published, envelope.org_id))

    def alter(self, op: AlterConfigs, org: OrgId) -> Decided:
        return self._decided(config_changes.replace(op, self._state(self._deciding, org)), org)

    def alter_incrementally(self, op: IncrementalAlterConfigs, org: OrgId) -> Decided:
        return self._decided(config_changes.change(op, self._state(self._deciding, org)), org)

    def born(self) -> ConfigsSet:
        """What a new cluster has set from the first moment on."""
        granted = config_changes.initial_cluster_overrides(self._state(self._deciding, DEFAULT_ORG))
        return _fact(granted, DEFAULT_ORG)

    def _decided(self, decision: config_changes.ConfigDecision, org: OrgId) -> Decided:
        for name, level in decision.levels.items():
            set_level(name, level)
        return [_fact(granted, org) for granted in decision.granted], decision.reply

    def _state(self, catalog: Catalog, org: OrgId) -> ConfigState:
        def check_topic(name: str) -> None:
            check_name(name)
            if catalog.get(org, name) is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

        return ConfigState(
            node_id=self.started_with.broker.node_id,
            settings=self._settings,
            overrides=_Overrides(catalog, org),
            topics=[topic.name for topic in catalog.of(org)],
            check_topic=check_topic,
            loggers=kafka_levels(),
            broker_refuses=self._broker_refuses,
            spare=self.started_with.broker.max_configured - len(catalog.configs),
        )

    def _broker_refuses(self, values: Mapping[str, str]) -> str | None:
        try:
            self.started_with.changed(values)
        except ConfigError as wrong:
            return str(wrong)
        return None


class _Overrides(Mapping[tuple[int, str], Mapping[str, str]]):
    """What is set in one organisation, by (resource type, name); topics included."""

    def __init__(self, catalog: Catalog, org: OrgId) -> None:
        self._catalog = catalog
        self._org = org

    def __getitem__(self, key: tuple[int, str]) -> Mapping[str, str]:
        kind, name = key
        if kind == TOPIC_RESOURCE:
            topic = self._catalog.get(self._org, name)
            if topic is None:
                raise KeyError(key)
            return topic.configs
        return self._catalog.configs[self._org, kind, name]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        for topic in self._catalog.of(self._org):
            yield TOPIC_RESOURCE, topic.name
        for org, kind, name in self._catalog.configs:
            if org == self._org:
                yield kind, name

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _fact(granted: config_changes.ConfigsGranted, org: OrgId) -> ConfigsSet:
    return ConfigsSet(
        org=org,
        resource_type=int(granted.resource_type),
        resource_name=granted.resource_name,
        configs=granted.configs,
    )
