"""The table of topic configs: all 33 that Kafka 4.3 has, with its defaults and its bounds.

Names, types and bounds are Kafka's, and so is the broker's setting on which each falls back.
The documentation is drawn from here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from .config_values import LONG_MAX, Check, ConfigDef, Kind, Value, at_least, by_name, one_of, within


@attrs.frozen
class TopicDef(ConfigDef):
    """A topic's config, and the broker's setting that it falls back on ("" where there is none)."""

    broker: str = ""


def _gzip_level(value: Value) -> str | None:
    return None if value in (-1, *range(1, 10)) else "Value must be between 1 and 9 or equal to -1"


def _throttled(name: str) -> Check:
    def check(value: Value) -> str | None:
        assert isinstance(value, tuple)
        if value in ((), ("*",)) or all(_REPLICA.fullmatch(item) for item in value):
            return None
        return (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    return check


_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+")
_WEEK_MS: Final = 604_800_000
_HOUR_MS: Final = 3_600_000
_LEADER: Final = "leader.replication.throttled.replicas"
_FOLLOWER: Final = "follower.replication.throttled.replicas"

TABLE: Final[Mapping[str, TopicDef]] = by_name(
    TopicDef(
        "cleanup.policy",
        Kind.LIST,
        ("delete",),
        "What becomes of old records: delete, compact (the last record of each key stays), both, or nothing.",
        one_of("compact", "delete"),
        "log.cleanup.policy",
    ),
    TopicDef(
        "compression.type",
        Kind.STRING,
        "producer",
        "How batches are kept: as their producer sent them, or compressed anew.",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "compression.type",
    ),
    TopicDef(
        "compression.gzip.level",
        Kind.INT,
        -1,
        "The level of gzip; -1 is its own default.",
        _gzip_level,
        "compression.gzip.level",
    ),
    TopicDef(
        "compression.lz4.level", Kind.INT, 9, "The level of lz4.", within(1, 17), "compression.lz4.level"
    ),
    TopicDef(
        "compression.zstd.level",
        Kind.INT,
        3,
        "The level of zstd.",
        within(-131_072, 22),
        "compression.zstd.level",
    ),
    TopicDef(
        "delete.retention.ms",
        Kind.LONG,
        86_400_000,
        "How long the mark that a key was deleted is kept after the first compaction that met it.",
        at_least(0),
        "log.cleaner.delete.retention.ms",
    ),
    TopicDef(
        "file.delete.delay.ms",
        Kind.LONG,
        60_000,
        "The time between deleting a segment and removing its files.",
        at_least(0),
        "log.segment.delete.delay.ms",
    ),
    TopicDef(
        "flush.messages",
        Kind.LONG,
        LONG_MAX,
        "The number of records after which the log is made durable, whatever the broker's durability.",
        at_least(1),
        "log.flush.interval.messages",
    ),
    TopicDef(
        "flush.ms",
        Kind.LONG,
        LONG_MAX,
        "The time after which the log is made durable, whatever the broker's durability.",
        at_least(0),
        "log.flush.interval.ms",
    ),
    TopicDef(
        _FOLLOWER,
        Kind.LIST,
        (),
        "Replicas whose replication is throttled, as partition:broker. One broker copies nothing.",
        _throttled(_FOLLOWER),
    ),
    TopicDef(
        "index.interval.bytes",
        Kind.INT,
        4096,
        "The records between two entries of a segment's index.",
        at_least(0),
        "log.index.interval.bytes",
    ),
    TopicDef(
        _LEADER,
        Kind.LIST,
        (),
        "Leaders whose replication is throttled, as partition:broker. One broker copies nothing.",
        _throttled(_LEADER),
    ),
    TopicDef(
        "local.retention.bytes",
        Kind.LONG,
        -2,
        "What is kept here of a log that is also kept in tiered storage, which this broker has not.",
        at_least(-2),
        "log.local.retention.bytes",
    ),
    TopicDef(
        "local.retention.ms",
        Kind.LONG,
        -2,
        "How long a log is kept here that is also kept in tiered storage, which this broker has not.",
        at_least(-2),
        "log.local.retention.ms",
    ),
    TopicDef(
        "max.compaction.lag.ms",
        Kind.LONG,
        LONG_MAX,
        "The age at which a record is due for compaction, however little else is.",
        at_least(1),
        "log.cleaner.max.compaction.lag.ms",
    ),
    TopicDef(
        "max.message.bytes",
        Kind.INT,
        1_048_588,
        "The largest record batch, as it comes: compressed if it is.",
        at_least(0),
        "message.max.bytes",
    ),
    TopicDef(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        _HOUR_MS,
        "How far ahead of the broker's clock a record's time may be.",
        at_least(0),
        "log.message.timestamp.after.max.ms",
    ),
    TopicDef(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        LONG_MAX,
        "How far behind the broker's clock a record's time may be.",
        at_least(0),
        "log.message.timestamp.before.max.ms",
    ),
    TopicDef(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whether a record's time is the producer's or that of its arrival.",
        one_of("CreateTime", "LogAppendTime"),
        "log.message.timestamp.type",
    ),
    TopicDef(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "The part of the log that must be new since its last compaction for the next one.",
        within(0, 1),
        "log.cleaner.min.cleanable.ratio",
    ),
    TopicDef(
        "min.compaction.lag.ms",
        Kind.LONG,
        0,
        "The age up to which a record is safe from compaction.",
        at_least(0),
        "log.cleaner.min.compaction.lag.ms",
    ),
    TopicDef(
        "min.insync.replicas",
        Kind.INT,
        1,
        "The copies that must be in sync for acks=all, at most as many as there are.",
        at_least(1),
        "min.insync.replicas",
    ),
    TopicDef(
        "preallocate",
        Kind.BOOLEAN,
        False,
        "Whether a new segment takes its whole size at once.",
        None,
        "log.preallocate",
    ),
    TopicDef(
        "remote.log.copy.disable",
        Kind.BOOLEAN,
        False,
        "Whether copying to tiered storage, which this broker has not, is stopped.",
    ),
    TopicDef(
        "remote.log.delete.on.disable",
        Kind.BOOLEAN,
        False,
        "Whether what lies in tiered storage, which this broker has not, goes when that is switched off.",
    ),
    TopicDef(
        "remote.storage.enable",
        Kind.BOOLEAN,
        False,
        "Whether the log is kept in tiered storage too. This broker has none: only false is taken.",
    ),
    TopicDef(
        "retention.bytes",
        Kind.LONG,
        -1,
        "The size above which the oldest segments of a partition are deleted; -1 is no bound.",
        None,
        "log.retention.bytes",
    ),
    TopicDef(
        "retention.ms",
        Kind.LONG,
        _WEEK_MS,
        "How long records are kept; -1 is for ever.",
        at_least(-1),
        "log.retention.ms",
    ),
    TopicDef(
        "segment.bytes",
        Kind.INT,
        1_073_741_824,
        "The size at which a new segment file is begun.",
        at_least(1_048_576),
        "log.segment.bytes",
    ),
    TopicDef(
        "segment.index.bytes",
        Kind.INT,
        10_485_760,
        "The largest index of a segment. When it is full a new segment is begun.",
        at_least(4),
        "log.index.size.max.bytes",
    ),
    TopicDef(
        "segment.jitter.ms",
        Kind.LONG,
        0,
        "Up to this much is taken off segment.ms at random, lest all logs roll at once.",
        at_least(0),
        "log.roll.jitter.ms",
    ),
    TopicDef(
        "segment.ms",
        Kind.LONG,
        _WEEK_MS,
        "The age at which a new segment is begun.",
        at_least(1),
        "log.roll.ms",
    ),
    TopicDef(
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        False,
        "Whether a copy that has fallen behind may lead where no other is left.",
        None,
        "unclean.leader.election.enable",
    ),
)
