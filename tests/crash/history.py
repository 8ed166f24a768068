"""What clients were told, and whether the log that is there in the end agrees.

A record's value names its producer and its place in that producer's sequence, so any log can be
judged from its bytes alone. The anomalies keep the names of the list that they were taken from:
L1 a lost write, L2 a moved one, L3 one that was read and then lost, L4 an offset used twice, L5 a
duplicate of an idempotent producer, L6 its order broken, L7 a record that nobody sent, L10 a hole.

The class is plain and knows no client; test_history.py shows that each anomaly is found.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from itertools import pairwise

Final = Mapping[int, Sequence[tuple[int, bytes]]]  # partition -> (offset, value) in the order of the log


def value_of(producer: str, sequence: int, size: int = 100) -> bytes:
    return b"%s:%d:" % (producer.encode(), sequence) + b"." * size


class History:
    """Filled by several threads at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sent: set[bytes] = set()
        self.once: set[str] = set()  # producers that promised exactly once, in order
        self.acked: dict[bytes, tuple[int, int]] = {}
        self.seen: dict[tuple[int, int], bytes] = {}
        self.at_once: list[str] = []  # anomalies that show without the final log

    def will_send(self, value: bytes) -> None:
        with self.lock:
            self.sent.add(value)

    def was_acked(self, value: bytes, partition: int, offset: int) -> None:
        with self.lock:
            self.acked[value] = partition, offset
            self._at(partition, offset, value)

    def was_read(self, partition: int, offset: int, value: bytes) -> None:
        with self.lock:
            self._at(partition, offset, value)

    def _at(self, partition: int, offset: int, value: bytes) -> None:
        if self.seen.setdefault((partition, offset), value) != value:
            self.at_once.append(f"L4 two records at {partition}:{offset}")

    def acked_until(self) -> dict[int, int]:
        """Per partition the offset after the last acknowledged record."""
        until: dict[int, int] = {}
        with self.lock:
            for partition, offset in self.acked.values():
                until[partition] = max(until.get(partition, 0), offset + 1)
        return until

    def anomalies(self, final: Final) -> list[str]:
        """All that is wrong with this log; acks that came after it was read are not held against it."""
        with self.lock:
            acked, seen, found = dict(self.acked), dict(self.seen), list(self.at_once)
        there = {(partition, offset): value for partition, log in final.items() for offset, value in log}
        until = {partition: log[-1][0] + 1 if log else 0 for partition, log in final.items()}
        places = {value: at for at, value in there.items()}
        for value, (partition, offset) in acked.items():
            if there.get((partition, offset)) != value:
                where = places.get(value)
                found.append(f"L2 {name(value)} moved to {where}" if where else f"L1 {name(value)} lost")
        for (partition, offset), value in seen.items():
            if there.get((partition, offset)) != value:
                found.append(f"L3 {name(value)} was seen at {partition}:{offset} of {until.get(partition)}")
        for partition, log in final.items():
            found += self._within(partition, log)
        return found

    def _within(self, partition: int, log: Sequence[tuple[int, bytes]]) -> list[str]:
        found = []
        last: dict[str, int] = {}
        for _, value in log:
            if value not in self.sent:
                found.append(f"L7 nobody sent {name(value)}")
                continue
            producer, sequence = value.decode().split(":")[:2]
            if producer in self.once:
                if int(sequence) == last.get(producer):
                    found.append(f"L5 {name(value)} twice in {partition}")
                elif int(sequence) < last.get(producer, -1):
                    found.append(f"L6 {name(value)} after {last[producer]} in {partition}")
                last[producer] = int(sequence)
        holes = [
            f"L10 nothing between {a} and {b} in {partition}"
            for (a, _), (b, _) in pairwise(log)
            if b != a + 1
        ]
        return found + holes


def name(value: bytes) -> str:
    return value[:40].decode(errors="replace").rstrip(".")
