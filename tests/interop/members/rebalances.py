"""How often a group rebalanced, as the broker remembers it."""

from __future__ import annotations

import trio

from rafka.client import connect
from rafka.client.messages.history import Rebalance


def rebalances(bootstrap: str, group: str) -> list[Rebalance]:
    """Asked with rafka's own request, as `rafka group history` asks."""

    async def ask() -> list[Rebalance]:
        async with connect(bootstrap) as client:
            return (await client.groups.history(group)).rebalances

    return trio.run(ask)
