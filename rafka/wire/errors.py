"""What can go wrong between bytes and messages.

`WireError` is the peer's doing: bytes that are no message. Kafka answers it by
closing the connection, without a reply. `UnwritableError` is our own: an object that
has no form on the wire, such as null where the version has no null.
"""

from __future__ import annotations


class WireError(ValueError):
    """These bytes are not the message that they claim to be."""


class UnwritableError(TypeError):
    """This object cannot be written as the message that it is meant for."""
