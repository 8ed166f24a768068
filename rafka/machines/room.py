"""How much one answer may hold.

A question of a few bytes may name the same thing again and again, and each time all that is
known of it would be told. So what is told is counted while it is put together, and
where there is no room for more the rest is refused.
"""

from __future__ import annotations

from math import inf
from typing import Final

from ..errors import ErrorCode, KafkaError

EACH: Final = 100  # bytes: an entry of an answer, besides its text


class Room:
    """What is left of it. Once too much was asked of it, there is none for anything."""

    __slots__ = ("left", "must")

    def __init__(self, size: float = inf) -> None:
        self.left = size
        self.must = False  # what cannot be asked for in smaller parts is told, whatever it takes

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0 and not self.must:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "the answer would be too large: ask for fewer at a time"
            )


def written(text: str | None) -> int:
    """How many bytes a text takes on the wire."""
    if not text:
        return 0
    return len(text) if text.isascii() else len(text.encode())
