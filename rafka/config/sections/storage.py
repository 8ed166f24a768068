"""Where records are kept and how safe they are before a producer is told so; and the broker's own log."""

from __future__ import annotations

from typing import Literal

import attrs

from ..places import Place, default_place
from ..setting import Kind, Section, setting


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Storage(Section):
    place: Place = setting(  # noqa: RUF009 (it makes a field)
        "storage",
        default_place,
        "Where records are kept: file:DIR or just DIR, or memory: (nothing survives the process).",
        Kind.LIST,
        aliases=("data.dir", "log.dir"),
        kafka="log.dirs",
    )
    durability: Literal["fsync", "page-cache"] = setting(
        "durability",
        "fsync",
        "When acks=all is answered: fsync = the records survive a loss of power; page-cache = they survive"
        " the end of the process, as Kafka does it.",
        Kind.STRING,
        one_of=("fsync", "page-cache"),
    )
    reserve_bytes: int = setting(
        "storage.reserve.bytes",
        67_108_864,
        "Room on the disk that is left free: with less, records are refused and the broker goes on reading.",
        Kind.LONG,
        unit="bytes",
        at_least=0,
    )
    record_validation: Literal["sampled", "full"] = setting(
        "record.validation",
        "sampled",
        "How closely batches are looked at before they are kept. Checksum, lengths and counts always;"
        " full = every record of every batch too.",
        Kind.STRING,
        one_of=("sampled", "full"),
    )
    checkpoint_interval_ms: int = setting(
        "checkpoint.interval.ms",
        60_000,
        "How often it is noted what is safely on disk: what came later is checked after a crash.",
        unit="ms",
        at_least=1,
        kafka="log.flush.offset.checkpoint.interval.ms",
    )
    checkpoint_bytes: int = setting(
        "checkpoint.bytes",
        64 * 1024 * 1024,
        "With fsync: a log that has grown so much is noted without waiting for the interval, so that"
        " a start after a crash has little to check.",
        unit="bytes",
        at_least=1024 * 1024,
    )
    open_files: int = setting(
        "open.files.max",
        4096,
        "The most segment files that are held open. The least recently used are closed and opened again.",
        at_least=16,
    )


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Logging(Section):
    format: Literal["text", "json"] = setting(
        "log.format",
        "text",
        "The lines that the broker writes about itself: text as Kafka's, or one JSON object each.",
        Kind.STRING,
        one_of=("text", "json"),
    )
    level: Literal["debug", "info", "warning", "error"] = setting(
        "log.level",
        "info",
        "The least serious lines that are written.",
        Kind.STRING,
        one_of=("debug", "info", "warning", "error"),
    )
