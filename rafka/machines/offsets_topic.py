"""Under which name a group's offsets take part in a transaction.

Clients and their tools know groups' offsets as partitions of a topic, chosen by a hash of
the group's name. Here there is no such topic, but whoever looks at a transaction sees
what they would see of Apache Kafka.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
OFFSETS_PARTITIONS: Final = 50
REMEMBERED: Final = 1000  # groups whose partition need not be worked out again


@lru_cache(maxsize=REMEMBERED)
def offsets_partition(group_id: str) -> int:
    """Java's hash of the name, without its sign, over the number of partitions."""
    value = 0
    text = group_id.encode("utf-16-be", "surrogatepass")
    for high, low in zip(text[::2], text[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % OFFSETS_PARTITIONS
