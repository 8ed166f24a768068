"""The features of the protocol whose levels clients go by, and which of them are in force."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

METADATA: Final = "metadata.version"
TRANSACTIONS: Final = "transaction.version"
# (lowest, highest) level. metadata.version tells of which Kafka release the answers are: 30 is 4.3. Without
# group.version, which is for groups of the next generation, clients form classic groups, as by default.
SUPPORTED: Final[Mapping[str, tuple[int, int]]] = {
    METADATA: (7, 30),
    TRANSACTIONS: (0, 2),
    "eligible.leader.replicas.version": (0, 1),
}


@attrs.frozen
class Levels:
    """What is in force. `epoch` grows with each change, so that clients know which answer is newer."""

    epoch: int = 0
    of: tuple[tuple[str, int], ...] = tuple((name, highest) for name, (_, highest) in SUPPORTED.items())
