"""The configs of a topic: all that Kafka 4.3 has, what they fall back on, and what they add up to.

`config_topic_table` says what there is. `check_overrides` takes what a client wants set and gives back
what to keep; `resolve` makes of what is kept a `TopicConfig`, plain attributes for those
who append and read. A resolved config is kept with its topic and made anew when either
the topic's overrides or the broker's settings change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from ..errors import ErrorCode, KafkaError
from ..types import message
from .config_layers import Layers, chain_of
from .config_topic_table import TABLE
from .config_values import Value, as_text, checked

CODECS: Final[Mapping[str, int]] = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@message
class TopicConfig:
    """What counts for a topic: its own configs over the broker's settings. Times in ms, sizes in bytes."""

    delete: bool  # cleanup.policy has delete
    compact: bool  # cleanup.policy has compact
    codec: int | None  # how batches are kept; None: as they come
    compression_level: int | None  # of that codec, where it has levels
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    max_message_bytes: int
    min_insync_replicas: int
    unclean_leader_election: bool

    retention_ms: int  # -1: for ever
    retention_bytes: int  # -1: no bound
    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    index_interval_bytes: int
    index_max_bytes: int
    preallocate: bool
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int

    delete_retention_ms: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int


def resolve(overrides: Mapping[str, str], layers: Layers) -> TopicConfig:
    """What counts for a topic on which `overrides` are set, on a broker with these settings."""
    value = {name: _effective(name, overrides, layers) for name in TABLE}
    codec = CODECS.get(str(value["compression.type"]))
    level = _LEVELS.get(codec or 0)
    policy = value["cleanup.policy"]
    assert isinstance(policy, tuple)
    return TopicConfig(
        delete="delete" in policy,
        compact="compact" in policy,
        codec=codec,
        compression_level=_int(value[level]) if level else None,
        log_append_time=value["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=_int(value["message.timestamp.before.max.ms"]),
        timestamp_after_max_ms=_int(value["message.timestamp.after.max.ms"]),
        max_message_bytes=_int(value["max.message.bytes"]),
        min_insync_replicas=_int(value["min.insync.replicas"]),
        unclean_leader_election=bool(value["unclean.leader.election.enable"]),
        retention_ms=max(_int(value["retention.ms"]), -1),
        retention_bytes=max(_int(value["retention.bytes"]), -1),
        segment_bytes=_int(value["segment.bytes"]),
        segment_ms=_int(value["segment.ms"]),
        segment_jitter_ms=_int(value["segment.jitter.ms"]),
        index_interval_bytes=_int(value["index.interval.bytes"]),
        index_max_bytes=_int(value["segment.index.bytes"]),
        preallocate=bool(value["preallocate"]),
        file_delete_delay_ms=_int(value["file.delete.delay.ms"]),
        flush_messages=_int(value["flush.messages"]),
        flush_ms=_int(value["flush.ms"]),
        delete_retention_ms=_int(value["delete.retention.ms"]),
        min_cleanable_dirty_ratio=_float(value["min.cleanable.dirty.ratio"]),
        min_compaction_lag_ms=_int(value["min.compaction.lag.ms"]),
        max_compaction_lag_ms=_int(value["max.compaction.lag.ms"]),
    )


def check_overrides(wanted: Mapping[str, str | None], layers: Layers) -> dict[str, str]:
    """What to keep of what a client wants set. Raises INVALID_CONFIG, about unknown names first."""
    for name in wanted:
        if name not in TABLE:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {name}")
    kept: dict[str, str] = {}
    for name, text in wanted.items():
        if text is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        kept[name] = as_text(checked(TABLE[name], text))
    _check_together(kept, layers)
    return kept


def effective_text(name: str, overrides: Mapping[str, str], layers: Layers) -> str:
    """The value that counts for a topic, as DescribeConfigs tells it."""
    return as_text(_effective(name, overrides, layers))


# --- private -----------------------------------------------------------------------

_UNIT_MS: Final[Mapping[str, int]] = {"hours": 3_600_000, "minutes": 60_000}
_LEVELS: Final = {1: "compression.gzip.level", 3: "compression.lz4.level", 4: "compression.zstd.level"}


def _effective(name: str, overrides: Mapping[str, str], layers: Layers) -> Value:
    row = TABLE[name]
    if name in overrides:
        return checked(row, overrides[name])
    for broker in chain_of(row.broker) if row.broker else ():
        text = layers.effective(broker)
        if text is not None:
            unit = _UNIT_MS.get(broker.rpartition(".")[2])
            value = checked(attrs.evolve(row, check=None), text)
            return value if unit is None else max(_int(value) * unit, -1)
    return row.default


def _check_together(kept: Mapping[str, str], layers: Layers) -> None:
    if kept.get("remote.storage.enable") == "true":
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )
    low, high = (_int(_effective(f"{end}.compaction.lag.ms", kept, layers)) for end in ("min", "max"))
    if low > high:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})",
        )


def _int(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _float(value: Value) -> float:
    assert isinstance(value, float)
    return value
