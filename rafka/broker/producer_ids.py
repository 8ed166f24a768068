"""Ids for producers.

An id is 63 random bits. Nobody can guess one that is in use and write in its name, two
brokers never give out the same, and there is no counter that a crash could set back.
"""

from __future__ import annotations

from typing import Final

from ..env import Rng
from ..errors import ErrorCode
from ..ops.base import Envelope
from ..ops.log import InitProducerId, InitProducerIdReply

NONE: Final = -1


class ProducerIds:
    """Answers InitProducerId of producers without transactions."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng

    def init(self, envelope: Envelope, op: InitProducerId) -> InitProducerIdReply:
        if (op.producer_id == NONE) != (op.producer_epoch == NONE):
            return op.refusal(ErrorCode.INVALID_REQUEST)
        return InitProducerIdReply(producer_id=self.new(), producer_epoch=0)

    def new(self) -> int:
        return self._rng.getrandbits(63)
