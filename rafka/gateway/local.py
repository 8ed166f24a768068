"""What the gateway answers itself, without asking the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..ops.base import Envelope

if TYPE_CHECKING:
    from .server import Gateway


class Local(Protocol):
    def __call__(self, gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int) -> Any:
        """The reply to the request whose body begins at `at`. `caller` is who asks, and where it came to."""
