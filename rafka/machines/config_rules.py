"""DescribeConfigs and ListConfigResources: what is set on whom, and what counts where nothing is.

Five kinds of resources have configs: topics, brokers ("" is all of them), a broker's loggers,
groups, and client metrics subscriptions. `ConfigState` is what is known when the question comes;
changing configs is `config_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Final

import attrs

from ..errors import ErrorCode, KafkaError
from ..ops.cluster import (
    ConfigEntry,
    ConfigResource,
    ConfigSynonym,
    DescribeConfigs,
    DescribeConfigsReply,
    DescribedResource,
    ListConfigResources,
    ListConfigResourcesReply,
    NamedResource,
)
from ..ops.topics import CreatedConfig
from .config_layers import BrokerSetting, Layers
from .config_other_tables import GROUP_TABLE, METRICS_TABLE, group_text
from .config_topic_table import TABLE
from .config_values import ConfigDef, Kind, ResourceType, Source, as_node, as_text
from .room import EACH, Room, written
from .topic_configs import effective_text

Overrides = Mapping[str, str]


@attrs.frozen(kw_only=True)
class ConfigState:
    """What there is to know, as one organisation sees it."""

    node_id: int
    settings: Mapping[str, BrokerSetting]  # by Kafka's name, as the broker was started
    overrides: Mapping[tuple[int, str], Overrides]  # what is set, by (resource type, name)
    topics: Collection[str]
    check_topic: Callable[[str], None]  # raises INVALID_TOPIC_EXCEPTION or UNKNOWN_TOPIC_OR_PARTITION
    loggers: Mapping[str, str]  # Kafka's word for the level of each, TRACE to FATAL
    broker_refuses: Callable[[Mapping[str, str]], str | None]  # what is wrong with values for the broker
    spare: float = inf  # so many more resources, topics aside, may have something set

    def set_on(self, kind: int, name: str) -> Overrides:
        return self.overrides.get((kind, name), {})

    @cached_property
    def layers(self) -> Layers:
        """What this broker falls back on: the base of topics and groups."""
        return Layers.of(
            self.settings.values(),
            self.set_on(ResourceType.BROKER, str(self.node_id)),
            self.set_on(ResourceType.BROKER, ""),
        )


def describe(op: DescribeConfigs, state: ConfigState, most_bytes: float = inf) -> DescribeConfigsReply:
    """An entry for each resource asked for, in that order, refused or not.

    Resources on which the same is set share their entries: a thousand topics cost little more than one.
    """
    room, shared = Room(most_bytes), _Shared(op, state)
    results: list[DescribedResource] = []
    for resource in op.resources:
        room.must = not results
        results.append(_described(resource, shared, room))
    return DescribeConfigsReply(results=results)


def created_configs(overrides: Overrides, layers: Layers) -> list[CreatedConfig]:
    """All configs of a new topic, as CreateTopics answers: what was given, letter for letter."""
    return [
        CreatedConfig(
            name=name,
            value=overrides[name] if name in overrides else effective_text(name, overrides, layers),
            config_source=Source.TOPIC if name in overrides else layers.strongest(row.broker),
        )
        for name, row in TABLE.items()
    ]


def list_resources(op: ListConfigResources, state: ConfigState) -> ListConfigResourcesReply:
    """What has configs, of the types asked for. Raises UNSUPPORTED_VERSION for a type that is none."""
    wanted = list(op.resource_types) if op.resource_types is not None else [ResourceType.CLIENT_METRICS]
    if any(kind not in _LISTED for kind in wanted):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "no such type of resource")
    return ListConfigResourcesReply(
        config_resources=[
            NamedResource(resource_type=kind, resource_name=name)
            for kind in _LISTED
            if kind in wanted or not wanted
            for name in _names(kind, state)
        ]
    )


# --- private -----------------------------------------------------------------------

_LISTED: Final = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def _names(kind: int, state: ConfigState) -> Iterable[str]:
    if kind == ResourceType.TOPIC:
        return sorted(state.topics)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(state.node_id)]
    return sorted(name for (of, name), configs in state.overrides.items() if of == kind and configs)


@attrs.frozen
class _Known:
    """All entries of a resource, with what each takes of the answer, and where it stands."""

    entries: list[ConfigEntry]
    sizes: list[int]
    places: dict[str, int]

    def chosen(self, keys: Iterable[str]) -> list[int]:
        """Where the entries of these names stand, in the order of all."""
        return sorted({self.places[key] for key in keys if key in self.places})


class _Shared:
    """Entries by what they follow from: the type of the resource, and what is set on it."""

    def __init__(self, op: DescribeConfigs, state: ConfigState) -> None:
        self.op = op
        self.state = state
        self._known: dict[tuple[int, Hashable], _Known] = {}

    def of(self, kind: int, name: str) -> _Known:
        """Raises KafkaError where there is no such resource."""
        _check(kind, name, self.state)
        ours = kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
        key = (kind, name if ours else frozenset(self.state.set_on(kind, name).items()))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._made(kind, name)
        return known

    def _made(self, kind: int, name: str) -> _Known:
        entries = _entries(kind, name, self.state)
        for entry in entries:
            if not self.op.include_synonyms:
                entry.synonyms = ()  # type: ignore[misc]  # made above, and nobody else's yet
            if not self.op.include_documentation:
                entry.documentation = None  # type: ignore[misc]
        return _Known(
            entries, list(map(_size, entries)), {entry.name: place for place, entry in enumerate(entries)}
        )


def _size(entry: ConfigEntry) -> int:
    texts = written(entry.name) + written(entry.value) + written(entry.documentation)
    return EACH + texts + sum(EACH + written(s.name) + written(s.value) for s in entry.synonyms)


def _described(resource: ConfigResource, shared: _Shared, room: Room) -> DescribedResource:
    kind, name, keys = resource.resource_type, resource.resource_name, resource.configuration_keys
    try:
        room.take(EACH + written(name))
        known = shared.of(kind, name)
        places = known.chosen(keys) if keys else range(len(known.entries))
        room.take(sum(known.sizes[place] for place in places))
    except KafkaError as error:
        return DescribedResource(
            error_code=error.code,
            error_message=error.message or error.code.meaning,
            resource_type=kind,
            resource_name=name,
        )
    return DescribedResource(
        resource_type=kind, resource_name=name, configs=[known.entries[place] for place in places]
    )


def _check(kind: int, name: str, state: ConfigState) -> None:
    """Whether there is such a resource."""
    match kind:
        case ResourceType.TOPIC:
            state.check_topic(name)
        case ResourceType.BROKER:
            if name:
                _check_own(name, state)
        case ResourceType.BROKER_LOGGER:
            if name == "":
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
            _check_own(name, state)
        case ResourceType.CLIENT_METRICS:
            if name == "":
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"
                )
        case ResourceType.GROUP:
            if name == "":
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"no configs are known of resource type {kind}")


def _entries(kind: int, name: str, state: ConfigState) -> list[ConfigEntry]:
    match kind:
        case ResourceType.TOPIC:
            return _of_topic(state.set_on(kind, name), state)
        case ResourceType.BROKER:
            return _of_broker(name, state) if name else _of_all_brokers(state)
        case ResourceType.BROKER_LOGGER:
            return [_of_logger(logger, level) for logger, level in sorted(state.loggers.items())]
        case ResourceType.CLIENT_METRICS:
            return _of_metrics(state.set_on(kind, name))
    return _of_group(state.set_on(kind, name), state)


def _check_own(name: str, state: ConfigState) -> None:
    """Whether it is the broker's own id."""
    number = as_node(name)
    if number is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if number != state.node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {state.node_id} or empty string, but received {name}",
        )


def _of_topic(overrides: Overrides, state: ConfigState) -> list[ConfigEntry]:
    layers = state.layers
    return [
        _entry(
            row,
            effective_text(name, overrides, layers),
            overrides,
            _below(row, row.broker, layers, state),
            Source.TOPIC,
        )
        for name, row in TABLE.items()
    ]


def _of_group(overrides: Overrides, state: ConfigState) -> list[ConfigEntry]:
    layers = state.layers
    return [
        _entry(
            row,
            group_text(name, overrides, layers),
            overrides,
            _below(row, row.broker, layers, state),
            Source.GROUP,
        )
        for name, row in GROUP_TABLE.items()
    ]


def _of_metrics(overrides: Overrides) -> list[ConfigEntry]:
    return [
        _entry(row, overrides.get(name, as_text(row.default)), overrides, [], Source.CLIENT_METRICS)
        for name, row in METRICS_TABLE.items()
    ]


def _below(row: ConfigDef, broker: str, layers: Layers, state: ConfigState) -> list[ConfigSynonym]:
    """What the broker has set under its own name, or what Kafka's would have that knows such a setting."""
    if broker and broker not in state.settings:
        return [ConfigSynonym(name=broker, value=as_text(row.default), source=Source.DEFAULT)]
    return layers.synonyms(broker) if broker else []


def _entry(
    row: ConfigDef, value: str, overrides: Overrides, below: Sequence[ConfigSynonym], own: Source
) -> ConfigEntry:
    synonyms = list(below)
    if row.name in overrides:
        synonyms.insert(0, ConfigSynonym(name=row.name, value=value, source=own))
    return ConfigEntry(
        name=row.name,
        value=value,
        config_source=synonyms[0].source if synonyms else Source.DEFAULT,
        synonyms=synonyms,
        config_type=row.kind,
        documentation=row.doc,
    )


def _of_broker(name: str, state: ConfigState) -> list[ConfigEntry]:
    layers = state.layers
    entries = []
    for setting in sorted(state.settings.values(), key=lambda setting: setting.name):
        synonyms = layers.synonyms(setting.name)
        entries.append(
            ConfigEntry(
                name=setting.name,
                value=layers.effective(setting.name),
                read_only=not setting.dynamic,
                config_source=synonyms[0].source if synonyms else Source.DEFAULT,
                synonyms=synonyms,
                config_type=setting.kind,
                documentation=setting.doc,
            )
        )
    here = state.set_on(ResourceType.BROKER, name).keys() - state.settings.keys()
    everywhere = state.set_on(ResourceType.BROKER, "").keys() - state.settings.keys() - here
    entries += [_foreign(key, Source.DYNAMIC_BROKER) for key in sorted(here)]
    entries += [_foreign(key, Source.DYNAMIC_DEFAULT_BROKER) for key in sorted(everywhere)]
    return entries


def _of_all_brokers(state: ConfigState) -> list[ConfigEntry]:
    """Just what was set for all, and nothing of what it would fall back on."""
    entries = []
    for key, value in sorted(state.set_on(ResourceType.BROKER, "").items()):
        setting = state.settings.get(key)
        if setting is None:
            entries.append(_foreign(key, Source.DYNAMIC_DEFAULT_BROKER))
            continue
        entries.append(
            ConfigEntry(
                name=key,
                value=value,
                read_only=not setting.dynamic,
                config_source=Source.DYNAMIC_DEFAULT_BROKER,
                synonyms=[ConfigSynonym(name=key, value=value, source=Source.DYNAMIC_DEFAULT_BROKER)],
                config_type=setting.kind,
                documentation=setting.doc,
            )
        )
    return entries


def _foreign(key: str, source: Source) -> ConfigEntry:
    """A key that means nothing here. Its value might be a password: it is kept, and not told."""
    return ConfigEntry(
        name=key,
        value=None,
        read_only=True,
        config_source=source,
        is_sensitive=True,
        synonyms=[ConfigSynonym(name=key, value=None, source=source)],
        config_type=Kind.UNKNOWN,
        documentation="",
    )


def _of_logger(logger: str, level: str) -> ConfigEntry:
    return ConfigEntry(
        name=logger,
        value=level,
        config_source=Source.LOGGER,
        config_type=Kind.UNKNOWN,
        documentation="",
    )
