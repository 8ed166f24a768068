"""Where a setting has Kafka's name it has Kafka's default and type, or a reason not to."""

from __future__ import annotations

from rafka.config import Config
from rafka.config.kafka_names import GONE, NAMES
from rafka.config.setting import Kind

# What an Apache Kafka 4.3.1 of one node tells of itself: (value, type). "" is "not set".
KAFKA: dict[str, tuple[str, int]] = {
    "advertised.listeners": ("", 7),
    "auto.create.topics.enable": ("true", 1),
    "broker.id": ("-1", 3),
    "broker.rack": ("", 2),
    "compression.gzip.level": ("-1", 3),
    "compression.lz4.level": ("9", 3),
    "compression.type": ("producer", 2),
    "compression.zstd.level": ("3", 3),
    "connections.max.idle.ms": ("600000", 5),
    "controller.listener.names": ("", 7),
    "default.replication.factor": ("1", 3),
    "delete.topic.enable": ("true", 1),
    "fetch.max.bytes": ("57671680", 3),
    "group.initial.rebalance.delay.ms": ("3000", 3),
    "group.max.session.timeout.ms": ("1800000", 3),
    "group.max.size": ("2147483647", 3),
    "group.min.session.timeout.ms": ("6000", 3),
    "listener.security.protocol.map": (
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        2,
    ),
    "listeners": ("PLAINTEXT://:9092", 7),
    "log.cleaner.backoff.ms": ("15000", 5),
    "log.cleaner.dedupe.buffer.size": ("134217728", 5),
    "log.cleaner.delete.retention.ms": ("86400000", 5),
    "log.cleaner.enable": ("true", 1),
    "log.cleaner.max.compaction.lag.ms": ("9223372036854775807", 5),
    "log.cleaner.min.cleanable.ratio": ("0.5", 6),
    "log.cleaner.min.compaction.lag.ms": ("0", 5),
    "log.cleanup.policy": ("delete", 7),
    "log.dirs": ("", 7),
    "log.flush.interval.messages": ("9223372036854775807", 5),
    "log.flush.interval.ms": ("", 5),
    "log.flush.offset.checkpoint.interval.ms": ("60000", 3),
    "log.index.interval.bytes": ("4096", 3),
    "log.index.size.max.bytes": ("10485760", 3),
    "log.message.timestamp.after.max.ms": ("3600000", 5),
    "log.message.timestamp.before.max.ms": ("9223372036854775807", 5),
    "log.message.timestamp.type": ("CreateTime", 2),
    "log.preallocate": ("false", 1),
    "log.retention.bytes": ("-1", 5),
    "log.retention.check.interval.ms": ("300000", 5),
    "log.retention.hours": ("168", 3),
    "log.retention.minutes": ("", 3),
    "log.retention.ms": ("", 5),
    "log.roll.hours": ("168", 3),
    "log.roll.jitter.hours": ("0", 3),
    "log.roll.jitter.ms": ("", 5),
    "log.roll.ms": ("", 5),
    "log.segment.bytes": ("1073741824", 3),
    "log.segment.delete.delay.ms": ("60000", 5),
    "max.connections": ("2147483647", 3),
    "max.connections.per.ip": ("2147483647", 3),
    "max.incremental.fetch.session.cache.slots": ("1000", 3),
    "max.request.partition.size.limit": ("2000", 3),
    "message.max.bytes": ("1048588", 3),
    "min.insync.replicas": ("1", 3),
    "node.id": ("", 3),
    "num.partitions": ("1", 3),
    "offset.metadata.max.bytes": ("4096", 3),
    "offsets.retention.check.interval.ms": ("600000", 5),
    "offsets.retention.minutes": ("10080", 3),
    "producer.id.expiration.ms": ("86400000", 3),
    "queued.max.request.bytes": ("-1", 5),
    "socket.request.max.bytes": ("104857600", 3),
    "unclean.leader.election.enable": ("false", 1),
}

CHANGEABLE = {
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "listener.security.protocol.map",
    "listeners",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.flush.interval.messages",
    "log.flush.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.preallocate",
    "log.retention.bytes",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.connections",
    "max.connections.per.ip",
    "message.max.bytes",
    "min.insync.replicas",
    "producer.id.expiration.ms",
    "unclean.leader.election.enable",
}

OURS = {
    "node.id": "one node is enough to begin with: it need not be named",
    "broker.id": "as node.id",
    "group.initial.rebalance.delay.ms": "a first member need not wait for company",
    "listeners": "not open to the network unless told to be",
    "advertised.listeners": "the address listened on",
    "listener.security.protocol.map": "names that speak for themselves are not listed",
    "log.dirs": "in the user's own state folder, and not under /tmp",
    "max.connections": "a bound that a machine can bear",
    "max.connections.per.ip": "a bound that a machine can bear",
    "queued.max.request.bytes": "memory for requests is bounded",
}


def test_defaults_and_types_are_kafkas() -> None:
    shown = {row.name: row for row in Config().shown()}

    differing = {
        name for name, (value, _) in KAFKA.items() if name in shown and (shown[name].default or "") != value
    }

    assert differing <= set(OURS)
    assert {n: row.kind for n, row in shown.items() if n in KAFKA} == {
        name: kind for name, (_, kind) in KAFKA.items() if name in shown
    }


def test_what_is_true_or_false_is_told_to_be() -> None:
    yes_or_no = [row for row in Config().shown() if row.default in ("true", "false")]

    assert {row.name for row in yes_or_no if row.kind != Kind.BOOLEAN} == set()


def test_what_may_change_while_kafka_runs_is_changeable_here() -> None:
    changeable = {row.name for row in Config().shown() if row.dynamic and row.name in KAFKA}

    # The map says what listeners speak: they are bound once, and a change would change nothing.
    assert changeable == CHANGEABLE - {"listener.security.protocol.map"}


def test_names_that_are_gone_are_not_among_those_that_are_there() -> None:
    assert not NAMES & GONE
    assert set(KAFKA) <= NAMES
