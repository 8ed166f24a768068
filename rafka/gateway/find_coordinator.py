"""FindCoordinator: who coordinates a group or a transaction. This broker does, whichever it is.

So it takes no state, and the broker behind the gateway is not asked: a client is sent
back to where it came to, at the address that its listener advertises. Share groups are
not served: nobody coordinates them, as on any Kafka that does not know of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode
from ..observe.names import FIND_COORDINATOR as FIND_COORDINATOR_SPAN
from ..ops.base import Envelope
from ..types import message
from ..wire.apis.find_coordinator import FIND_COORDINATOR

if TYPE_CHECKING:
    from .server import Gateway

MANY_SINCE: Final = 4  # before, one key is asked for, and the answer stands in the reply itself
KINDS: Final = (0, 1)  # of keys: groups, transactions


@message
class Coordinator:
    key: str = ""
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


@message
class FindCoordinatorReply:
    """From version 4 on `coordinators`, before that what stands before it."""

    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    coordinators: Sequence[Coordinator] = ()


def answer(
    gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int
) -> FindCoordinatorReply:
    if gateway.spans is None:
        return _answer(gateway, caller, frame, at, version)
    with gateway.spans.local(FIND_COORDINATOR_SPAN, caller):
        return _answer(gateway, caller, frame, at, version)


def _answer(
    gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int
) -> FindCoordinatorReply:
    """Any key will do, the empty one as well, and each is answered as often as it comes."""
    request, _ = FIND_COORDINATOR.request_decoder(version)(frame, at, gateway.elements)
    known = request.key_type in KINDS
    if version >= MANY_SINCE:
        keys: list[str] = request.coordinator_keys
        return FindCoordinatorReply(
            coordinators=[_ourselves(gateway, caller, k) if known else _nobody(k) for k in keys]
        )
    found = _ourselves(gateway, caller, request.key) if known else _nobody(request.key)
    return FindCoordinatorReply(
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        error_code=found.error_code,
        error_message=found.error_message or "NONE",
    )


def _ourselves(gateway: Gateway, caller: Envelope, key: str) -> Coordinator:
    return Coordinator(key=key, node_id=gateway.node_id, host=caller.host, port=caller.port)


def _nobody(key: str) -> Coordinator:
    refused = ErrorCode.INVALID_REQUEST
    return Coordinator(key=key, error_code=refused, error_message=refused.meaning)
