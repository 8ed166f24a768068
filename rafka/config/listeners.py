"""Addresses to listen on and addresses to tell clients: `HOST:PORT`, or Kafka's `NAME://HOST:PORT`.

    127.0.0.1:9092      [::1]:9092      :9092 (every interface)      PLAINTEXT://:0 (any free port)

A listener's name ties it to the address that is advertised to those who came
through it. Where names were not given there is one, PLAINTEXT, for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from .setting import ConfigError

PLAINTEXT: Final = "PLAINTEXT"
PROTOCOLS: Final = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SHAPES: Final = "HOST:PORT, [IPV6]:PORT, :PORT or PLAINTEXT://HOST:PORT"
_EVERYWHERE: Final = ("", "0.0.0.0", "::")


@attrs.frozen
class Listener:
    """An address. Host "" is every interface, port 0 any free one; name "" where none was given."""

    host: str
    port: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name or PLAINTEXT}://{address(self.host, self.port)}"

    @property
    def everywhere(self) -> bool:
        """Whether it is bound to all interfaces, and so has no address of its own to tell."""
        return self.host in _EVERYWHERE


def address(host: str, port: int) -> str:
    """HOST:PORT, with the brackets that an IPv6 address needs."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_listener(text: str) -> Listener:
    """Read one address. ValueError says what it should be."""
    name, found, rest = text.strip().rpartition("://")
    if found and not name:
        raise ValueError(f"must be {SHAPES}")
    if rest.startswith("["):
        host, closed, port = rest[1:].partition("]")
        if not closed or (port and not port.startswith(":")):
            raise ValueError(f"must be {SHAPES}")
        port = port[1:]
    elif rest.count(":") > 1:
        raise ValueError("an IPv6 address stands in brackets: [::1]:9092")
    else:
        host, _, port = rest.partition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"must be {SHAPES}, with a port of 0 to 65535")
    return Listener(host, int(port), name.upper())


def speaking_plaintext(
    listeners: Sequence[Listener], protocols: Mapping[str, str], controllers: Sequence[str], *, key: str
) -> tuple[tuple[Listener, ...], list[str]]:
    """Those for clients, and those for controllers as text: a compose file made for Kafka names both.

    A listener that should speak anything but PLAINTEXT is an error: to serve it in the clear
    would be to give away what its owner wanted kept.
    """
    kept: list[Listener] = []
    passed_over: list[str] = []
    for listener in listeners:
        name = listener.name or PLAINTEXT
        if name in controllers or (name == "CONTROLLER" and not controllers):
            passed_over.append(str(listener))
            continue
        protocol = protocols.get(name, name)
        if protocol not in PROTOCOLS:
            raise ConfigError(
                key,
                str(listener),
                f"say in listener.security.protocol.map what {name} speaks: {name}:PLAINTEXT",
            )
        if protocol != PLAINTEXT:
            raise ConfigError(key, str(listener), f"{protocol} is not served yet, only PLAINTEXT is")
        kept.append(listener)
    return tuple(kept), passed_over


def match_advertised(
    listen: Sequence[Listener], advertise: Sequence[Listener]
) -> tuple[Listener | None, ...]:
    """For each listener the address that was given for it: by name, by place, or one for all."""
    if not advertise:
        return (None,) * len(listen)
    if any(a.name for a in advertise):
        names = [one.name or PLAINTEXT for one in listen]
        for a in advertise:
            if (a.name or PLAINTEXT) not in names:
                raise ConfigError(
                    "advertise", str(a), f"no listener has this name; there is {', '.join(names) or 'none'}"
                )
        by_name = {a.name or PLAINTEXT: a for a in advertise}
        return tuple(by_name.get(name) for name in names)
    if len(advertise) == 1:
        return tuple(advertise) * len(listen)
    if len(advertise) != len(listen):
        raise ConfigError(
            "advertise",
            tuple(advertise),
            f"{len(advertise)} addresses for {len(listen)} listeners: give one for each, or one for all",
        )
    return tuple(advertise)
