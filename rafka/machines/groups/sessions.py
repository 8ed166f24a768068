"""Until when members may be silent: one deadline for each name, and the next of them at hand.

Setting a deadline later than it was, which is what a heartbeat does, touches a dictionary and
nothing else. The heap below is lazy: it holds a time for each name that is not later than its
deadline, and finds out when that time comes.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

import attrs

_SLACK: Final = 64  # entries of names long gone that the heap may hold before it is swept


@attrs.define
class Sessions:
    next: float = inf  # when to ask for those that are due; never later than the first deadline
    _until: dict[str, float] = attrs.Factory(dict)
    _entry: dict[str, float] = attrs.Factory(dict)  # the one entry of a name that counts
    _heap: list[tuple[float, int, str]] = attrs.Factory(list)
    _pushed: int = 0  # makes equal times come out in the order in which they were set

    def arm(self, name: str, until: float) -> None:
        self._until[name] = until
        if until < self._entry.get(name, inf):
            self._push(name, until)

    def disarm(self, name: str) -> None:
        self._until.pop(name, None)

    def due(self, now: float) -> list[str]:
        """Those whose time has come, in its order. They are disarmed by this."""
        late: list[str] = []
        while self._heap and self._heap[0][0] <= now:
            at, _, name = heappop(self._heap)
            if self._entry.get(name) != at:
                continue  # it was set earlier after this entry was made
            del self._entry[name]
            until = self._until.get(name)
            if until is None:
                continue
            if until <= now:
                del self._until[name]
                late.append(name)
            else:
                self._push(name, until)
        self._look()
        return late

    def _push(self, name: str, until: float) -> None:
        self._pushed += 1
        self._entry[name] = until
        heappush(self._heap, (until, self._pushed, name))
        if len(self._heap) > 2 * len(self._until) + _SLACK:
            self._sweep()
        self._look()

    def _look(self) -> None:
        self.next = self._heap[0][0] if self._heap else inf

    def _sweep(self) -> None:
        self._entry = dict(self._until)
        self._heap = [(until, order, name) for order, (name, until) in enumerate(self._until.items())]
        heapify(self._heap)
        self._pushed = len(self._heap)
