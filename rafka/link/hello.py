"""The handshake: who is at the other end, whether the two understand each other, and by what bounds.

The gateway begins, the broker answers and tells what a gateway has to know of it: who
the cluster is, how much may be under way at a time, and what was set while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs
import cattrs
import trio

from .. import __version__
from ..ops.packing import VERSION
from . import LinkMismatch
from .frames import SHOWN_MOST, Framed, Kind, LinkBroken

HANDSHAKE_S: Final = 10.0
MAX_HANDSHAKE: Final = 64 * 1024  # the largest frame before the two know each other
MAX_REPLY: Final = 2**31 - 1  # a reply that is larger no client could be told


@attrs.frozen(kw_only=True)
class Limits:
    """What a gateway may have under way on its link. An op that may wait for long is not counted:
    there is one of them for each connection at most."""

    ops: int = 4096
    bytes: int = 64 * 1024 * 1024
    op_bytes: int = 100 * 1024 * 1024  # the largest op
    group_op_bytes: int = 1024 * 1024  # the largest about groups and their offsets


@attrs.frozen(kw_only=True)
class Welcome:
    """What a gateway is told of its broker."""

    version: int = VERSION
    release: str = __version__
    cluster_id: str
    node_id: int
    limits: Limits = attrs.field(factory=Limits)
    settings: Mapping[str, str] = attrs.field(factory=dict)  # of the broker, changed while it runs


async def greet(framed: Framed, name: str) -> Welcome:
    """The gateway's side. LinkMismatch where the broker refuses it, or is of another version."""
    framed.put(Kind.HELLO, {"version": VERSION, "name": name, "release": __version__})
    await framed.flush()
    kind, told = await _first_frame(framed)
    if kind == Kind.REFUSED:
        raise LinkMismatch(_shown(told))
    if kind != Kind.WELCOME:
        raise LinkBroken("what answers there is no broker of rafka")
    try:
        welcome = cattrs.structure(told, Welcome)
    except Exception as wrong:
        raise LinkBroken(f"the broker's welcome is not understood: {_shown(wrong)}") from wrong
    framed.max_frame = MAX_REPLY
    return welcome


async def receive_gateway(framed: Framed, welcome: Welcome) -> str:
    """The broker's side: the gateway's name. LinkMismatch where it is of another version, and was told so."""
    kind, hello = await _first_frame(framed)
    if kind != Kind.HELLO or not isinstance(hello, dict):
        raise LinkBroken("it is no gateway of rafka")
    if hello.get("version") != VERSION:
        theirs = (
            f"the gateway (rafka {_shown(hello.get('release'))})"
            f" speaks version {_shown(hello.get('version'))} of the link"
        )
        ours = f"the broker (rafka {__version__}) version {VERSION}"
        why = f"{theirs}, {ours}: run the same release of both"
        framed.put(Kind.REFUSED, why)
        await framed.flush()
        raise LinkMismatch(why)
    framed.put(Kind.WELCOME, cattrs.unstructure(welcome))
    await framed.flush()
    framed.max_frame = max(welcome.limits.op_bytes, welcome.limits.group_op_bytes) + MAX_HANDSHAKE
    return _shown(hello.get("name"))


def _shown(told: object) -> str:
    """For a line in the log, which whatever came might fill."""
    return str(told)[:SHOWN_MOST]


async def _first_frame(framed: Framed) -> tuple[object, Any]:
    with trio.move_on_after(HANDSHAKE_S) as waiting:
        frame = await framed.receive_one()
    if waiting.cancelled_caught:
        raise LinkBroken(f"nothing was said for {HANDSHAKE_S:g} s")
    if frame is None:
        raise LinkBroken("the connection was closed")
    if len(frame) != 2:
        raise LinkBroken("the handshake is not understood")
    return frame[0], frame[1]
