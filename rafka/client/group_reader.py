"""Between a member's task and its reader: what it reads, what is in hand, what is done with.

The reader takes records when it likes, and the group rebalances when it likes. Here they meet:
partitions are only taken away while the reader waits for more, or has nothing in hand; and what
goes wrong with the membership the reader gets to know at once, even while it waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import attrs
import trio

from .consumer import Consumer
from .errors import ClientError
from .model import TopicPartition

T = TypeVar("T")
Targets = frozenset[TopicPartition]


@attrs.define(eq=False)
class _Wish:
    """The membership would like to let go of partitions that the reader may be at work on."""

    targets: Targets
    granted: trio.Event = attrs.field(factory=trio.Event)


class Reader:
    def __init__(self, consumer: Consumer) -> None:
        self.consumer: Final = consumer
        self.owned: Targets = frozenset()
        self.away_since: float | None = trio.current_time()  # None: it is here, waiting
        self.came = trio.Event()
        self._in_hand: tuple[TopicPartition, int] | None = None  # what it is at work on, from which offset
        self._wish: _Wish | None = None
        self._waiting = trio.CancelScope()
        self._failure: Exception | None = None

    # --- the reader's side ---------------------------------------------------------

    async def take(
        self, ask: Callable[[], Awaitable[T]], first_of: Callable[[T], tuple[TopicPartition, int]]
    ) -> T:
        """Wait for more. What the reader had it is done with, and what it was asked to let go of it does."""
        self.done()
        self.away_since = None
        self.came.set()
        try:
            while True:
                self._raise_failure()
                with trio.CancelScope() as self._waiting:
                    taken = await ask()
                    self._in_hand = first_of(taken)
                    return taken
        finally:
            self.away_since = trio.current_time()
            self.came = trio.Event()

    def done(self) -> None:
        """What is in hand is done with."""
        self._in_hand = None
        if self._wish is not None:
            self.consumer.pause(self._wish.targets)
            self._wish.granted.set()
            self._wish = None

    def given(self) -> dict[TopicPartition, int]:
        """How far each partition has been given to the reader."""
        return {target: self.consumer.position(target) for target in self.owned}

    def finished(self) -> dict[TopicPartition, int]:
        """How far the reader is done with each partition."""
        offsets = self.given()
        if self._in_hand is not None and self._in_hand[0] in offsets:
            offsets[self._in_hand[0]] = self._in_hand[1]
        return offsets

    # --- the membership's side -------------------------------------------------------

    def add(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These are ours now, from these offsets. Nothing is given out before `resume`."""
        self.consumer.add(offsets, paused=True)
        self.owned |= offsets.keys()

    async def hold(self, targets: Targets) -> None:
        """Returns when the reader is at work on none of these. Nothing of them is given out any more."""
        if self._in_hand is None:
            self.consumer.pause(targets)
            return
        self._wish = _Wish(targets)
        await self._wish.granted.wait()

    def drop(self, targets: Targets) -> None:
        for target in targets:
            self.consumer.drop(target)
        self.owned -= targets

    # --- failures --------------------------------------------------------------------

    def fail(self, failure: Exception) -> None:
        """Have the reader raise it, now if it waits."""
        self._failure = failure
        self._waiting.cancel()

    @property
    def broken(self) -> bool:
        """Whether it makes no sense to go on."""
        failure = self._failure
        return failure is not None and not (isinstance(failure, ClientError) and failure.retriable)

    def _raise_failure(self) -> None:
        failure = self._failure
        if failure is None:
            return
        if not self.broken:
            self._failure = None  # the membership goes on trying, and so may the reader
        raise failure
