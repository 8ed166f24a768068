"""Which transactions of a partition are undecided: what keeps readers of committed records waiting.

Those readers get nothing from the first record of an undecided transaction on, whoever
wrote it. A transaction is undecided while it is open, and after its marker was written
for as long as a loss of power could take the marker back: until then it is *held*.

    begin ──> open ──end──> decided           where what is written counts at once
                     └─hold─> held ──settle──> decided        where it has to be synced
"""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

NONE: Final = 2**63 - 1  # an offset that no record has


@attrs.define
class Unstable:
    """The undecided transactions of one partition."""

    first: int = NONE  # the first offset of the earliest of them
    _open: dict[int, int] = attrs.Factory(dict)  # producer id -> first offset; ascending, as they began
    _held: deque[tuple[int, int]] = attrs.Factory(deque)  # (marker, first offset), both ascending

    def begin(self, producer_id: int, offset: int) -> None:
        """The producer's transaction begins with a record at `offset`, above all before it."""
        self._open[producer_id] = offset
        if offset < self.first:
            self.first = offset

    def end(self, producer_id: int, marker: int) -> int:
        """Its marker is written. What would be stable now but for markers that are held."""
        del self._open[producer_id]
        self._find_first()
        return next(iter(self._open.values()), marker + 1)

    def hold(self, marker: int, first_offset: int) -> None:
        """The marker just written at `marker` may yet be lost, and with it the end of its transaction."""
        held = self._held
        while held and held[-1][1] >= first_offset:
            held.pop()  # it is settled sooner, and holds back less
        held.append((marker, first_offset))
        self._find_first()

    def settle(self, high_watermark: int) -> None:
        """Nothing below the high watermark will be lost."""
        held = self._held
        if held and held[0][0] < high_watermark:
            while held and held[0][0] < high_watermark:
                held.popleft()
            self._find_first()

    def _find_first(self) -> None:
        first = next(iter(self._open.values()), NONE)
        self.first = min(first, self._held[0][1]) if self._held else first
