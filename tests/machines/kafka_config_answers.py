"""What Apache Kafka 4.3.1 answers to DescribeConfigs of a new topic, group and subscription.

Recorded from a broker of one node with default settings, synonyms included. A row is
(name, value, source, type, synonyms as (name, value, source)).
"""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = tuple[str, str, int, int, list[tuple[str, str, int]]]

TOPIC: list[Row] = [
    ("cleanup.policy", "delete", 5, 7, [("log.cleanup.policy", "delete", 5)]),
    ("compression.gzip.level", "-1", 5, 3, [("compression.gzip.level", "-1", 5)]),
    ("compression.lz4.level", "9", 5, 3, [("compression.lz4.level", "9", 5)]),
    ("compression.type", "producer", 5, 2, [("compression.type", "producer", 5)]),
    ("compression.zstd.level", "3", 5, 3, [("compression.zstd.level", "3", 5)]),
    ("delete.retention.ms", "86400000", 5, 5, [("log.cleaner.delete.retention.ms", "86400000", 5)]),
    ("file.delete.delay.ms", "60000", 5, 5, [("log.segment.delete.delay.ms", "60000", 5)]),
    (
        "flush.messages",
        "9223372036854775807",
        5,
        5,
        [("log.flush.interval.messages", "9223372036854775807", 5)],
    ),
    ("flush.ms", "9223372036854775807", 5, 5, []),
    ("follower.replication.throttled.replicas", "", 5, 7, []),
    ("index.interval.bytes", "4096", 5, 3, [("log.index.interval.bytes", "4096", 5)]),
    ("leader.replication.throttled.replicas", "", 5, 7, []),
    ("local.retention.bytes", "-2", 5, 5, [("log.local.retention.bytes", "-2", 5)]),
    ("local.retention.ms", "-2", 5, 5, [("log.local.retention.ms", "-2", 5)]),
    (
        "max.compaction.lag.ms",
        "9223372036854775807",
        5,
        5,
        [("log.cleaner.max.compaction.lag.ms", "9223372036854775807", 5)],
    ),
    ("max.message.bytes", "1048588", 5, 3, [("message.max.bytes", "1048588", 5)]),
    (
        "message.timestamp.after.max.ms",
        "3600000",
        5,
        5,
        [("log.message.timestamp.after.max.ms", "3600000", 5)],
    ),
    (
        "message.timestamp.before.max.ms",
        "9223372036854775807",
        5,
        5,
        [("log.message.timestamp.before.max.ms", "9223372036854775807", 5)],
    ),
    ("message.timestamp.type", "CreateTime", 5, 2, [("log.message.timestamp.type", "CreateTime", 5)]),
    ("min.cleanable.dirty.ratio", "0.5", 5, 6, [("log.cleaner.min.cleanable.ratio", "0.5", 5)]),
    ("min.compaction.lag.ms", "0", 5, 5, [("log.cleaner.min.compaction.lag.ms", "0", 5)]),
    ("min.insync.replicas", "1", 3, 3, [("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5)]),
    ("preallocate", "false", 5, 1, [("log.preallocate", "false", 5)]),
    ("remote.log.copy.disable", "false", 5, 1, []),
    ("remote.log.delete.on.disable", "false", 5, 1, []),
    ("remote.storage.enable", "false", 5, 1, []),
    ("retention.bytes", "-1", 5, 5, [("log.retention.bytes", "-1", 5)]),
    ("retention.ms", "604800000", 5, 5, []),
    ("segment.bytes", "1073741824", 5, 3, [("log.segment.bytes", "1073741824", 5)]),
    ("segment.index.bytes", "10485760", 5, 3, [("log.index.size.max.bytes", "10485760", 5)]),
    ("segment.jitter.ms", "0", 5, 5, []),
    ("segment.ms", "604800000", 5, 5, []),
    ("unclean.leader.election.enable", "false", 5, 1, [("unclean.leader.election.enable", "false", 5)]),
]

GROUP: list[Row] = [
    ("consumer.assignment.interval.ms", "1000", 5, 3, [("group.consumer.assignment.interval.ms", "1000", 5)]),
    ("consumer.heartbeat.interval.ms", "5000", 5, 3, [("group.consumer.heartbeat.interval.ms", "5000", 5)]),
    ("consumer.session.timeout.ms", "45000", 5, 3, [("group.consumer.session.timeout.ms", "45000", 5)]),
    ("share.assignment.interval.ms", "1000", 5, 3, [("group.share.assignment.interval.ms", "1000", 5)]),
    ("share.auto.offset.reset", "latest", 5, 2, [("share.auto.offset.reset", "latest", 5)]),
    ("share.delivery.count.limit", "5", 5, 3, [("group.share.delivery.count.limit", "5", 5)]),
    ("share.heartbeat.interval.ms", "5000", 5, 3, [("group.share.heartbeat.interval.ms", "5000", 5)]),
    ("share.isolation.level", "read_uncommitted", 5, 2, [("share.isolation.level", "read_uncommitted", 5)]),
    (
        "share.partition.max.record.locks",
        "2000",
        5,
        3,
        [("group.share.partition.max.record.locks", "2000", 5)],
    ),
    ("share.record.lock.duration.ms", "30000", 5, 3, [("group.share.record.lock.duration.ms", "30000", 5)]),
    ("share.renew.acknowledge.enable", "true", 5, 1, [("share.renew.acknowledge.enable", "true", 5)]),
    ("share.session.timeout.ms", "45000", 5, 3, [("group.share.session.timeout.ms", "45000", 5)]),
    ("streams.assignment.interval.ms", "1000", 5, 3, [("group.streams.assignment.interval.ms", "1000", 5)]),
    ("streams.heartbeat.interval.ms", "5000", 5, 3, [("group.streams.heartbeat.interval.ms", "5000", 5)]),
    (
        "streams.initial.rebalance.delay.ms",
        "3000",
        5,
        3,
        [("group.streams.initial.rebalance.delay.ms", "3000", 5)],
    ),
    ("streams.num.standby.replicas", "0", 5, 3, [("group.streams.num.standby.replicas", "0", 5)]),
    ("streams.session.timeout.ms", "45000", 5, 3, [("group.streams.session.timeout.ms", "45000", 5)]),
]

METRICS: list[Row] = [
    ("interval.ms", "300000", 5, 3, []),
    ("match", "", 5, 7, []),
    ("metrics", "", 5, 7, []),
]
