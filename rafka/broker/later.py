"""Replies that take time, as the rest of the broker makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic

from ..ops.base import R


class Soon(Generic[R]):
    """The reply is what `fn(*args)` gives when it is awaited. Nothing runs before that."""

    __slots__ = ("_args", "_fn", "overlaps")

    def __init__(self, fn: Callable[..., Awaitable[R]], *args: object, overlaps: bool = False) -> None:
        self._fn = fn
        self._args = args
        self.overlaps = overlaps

    def wait(self) -> Awaitable[R]:
        return self._fn(*self._args)
