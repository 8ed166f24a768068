"""From the records of a batch to its bytes. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..errors import KafkaError
from ..records.build import build
from ..records.record import Record
from .errors import ClientError
from .model import Headers

RECORD_OVERHEAD: Final = 21  # lengths and deltas, at their longest
HEADER_OVERHEAD: Final = 10


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The most bytes that a record takes in a batch, before compression."""
    size = RECORD_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, data in headers:
        size += HEADER_OVERHEAD + 4 * len(name) + (0 if data is None else len(data))
    return size


def encode_batch(
    records: Sequence[Record], identity: tuple[int, int], sequence: int, codec: int, level: int | None
) -> bytes:
    """The batch as it is sent. `identity` is producer id and epoch, (-1, -1) where there is none."""
    producer_id, producer_epoch = identity
    try:
        return build(
            records,
            codec=codec,
            level=level,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
    except KafkaError as error:  # a codec whose library is not installed
        raise ClientError(error.message or error.code.meaning) from error
