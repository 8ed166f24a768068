"""What the gateway answers itself, without asking the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from .server import Gateway


class Local(Protocol):
    def __call__(self, gateway: Gateway, frame: memoryview, at: int, version: int) -> Any:
        """The reply to the request whose body begins at `at`."""
