"""SASL on a listener that speaks plain text without authentication: out of place, and said so.

Clients look for these two APIs before they authenticate, so they are served; every
listener that there is so far is PLAINTEXT, where Kafka's answer is ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode
from ..ops.base import Envelope
from ..types import message
from ..wire.apis.sasl_authenticate import SASL_AUTHENTICATE
from ..wire.apis.sasl_handshake import SASL_HANDSHAKE

if TYPE_CHECKING:
    from .server import Gateway

OUT_OF_PLACE: Final = "this listener does not authenticate: SASL has no place here"


@message
class HandshakeReply:
    error_code: ErrorCode
    mechanisms: Sequence[str] = ()


@message
class AuthenticateReply:
    error_code: ErrorCode
    error_message: str | None = None


def handshake(gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int) -> HandshakeReply:
    SASL_HANDSHAKE.request_decoder(version)(frame, at)
    return HandshakeReply(error_code=ErrorCode.ILLEGAL_SASL_STATE)


def authenticate(
    gateway: Gateway, caller: Envelope, frame: memoryview, at: int, version: int
) -> AuthenticateReply:
    SASL_AUTHENTICATE.request_decoder(version)(frame, at)
    return AuthenticateReply(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=OUT_OF_PLACE)
