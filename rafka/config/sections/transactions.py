"""Transactions: how long one may last, how long an id is remembered, and how large all may grow."""

from __future__ import annotations

import attrs

from ..setting import Kind, Section, setting


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Transactions(Section):
    max_timeout_ms: int = setting(
        "transaction.max.timeout.ms",
        900_000,
        "The longest that a producer may ask for its transactions to last."
        " One that lasts longer than its producer asked for is aborted.",
        unit="ms",
        at_least=1,
    )
    id_expiration_ms: int = setting(
        "transactional.id.expiration.ms",
        604_800_000,
        "How long a transactional id is remembered that nobody uses.",
        unit="ms",
        at_least=1,
    )
    cleanup_interval_ms: int = setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often transactional ids are looked through for those that nobody has used for too long.",
        unit="ms",
        at_least=1,
    )
    verification: bool = setting(
        "transaction.partition.verification.enable",
        True,
        "Whether a batch that claims to be part of a transaction is taken only if its transaction is open"
        " and the partition is part of it.",
        Kind.BOOLEAN,
        dynamic=True,
    )
    retry_backoff_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "How long to wait before a write is tried again whose producer's last transaction is still ending.",
        unit="ms",
        at_least=1,
    )
    retry_backoff_max_ms: int = setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "How long such a write is tried before its client has to try again itself.",
        unit="ms",
        at_least=0,
    )
    max_ids: int = setting(
        "transaction.max.ids",
        1_000_000,
        "The most transactional ids. With so many a new one is refused with COORDINATOR_NOT_AVAILABLE.",
        Kind.LONG,
        at_least=1,
        dynamic=True,
    )
    max_partitions: int = setting(
        "transaction.max.partitions",
        100_000,
        "The most partitions of one transaction. What is more is refused with POLICY_VIOLATION.",
        Kind.LONG,
        at_least=1,
        dynamic=True,
    )
    max_reply_bytes: int = setting(
        "transaction.max.reply.bytes",
        67_108_864,
        "The most, about, that one answer tells of transactions. What is asked beyond it is refused with"
        " INVALID_REQUEST, but for the first.",
        Kind.LONG,
        unit="bytes",
        at_least=1024,
        dynamic=True,
    )
