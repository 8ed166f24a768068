"""The gateway: listeners, a task per connection, and the bounds that they all share.

It owns connections and nothing else. Each listener accepts while there is room for one
more connection; a connection costs one task and no memory of its own beyond a request
that came in part. One more task, the watchman, looks at all connections once a second
and closes what is overdue: it is why no request needs a timer.
"""

from __future__ import annotations

import errno
import logging
import socket
from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs
import trio

from ..config import Config
from ..link import Link
from ..observe.names import GATEWAY
from ..observe.spans import Spans
from ..ops.base import Envelope
from ..ops.features import Levels
from .budget import ByteBudget
from .buffers import Buffers
from .connection import Connection
from .incoming import Incoming
from .listeners import Bound, close_listeners
from .readiness import HAS_EPOLL, Readiness
from .transport import SocketTransport, StreamTransport, Transport

log = logging.getLogger(__name__)

SHARED_BUFFER: Final = 256 * 1024
ACCEPTED_AT_ONCE: Final = 64  # while the broker is busy a turn takes long: one in each would be too few
WATCH_S: Final = 1.0
UNSENT_MAX: Final = 256 * 1024 * 1024  # replies that slow readers leave lying, all together
NOTES_EVERY_S: Final = 10.0  # one line about an address in this time, however often it errs
NOTED_MAX: Final = 1000
READ_PER_S: Final = 64 * 1024  # what a request may take longer for each second
OUT_OF_HANDLES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS)


class Gateway:
    def __init__(
        self, config: Config, link: Link, bound: Sequence[Bound] = (), spans: Spans | None = None
    ) -> None:
        network = config.network
        self.link = link if spans is None else spans.around(link, GATEWAY)
        self.spans = spans
        self.node_id = config.broker.node_id
        self.closing = False
        self.clock = trio.current_time()  # good to a second; saves a system call per request
        self.elements = network.elements
        self.in_flight = network.in_flight
        self.levels = Levels()  # of features, as clients are told
        self._network = network
        self._shared = memoryview(bytearray(SHARED_BUFFER))
        self._buffers = Buffers()
        self._budget = ByteBudget(network.queued_bytes)
        self._readiness = Readiness() if HAS_EPOLL else None
        self._connections: set[Connection] = set()
        self._arriving = 0  # accepted, and their tasks have not begun
        self._per_address: Counter[str] = Counter()
        self._room = trio.Event()
        self._noted: dict[str, float] = {}
        self._bound = bound

    def reconfigure(self, config: Config) -> None:
        """Take up bounds that were changed while running. Listeners stay as they are."""
        self._network = config.network
        self.in_flight = config.network.in_flight
        self._room.set()
        self._room = trio.Event()

    def set_levels(self, levels: Levels) -> None:
        self.levels = levels

    # --- life -----------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `close` has been called and every connection is done."""
        try:
            async with trio.open_nursery() as background:
                if self._readiness is not None:
                    background.start_soon(self._readiness.run)
                background.start_soon(self._watch)
                async with trio.open_nursery() as connections:
                    async with trio.open_nursery() as listeners:
                        self._listeners = listeners
                        for bound in self._bound:
                            for sock in bound.sockets:
                                listeners.start_soon(self._accept, sock, bound, connections)
                        task_status.started()
                        await trio.sleep_forever()  # until `close`, also where there are no listeners
                    close_listeners(self._bound)
                background.cancel_scope.cancel()
        finally:
            close_listeners(self._bound)
            if self._readiness is not None:
                self._readiness.close()

    def close(self) -> None:
        """Accept no more; connections end when what they have taken in is answered."""
        self.closing = True
        self._listeners.cancel_scope.cancel()
        for connection in self._connections:
            if connection.idle:
                connection.scope.cancel()

    async def serve_stream(self, stream: trio.abc.Stream, envelope: Envelope | None = None) -> None:
        """Serve a client over any Trio stream, until it goes."""
        transport = StreamTransport(stream)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(transport.feed)
                await self._serve(transport, envelope or Envelope(host="localhost", port=9092))
                nursery.cancel_scope.cancel()
        finally:
            await transport.aclose()

    # --- connections -------------------------------------------------------------------

    async def _accept(self, sock: socket.socket, bound: Bound, connections: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            while self._full():
                await self._room.wait()
            try:
                self._accept_some(sock, bound, connections)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(sock)
            except OSError as error:
                if error.errno in OUT_OF_HANDLES:
                    log.error("cannot accept connections: %s", error.strerror)
                    await trio.sleep(0.1)  # else the client was gone before it was accepted

    def _full(self) -> bool:
        return len(self._connections) + self._arriving >= self._network.max_connections

    def _accept_some(self, sock: socket.socket, bound: Bound, connections: trio.Nursery) -> None:
        """Those who have come, but not so many that others wait long for their turn."""
        for _ in range(ACCEPTED_AT_ONCE):
            if self._full():
                return
            client, address = sock.accept()
            peer: str = address[0]
            if self._per_address[peer] >= self._network.max_connections_per_ip:
                self._note_address(peer, f"refused: {self._per_address[peer]} connections from there already")
                client.close()
                continue
            self._arriving += 1
            self._per_address[peer] += 1
            connections.start_soon(self._serve_socket, client, peer, bound)

    async def _serve_socket(self, client: socket.socket, peer: str, bound: Bound) -> None:
        self._arriving -= 1
        try:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            told = bound.advertised
            if told is None:
                local = client.getsockname()
                told = attrs.evolve(bound.listener, host=local[0])
            envelope = Envelope(client_host="/" + peer, host=told.host, port=told.port)
            if self._readiness is None:
                stream = trio.SocketStream(trio.socket.from_stdlib_socket(client))
                await self.serve_stream(stream, envelope)
            else:
                transport = SocketTransport(client, self._readiness)
                try:
                    await self._serve(transport, envelope)
                finally:
                    transport.close()
        except OSError:
            pass  # the client was gone before it was served
        finally:
            client.close()
            self._per_address[peer] -= 1
            if not self._per_address[peer]:
                del self._per_address[peer]

    async def _serve(self, transport: Transport, envelope: Envelope) -> None:
        incoming = Incoming(
            transport, self._shared, self._buffers, self._budget, self._network.max_request_bytes
        )
        connection = Connection(self, incoming, transport, envelope)
        self._connections.add(connection)
        try:
            with connection.scope:
                await connection.serve()
        finally:
            self._connections.discard(connection)
            if len(self._connections) < self._network.max_connections:
                self._room.set()
                self._room = trio.Event()

    # --- watching ------------------------------------------------------------------------

    async def _watch(self) -> None:
        while True:
            await trio.sleep(WATCH_S)
            self.clock = trio.current_time()
            for connection in self._connections:
                if why := self._overdue(connection):
                    self.note(connection, f"closed: {why}")
                    connection.scope.cancel()
            self._cut_slow_readers()

    def _overdue(self, connection: Connection) -> str | None:
        now, network = self.clock, self._network
        if connection.writing_since is not None:
            if connection.moved():
                connection.writing_since = now
            elif now - connection.writing_since > network.write_stall_ms / 1000:
                return "it takes nothing of what is sent to it"
        elif connection.idle:
            if not connection.greeted and now - connection.last_active > network.first_request_ms / 1000:
                return "no request came"
            if connection.began is not None:
                allowed = network.request_read_ms / 1000 + connection.missing / READ_PER_S
                if now - connection.began > allowed:
                    return "a request did not arrive in time"
            if now - connection.last_active > network.max_idle_ms / 1000:
                return "nothing was asked for a long time"
        return None

    def _cut_slow_readers(self) -> None:
        """Replies that nobody takes must not fill the memory: those who wait longest go first."""
        stalled = [c for c in self._connections if c.writing_since is not None]
        total = sum(connection.unsent for connection in stalled)
        for connection in sorted(stalled, key=lambda c: c.writing_since or 0):
            if total <= UNSENT_MAX:
                return
            self.note(connection, "closed: too many replies lie unread, and it has taken none for longest")
            connection.scope.cancel()
            total -= connection.unsent

    def note(self, connection: Connection, what: str) -> None:
        self._note_address(connection.envelope.client_host, what)

    def _note_address(self, address: str, what: str) -> None:
        """One line about what a client did, and no flood of them."""
        now = self.clock
        if now - self._noted.get(address, -NOTES_EVERY_S) < NOTES_EVERY_S:
            return
        if len(self._noted) >= NOTED_MAX:
            self._noted.clear()
        self._noted[address] = now
        log.info("connection from %s %s", address, what)
