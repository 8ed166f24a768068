"""What a topic's log is like unless the topic says otherwise, and the compaction of logs.

Each of these is the default of a topic config (`retention.ms` has `log.retention.ms`);
names and defaults are Kafka's.
"""

from __future__ import annotations

from typing import Final, Literal

import attrs

from ..setting import LONG_MAX, ConfigError, Kind, Section, setting

HOUR_MS: Final = 3_600_000


@attrs.frozen(kw_only=True, eq=False, repr=False)
class LogDefaults(Section):
    segment_bytes: int = setting(
        "log.segment.bytes",
        1_073_741_824,
        "The size at which a new segment file is begun.",
        unit="bytes",
        at_least=1_048_576,
        dynamic=True,
    )
    roll_ms: int | None = setting(
        "log.roll.ms",
        None,
        "The age at which a new segment is begun. Where it is not given, log.roll.hours counts.",
        Kind.LONG,
        unit="ms",
        at_least=1,
        dynamic=True,
    )
    roll_hours: int = setting(
        "log.roll.hours", 168, "The age at which a new segment is begun.", unit="hours", at_least=1
    )
    roll_jitter_ms: int | None = setting(
        "log.roll.jitter.ms",
        None,
        "Up to this much is taken off the age at random, lest all logs roll at once."
        " Where it is not given, log.roll.jitter.hours counts.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    roll_jitter_hours: int = setting(
        "log.roll.jitter.hours", 0, "As log.roll.jitter.ms, in hours.", unit="hours", at_least=0
    )
    retention_ms: int | None = setting(
        "log.retention.ms",
        None,
        "How long records are kept; -1 is for ever. Where it is not given, log.retention.minutes counts.",
        Kind.LONG,
        unit="ms",
        at_least=-1,
        dynamic=True,
    )
    retention_minutes: int | None = setting(
        "log.retention.minutes",
        None,
        "How long records are kept; -1 is for ever. Where it is not given, log.retention.hours counts.",
        unit="minutes",
        at_least=-1,
    )
    retention_hours: int = setting(
        "log.retention.hours", 168, "How long records are kept; -1 is for ever.", unit="hours", at_least=-1
    )
    retention_bytes: int = setting(
        "log.retention.bytes",
        -1,
        "The size above which the oldest segments of a partition are deleted; -1 is no bound.",
        Kind.LONG,
        unit="bytes",
        at_least=-1,
        dynamic=True,
    )
    retention_check_interval_ms: int = setting(
        "log.retention.check.interval.ms",
        300_000,
        "How often logs are looked through for segments that are due to go.",
        Kind.LONG,
        unit="ms",
        at_least=1,
    )
    cleanup_policy: tuple[str, ...] = setting(
        "log.cleanup.policy",
        ("delete",),
        "What becomes of old records: delete, compact (the last record of each key stays), both, or nothing.",
        Kind.LIST,
        one_of=("delete", "compact"),
        dynamic=True,
    )
    flush_messages: int = setting(
        "log.flush.interval.messages",
        LONG_MAX,
        "The number of records after which a log is made durable, whatever the durability.",
        Kind.LONG,
        at_least=1,
        dynamic=True,
    )
    flush_ms: int | None = setting(
        "log.flush.interval.ms",
        None,
        "The time after which a log is made durable, whatever the durability. Where it is not given, never.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    index_max_bytes: int = setting(
        "log.index.size.max.bytes",
        10_485_760,
        "The largest index of a segment. When it is full a new segment is begun.",
        unit="bytes",
        at_least=4,
        dynamic=True,
    )
    index_interval_bytes: int = setting(
        "log.index.interval.bytes",
        4096,
        "The records between two entries of the index.",
        unit="bytes",
        at_least=0,
        dynamic=True,
    )
    delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms",
        60_000,
        "The time between deleting a segment and removing its files.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    preallocate: bool = setting(
        "log.preallocate",
        False,
        "Whether a new segment takes its whole size at once.",
        Kind.BOOLEAN,
        dynamic=True,
    )
    message_max_bytes: int = setting(
        "message.max.bytes",
        1_048_588,
        "The largest record batch, as it comes: compressed if it is.",
        unit="bytes",
        at_least=0,
        dynamic=True,
    )
    timestamp_type: Literal["CreateTime", "LogAppendTime"] = setting(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether a record's time is the producer's or that of its arrival.",
        Kind.STRING,
        one_of=("CreateTime", "LogAppendTime"),
        dynamic=True,
    )
    timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "How far behind the broker's clock a record's time may be.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms",
        HOUR_MS,
        "How far ahead of the broker's clock a record's time may be.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    compression: Literal["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"] = setting(
        "compression.type",
        "producer",
        "How batches are kept: producer = as they come.",
        Kind.STRING,
        one_of=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        dynamic=True,
    )
    gzip_level: int = setting(
        "compression.gzip.level",
        -1,
        "The level of gzip, 1 to 9; -1 is its own default.",
        at_least=-1,
        at_most=9,
        dynamic=True,
    )
    lz4_level: int = setting(
        "compression.lz4.level", 9, "The level of lz4.", at_least=1, at_most=17, dynamic=True
    )
    zstd_level: int = setting(
        "compression.zstd.level", 3, "The level of zstd.", at_least=-131_072, at_most=22, dynamic=True
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas",
        1,
        "The copies that must be in sync for acks=all, at most as many as there are.",
        at_least=1,
        dynamic=True,
    )
    unclean_election: bool = setting(
        "unclean.leader.election.enable",
        False,
        "Whether a copy that has fallen behind may lead where no other is left.",
        Kind.BOOLEAN,
        dynamic=True,
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for key, value in (
            ("log.retention.ms", self.retention_ms),
            ("log.retention.minutes", self.retention_minutes),
            ("log.retention.hours", self.retention_hours),
        ):
            if value == 0:
                raise ConfigError(key, value, "must be -1 (for ever) or at least 1")
        if self.gzip_level == 0:
            raise ConfigError("compression.gzip.level", 0, "must be 1 to 9, or -1")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Cleaner(Section):
    """Compaction. Its defaults for topics first, then how the broker goes about it."""

    delete_retention_ms: int = setting(
        "log.cleaner.delete.retention.ms",
        86_400_000,
        "How long the mark that a key was deleted is kept after the first compaction that met it.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    min_cleanable_ratio: float = setting(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "The part of a log that must be new since its last compaction for the next one.",
        Kind.DOUBLE,
        at_least=0,
        at_most=1,
        dynamic=True,
    )
    min_compaction_lag_ms: int = setting(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "The age up to which a record is safe from compaction.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    max_compaction_lag_ms: int = setting(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "The age at which a record is due for compaction, however little else is.",
        Kind.LONG,
        unit="ms",
        at_least=1,
        dynamic=True,
    )
    enabled: bool = setting("log.cleaner.enable", True, "Whether logs are compacted at all.", Kind.BOOLEAN)
    backoff_ms: int = setting(
        "log.cleaner.backoff.ms",
        15_000,
        "How long to wait before looking again where there was nothing to compact.",
        Kind.LONG,
        unit="ms",
        at_least=0,
        dynamic=True,
    )
    dedupe_buffer_bytes: int = setting(
        "log.cleaner.dedupe.buffer.size",
        134_217_728,
        "The memory for the keys of the logs that are being compacted. More keys take more rounds.",
        Kind.LONG,
        unit="bytes",
        at_least=1_048_576,
        dynamic=True,
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise ConfigError(
                "log.cleaner.min.compaction.lag.ms",
                self.min_compaction_lag_ms,
                f"must be at most log.cleaner.max.compaction.lag.ms, which is {self.max_compaction_lag_ms}",
            )
