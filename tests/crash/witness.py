"""A consumer that comes after each crash and compares the log with what clients were told."""

from __future__ import annotations

from tests.brokers import RafkaProcess

from .asking import offset_of, wait_for_offset
from .history import History
from .load import log_of


class Witness:
    """Reads what is new after each crash, and everything again in the end."""

    def __init__(self, topic: str, partitions: int, history: History) -> None:
        self.topic = topic
        self.history = history
        self.final: dict[int, list[tuple[int, bytes]]] = {partition: [] for partition in range(partitions)}

    def missing(self, broker: RafkaProcess, until: dict[int, int]) -> list[str]:
        """What is wrong already: acknowledged records that are not there, or what readers noticed."""
        for partition, end in until.items():
            known = self.final[partition]
            start = known[-1][0] + 1 if known else 0
            wait_for_offset(broker.port, self.topic, partition, end)
            known += log_of(broker.bootstrap, self.topic, partition, start, end)
        short = [
            f"L1 partition {partition} was acknowledged up to {end}, and read up to {self._end(partition)}"
            for partition, end in until.items()
            if self._end(partition) < end
        ]
        return short + list(self.history.at_once)

    def anomalies(self, broker: RafkaProcess) -> list[str]:
        """The verdict over the whole log, once nobody writes any more."""
        for partition, end in self.history.acked_until().items():
            wait_for_offset(broker.port, self.topic, partition, end)
            end = offset_of(broker.port, self.topic, partition)
            self.final[partition] = log_of(broker.bootstrap, self.topic, partition, 0, end)
        return self.history.anomalies(self.final)

    def _end(self, partition: int) -> int:
        return self.final[partition][-1][0] + 1 if self.final[partition] else 0
