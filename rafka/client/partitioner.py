"""Which partition a record goes to, as the Java client decides it.

A record with a key goes where murmur2 of the key says, so that one key stays in one partition
whichever client wrote it. Records without a key stick to one partition until a batch is full and
then move on (KIP-480, KIP-794): fewer, fuller batches than taking turns with every record.
"""

from __future__ import annotations

import random
import struct
from typing import Final, Protocol

from ..types import Buffer

_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_SEED: Final = 0x9747B28C


class Choice(Protocol):
    """The part of `random.Random` that is used here."""

    def randrange(self, stop: int, /) -> int: ...


def murmur2(data: Buffer) -> int:
    """The 32-bit murmur2 of Kafka's Java client, as an unsigned number."""
    size = len(data)
    whole = size & ~3
    h = _SEED ^ size
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * _M & _MASK
        k ^= k >> 24
        h = h * _M & _MASK ^ k * _M & _MASK
    tail = bytes(data[whole:])
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * _M & _MASK
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: Buffer, partitions: int) -> int:
    """Where the Java client, kafka-python, franz-go and rafka put this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Chooses for one topic. `batch_size` is how many bytes go to one partition before the next."""

    def __init__(self, batch_size: int, choice: Choice | None = None) -> None:
        self._batch_size = batch_size
        self._choice: Choice = choice or random.Random()
        self._current = -1
        self._left = 0

    def choose(self, key: Buffer | None, size: int, partitions: int) -> int:
        """The partition, out of 0 to `partitions` - 1, for a record of `size` bytes."""
        if key is not None:
            return partition_of_key(key, partitions)
        if self._left <= 0 or self._current >= partitions:
            self._move_on(partitions)
        self._left -= size
        return self._current

    def _move_on(self, partitions: int) -> None:
        following = self._choice.randrange(partitions)
        if following == self._current:  # with more than one, moving on means moving
            following = (following + 1) % partitions
        self._current = following
        self._left = self._batch_size
