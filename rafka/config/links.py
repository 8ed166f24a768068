"""Where gateways and their broker meet, as `--link` says it: `unix:PATH` or `tcp:HOST:PORT`."""

from __future__ import annotations

import os

import attrs

from .listeners import address, parse_listener

SHAPES = "unix:PATH or tcp:HOST:PORT"
LONGEST_PATH = 107  # bytes that the kernel has for the name of a Unix socket


@attrs.frozen
class LinkAddress:
    """A Unix socket, whose path is absolute, or a TCP address; port 0 is any free one."""

    path: str | None = None
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path is not None else f"tcp:{address(self.host, self.port)}"


def parse_link(text: str) -> LinkAddress:
    """Read one address. ValueError says what it should be."""
    kind, colon, rest = text.strip().partition(":")
    if not colon or not rest or kind not in ("unix", "tcp"):
        raise ValueError(f"must be {SHAPES}")
    if kind == "tcp":
        try:
            listener = parse_listener(rest)
        except ValueError:  # it names the shapes of listeners, which are others
            raise ValueError("must be tcp:HOST:PORT or tcp:[IPV6]:PORT, with a port of 0 to 65535") from None
        if listener.name or not listener.host:
            raise ValueError("must be tcp:HOST:PORT, with the host to be reached by gateways")
        return LinkAddress(host=listener.host, port=listener.port)
    path = os.path.abspath(os.path.expanduser(rest.removeprefix("//") if rest.startswith("///") else rest))
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ValueError(f"the path of a Unix socket has at most {LONGEST_PATH} bytes")
    return LinkAddress(path=path)
