"""A network in memory, with the ways in which a real one misbehaves, all of them from dice.

A connection is two `SimStream`s and, for each direction, a bounded buffer at both ends
and a task between them that carries bytes: late, in pieces of any size, or not at all.
Both buffers are bounded, so that a peer which does not read is felt by one who writes
(Trio's own memory streams never push back).

What can be done to it, while it runs:
* `partitioned = True`: nothing arrives any more, nobody is told; False: it all arrives after all,
* `reset(connection)`: both ends break at once, what was on the way is lost,
* `unlisten()`: who connects now is refused.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from typing import Final

import trio
from trio.lowlevel import ParkingLot, checkpoint

WINDOW: Final = 65_536  # bytes that each end buffers, at most
BACKLOG: Final = 128  # connections waiting to be accepted
CONNECT_TIMEOUT: Final = 3.0  # what a connect into a partition takes to fail
_MANY: Final = 1 << 20


class SimNet:
    """One host that listens, and everybody who connects to it."""

    def __init__(
        self, nursery: trio.Nursery, dice: random.Random, *, latency: float = 0.0004, p_slow: float = 0.01
    ) -> None:
        self._nursery = nursery
        self.dice = dice
        self.latency = latency
        self.p_slow = p_slow
        self.connections: list[Connection] = []  # the live ones, in order of birth
        self.connects = 0
        self._listener: trio.MemorySendChannel[SimStream] | None = None
        self._partitioned = False
        self._healed = ParkingLot()

    @property
    def partitioned(self) -> bool:
        return self._partitioned

    @partitioned.setter
    def partitioned(self, now: bool) -> None:
        self._partitioned = now
        if not now:
            self._healed.unpark_all()

    def listen(self) -> trio.MemoryReceiveChannel[SimStream]:
        """Where the server's ends of new connections come out."""
        self._listener, accepted = trio.open_memory_channel[SimStream](BACKLOG)
        return accepted

    def unlisten(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def connect(self) -> SimStream:
        """The client's end of a new connection. OSError as `socket.connect` has it."""
        await trio.sleep(self._delay())
        if self._partitioned:
            await trio.sleep(CONNECT_TIMEOUT)
            raise TimeoutError(errno.ETIMEDOUT, "the network is partitioned")
        if self._listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody listens")
        connection = Connection()
        try:
            self._listener.send_nowait(connection.server)
        except (trio.WouldBlock, trio.BrokenResourceError):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "nobody accepts") from None
        self.connects += 1
        self.connections.append(connection)
        self._nursery.start_soon(self._run, connection, name=f"connection {self.connects}")
        return connection.client

    def reset_all(self) -> None:
        for connection in self.connections[:]:
            connection.reset()

    async def _run(self, connection: Connection) -> None:
        try:
            async with trio.open_nursery() as directions:
                directions.start_soon(self._carry, connection, connection.up, name="up")
                directions.start_soon(self._carry, connection, connection.down, name="down")
        finally:
            self.connections.remove(connection)

    async def _carry(self, connection: Connection, way: _Way) -> None:
        """Bring bytes from one end to the other, until there are no more or nobody wants them."""
        while True:
            await way.until(lambda: way.sent or way.ended or way.broken)
            if way.broken:
                return
            chunk = bytes(way.sent[: self._chunk()])
            await trio.sleep(self._delay())
            while self._partitioned and not way.broken:
                await self._healed.park()
            if way.broken:
                return
            if not chunk:
                way.finished = True
                way.wake()
                return
            await way.until(lambda: len(way.arrived) < WINDOW or way.unread or way.broken)
            if way.unread:  # the reader closed its end: as in TCP, the writer learns it by a reset
                connection.reset()
            if way.broken:
                return
            del way.sent[: len(chunk)]
            way.arrived += chunk
            way.wake()

    def _chunk(self) -> int:
        kind = self.dice.random()
        if kind < 0.05:
            return 1
        return self.dice.randint(1, 200) if kind < 0.3 else WINDOW

    def _delay(self) -> float:
        delay = self.dice.expovariate(1 / self.latency)
        if self.dice.random() < self.p_slow:
            delay += self.dice.uniform(0.05, 0.5)
        return delay


class Connection:
    """Both ends and both ways."""

    def __init__(self) -> None:
        self.up, self.down = _Way(), _Way()
        self.client = SimStream(sends=self.up, receives=self.down)
        self.server = SimStream(sends=self.down, receives=self.up)

    def reset(self) -> None:
        self.up.break_()
        self.down.break_()


class _Way:
    """One direction: what was sent and has not left, what arrived and was not read."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.arrived = bytearray()
        self.ended = False  # by the writer: no more will be sent
        self.finished = False  # all that was sent has arrived
        self.unread = False  # the reader closed its end
        self.broken = False
        self._changed = ParkingLot()

    def wake(self) -> None:
        self._changed.unpark_all()

    def break_(self) -> None:
        self.broken = True
        self.sent.clear()
        self.arrived.clear()
        self.wake()

    async def until(self, true: Callable[[], object]) -> None:
        while not true():
            await self._changed.park()


class SimStream(trio.abc.HalfCloseableStream):
    """One end. Behaves as `trio.SocketStream` does, its errors included."""

    def __init__(self, sends: _Way, receives: _Way) -> None:
        self._out = sends
        self._in = receives
        self._closed = False
        self._sending = False
        self._receiving = False

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._sending:
            raise trio.BusyResourceError("another task is sending on this stream")
        self._sending = True
        try:
            await checkpoint()
            rest = memoryview(data).cast("B")
            while True:
                self._check_open()
                if self._out.broken:
                    raise trio.BrokenResourceError("connection reset by peer")
                if self._out.ended:
                    raise trio.ClosedResourceError("send_eof was called")
                taken = rest[: max(0, WINDOW - len(self._out.sent))]
                self._out.sent += taken
                self._out.wake()
                rest = rest[len(taken) :]
                if not rest:
                    return
                await self._out.until(
                    lambda: len(self._out.sent) < WINDOW or self._out.broken or self._closed
                )
        finally:
            self._sending = False

    async def wait_send_all_might_not_block(self) -> None:
        await checkpoint()
        self._check_open()
        await self._out.until(lambda: len(self._out.sent) < WINDOW or self._out.broken or self._closed)
        self._check_open()

    async def send_eof(self) -> None:
        await checkpoint()
        self._check_open()
        self._out.ended = True
        self._out.wake()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        if max_bytes is not None and max_bytes < 1:
            raise ValueError("max_bytes must be >= 1")
        if self._receiving:
            raise trio.BusyResourceError("another task is receiving on this stream")
        self._receiving = True
        try:
            await checkpoint()
            way = self._in
            await way.until(lambda: way.arrived or way.finished or way.broken or self._closed)
            self._check_open()
            if way.broken:
                raise trio.BrokenResourceError("connection reset by peer")
            data = bytes(way.arrived[: max_bytes or _MANY])
            del way.arrived[: len(data)]
            way.wake()
            return data
        finally:
            self._receiving = False

    async def aclose(self) -> None:
        self._closed = True
        self._out.ended = True
        self._in.unread = True
        self._in.arrived.clear()
        self._out.wake()
        self._in.wake()
        await checkpoint()

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError("this end was closed")
