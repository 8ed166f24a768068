"""The configs of groups and of client metrics subscriptions: tables, bounds, and what fits together.

A group's config falls back on the broker's setting `group.` + name, whose own bounds bound it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from ..errors import ErrorCode, KafkaError
from .config_layers import Layers
from .config_values import ConfigDef, Kind, Value, as_text, at_least, by_name, checked, one_of


@attrs.frozen
class GroupDef(ConfigDef):
    """A group's config. `broker` is what it falls back on; `lowest` and `highest` are (setting, default)."""

    broker: str = ""
    lowest: tuple[str, int] | None = None
    highest: tuple[str, int] | None = None


def _bounded(
    name: str, default: int, doc: str, floor: int, low: int | None, high: int | None, bound: str = ""
) -> GroupDef:
    kind, _, rest = name.partition(".")
    bound = bound or rest
    return GroupDef(
        name,
        Kind.INT,
        default,
        doc,
        at_least(floor),
        f"group.{name}",
        None if low is None else (f"group.{kind}.min.{bound}", low),
        None if high is None else (f"group.{kind}.max.{bound}", high),
    )


def _reset(value: Value) -> str | None:
    if value in ("earliest", "latest") or _BY_DURATION.fullmatch(str(value)):
        return None
    return (
        f"Invalid value `{value}` for configuration share.auto.offset.reset. The value must be either "
        "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    )


_BY_DURATION: Final = re.compile(
    r"by_duration:P(?=\d|T\d)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d{1,9})?S)?)?", re.IGNORECASE
)

_SESSION: Final = "How long a member may be silent before it is taken to be gone."
_HEARTBEAT: Final = "How often members are told to report."
_ASSIGNMENT: Final = "The least time between two assignments of the group."

GROUP_TABLE: Final[Mapping[str, GroupDef]] = by_name(
    _bounded("consumer.session.timeout.ms", 45_000, _SESSION, 1, 45_000, 60_000),
    _bounded("consumer.heartbeat.interval.ms", 5_000, _HEARTBEAT, 1, 5_000, 15_000),
    _bounded("consumer.assignment.interval.ms", 1_000, _ASSIGNMENT, 0, 0, 15_000),
    _bounded("share.session.timeout.ms", 45_000, _SESSION, 1, 45_000, 60_000),
    _bounded("share.heartbeat.interval.ms", 5_000, _HEARTBEAT, 1, 5_000, 15_000),
    _bounded("share.assignment.interval.ms", 1_000, _ASSIGNMENT, 0, 0, 15_000),
    _bounded(
        "share.record.lock.duration.ms",
        30_000,
        "How long a record is a member's alone before it may go to another.",
        1_000,
        15_000,
        60_000,
    ),
    _bounded(
        "share.delivery.count.limit",
        5,
        "How many times a record is handed out before it is given up.",
        2,
        2,
        10,
    ),
    _bounded(
        "share.partition.max.record.locks",
        2_000,
        "The most records of a partition that are handed out at a time.",
        100,
        100,
        4_000,
    ),
    GroupDef(
        "share.auto.offset.reset",
        Kind.STRING,
        "latest",
        "Where a share group begins: earliest, latest, or by_duration: with a duration back from now.",
        _reset,
        "share.auto.offset.reset",
    ),
    GroupDef(
        "share.isolation.level",
        Kind.STRING,
        "read_uncommitted",
        "Whether a share group is given records of transactions that are not committed.",
        one_of("read_committed", "read_uncommitted"),
        "share.isolation.level",
    ),
    GroupDef(
        "share.renew.acknowledge.enable",
        Kind.BOOLEAN,
        True,
        "Whether a member may renew its hold on a record.",
        None,
        "share.renew.acknowledge.enable",
    ),
    _bounded("streams.session.timeout.ms", 45_000, _SESSION, 1, 45_000, 60_000),
    _bounded("streams.heartbeat.interval.ms", 5_000, _HEARTBEAT, 1, 5_000, 15_000),
    _bounded("streams.assignment.interval.ms", 1_000, _ASSIGNMENT, 0, 0, 15_000),
    _bounded(
        "streams.initial.rebalance.delay.ms",
        3_000,
        "How long a new group waits for company before its first assignment.",
        0,
        None,
        None,
    ),
    _bounded(
        "streams.num.standby.replicas",
        0,
        "The standby copies of each task.",
        0,
        None,
        2,
        bound="standby.replicas",
    ),
)

METRICS_TABLE: Final[Mapping[str, ConfigDef]] = by_name(
    ConfigDef("interval.ms", Kind.INT, 300_000, "How often a client sends its metrics."),
    ConfigDef("match", Kind.LIST, (), "Which clients: patterns by what is known of them; empty for all."),
    ConfigDef("metrics", Kind.LIST, (), "The metrics, by the beginning of their names; * for all."),
)

_MATCHABLE: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check_group(wanted: Mapping[str, str], layers: Layers) -> dict[str, str]:
    """What to keep of what is wanted for a group. Raises INVALID_CONFIG."""
    kept: dict[str, str] = {}
    for name, text in wanted.items():
        row = GROUP_TABLE.get(name)
        if row is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        value = checked(row, text)
        for bound, word, sign in ((row.lowest, "greater", 1), (row.highest, "less", -1)):
            if bound is not None and isinstance(value, int):
                setting, default = bound
                if (value - int(layers.effective(setting) or default)) * sign < 0:
                    raise KafkaError(
                        ErrorCode.INVALID_CONFIG, f"{name} must be {word} than or equal to {setting}"
                    )
        kept[name] = as_text(value)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if int(group_text(session, kept, layers)) <= int(group_text(heartbeat, kept, layers)):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"{session} must be greater than {heartbeat}")
    return kept


def group_text(name: str, overrides: Mapping[str, str], layers: Layers) -> str:
    """The value that counts for a group."""
    row = GROUP_TABLE[name]
    return overrides.get(name) or layers.effective(row.broker) or as_text(row.default)


def check_metrics(wanted: Mapping[str, str]) -> dict[str, str]:
    """What to keep of what is wanted for a subscription. Raises, with Kafka's codes, uneven as they are."""
    kept: dict[str, str] = {}
    for name, text in wanted.items():
        if name not in METRICS_TABLE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
        value = checked(METRICS_TABLE[name], text)
        if isinstance(value, int) and not 100 <= value <= 3_600_000:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Invalid value {value} for {name}, interval must be between 100 and 3600000 (1 hour)",
            )
        if name == "match" and isinstance(value, tuple):
            for pattern in value:
                _check_pattern(pattern)
        kept[name] = as_text(value)
    return kept


def _check_pattern(pattern: str) -> None:
    key, equals, expression = pattern.partition("=")
    if key.strip() in _MATCHABLE and equals:
        try:
            re.compile(expression.strip())
            return
        except (re.error, RecursionError, OverflowError):
            pass
    raise KafkaError(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {pattern}")
