"""What the settings of groups mean to their machines."""

from __future__ import annotations

from ..config import Config
from ..env import Env
from ..machines.groups.directory import Limits
from ..machines.groups.model import GroupRules


def rules(config: Config, env: Env) -> GroupRules:
    """What holds for each group."""
    groups = config.groups
    return GroupRules(
        new_uuid=lambda: _uuid(env.rng.randbytes(16)),
        min_session_ms=groups.min_session_ms,
        max_session_ms=groups.max_session_ms,
        initial_delay_ms=groups.initial_delay_ms,
        max_size=groups.max_size,
        lexicographic_leader=groups.leader_election == "lexicographic",
        max_pending=groups.max_pending,
        max_group_bytes=groups.max_group_bytes,
        max_name=groups.max_name,
        max_protocols=groups.max_protocols,
        max_metadata_bytes=groups.max_metadata_bytes,
        max_assignment_bytes=groups.max_assignment_bytes,
    )


def limits(config: Config) -> Limits:
    """What holds for all groups together, and for their offsets."""
    groups = config.groups
    return Limits(
        max_groups=groups.max_count,
        metadata_max=groups.metadata_max_bytes,
        retention_ms=groups.retention_minutes * 60_000,
        history_size=groups.history_size,
        history_rows=groups.history_rows,
        max_reply_bytes=groups.max_reply_bytes,
    )


def _uuid(entropy: bytes) -> str:
    """A random UUID, version 4, as RFC 4122 writes it."""
    number = bytearray(entropy)
    number[6] = number[6] & 0x0F | 0x40
    number[8] = number[8] & 0x3F | 0x80
    text = number.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
