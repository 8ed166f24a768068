"""What spans are called. Whatever can be asked has a name, by its op's name and the file it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..ops.base import KafkaOp, Op

GATEWAY: Final = "rafka.gateway"
BROKER: Final = "rafka.broker"

FIND_COORDINATOR: Final = f"{GATEWAY}.kafka.find-coordinator"
REBALANCE_COMPLETE: Final = f"{BROKER}.coordinator.rebalance-complete"

# What a broker does has a name of its own where it is more than answering.
_DONE_BY_BROKER: Final[Mapping[KafkaOp, str]] = {KafkaOp.PRODUCE: "log.append", KafkaOp.FETCH: "log.read"}
_OF_GROUPS: Final = ("group", "offsets")  # the files in `ops` that are about groups


def span_name(side: str, op: type[Op[Any]]) -> str:
    """`JoinGroup` is `rafka.gateway.group.join` and `rafka.broker.group.join`; `Produce` is
    `rafka.gateway.kafka.produce` and `rafka.broker.log.append`.
    """
    room = op.__module__.rpartition(".")[2]
    words = op.code.name.lower().split("_")
    if room in _OF_GROUPS:
        return f"{side}.group.{'-'.join(word for word in words if word not in ('group', 'groups'))}"
    if side == GATEWAY:
        return f"{side}.kafka.{'-'.join(words)}"
    return f"{side}." + (_DONE_BY_BROKER.get(op.code) or f"{room}.{'-'.join(words)}")
