"""The figures of `rafka bench`, and the sentences in which Kafka's perf tools print them. No I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs

MEGABYTE: Final = 1024 * 1024

CONSUMED_HEADER: Final = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


@attrs.define
class Latencies:
    """Milliseconds, one for each record."""

    all: list[float] = attrs.field(factory=list)
    _seen: int = 0

    def add(self, latency_ms: float) -> None:
        self.all.append(latency_ms)

    @property
    def average(self) -> float:
        return sum(self.all) / len(self.all) if self.all else 0.0

    @property
    def greatest(self) -> float:
        return max(self.all, default=0.0)

    def percentiles(self, *shares: float) -> list[float]:
        """The latency that so large a share of all does not exceed, for each."""
        ordered = sorted(self.all)
        return [
            ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0 for share in shares
        ]

    def window(self) -> Latencies:
        """Those since the last window."""
        fresh = Latencies(self.all[self._seen :])
        self._seen = len(self.all)
        return fresh


@attrs.define
class Progress:
    """What was done so far."""

    began: float
    records: int = 0
    bytes: int = 0
    _last: tuple[int, int, float] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._last = (0, 0, self.began)

    def add(self, records: int, size: int) -> None:
        self.records += records
        self.bytes += size

    def since_last(self, now: float) -> tuple[int, int, float]:
        """Records, bytes and seconds since this was last asked."""
        records, size, at = self._last
        self._last = (self.records, self.bytes, now)
        return self.records - records, self.bytes - size, now - at


def sentence(
    records: int, size: int, seconds: float, latencies: Latencies, *, percentiles: bool = True
) -> str:
    """What kafka-producer-perf-test prints: of a window without percentiles, at the end with them."""
    seconds = max(seconds, 1e-9)
    rate, megabytes = records / seconds, size / seconds / MEGABYTE
    text = (
        f"{records} records sent, {rate:.1f} records/sec ({megabytes:.2f} MB/sec), "
        f"{latencies.average:.2f} ms avg latency, {latencies.greatest:.2f} ms max latency"
    )
    if percentiles:
        p50, p95, p99, p999 = latencies.percentiles(0.5, 0.95, 0.99, 0.999)
        text += f", {p50:.0f} ms 50th, {p95:.0f} ms 95th, {p99:.0f} ms 99th, {p999:.0f} ms 99.9th"
    return f"{text}."


def consumed_row(began_at: float, seconds: float, progress: Progress) -> str:
    """A line of kafka-consumer-perf-test. No group is joined, so nothing is spent on rebalancing."""
    megabytes = progress.bytes / MEGABYTE
    spent = max(seconds, 1e-9)
    return ", ".join(
        [
            _time(began_at),
            _time(began_at + seconds),
            f"{megabytes:.4f}",
            f"{megabytes / spent:.4f}",
            f"{progress.records}",
            f"{progress.records / spent:.4f}",
            "0",
            f"{seconds * 1000:.0f}",
            f"{megabytes / spent:.4f}",
            f"{progress.records / spent:.4f}",
        ]
    )


def end_to_end(latencies: Latencies) -> str:
    """What kafka-e2e-latency prints, with fractions: whole milliseconds say little here."""
    p50, p99, p999 = latencies.percentiles(0.5, 0.99, 0.999)
    return (
        f"Avg latency: {latencies.average:.4f} ms\n\n"
        f"Percentiles: 50th = {p50:.2f}, 99th = {p99:.2f}, 99.9th = {p999:.2f}"
    )


def _time(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}:{moment.microsecond // 1000:03d}"
