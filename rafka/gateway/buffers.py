"""Buffers for requests that come in parts, used again and again.

A megabyte that was just given back is warm; a fresh one has to be got from the kernel
and filled with zeros, page by page, which costs more than receiving the bytes. A few are
kept, so that memory stays bounded; whoever needs more makes its own.
"""

from __future__ import annotations

from typing import Final

SIZES: Final = (128 << 10, 512 << 10, 2 << 20)  # a request gets the least that holds it
KEPT_OF_EACH: Final = 4


class Buffers:
    def __init__(self) -> None:
        self._free: dict[int, list[bytearray]] = {size: [] for size in SIZES}

    def take(self, size: int) -> bytearray | None:
        """A buffer of at least `size` bytes, with something old in it; None for what is too large."""
        for capacity, free in self._free.items():
            if size <= capacity:
                return free.pop() if free else bytearray(capacity)
        return None

    def give_back(self, buffer: bytearray) -> None:
        """Nobody reads it any more."""
        free = self._free.get(len(buffer))
        if free is not None and len(free) < KEPT_OF_EACH:
            free.append(buffer)
