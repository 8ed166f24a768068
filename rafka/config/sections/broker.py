"""Who this broker is, and what it does about topics, producers and fetches."""

from __future__ import annotations

import attrs

from ..setting import Kind, Section, setting


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Broker(Section):
    node_id: int = setting(
        "node.id", 0, "The number by which clients know this broker.", at_least=0, aliases=("broker.id",)
    )
    rack: str | None = setting(
        "broker.rack", None, "The rack or zone that clients are told this broker stands in.", Kind.STRING
    )
    cluster_id: str | None = setting(
        "cluster.id",
        None,
        "The id of the cluster. Unless given, one is made when the storage is first used, and kept.",
        Kind.STRING,
    )
    shutdown_grace_ms: int = setting(
        "shutdown.grace.ms",
        10_000,
        "How long a stopping broker goes on with what it has begun. A second signal ends it at once.",
        Kind.LONG,
        unit="ms",
        at_least=0,
    )
    max_reply_bytes: int = setting(
        "describe.max.reply.bytes",
        67_108_864,
        "The most that one answer tells of configs, or of producers, with 100 bytes for each entry."
        " What is asked beyond it is refused with INVALID_REQUEST, but for the first.",
        Kind.LONG,
        unit="bytes",
        at_least=1024,
    )
    max_configured: int = setting(
        "config.max.resources",
        10_000,
        "The most groups, client metrics subscriptions and brokers that have configs of their own."
        " With so many, to set any on another is refused with POLICY_VIOLATION.",
        at_least=2,
    )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Topics(Section):
    partitions: int = setting(
        "num.partitions", 1, "The partitions of a new topic whose creator did not say how many.", at_least=1
    )
    replication_factor: int = setting(
        "default.replication.factor",
        1,
        "The copies of a new topic whose creator did not say how many. No more than there are brokers.",
        at_least=1,
        at_most=32767,
    )
    auto_create: bool = setting(
        "auto.create.topics.enable",
        True,
        "Whether a client that asks for the metadata of a topic that is not there gets it made.",
        Kind.BOOLEAN,
    )
    deletable: bool = setting("delete.topic.enable", True, "Whether clients may delete topics.", Kind.BOOLEAN)
    described_at_once: int = setting(
        "max.request.partition.size.limit",
        2000,
        "The most partitions that one DescribeTopicPartitions answer tells of.",
        at_least=1,
    )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Producers(Section):
    id_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        86_400_000,
        "How long a partition remembers an idempotent producer that has gone quiet.",
        unit="ms",
        at_least=1,
        dynamic=True,
    )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Fetch(Section):
    max_bytes: int = setting(
        "fetch.max.bytes",
        57_671_680,
        "The most record bytes in one fetch answer, whatever the client asks for.",
        unit="bytes",
        at_least=1024,
    )
    session_slots: int = setting(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "The most incremental fetch sessions that are remembered. 0 remembers none.",
        at_least=0,
    )
