"""Bootstrap addresses: `HOST:PORT[,HOST:PORT...]`, with Kafka's port where none is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

DEFAULT_PORT: Final = 9092


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str | Iterable[str]) -> tuple[Address, ...]:
    """Every address of a comma-separated list, or of several. ValueError where one is none.

    >>> parse_addresses("a:1, [::1]:2,c")
    (Address(host='a', port=1), Address(host='::1', port=2), Address(host='c', port=9092))
    """
    texts = [text] if isinstance(text, str) else list(text)
    parts = [part.strip() for one in texts for part in one.split(",")]
    addresses = tuple(_parse(part) for part in parts if part)
    if not addresses:
        raise ValueError("no bootstrap address: write HOST:PORT, several with commas between")
    return addresses


def _parse(text: str) -> Address:
    _scheme, _, rest = text.rpartition("://")  # PLAINTEXT://host:port is what Kafka's listeners look like
    if rest.startswith("["):
        host, closed, port = rest[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ValueError(f"not an address: {text!r} (an IPv6 address is written [HOST]:PORT)")
        port = port[1:]
    elif rest.count(":") > 1:
        host, port = rest, ""  # a bare IPv6 address
    else:
        host, _, port = rest.partition(":")
    if not host:
        raise ValueError(f"not an address: {text!r} (write HOST:PORT)")
    if not port:
        return Address(host, DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"not a port: {port!r} in {text!r}")
    return Address(host, int(port))
