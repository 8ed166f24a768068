"""What a producer is told beforehand, and what becomes of each record it was given."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import attrs

from .accumulator import Batch
from .model import Delivered

ACKS: Final = {"0": 0, "1": 1, "-1": -1, "all": -1}


@attrs.frozen(kw_only=True)
class ProducerSettings:
    """Times are in seconds, sizes in bytes. Defaults are the Java client's."""

    acks: int = -1
    idempotent: bool | None = None  # None: where acks allow it
    compression: int = 0  # the codec's number in a batch
    level: int | None = None
    batch_size: int = 16384
    linger: float = 0.005
    request_size: int = 1024 * 1024
    buffer_size: int = 32 * 1024 * 1024
    in_flight: int = 5  # requests per broker
    delivery_timeout: float = 120.0
    auto_create: bool = True  # ask the broker to make a topic that is not there, where it does that

    def __attrs_post_init__(self) -> None:
        if self.acks not in (-1, 0, 1):
            raise ValueError(f"acks is 0, 1 or all, not {self.acks}")
        if self.idempotent and self.acks != -1:
            raise ValueError(
                "an idempotent producer needs acks=all: only then can a retry be told from a repeat"
            )

    @property
    def sequenced(self) -> bool:
        return self.acks == -1 if self.idempotent is None else self.idempotent


def parse_acks(text: str) -> int:
    """The number for `0`, `1`, `-1` or `all`."""
    try:
        return ACKS[text.lower()]
    except KeyError:
        raise ValueError(f"acks is 0, 1 or all, not {text!r}") from None


class Delivery:
    """What becomes of one record. `await delivery` gives a `Delivered`, or raises what went wrong."""

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    @property
    def batch(self) -> Batch:
        """What it is sent with: records of one batch arrive together."""
        return self._batch

    @property
    def done(self) -> bool:
        return self._batch.finished

    def __await__(self) -> Generator[Any, Any, Delivered]:
        return self.wait().__await__()

    async def wait(self) -> Delivered:
        await self._batch.wait()
        return self.result()

    def result(self) -> Delivered:
        """As `wait`, of a delivery that is done."""
        batch = self._batch
        if batch.error is not None:
            raise batch.error
        offset = batch.base_offset + self._index if batch.base_offset >= 0 else -1
        timestamp = batch.append_time_ms
        if timestamp < 0:
            timestamp = batch.records[self._index].timestamp
        return Delivered(batch.target.topic, batch.target.partition, offset, timestamp)
