"""What a topic's configuration means to records and to storage: one place for each translation."""

from __future__ import annotations

from ..machines.topic_configs import TopicConfig
from ..records.check import Rules
from ..storage.backend import LogSettings


def rules(config: TopicConfig, *, zstd_allowed: bool, deep: bool, deep_limit: int | None) -> Rules:
    """What the topic wants of a batch. `deep`: its records are looked at, at most `deep_limit` of them."""
    return Rules(
        max_bytes=config.max_message_bytes,
        segment_bytes=config.segment_bytes,
        compacted=config.compact,
        log_append_time=config.log_append_time,
        before_max_ms=config.timestamp_before_max_ms,
        after_max_ms=config.timestamp_after_max_ms,
        compression=config.codec,
        level=config.compression_level,
        zstd_allowed=zstd_allowed,
        deep=deep,
        deep_limit=deep_limit,
    )


def log_settings(config: TopicConfig) -> LogSettings:
    return LogSettings(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        segment_jitter_ms=config.segment_jitter_ms,
        index_interval_bytes=config.index_interval_bytes,
        index_max_bytes=config.index_max_bytes,
        preallocate=config.preallocate,
        file_delete_delay_ms=config.file_delete_delay_ms,
        flush_messages=config.flush_messages,
        flush_ms=config.flush_ms,
    )
