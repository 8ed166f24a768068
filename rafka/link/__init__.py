"""What carries ops from a gateway to the broker: a call within one process."""

from __future__ import annotations

from typing import Protocol

from ..ops.base import Envelope, Later, Op, R


class Link(Protocol):
    """`ask` gives the reply, or a `Later` where the reply takes time.

    It never raises for what a client did: an op that is refused has a reply that says so.
    """

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]: ...
