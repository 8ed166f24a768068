"""Where clients connect, and how much of the broker one of them may take."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..listeners import PLAINTEXT, Listener, match_advertised
from ..setting import Kind, Section, setting


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Network(Section):
    listen: tuple[Listener, ...] = setting(
        "listen",
        (Listener("127.0.0.1", 9092),),
        "Addresses to listen on: HOST:PORT, :PORT for every interface, port 0 for any free one.",
        Kind.LIST,
        kafka="listeners",
        dynamic=True,  # as Kafka shows it; changing it while the broker runs is refused with a reason
    )
    advertise: tuple[Listener, ...] = setting(
        "advertise",
        (),
        "Addresses that clients are told to connect to: one for all listeners, or one for each;"
        " port 0 is the port listened on, no host the host listened on."
        " Where none is given it is the address listened on; on every interface, the one the client came to.",
        Kind.LIST,
        kafka="advertised.listeners",
    )
    protocols: Mapping[str, str] = setting(
        "listener.security.protocol.map",
        dict,
        "What listeners speak whose name does not say it: NAME:PLAINTEXT.",
        Kind.STRING,
    )
    controller_names: tuple[str, ...] = setting(
        "controller.listener.names",
        (),
        "Listeners for Kafka's controllers, which rafka has no need of: they are passed over.",
        Kind.LIST,
    )
    max_connections: int = setting(
        "max.connections",
        20_000,
        "The most connections at a time. More wait to be accepted.",
        at_least=1,
        dynamic=True,
    )
    max_connections_per_ip: int = setting(
        "max.connections.per.ip",
        15_000,
        "The most connections at a time from one address: by default it cannot take every place."
        " More are closed.",
        at_least=1,
        dynamic=True,
    )
    max_idle_ms: int = setting(
        "connections.max.idle.ms",
        600_000,
        "A connection on which nothing was asked for this long is closed.",
        Kind.LONG,
        unit="ms",
        at_least=1,
    )
    max_request_bytes: int = setting(
        "socket.request.max.bytes",
        104_857_600,
        "The largest request. A larger one closes its connection as soon as its size is read.",
        unit="bytes",
        at_least=1024,
    )
    queued_bytes: int = setting(
        "queued.max.request.bytes",
        268_435_456,
        "The memory for requests that are being read or worked on, all connections together."
        " Above it none reads on. -1 is no bound.",
        Kind.LONG,
        unit="bytes",
        at_least=-1,
    )
    in_flight: int = setting(
        "network.in.flight.max",
        256,
        "The most requests of one connection that are taken in before the first is answered.",
        at_least=1,
    )
    elements: int = setting(
        "network.request.elements.max",
        200_000,
        "The most array elements that one request may hold. A request with more closes its connection.",
        at_least=1000,
    )
    first_request_ms: int = setting(
        "network.first.request.timeout.ms",
        60_000,
        "A new connection that has not sent a whole request by then is closed.",
        Kind.LONG,
        unit="ms",
        at_least=1,
    )
    request_read_ms: int = setting(
        "network.request.read.timeout.ms",
        30_000,
        "How long a begun request may take to arrive, and a second more for each 64 KiB of it.",
        Kind.LONG,
        unit="ms",
        at_least=1,
    )
    write_stall_ms: int = setting(
        "network.write.stall.timeout.ms",
        60_000,
        "A client that takes nothing of what is sent to it for this long is cut off.",
        Kind.LONG,
        unit="ms",
        at_least=1,
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        match_advertised(self.listen, self.advertise)  # raises ConfigError where they do not fit

    def advertised(self, index: int, bound_port: int) -> Listener | None:
        """What clients of the listener at `index` are told, once it is bound.

        None where nothing was advertised and it listens on every interface: then the right
        address is the one on which the client reached us, which its connection knows.
        """
        own = self.listen[index]
        given = match_advertised(self.listen, self.advertise)[index]
        host = given.host if given is not None and given.host else own.host
        port = given.port if given is not None and given.port else bound_port
        told = Listener(host, port, own.name or PLAINTEXT)
        return None if told.everywhere else told
