"""The figures of `rafka bench`, in Kafka's words."""

from __future__ import annotations

import re

from rafka.cli.figures import CONSUMED_HEADER, Latencies, Progress, consumed_row, end_to_end, sentence


def test_the_sentence_is_that_of_the_producers_perf_test() -> None:
    latencies = Latencies([float(i) for i in range(1, 1001)])

    text = sentence(1000, 1000 * 1024, 2.0, latencies)

    assert text == (
        "1000 records sent, 500.0 records/sec (0.49 MB/sec), 500.50 ms avg latency, 1000.00 ms max latency, "
        "501 ms 50th, 951 ms 95th, 991 ms 99th, 1000 ms 99.9th."
    )


def test_a_window_has_only_what_came_since_the_last() -> None:
    latencies, progress = Latencies(), Progress(began=100.0)
    latencies.add(10)
    progress.add(1, 50)
    latencies.window(), progress.since_last(105.0)
    latencies.add(30)
    progress.add(2, 100)

    assert latencies.window().all == [30]
    assert progress.since_last(109.0) == (2, 100, 4.0)
    assert sentence(2, 100, 4.0, Latencies([30.0]), percentiles=False).endswith("30.00 ms max latency.")


def test_nothing_measured_is_no_error() -> None:
    assert "0 records sent, 0.0 records/sec" in sentence(0, 0, 0.0, Latencies())


def test_the_row_has_the_columns_of_the_consumers_perf_test() -> None:
    progress = Progress(began=0.0)
    progress.add(1000, 1024 * 1024)

    row = consumed_row(1_000_000_000.25, 2.0, progress).split(", ")

    assert len(row) == len(CONSUMED_HEADER.split(", "))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:250", row[0])
    assert row[2:] == ["1.0000", "0.5000", "1000", "500.0000", "0", "2000", "0.5000", "500.0000"]


def test_the_way_from_end_to_end() -> None:
    assert end_to_end(Latencies([1.0, 2.0, 3.0])) == (
        "Avg latency: 2.0000 ms\n\nPercentiles: 50th = 2.00, 99th = 3.00, 99.9th = 3.00"
    )
