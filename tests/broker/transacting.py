"""Transactional producers, and a gate that lets in whom a test wants, as long as nobody coordinates them."""

from __future__ import annotations

from typing import Any

import trio

from rafka.broker.admission import Entrance, Refusals
from rafka.errors import ErrorCode
from rafka.ops import log
from rafka.ops.base import Later

from .fetching import one
from .kit import NOW, World, batch, fetch, produce, told

COMMITTED = 1  # an isolation level

PID = 7


class Doorkeeper:
    """A gate that lets in whom the test wants, and notes who asked."""

    def __init__(self) -> None:
        self.asked: list[Entrance] = []
        self.refusals: dict[tuple[str, int], ErrorCode] = {}
        self.opened: trio.Event | None = None  # if it is there, the answer takes until it is set

    def enter(self, entrance: Entrance) -> Refusals | Later[Refusals]:
        self.asked.append(entrance)
        if self.opened is None:
            return self.refusals
        return Later(self._later, self.opened)

    async def _later(self, opened: trio.Event) -> Refusals:
        await opened.wait()
        return self.refusals


def doorkeeper_of(world: World) -> Doorkeeper:
    door = Doorkeeper()
    writer = world.broker._handlers[log.Produce].__self__  # type: ignore[attr-defined]
    writer.gate = door
    return door


def transactional(*values: bytes, sequence: int = 0, pid: int = PID, epoch: int = 0) -> bytes:
    return batch(*values, transactional=True, producer_id=pid, producer_epoch=epoch, base_sequence=sequence)


async def put(
    world: World, *values: bytes, sequence: int = 0, pid: int = PID, epoch: int = 0, index: int = 0
) -> int:
    """Write a transactional batch; its base offset."""
    records = transactional(*values, sequence=sequence, pid=pid, epoch=epoch)
    [reply] = told(await world.ask(produce(records, transactional_id="tx", index=index)))
    assert reply.error_code == 0, reply
    return reply.base_offset


def end(world: World, committed: bool = True, *, pid: int = PID, epoch: int = 0, **options: Any) -> int:
    """Write a marker; its offset."""
    partition = world.partition()
    return partition.write_marker(
        pid, epoch, committed=committed, coordinator_epoch=0, now_ms=NOW * 1000, **options
    ).base_offset


async def read(world: World, offset: int = 0, isolation_level: int = COMMITTED) -> log.PartitionFetchReply:
    return await one(world, fetch(("t", 0, offset), isolation_level=isolation_level))
