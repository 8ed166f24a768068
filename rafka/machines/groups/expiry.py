"""When the offsets of a group are too old to be kept.

    group                                  its offsets grow old
    -------------------------------------  -------------------------------------------------
    never had members (a simple one)       from their commit on
    Empty                                  from the moment when it became Empty
    Stable consumers, their topics known   from their commit on, if nobody reads the topic
    anything else                          not at all

An offset that a client of long ago gave a time of its own goes by that instead, in the groups
and for the topics where offsets grow old at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

CONSUMER: Final = "consumer"  # the protocol type whose metadata tells topics


def no_topic(name: str) -> bool | None:
    return False


@attrs.frozen
class Ageing:
    """How the offsets of a group grow old."""

    since_ms: int | None = None  # None: each one from its own commit on
    # Whether members read a topic, whose offsets are kept then; None where that cannot be known.
    subscribed_to: Callable[[str], bool | None] = no_topic


def ageing(
    *,
    protocol_type: str | None,
    empty: bool,
    stable: bool,
    empty_since_ms: int | None,
    subscribed_to: Callable[[str], bool | None],
) -> Ageing | None:
    """What the state of a group means for its offsets; None: they do not grow old."""
    if not protocol_type:
        return Ageing()
    if empty:
        return Ageing(since_ms=empty_since_ms)
    if stable and protocol_type == CONSUMER:
        return Ageing(subscribed_to=subscribed_to)
    return None
