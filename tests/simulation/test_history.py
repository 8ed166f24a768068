"""The judge finds each anomaly where one is planted, and nothing where nothing is.

Every test plants one wrong thing in a history that was right, and expects exactly
the anomalies that follow from it: a judge with false alarms is worth no more than a
blind one.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import attrs
import pytest

from .history import AskedEnd, History, Poll, Result, Seen, Send, Verdict, judge

TP = ("orders", 0)


def crc(value: str) -> int:
    return sum(value.encode())


def send(value: str, offset: int, at: float, *, result: Result = "ok", producer: str | None = None) -> Send:
    name, _, number = value.partition(":")
    return Send(
        producer=producer or name,
        tp=TP,
        value=value,
        crc=crc(value),
        order=int(number),
        begun=at,
        ended=at + 0.5,
        result=result,
        offset=offset if result == "ok" else -1,
    )


def seen(offset: int, value: str) -> Seen:
    return Seen(offset, value, crc(value))


def poll(
    position: int,
    records: list[Seen],
    at: float,
    *,
    high_watermark: int = 4,
    reader: str = "reader",
    assignment: int = 0,
    stable_offset: int | None = None,
) -> Poll:
    stable = high_watermark if stable_offset is None else stable_offset
    return Poll(reader, assignment, TP, position, at, at + 0.1, tuple(records), high_watermark, stable)


@pytest.fixture
def history() -> History:
    """Two producers, one after the other; a reader who read everything in two polls."""
    log = [seen(0, "ann:0"), seen(1, "bob:0"), seen(2, "ann:1"), seen(3, "bob:1")]
    return History(
        sends=[send("ann:0", 0, 1), send("bob:0", 1, 2), send("ann:1", 2, 3), send("bob:1", 3, 4)],
        polls=[poll(0, log[:2], 10), poll(2, log[2:], 11)],
        ends=[AskedEnd(TP, 9, 9.5, 4)],
        faults=[(5.0, "kill")],
        finals={TP: log},
        full_readers={"reader"},
    )


def kinds(history: History) -> set[str]:
    return set(judge(history).anomalies)


def test_a_right_history_has_no_anomaly(history: History) -> None:
    verdict = judge(history)

    assert verdict == Verdict(anomalies={}, sends=4, acked=4, polls=2, faults=1)
    assert verdict.worth


def test_an_astonishing_answer(history: History) -> None:
    history.surprises.append("ann: OUT_OF_ORDER_SEQUENCE_NUMBER for the batch that is next")

    assert kinds(history) == {"L0"}


def test_lost_write(history: History) -> None:
    history.sends.append(send("ann:2", 4, 5))

    # Nobody saw it either; and the readers were told an end that does not cover it.
    assert kinds(history) == {"L1", "L13", "L14"}


def test_moved_write(history: History) -> None:
    history.sends[2] = attrs.evolve(history.sends[2], offset=7)

    assert "L2" in kinds(history)
    assert "L1" not in kinds(history)


def test_read_then_lost(history: History) -> None:
    history.sends[3] = send("bob:1", -1, 4, result="info")
    history.finals[TP].pop()

    assert kinds(history) == {"L3"}


def test_offset_used_twice(history: History) -> None:
    history.sends.append(send("ann:2", -1, 5, result="info"))
    history.polls.append(poll(3, [seen(3, "ann:2")], 12, reader="other", assignment=1))

    assert kinds(history) == {"L3", "L4"}


def test_duplicate(history: History) -> None:
    history.finals[TP].append(seen(4, "bob:1"))

    assert kinds(history) == {"L5"}


def test_reordered(history: History) -> None:
    """Two values of one producer, sent together, unanswered, and stored the wrong way round."""
    history.sends += [send("ann:2", -1, 5, result="info"), send("ann:3", -1, 5, result="info")]
    history.finals[TP] += [seen(4, "ann:3"), seen(5, "ann:2")]

    assert kinds(history) == {"L6"}


def test_a_value_that_nobody_sent(history: History) -> None:
    history.finals[TP].append(seen(4, "ghost"))

    assert kinds(history) == {"L7"}


def test_a_value_with_other_contents_than_were_sent(history: History) -> None:
    history.finals[TP][1] = Seen(1, "bob:0", 12345)

    assert kinds(history) == {"L7"}


def test_a_refused_value_that_is_there(history: History) -> None:
    history.sends.append(send("ann:2", -1, 5, result="fail"))
    history.finals[TP].append(seen(4, "ann:2"))

    assert kinds(history) == {"L8"}


def test_a_refused_value_that_was_taken_on_another_try_is_no_anomaly(history: History) -> None:
    history.sends.append(send("bob:1", -1, 3.6, result="fail"))

    assert kinds(history) == set()


def test_a_poll_that_went_back(history: History) -> None:
    history.polls.append(poll(4, [seen(3, "bob:1")], 12))

    assert kinds(history) == {"L9"}


def test_going_back_after_a_seek_is_no_anomaly(history: History) -> None:
    history.polls.append(poll(1, [seen(1, "bob:0")], 12, assignment=1))

    assert kinds(history) == set()


def test_a_poll_that_skipped(history: History) -> None:
    history.polls[1] = poll(2, [seen(3, "bob:1")], 11)

    assert kinds(history) == {"L10", "L14"}


def test_a_hole_in_the_log_is_not_skipping(history: History) -> None:
    """Compaction and control records leave holes; offsets need not follow one another."""
    history.sends.append(send("ann:2", 9, 5))
    history.finals[TP].append(seen(9, "ann:2"))
    history.polls.append(poll(4, [seen(9, "ann:2")], 12, high_watermark=10))
    history.polls[:2] = [attrs.evolve(p, high_watermark=10) for p in history.polls[:2]]
    history.ends.clear()

    assert kinds(history) == set()


def test_time_turned(history: History) -> None:
    history.sends[0] = attrs.evolve(history.sends[0], begun=8.0, ended=8.5)

    assert kinds(history) == {"L11"}


def test_sends_that_overlap_may_lie_either_way(history: History) -> None:
    history.sends[0] = attrs.evolve(history.sends[0], begun=1.0, ended=8.0)

    assert kinds(history) == set()


def test_the_watermark_fell(history: History) -> None:
    history.polls.append(poll(4, [], 12, high_watermark=5))
    history.polls.append(poll(4, [], 13, high_watermark=4))

    assert kinds(history) == {"L12"}


def test_a_stable_offset_above_the_watermark(history: History) -> None:
    history.polls.append(poll(4, [], 12, stable_offset=5))

    assert kinds(history) == {"L12"}


def test_answers_that_cross_on_the_way_are_no_fall(history: History) -> None:
    history.polls.append(attrs.evolve(poll(4, [], 12, high_watermark=5), ended=14))
    history.polls.append(attrs.evolve(poll(4, [], 12.5, high_watermark=4), ended=13))

    assert kinds(history) == set()


def test_a_stale_read(history: History) -> None:
    history.ends[0] = AskedEnd(TP, 4.9, 5.0, 3)

    assert kinds(history) == {"L13"}


def test_an_end_asked_before_the_answer_may_lack_it(history: History) -> None:
    history.ends[0] = AskedEnd(TP, 4.2, 5.0, 3)

    assert kinds(history) == set()


def test_unseen(history: History) -> None:
    history.polls.pop()

    assert kinds(history) == {"L14"}


def test_who_did_not_mean_to_read_all_misses_nothing(history: History) -> None:
    history.polls.pop()
    history.full_readers.clear()

    assert kinds(history) == set()


@pytest.mark.parametrize(
    "spoil",
    [lambda h: h.faults.clear(), lambda h: h.sends.clear(), lambda h: h.sends.extend(unanswered())],
    ids=["no fault", "no send", "nearly nothing acknowledged"],
)
def test_silence_after_too_little_is_worth_nothing(
    history: History, spoil: Callable[[History], None]
) -> None:
    spoil(history)

    assert not judge(history).worth


def unanswered() -> list[Send]:
    return [send(f"ann:{number}", -1, 5, result="info") for number in range(2, 9)]


def test_the_verdict_tells_what_and_how_often(history: History) -> None:
    history.finals[TP].append(seen(4, "bob:1"))

    assert str(judge(history)).splitlines() == [
        "4 of 4 sends acknowledged, 2 polls, 1 faults",
        "L5: 1 times, such as bob:1 lies at [3, 4] of ('orders', 0)",
    ]


def test_a_long_right_history_is_judged_quickly_and_rightly() -> None:
    """Ten thousand sends that overlap: were a rule quadratic, this would take minutes."""
    dice = random.Random(1)
    log = [seen(offset, f"{'abcdefgh'[offset % 8]}:{offset}") for offset in range(10_000)]
    history = History(
        sends=[
            attrs.evolve(send(s.value, s.offset, float(s.offset)), ended=s.offset + dice.uniform(0.1, 5))
            for s in log
        ],
        polls=[
            poll(at, log[at : at + 50], 20_000.0 + at, high_watermark=10_000) for at in range(0, 10_000, 50)
        ],
        finals={TP: log},
        full_readers={"reader"},
    )

    assert judge(history).anomalies == {}
