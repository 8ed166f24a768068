"""What one topic wants of the batches written to it."""

from __future__ import annotations

from typing import Final

from ..types import message
from .compress import UNPACK_CAP

FOREVER: Final = (1 << 63) - 1


@message
class Rules:
    """The topic's configuration as far as it concerns a batch; `zstd_allowed` is the request's to say."""

    max_bytes: int = 1_048_588
    segment_bytes: int = 1 << 30
    compacted: bool = False  # every record needs a key
    log_append_time: bool = False
    before_max_ms: int = FOREVER
    after_max_ms: int = 3_600_000
    compression: int | None = None  # the codec that batches are stored with; None: the producer's
    level: int | None = None  # of that codec; None: its default
    zstd_allowed: bool = True  # Produce v7 and later
    deep: bool = False  # look at every record
    deep_limit: int | None = None  # ... but at no more than these where only `deep` asks for it
    unpack_cap: int = UNPACK_CAP  # or `max_bytes` where that is more
