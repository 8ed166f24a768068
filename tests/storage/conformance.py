"""What every log backend promises, as tests. One suite, run by `test_memory` and `test_embedded`.

Use it as

    @check_log_backend
    async def test_my_backend_keeps_its_promises(promise: Promise) -> None:
        async with running(MyBackend(...)) as backend:
            await promise(backend)

The promises themselves are in `promises_of_reading`, `promises_of_keeping` and `promises_of_transactions`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from rafka.storage.backend import LogBackend

from . import promises_of_keeping, promises_of_reading, promises_of_transactions
from .promises import PROMISES, Promise

__all__ = [
    "Promise",
    "check_log_backend",
    "promises_of_keeping",
    "promises_of_reading",
    "promises_of_transactions",
    "running",
]

check_log_backend: pytest.MarkDecorator = pytest.mark.parametrize(
    "promise", PROMISES, ids=lambda check: check.__name__
)


@asynccontextmanager
async def running(backend: LogBackend) -> AsyncIterator[LogBackend]:
    """Started, with its flusher at work."""
    await backend.start()
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run)
        yield backend
        nursery.cancel_scope.cancel()
    await backend.close()
