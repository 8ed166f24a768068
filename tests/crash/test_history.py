"""The judge is judged: each anomaly, planted, is found; a good log is passed."""

from __future__ import annotations

import pytest

from .history import History, value_of

A0, A1, A2, B0 = value_of("a", 0), value_of("a", 1), value_of("a", 2), value_of("b", 0)


@pytest.fixture
def history() -> History:
    """Producer `a` promised exactly once; its first two records were acknowledged, `b` never was."""
    history = History()
    history.once.add("a")
    for value in (A0, A1, A2, B0):
        history.will_send(value)
    history.was_acked(A0, 0, 0)
    history.was_acked(A1, 0, 1)
    return history


@pytest.mark.parametrize(
    "log",
    [
        [(0, A0), (1, A1)],
        [(0, A0), (1, A1), (2, B0), (3, A2)],
        [(0, A0), (1, A1), (2, B0), (3, B0)],
    ],
    ids=["exactly what was acknowledged", "what was not may be there", "b promised nothing"],
)
def test_a_log_that_kept_its_promises_passes(history: History, log: list[tuple[int, bytes]]) -> None:
    assert history.anomalies({0: log}) == []


@pytest.mark.parametrize(
    ("anomaly", "log"),
    [
        ("L1", [(0, A0)]),
        ("L2", [(0, A0), (1, B0), (2, A1)]),
        ("L5", [(0, A0), (1, A1), (2, A1)]),
        ("L6", [(0, A0), (1, A1), (2, A2), (3, A1)]),
        ("L7", [(0, A0), (1, A1), (2, b"x:0:")]),
        ("L10", [(0, A0), (1, A1), (3, B0)]),
    ],
)
def test_a_planted_anomaly_is_found(history: History, anomaly: str, log: list[tuple[int, bytes]]) -> None:
    assert anomaly in {found.split()[0] for found in history.anomalies({0: log})}


def test_what_was_read_and_then_vanished_is_found(history: History) -> None:
    history.was_read(0, 2, B0)

    assert [found.split()[0] for found in history.anomalies({0: [(0, A0), (1, A1)]})] == ["L3"]


def test_an_offset_given_twice_is_found_at_once(history: History) -> None:
    history.was_acked(B0, 0, 1)

    assert history.at_once == ["L4 two records at 0:1"]
