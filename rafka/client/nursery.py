"""A nursery for what runs behind somebody's `async with` block.

Trio wraps what a block raises in an exception group when a nursery closes around it. For those who
use a client the nursery is an inner matter, so what their block raised comes out as it was. What
goes wrong in the background tasks themselves still comes as a group.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def background() -> AsyncIterator[trio.Nursery]:
    """Tasks for as long as the block lasts; they are cancelled at its end."""
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except trio.Cancelled:
            raise
        except BaseException as error:
            raised = error
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
