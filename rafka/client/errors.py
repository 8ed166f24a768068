"""What can go wrong for a client, each with one line that says what to do about it.

Everything a caller may want to catch is a `ClientError`. `retriable` says that the same
call may succeed later; the client has by then tried for as long as it was allowed to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ..errors import ErrorCode


class ClientError(Exception):
    """The root of all that this package raises on purpose. `str(error)` is one line."""

    retriable = False


class NotReachable(ClientError):
    """No broker of the bootstrap list could be talked to."""

    retriable = True

    def __init__(self, tried: Iterable[tuple[str, str]]) -> None:
        self.tried: Final = tuple(tried)
        reasons = "; ".join(f"{address}: {reason}" for address, reason in self.tried)
        super().__init__(
            f"no broker can be reached ({reasons}): is it running, and is the bootstrap address right?"
        )


class NoBroker(ClientError):
    """Whoever answers knows of no broker: a gateway, say, whose broker is away."""

    retriable = True

    def __init__(self) -> None:
        super().__init__(
            "no broker is available: what answers at the bootstrap address has none behind it at the moment"
        )


class ConnectionLost(ClientError):
    """The connection broke before the answer came. What was asked may have been done or not."""

    retriable = True


class RequestTimedOut(ClientError):
    """The broker is connected but did not answer in time."""

    retriable = True


class ProtocolMismatch(ClientError):
    """What answers does not speak Kafka's protocol, or speaks it wrongly."""


class NotWritable(ClientError):
    """What is asked has no form in Kafka's protocol: a name that is too long, say, or is no text."""


class UnsupportedVersion(ClientError):
    """The broker is too old, or too new, for what was asked."""


class BrokerRefused(ClientError):
    """The broker answered with an error code."""

    def __init__(self, code: ErrorCode, subject: str, message: str | None = None) -> None:
        super().__init__(f"{subject}: {code.name}: {message or code.meaning}")
        self.code: Final = code
        self.subject: Final = subject
        self.retriable = code.retriable


class UnknownTopic(BrokerRefused):
    """The topic, or that partition of it, does not exist."""

    def __init__(self, subject: str, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
        super().__init__(code, subject, "it does not exist: create it, or check the name")


class OffsetOutOfRange(ClientError):
    """The offset asked for is no longer, or not yet, in the log."""


class CorruptBatch(ClientError):
    """A fetched batch fails its checksum or cannot be read."""


class UnknownGroup(BrokerRefused):
    """There is no such group."""

    def __init__(self, subject: str, message: str | None = None) -> None:
        super().__init__(
            ErrorCode.GROUP_ID_NOT_FOUND, subject, message or "it does not exist: check the name"
        )


class BufferFull(ClientError):
    """A record larger than the whole buffer of the producer."""


class DeliveryTimedOut(ClientError):
    """A record was not acknowledged within the delivery timeout. It may have been written or not."""

    retriable = True


_BY_NUMBER: Final = {int(code): code for code in ErrorCode}


def error_code(number: int) -> ErrorCode:
    """The code of that number; one this release does not know counts as UNKNOWN_SERVER_ERROR."""
    return _BY_NUMBER.get(number, ErrorCode.UNKNOWN_SERVER_ERROR)


UNKNOWN_TOPIC_CODES: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


def refused(number: int, subject: str, message: str | None = None) -> BrokerRefused:
    """The error for a code that is not NONE."""
    code = error_code(number)
    if code in UNKNOWN_TOPIC_CODES:
        return UnknownTopic(subject, code)
    if code is ErrorCode.GROUP_ID_NOT_FOUND:
        return UnknownGroup(subject, message)
    if code is ErrorCode.UNKNOWN_SERVER_ERROR and number != code and message is None:
        message = f"error code {number}, which this client does not know"
    return BrokerRefused(code, subject, message)


def refused_if(number: int, subject: str, message: str | None = None) -> BrokerRefused | None:
    """The error for a code, None for NONE."""
    return None if error_code(number) is ErrorCode.NONE else refused(number, subject, message)


def group_named(group_id: str) -> str:
    """How errors name a group."""
    return f"group {group_id!r}"
