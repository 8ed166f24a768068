"""Records that are written while members come and go, and are remembered once the broker has them."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from contextlib import closing
from typing import Final, Self

from kafka import KafkaProducer

PAUSE: Final = 0.01  # between two helpings, of one record for each partition
FLUSHED: Final = 30.0


class Load:
    """A producer in a thread of its own, from `with` to `stop` or the end of the block."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic: Final = topic
        self.partitions: Final = partitions
        self.bootstrap: Final = bootstrap
        self.acked: set[str] = set()
        self._name: Final = uuid.uuid4().hex[:8]
        self._numbers: Final = itertools.count()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._produce, name="load", daemon=True)
        self._error: Exception | None = None

    def stop(self) -> set[str]:
        """No more from now on; the values of all that the broker has taken."""
        self._stop.set()
        self._thread.join(FLUSHED)
        assert not self._thread.is_alive(), "the producer does not come to an end"
        assert self._error is None, self._error
        return self.acked

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _produce(self) -> None:
        try:
            with closing(
                KafkaProducer(bootstrap_servers=self.bootstrap, enable_idempotence=True, acks="all")
            ) as producer:
                futures = []
                while not self._stop.is_set():
                    for partition in range(self.partitions):
                        value = f"{self._name} {next(self._numbers)}"
                        futures.append(
                            (value, producer.send(self.topic, value.encode(), partition=partition))
                        )
                    time.sleep(PAUSE)
                producer.flush(FLUSHED)
                self.acked = {value for value, future in futures if future.get(FLUSHED)}
        except Exception as error:
            self._error = error
