"""Where a broker and gateways that are processes of their own meet, and how much one of them may ask."""

from __future__ import annotations

import attrs

from ..links import LinkAddress
from ..setting import Kind, Section, setting


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Link(Section):
    address: LinkAddress | None = setting(  # noqa: RUF009 (it makes a field)
        "link",
        None,
        "Where gateways that are processes of their own reach the broker: unix:PATH or tcp:HOST:PORT."
        " Whoever can connect there may do everything.",
        Kind.STRING,
    )
    in_flight: int = setting(
        "link.in.flight.max",
        4096,
        "The most ops of one gateway that are under way. Parked fetches, joins and syncs are not counted:"
        " each connection has one at most.",
        at_least=1,
    )
    in_flight_bytes: int = setting(
        "link.in.flight.bytes",
        67_108_864,
        "The most bytes of the ops that are counted. One that is larger goes alone.",
        Kind.LONG,
        unit="bytes",
        at_least=1,
    )
    group_op_bytes: int = setting(
        "link.group.op.max.bytes",
        1_048_576,
        "The largest op about groups and their offsets, names and all. A larger one ends like one beyond the"
        " limits of groups. Other ops may be as large as a request.",
        unit="bytes",
        at_least=1024,
    )
    ping_interval_ms: int = setting(
        "link.ping.interval.ms",
        5000,
        "How often both ends say that they are there. One that is not heard for three times as long"
        " is given up.",
        unit="ms",
        at_least=1,
    )
    backoff_ms: int = setting(
        "link.reconnect.backoff.ms",
        50,
        "How long a gateway that has lost its broker waits before it tries to connect; it doubles each time.",
        unit="ms",
        at_least=1,
    )
    backoff_max_ms: int = setting(
        "link.reconnect.backoff.max.ms",
        1000,
        "The longest that it waits.",
        unit="ms",
        at_least=1,
    )
