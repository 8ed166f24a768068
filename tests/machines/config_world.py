"""A broker's configs for tests: what was given at start, what is set since, and asking about it."""

from __future__ import annotations

from collections.abc import Mapping

from rafka.config import Config, ConfigError, load
from rafka.errors import ErrorCode, KafkaError
from rafka.machines.config_changes import ConfigDecision, Operation, change, replace
from rafka.machines.config_layers import Layers
from rafka.machines.config_rules import ConfigState, describe
from rafka.machines.config_values import ResourceType
from rafka.ops.cluster import (
    AlterConfigs,
    ChangedResource,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigValue,
    DescribeConfigs,
    DescribedResource,
    IncrementalAlterConfigs,
    ReplacedResource,
)

NODE = "0"
Wanted = tuple[str, int, str | None]


def given(**settings: str) -> Config:
    """A configuration in which these were given; underscores stand for dots."""
    return load(flags=[(key.replace("_", "."), value, "--set") for key, value in settings.items()])


class World:
    """Keeps what was granted, as a keeper would."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config or Config()
        self.most = 1000  # resources that may have configs
        self.overrides: dict[tuple[int, str], Mapping[str, str]] = {
            (ResourceType.BROKER, ""): {"min.insync.replicas": "1"}  # as on every new cluster
        }

    def state(self) -> ConfigState:
        return ConfigState(
            node_id=self.config.broker.node_id,
            settings={shown.name: shown for shown in self.config.shown()},
            overrides=self.overrides,
            topics=["orders", "audit"],
            check_topic=self._check_topic,
            loggers={"root": "INFO", "rafka.storage": "WARN"},
            broker_refuses=self._refuses,
            spare=self.most - len(self.overrides),
        )

    def layers(self) -> Layers:
        return self.state().layers

    def described(self, kind: int, name: str, *keys: str, synonyms: bool = True) -> DescribedResource:
        resource = ConfigResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        op = DescribeConfigs(resources=[resource], include_synonyms=synonyms)
        return describe(op, self.state()).results[0]

    def entry(self, kind: int, name: str, key: str) -> ConfigEntry:
        [entry] = self.described(kind, name, key).configs
        return entry

    def change(self, kind: int, name: str, *wanted: Wanted, validate_only: bool = False) -> ConfigDecision:
        configs = [ConfigChange(name=key, config_operation=how, value=value) for key, how, value in wanted]
        resource = ChangedResource(resource_type=kind, resource_name=name, configs=configs)
        op = IncrementalAlterConfigs(resources=[resource], validate_only=validate_only)
        return self.keep(change(op, self.state()))

    def set(self, kind: int, name: str, key: str, value: str | None) -> ErrorCode:
        return code(self.change(kind, name, (key, Operation.SET, value)))

    def replace(self, kind: int, name: str, *configs: tuple[str, str | None]) -> ErrorCode:
        values = [ConfigValue(name=key, value=value) for key, value in configs]
        resource = ReplacedResource(resource_type=kind, resource_name=name, configs=values)
        return code(self.keep(replace(AlterConfigs(resources=[resource], validate_only=False), self.state())))

    def keep(self, decision: ConfigDecision) -> ConfigDecision:
        for granted in decision.granted:
            self.overrides[granted.resource_type, granted.resource_name] = granted.configs
        return decision

    def _check_topic(self, name: str) -> None:
        if "!" in name or not name:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name!r} is no name for a topic")
        if name not in ("orders", "audit"):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _refuses(self, values: Mapping[str, str]) -> str | None:
        try:
            self.config.changed(values)
        except ConfigError as error:
            return str(error)
        return None


def code(decision: ConfigDecision) -> ErrorCode:
    [response] = decision.reply.responses
    return response.error_code
