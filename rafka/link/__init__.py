"""What carries ops from a gateway to the broker.

In one process it is a call: the broker itself is a `Link`. Between two it is `packed`,
msgpack frames over a stream, which `serving` takes up at the broker's end.
"""

from __future__ import annotations

from typing import Protocol

from ..ops.base import Envelope, Later, Op, R


class Link(Protocol):
    """`ask` gives the reply, or a `Later` where the reply takes time.

    It never raises for what a client did: an op that is refused has a reply that says so.
    Before replies leave the process `keep` is called: what they rest on may have been left to
    be written all at once.
    """

    def ask(self, envelope: Envelope, op: Op[R]) -> R | Later[R]: ...

    def keep(self) -> None: ...


class LinkMismatch(Exception):
    """Gateway and broker are of releases that do not understand each other."""
