"""IncrementalAlterConfigs and AlterConfigs: from what clients want to what is set from then on.

Each resource is decided by itself, all of its changes or none. The decision names the new
overrides of every resource that was granted, whole; the keeper makes them durable and
then answers. Nothing is decided to be set where the request only asks whether it could be.

Which code answers which mistake is Kafka 4.3's, checked against it, and not always what one
would expect: an unknown operation is UNKNOWN_SERVER_ERROR on a topic and INVALID_REQUEST on a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final

from ..errors import ErrorCode, KafkaError
from ..ops.cluster import (
    AlterConfigs,
    AlterConfigsReply,
    AlteredResource,
    ChangedResource,
    ConfigChange,
    IncrementalAlterConfigs,
    ReplacedResource,
)
from ..types import message
from .config_other_tables import check_group, check_metrics
from .config_rules import ConfigState, Overrides
from .config_topic_table import TABLE
from .config_values import Kind, ResourceType, appended, as_node, as_text, subtracted
from .topic_configs import check_overrides

LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
ROOT_LOGGER: Final = "root"
MIN_ISR: Final = "min.insync.replicas"


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@message
class ConfigsGranted:
    """From now on this, and nothing else, is set on the resource."""

    resource_type: int
    resource_name: str
    configs: dict[str, str]


@message
class ConfigDecision:
    reply: AlterConfigsReply
    granted: Sequence[ConfigsGranted]
    levels: Mapping[str, str | None]  # of loggers; None: as its parent


def change(op: IncrementalAlterConfigs, state: ConfigState) -> ConfigDecision:
    """Set, delete, append to and subtract from what is set."""
    return _decide(op.resources, False, op.validate_only, state)


def replace(op: AlterConfigs, state: ConfigState) -> ConfigDecision:
    """Set just this, whatever was set before."""
    return _decide([_as_changes(resource) for resource in op.resources], True, op.validate_only, state)


def initial_cluster_overrides(state: ConfigState) -> ConfigsGranted:
    """What a new cluster sets for all its brokers.

    A new Kafka cluster has eligible leader replicas (KIP-966), and with them min.insync.replicas
    as a value for all brokers: clients see it as such, and it cannot be taken away.
    """
    value = state.layers.effective(MIN_ISR) or as_text(TABLE[MIN_ISR].default)
    return ConfigsGranted(resource_type=ResourceType.BROKER, resource_name="", configs={MIN_ISR: value})


# --- private -----------------------------------------------------------------------


def _as_changes(resource: ReplacedResource) -> ChangedResource:
    return ChangedResource(
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[
            ConfigChange(name=config.name, config_operation=Operation.SET, value=config.value)
            for config in resource.configs
        ],
    )


def _decide(
    resources: Sequence[ChangedResource], replace: bool, validate_only: bool, state: ConfigState
) -> ConfigDecision:
    times = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    responses: list[AlteredResource] = []
    granted: list[ConfigsGranted] = []
    levels: dict[str, str | None] = {}
    spare = state.spare
    for resource in resources:
        kind, name = resource.resource_type, resource.resource_name
        answer = AlteredResource(resource_type=kind, resource_name=name)
        try:
            if times[kind, name] > 1:
                raise _invalid("Each resource must appear at most once.")
            _check_shape(resource)
            if kind == ResourceType.BROKER_LOGGER and not replace:
                levels |= _levels(resource, state)
            else:
                new = _granted(resource, replace, state)
                if _is_another(new, state):
                    if spare < 1:
                        raise KafkaError(ErrorCode.POLICY_VIOLATION, "too many resources have configs")
                    spare -= 1
                granted.append(new)
        except KafkaError as error:
            answer.error_code = error.code  # type: ignore[misc]
            answer.error_message = error.message or error.code.meaning  # type: ignore[misc]
        responses.append(answer)
    if validate_only:
        granted, levels = [], {}
    return ConfigDecision(reply=AlterConfigsReply(responses=responses), granted=granted, levels=levels)


def _is_another(granted: ConfigsGranted, state: ConfigState) -> bool:
    """Whether nothing was set on the resource before. Topics are counted as topics."""
    kind, name = granted.resource_type, granted.resource_name
    return kind != ResourceType.TOPIC and bool(granted.configs) and not state.set_on(kind, name)


def _check_shape(resource: ChangedResource) -> None:
    """What is wrong whatever the resource."""
    names = [config.name for config in resource.configs]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    for config in resource.configs:
        if config.value is None and config.config_operation != Operation.DELETE:
            raise _invalid(f"Null value not supported for : {config.name}")


def _granted(resource: ChangedResource, replace: bool, state: ConfigState) -> ConfigsGranted:
    kind, name = resource.resource_type, resource.resource_name
    before: Overrides = {} if replace else state.set_on(kind, name)
    match kind:
        case ResourceType.TOPIC:
            _need_name(name, "topic")
            wanted = _applied(before, resource, _LISTS_OF_TOPICS)
            kept = check_overrides(wanted, state.layers)
            state.check_topic(name)  # after the values, as Kafka does
        case ResourceType.GROUP:
            _need_name(name, "group")
            kept = check_group(_applied(before, resource, {}), state.layers)
        case ResourceType.CLIENT_METRICS:
            if name == "":
                raise _invalid("Subscription name can't be empty")
            kept = check_metrics(_applied(before, resource, {}))
        case ResourceType.BROKER:
            kept = _of_broker(before, resource, state)
        case _:
            raise _invalid(f"Unknown resource type {kind}")
    return ConfigsGranted(resource_type=kind, resource_name=name, configs=kept)


_LISTS_OF_TOPICS: Final = {name: as_text(row.default) for name, row in TABLE.items() if row.kind is Kind.LIST}


def _applied(before: Overrides, resource: ChangedResource, lists: Mapping[str, str]) -> dict[str, str]:
    """What would be set after the changes. `lists` are the configs that are lists, and what they begin as."""
    after = dict(before)
    for config in resource.configs:
        name, value = config.name, config.value or ""
        match config.config_operation:
            case Operation.SET:
                after[name] = value
            case Operation.DELETE:
                after.pop(name, None)
            case Operation.APPEND | Operation.SUBTRACT as operation:
                if name not in lists:
                    word = Operation(operation).name
                    raise KafkaError(
                        ErrorCode.INVALID_CONFIG, f"Can't {word} to key {name} because its type is not LIST."
                    )
                merge = appended if operation == Operation.APPEND else subtracted
                after[name] = merge(after.get(name, lists[name]), value)
            case operation:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown operations type {operation}")
    return after


def _of_broker(before: Overrides, resource: ChangedResource, state: ConfigState) -> dict[str, str]:
    """Dynamic settings of this broker, or of all brokers. Rules A9, G7."""
    name = resource.resource_name
    _check_node(name, state)
    for config in resource.configs:
        if config.config_operation not in tuple(Operation):
            raise _invalid(f"Unknown operations type {config.config_operation}")
    lists = {s.name: s.default or "" for s in state.settings.values() if s.kind == Kind.LIST}
    after = _applied(before, resource, lists)
    fixed = [
        config.name
        for config in resource.configs
        if config.config_operation != Operation.DELETE
        and config.name in state.settings
        and not state.settings[config.name].dynamic
    ]
    if fixed:
        raise _invalid(f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    _check_listeners(name, after)
    others = state.set_on(ResourceType.BROKER, "") if name else {}
    effective = {key: value for key, value in {**others, **after}.items() if key in state.settings}
    if (reason := state.broker_refuses(effective)) is not None:
        raise _invalid(reason)
    _check_min_isr(name, state.set_on(ResourceType.BROKER, name), after)
    return after


def _check_node(name: str, state: ConfigState, also: tuple[str, ...] = ("",)) -> None:
    if name in also:
        return
    number = as_node(name)
    if number is None:
        raise _invalid(f"Node id must be an integer, but it is: {name}")
    if number != state.node_id:
        raise _invalid(f"Unexpected broker id, expected {state.node_id}, but received {name}")


def _check_min_isr(name: str, before: Overrides, after: Overrides) -> None:
    if name and MIN_ISR in after:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        )
    if not name and MIN_ISR in before and MIN_ISR not in after:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        )


def _check_listeners(name: str, after: Overrides) -> None:
    """Kafka shows them as changeable, and clients are shown the same; here they are bound once."""
    if "listeners" not in after:
        return
    if name == "":
        raise _invalid(
            "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
        )
    raise _invalid("listeners are bound when the broker starts: set them there and start it again")


def _levels(resource: ChangedResource, state: ConfigState) -> dict[str, str | None]:
    """New levels for loggers; None is what its parent has."""
    _check_node(resource.resource_name, state, also=())
    levels: dict[str, str | None] = {}
    for config in resource.configs:
        name, level = config.name, config.value
        match config.config_operation:
            case Operation.SET | Operation.DELETE if name not in state.loggers:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
            case Operation.SET if level not in LEVELS:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
                    f"Valid log levels are {', '.join(LEVELS)}",
                )
            case Operation.SET:
                levels[name] = level
            case Operation.DELETE if name == ROOT_LOGGER:
                raise _invalid("Removing the log level of the root logger is not allowed")
            case Operation.DELETE:
                levels[name] = None
            case Operation.APPEND | Operation.SUBTRACT as operation:
                raise _invalid(
                    f"{Operation(operation).name} operation is not allowed for the BROKER_LOGGER resource"
                )
            case operation:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown operations type {operation}")
    return levels


def _need_name(name: str, what: str) -> None:
    if name == "":
        raise _invalid(f"Default {what} resources are not allowed.")


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, reason)
