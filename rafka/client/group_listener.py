"""What may be told of partitions that come and go."""

from __future__ import annotations

from .group_reader import Targets


class RebalanceListener:
    """Subclasses override what they need.

    It runs while nothing of those partitions is given to the reader. What it raises the reader gets.
    """

    async def on_assigned(self, targets: Targets) -> None:
        """These are this member's from now on, after a rebalance that may have brought none.

        Their positions are known, and `seek` may change them.
        """

    async def on_revoked(self, targets: Targets) -> None:
        """These are about to be given up: the last moment to commit what was read of them."""

    async def on_lost(self, targets: Targets) -> None:
        """These have been given to others already: nothing can be committed for them."""
        await self.on_revoked(targets)
