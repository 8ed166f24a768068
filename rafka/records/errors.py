"""The one error of this room: a batch that is refused, or cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ErrorCode, KafkaError


class BadBatch(KafkaError):
    """Refuses the batch of one partition.

    `message` is what the client is told, and Kafka tells it only where records are to
    blame; `reason` is for the log of the broker and always there. `record_errors` names
    records by their index in the batch. `appending` says that Kafka finds this fault
    while it appends: the answer then carries the log's start offset, else -1.
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str,
        *,
        appending: bool,
        message: str | None = None,
        record_errors: Sequence[tuple[int, str | None]] = (),
    ) -> None:
        super().__init__(code, message)
        self.reason = reason
        self.appending = appending
        self.record_errors = list(record_errors)

    def __str__(self) -> str:
        return f"{self.code.name}: {self.reason}"


def damaged(reason: str) -> BadBatch:
    """Records that are not as the format wants them."""
    return BadBatch(ErrorCode.INVALID_RECORD, reason, appending=True)


def unreadable(reason: str) -> BadBatch:
    """What makes Kafka stumble rather than refuse: it answers UNKNOWN_SERVER_ERROR."""
    return BadBatch(ErrorCode.UNKNOWN_SERVER_ERROR, reason, appending=True)


def too_large(reason: str) -> BadBatch:
    return BadBatch(ErrorCode.MESSAGE_TOO_LARGE, reason, appending=False)
