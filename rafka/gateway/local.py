"""What the gateway answers itself, without asking the broker.

Some of these answers depend on who asks: on the listener that a client came to, say.
A connection is a task, and what is known of its client lies in that task's context.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

from ..ops.base import Envelope

if TYPE_CHECKING:
    from .server import Gateway

CALLER: Final[ContextVar[Envelope]] = ContextVar("rafka.gateway.caller")


class Local(Protocol):
    def __call__(self, gateway: Gateway, frame: memoryview, at: int, version: int) -> Any:
        """The reply to the request whose body begins at `at`."""
